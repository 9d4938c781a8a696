"""Random scenarios by the thousand, on all cores: `make campaign`, or `python -m tests.simulation.campaign --runs N`.

Prints each property with its opportunities; a violated run is named by its seed, which replays it.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from antiphon.properties.judge import judge
from antiphon.properties.verdict import Verdict
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.simulation.families import fixed_group

CHUNK = 50


def judged(seed: int) -> list[Verdict]:
    """The verdicts on one random run; one that never settles stops the campaign with its seed."""
    run = simulate(fixed_group(seed))
    assert run.quiet, f"seed {seed} never settles"
    return judge(events_table(run.id, run.histories))


def main() -> int:
    """Judge the runs, print the table, and say by the exit code whether all promises held."""
    parser = argparse.ArgumentParser(description="random scenarios of a fixed group, each judged")
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.runs)
    runs, opportunities, violations = Counter[str](), Counter[str](), Counter[str]()
    with ProcessPoolExecutor() as pool:
        for seed, verdicts in zip(seeds, pool.map(judged, seeds, chunksize=CHUNK), strict=True):
            for verdict in verdicts:
                runs[verdict.property] += verdict.opportunities > 0
                opportunities[verdict.property] += verdict.opportunities
                violations[verdict.property] += verdict.violations
                if verdict.example:
                    print(f"seed {seed}: {verdict.property}: {verdict.example.sentence}")
            if sys.stderr.isatty():
                print(f"\r{seed - seeds.start + 1:,} of {len(seeds):,}", end="", file=sys.stderr)
    print(f"{len(seeds):,} runs, seeds {seeds.start} to {seeds.stop - 1}")
    for name, count in opportunities.items():
        print(f"{name:<3} {runs[name]:>9,} runs {count:>13,} opportunities {violations[name]:>5} violations")
    return 1 if violations.total() else 0


if __name__ == "__main__":
    sys.exit(main())
