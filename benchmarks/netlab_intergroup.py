"""InterGroup between network namespaces: every member a host of its own, every link with loss, delay and jitter.

The hosts and the switch between them are those of `netlab.py`, a tool outside this repository whose path is to be
given; it needs root, iproute2 and /dev/net/tun. The group is that of a scenario, `scenarios/real/intergroup-lossy.toml`
by default. What that injects on receipt is taken out: here the switch loses, and the distances of the scenario become
the delay of the links. The supervisor runs outside and starts each member in its namespace; their traces make one run
directory, which is judged, and must show that the faults happened. Exit code 1 if something does not hold.

    python -m benchmarks.netlab_intergroup NETLAB.py [SCENARIO] [--loss 0.1] [--delay-ms 5] [--jitter-ms 2] [--out DIR]
"""

import argparse
import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from antiphon.node.supervisor import Place, run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.model import Fixed, Scenario
from antiphon.scenario.read import judged, read_scenario
from antiphon.scenario.units import Duration
from antiphon.trace.table import events_table
from benchmarks.evidence import evidence_in
from benchmarks.real_runs import SCENARIOS, keep_run

MS: Final = 1_000_000


def load(path: Path) -> ModuleType:
    """The tool, from wherever it is."""
    spec = importlib.util.spec_from_file_location("netlab", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["netlab"] = module  # its dataclasses look there for their names
    spec.loader.exec_module(module)
    return module


def adapted(scenario: Scenario, loss: float, delay_ms: float) -> Scenario:
    """The same group, told how far its members are from each other and what the links lose."""
    latency = Fixed(value=Duration(int(delay_ms * MS)))
    network = msgspec.structs.replace(scenario.network, latency=latency, loss=loss, duplicate=0.0, reorder=0.0)
    return judged(msgspec.structs.replace(scenario, network=network, site=(), path=()))


@contextmanager
def hosts(netlab: ModuleType, scenario: Scenario, jitter_ms: float) -> Iterator[tuple[dict[str, Place], Any]]:
    """A host for each process, its links as the scenario's network says; gives where they are, and the switch."""
    network = scenario.network
    assert isinstance(network.latency, Fixed)
    with netlab.Lab(len(scenario.processes), seed=scenario.seed) as lab:
        lab.all_links(delay=network.latency.value / 1e9, jitter=jitter_ms / 1e3, loss=network.loss)
        yield (
            {
                name: Place(lab.ip(rank), ("ip", "netns", "exec", lab.ns(rank)))
                for rank, name in enumerate(scenario.processes)
            },
            lab.switch,
        )


def lossless(scenario: Scenario) -> Scenario:
    """What the members play: nothing is lost by them, the switch does that."""
    return msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, loss=0.0))


def main() -> None:
    """Play, keep, judge, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netlab", type=Path, help="where netlab.py is")
    parser.add_argument("scenario", type=Path, nargs="?", default=SCENARIOS / "intergroup-lossy.toml")
    parser.add_argument("--loss", type=float, default=0.1, help="share of frames that each link loses")
    parser.add_argument("--delay-ms", type=float, default=5.0, help="of each link, one way")
    parser.add_argument("--jitter-ms", type=float, default=2.0, help="so much more or less; it reorders")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the run directory goes")
    arguments = parser.parse_args()
    scenario = adapted(read_scenario(arguments.scenario), arguments.loss, arguments.delay_ms)
    with hosts(load(arguments.netlab), scenario, arguments.jitter_ms) as (places, switch):
        run = run_locally(lossless(scenario), places=places)
        stats = [*switch.stats.values()]
    events = events_table(run.id, run.histories)
    if arguments.out is not None:
        keep_run(run, events, arguments.out)
    violated = [verdict for verdict in judge(events) if verdict.violations]
    missing = [*evidence_in(dataclasses.replace(run, scenario=scenario)).missing()]
    sent, lost = (sum(each[what] for each in stats) for what in ("sent", "lost"))
    print(f"{len(places)} hosts, {run.deliveries:,} deliveries; the switch lost {lost:,} of {sent + lost:,} frames")
    for sentence in [*missing, *(f"{each.property}: {each.example and each.example.sentence}" for each in violated)]:
        print(sentence)
    print("does not hold" if missing or violated else "holds")
    sys.exit(bool(missing or violated))


if __name__ == "__main__":
    main()
