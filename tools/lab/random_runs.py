"""Plays many random runs by seed, in one or several processes, and prints what was found.

The seeds of runs with violations are printed, so that each can be played again with `--runs 1 --seed N --log`.
"""

import argparse
import json
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.lab.api_history import Judgement

Play = Callable[[int], tuple[Judgement, list[str]]]
"""Plays the run of a seed; returns its judgement and its actions."""


class Outcome(NamedTuple):
    """Of one run."""

    seed: int
    judgement: Judgement
    log: list[str]


def _play(play: Play, seed: int) -> Outcome:
    logging.disable(logging.ERROR)  # members report what is done to them
    return Outcome(seed, *play(seed))


def _played(play: Play, seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(partial(_play, play), seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(partial(_play, play), seeds, chunksize=4)


def play_all(play: Play, description: str, runs: int) -> int:
    """The command: play the runs, and print what was found. Returns its exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--log", action="store_true", help="print what was done in each run")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = parser.parse_args()
    begun, counts, failed = time.monotonic(), Counter[str](), dict[int, list[str]]()
    seeds = range(chosen.seed, chosen.seed + chosen.runs)
    for done, (seed, judgement, log) in enumerate(_played(play, seeds, chosen.jobs), 1):
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
