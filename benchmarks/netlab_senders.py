"""InterGroup between network namespaces, with loss and under load: sender groups that change, many times.

In each round a sender is killed, or two partitions of senders merge, or a receiver is promoted
(`tools/lab/sender_changes.py`). Every member has a host of its own (`tools/netlab.py`: root, iproute2, /dev/net/tun).
The switch between the hosts loses frames and delays them. Without namespaces (`--loopback`, or where they are not
possible) the members themselves lose the datagrams on receipt. Each round is judged: all promised properties must hold,
the run must become quiet, and its trace must show the change. Exit code 1 if a round does not hold.

    python -m benchmarks.netlab_senders [--rounds 20] [--only kill|merge|promote] [--loss 0.05] [--keep DIR] [--json]
"""

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from antiphon.errors import AntiphonError
from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.sim.run import Run
from antiphon.trace.table import events_table
from tools.lab.evidence import evidence_in
from tools.lab.netlab_runs import hosts, lossless
from tools.lab.real_runs import keep_run
from tools.lab.sender_changes import CHANGES, Times, scenario_of, times_of
from tools.netlab import obstacle

JITTER_MS = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """One run."""

    change: str
    seed: int
    times: tuple[Times, ...] = ()
    problems: tuple[str, ...] = ()
    """One sentence each: violated properties, and what the trace does not show."""


def main() -> None:
    """Play all rounds; print a table, and a sentence for each problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="of each change")
    parser.add_argument("--only", choices=[*CHANGES], help="one change")
    parser.add_argument("--loss", type=float, default=0.05, help="share of frames that each link loses")
    parser.add_argument("--loopback", action="store_true", help="no namespaces: members lose datagrams on receipt")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each next one has the next")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where traces of rounds that fail go")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    reason = "" if arguments.loopback else obstacle()
    if reason:
        print(f"no namespaces, so members lose datagrams themselves: {reason}", file=sys.stderr)
    play = _on_loopback if arguments.loopback or reason else _between_hosts
    rounds = []
    for change in CHANGES if arguments.only is None else [arguments.only]:
        for seed in range(arguments.seed, arguments.seed + arguments.rounds):
            rounds.append(_round(play, change, seed, arguments.loss, arguments.keep))
            print(_line(rounds[-1]), file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(each) for each in rounds], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(rounds))
    sys.exit(any(each.problems for each in rounds))


def _between_hosts(scenario: Scenario) -> Run:
    with hosts(scenario, JITTER_MS) as (places, _):
        return run_locally(lossless(scenario), places=places)


def _on_loopback(scenario: Scenario) -> Run:
    return run_locally(scenario)


def _round(play: Callable[[Scenario], Run], change: str, seed: int, loss: float, keep: Path | None) -> Round:
    scenario = scenario_of(change, seed, loss)
    try:
        run = play(scenario)
    except AntiphonError as error:
        return Round(change, seed, problems=(str(error),))
    events = events_table(run.id, run.histories)
    times = tuple(times_of(change, run))
    problems = [*evidence_in(dataclasses.replace(run, scenario=scenario)).missing()]
    problems += [
        f"{each.property}: {each.example and each.example.sentence}" for each in judge(events) if each.violations
    ]
    alive = len(scenario.processes) - (change == "kill")
    if len(times) < alive:
        problems.append(f"{alive - len(times)} processes show no view, or no delivery, after the change")
    if problems and keep is not None:
        keep_run(run, events, keep / f"{change}-{seed}-{time.time_ns()}")
    return Round(change, seed, times, tuple(problems))


def _line(played: Round) -> str:
    said = "; ".join(played.problems) or "holds"
    longest = max((each.view_ms for each in played.times), default=0.0)
    return f"{played.change} {played.seed}: {said}; the last view after {longest:,.0f} ms"


def _table(rounds: list[Round]) -> Table:
    table = Table("change", "hold", title="Milliseconds at each process: median, longest", title_justify="left")
    for name in ("next view", "next delivery in it", "longest pause in deliveries"):
        table.add_column(name, justify="right")
    for change in dict.fromkeys(each.change for each in rounds):
        played = [each for each in rounds if each.change == change]
        held = f"{sum(not each.problems for each in played)}/{len(played)}"
        times = [each for one in played for each in one.times]
        figures = ([getattr(each, name) for each in times] for name in ("view_ms", "delivery_ms", "pause_ms"))
        table.add_row(CHANGES[change].title, held, *map(_figures, figures))
    return table


def _figures(values: list[Any]) -> str:
    return f"{statistics.median(values):,.0f}, {max(values):,.0f}" if values else "none"


if __name__ == "__main__":
    main()
