"""Random runs of members in groups of different services at once (`tools/lab/service_runs.py`), judged.

python -m benchmarks.service_runs --runs 500 [--seed 0] [--mixture total] [--log]
"""

import argparse
import logging
import sys
import time

from tools.lab.service_runs import play
from tools.lab.three_members import MIXED


def main() -> int:
    """Play the runs, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="of each mixture")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--mixture", choices=[*MIXED], action="append", help="only this one; may be repeated")
    parser.add_argument("--log", action="store_true", help="print what was done in each run")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)  # members report what is done to them
    begun, failed = time.monotonic(), 0
    for mixture in chosen.mixture or MIXED:
        for seed in range(chosen.seed, chosen.seed + chosen.runs):
            log, wrong = play(seed, mixture)
            failed += bool(wrong)
            for line in (*(log if chosen.log else ()), *wrong):
                print(f"{mixture}, seed {seed}: {line}", flush=True)
        print(f"{mixture}: {chosen.runs:,} runs")
    print(f"{failed} runs with violations, {time.monotonic() - begun:,.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
