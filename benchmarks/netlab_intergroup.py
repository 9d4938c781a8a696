"""InterGroup between network namespaces: every member a host of its own, every link with loss, delay and jitter.

The hosts and the switch between them come from `tools/netlab.py`, which needs root, iproute2 and /dev/net/tun. The
group is that of a scenario, `scenarios/real/intergroup-lossy.toml` by default. The faults that this scenario injects
on receipt are taken out: here the switch loses frames, and the distances of the scenario become the delay of the
links. The supervisor runs outside and starts each member in its namespace. Their traces make one run directory, which
is judged, and must show that the faults happened. Exit code 1 if something does not hold.

    python -m benchmarks.netlab_intergroup [SCENARIO] [--loss 0.1] [--delay-ms 5] [--jitter-ms 2] [--out DIR]
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.read import read_scenario
from antiphon.trace.table import events_table
from tools.lab.evidence import evidence_in
from tools.lab.netlab_runs import adapted, hosts, lossless
from tools.lab.real_runs import SCENARIOS, keep_run


def main() -> None:
    """Play, keep, judge, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", type=Path, nargs="?", default=SCENARIOS / "intergroup-lossy.toml")
    parser.add_argument("--loss", type=float, default=0.1, help="share of frames that each link loses")
    parser.add_argument("--delay-ms", type=float, default=5.0, help="of each link, one way")
    parser.add_argument("--jitter-ms", type=float, default=2.0, help="so much more or less; it reorders")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the run directory goes")
    arguments = parser.parse_args()
    scenario = adapted(read_scenario(arguments.scenario), arguments.loss, arguments.delay_ms)
    with hosts(scenario, arguments.jitter_ms) as (places, fates):
        run = run_locally(lossless(scenario), places=places)
        counts = [*fates.counts.values()]
    events = events_table(run.id, run.histories)
    if arguments.out is not None:
        keep_run(run, events, arguments.out)
    violated = [verdict for verdict in judge(events) if verdict.violations]
    missing = [*evidence_in(dataclasses.replace(run, scenario=scenario)).missing()]
    sent, lost = sum(each.sent for each in counts), sum(each.lost for each in counts)
    print(f"{len(places)} hosts, {run.deliveries:,} deliveries; the switch lost {lost:,} of {sent + lost:,} frames")
    for sentence in [*missing, *(f"{each.property}: {each.example and each.example.sentence}" for each in violated)]:
        print(sentence)
    print("does not hold" if missing or violated else "holds")
    sys.exit(bool(missing or violated))


if __name__ == "__main__":
    main()
