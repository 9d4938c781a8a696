"""How long survivors stand still when one of three members is killed under load, with real processes over TCP.

Each round is a run of its own: three members that send all the time, one of them killed. Measured is the longest time
in which a survivor delivers nothing, from the kill on; the trace of each round is judged too. Run from the root:

    python -m benchmarks.failover [--rounds 20] [--json FILE]
"""

import argparse
import json
import statistics
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run
from antiphon.trace.table import events_table

SCENARIO = """
name = "failover"
seed = {seed}
duration = "30s"
quiet = "3200ms"
[options]
suspect_after = "300ms"
idle_probe = "500ms"
flow_control = 3
[[group]]
name = "orders"
members = 3
[[workload]]
group = "orders"
messages = 600
interval = "5ms"
[[fault]]
at = "1500ms"
kind = "crash"
process = "p{victim}"
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One kill."""

    victim: str
    standstill_ms: float
    others_excluded: int
    violated: list[str]


def main() -> None:
    """Kill, measure, judge; print a line a round and the distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rounds = []
    for number in range(arguments.rounds):
        victim = 1 + number % 3
        run = run_locally(parse_scenario(SCENARIO.format(seed=number + 1, victim=victim)))
        rounds.append(_round(run, f"p{victim}"))
        print(f"{number + 1:3}  {rounds[-1].victim} killed: {rounds[-1].standstill_ms:6.0f} ms", end="")
        print(f", others excluded {rounds[-1].others_excluded}, violated {rounds[-1].violated or 'nothing'}")
    waits = [each.standstill_ms for each in rounds]
    within = sum(wait < 1000 for wait in waits)
    print(f"median {statistics.median(waits):.0f} ms, longest {max(waits):.0f} ms, ", end="")
    print(f"within a second {within} of {len(waits)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in rounds], indent=1))


def _round(run: Run, victim: str) -> Round:
    crashed_at = next(row["time"] for history in run.histories for row in history.rows if row["kind"] == "crash")
    longest, excluded = 0, set()
    for history in run.histories:
        if history.process in (victim, "world"):
            continue
        times = [row["time"] for row in history.rows if row["kind"] == "deliver"]
        last = max(row["time"] for row in history.rows if row["kind"] == "send")
        after = [crashed_at, *(time for time in times if crashed_at < time <= last)]
        longest = max(longest, *(later - earlier for earlier, later in pairwise(after)))
        for row in history.rows:
            if row["kind"] == "view":
                excluded |= {each["process"] for each in json.loads(row["detail"])["left"]}
    verdicts = judge(events_table(run.id, run.histories))
    violated = sorted({verdict.property for verdict in verdicts if verdict.violations})
    return Round(victim, longest / 1e6, len(excluded - {victim}), violated)


if __name__ == "__main__":
    main()
