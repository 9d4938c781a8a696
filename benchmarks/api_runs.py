"""Random runs of the real API in virtual time, judged from outside: writes, primary views, and the return of primary.

Each run has 3 to 5 members with `total-safe` or `total`. Applications write only while their view is primary. Pauses,
crashes, restarts, wrong peers, partitions, one-way cuts and leaves are drawn from the seed of the run. Checked: no
write that was acknowledged in a primary view is missing in a later one; two primary views never exist at once; at the
end all are together, and primary is back if its rule says so (`tools/lab/api_history.py` states each check). Run from
the root; the exit code is 1 if a run breaks a promise:

    python -m benchmarks.api_runs [--runs 2000] [--seed 0] [--jobs 1] [--json FILE]
    python -m benchmarks.api_runs --runs 1 --seed 41 --log
"""

import argparse
import json
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.lab.api_history import Judgement
from tools.lab.api_runs import play


class Outcome(NamedTuple):
    """Of one run."""

    seed: int
    judgement: Judgement
    log: list[str]


def _play(seed: int) -> Outcome:
    logging.disable(logging.ERROR)  # members report what is done to them
    return Outcome(seed, *play(seed))


def _played(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(_play, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_play, seeds, chunksize=4)


def main() -> int:
    """Play the runs, and print what was found."""
    parser = argparse.ArgumentParser(description="Random runs of the API in virtual time.")
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--log", action="store_true", help="print what was done in each run")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = parser.parse_args()
    begun, counts, failed = time.monotonic(), Counter[str](), dict[int, list[str]]()
    seeds = range(chosen.seed, chosen.seed + chosen.runs)
    for done, (seed, judgement, log) in enumerate(_played(seeds, chosen.jobs), 1):
        counts += judgement.counts
        if judgement.violations:
            failed[seed] = [f"{kind}: {witness}" for kind, witness in judgement.violations]
            print(f"\rseed {seed}: {failed[seed][0]}")
        if chosen.log:
            print(*log, sep="\n")
        print(f"\r{done:,} of {chosen.runs:,} runs, {len(failed)} with violations", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - begun
    print(file=sys.stderr)
    for what, count in sorted(counts.items()):
        print(f"{what:30}{count:12,}")
    print(f"{'runs':30}{chosen.runs:12,}\n{'runs with violations':30}{len(failed):12,}\n{'seconds':30}{seconds:12,.0f}")
    if chosen.json is not None:
        figures = {"runs": chosen.runs, "seed": chosen.seed, "seconds": seconds, "counts": counts, "failed": failed}
        chosen.json.write_text(json.dumps(figures, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
