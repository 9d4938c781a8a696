"""The cost of garbage collection in Spark's Python workers after each task, and where it is best avoided.

Spark's own parent of workers collects after each task, among all objects of all modules. Three sessions run the same
small tasks, turn by turn: `hook` replaces that parent by ours (`pipeline/spark/workers.py`), `task` freezes the objects
at the end of the first task of each worker, inside the function that Spark calls, and `neither` leaves Spark as it is.

    python -m benchmarks.collecting [--rounds 6] [--runs 320] [--json FILE]
"""

import argparse
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from antiphon.pipeline.jobs.spread import Work
from antiphon.pipeline.spark.session import spark_session
from antiphon.sweep.run import RESULTS, Item, Runner
from benchmarks.sweeping import by_spark, items

WAYS: Final = ("hook", "task", "neither")
_OWN_PARENT: Final = {"spark.python.daemon.module": "pyspark.daemon"}
_is_settled = False
"""Of a worker: whether its objects are frozen."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Freezes what the first item has loaded, as a task function could."""

    row: Callable[[Item], Mapping[str, Any]]

    def __call__(self, item: Item) -> Mapping[str, Any]:
        global _is_settled  # noqa: PLW0603 - once for each worker
        found = self.row(item)
        if not _is_settled:
            _is_settled = True
            gc.collect()
            gc.freeze()
        return found


def session(way: str, runs: int) -> None:
    """Sweep once for each line of standard input; tell wall time and CPU time."""
    spark = spark_session(conf={} if way == "hook" else _OWN_PARENT)
    runner = Runner(limit_seconds=60, directory=None)
    row = Settling(runner) if way == "task" else runner
    work, chosen = Work(row, runner.lost, RESULTS), items(runs)
    by_spark(spark, work, chosen)
    print("ready", flush=True)
    for _ in sys.stdin:
        spent = by_spark(spark, work, chosen)
        print(json.dumps([spent.wall, spent.cpu]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=320, help="of 0.06 s, in 32 tasks on 2 cores")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--session", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.session is not None:
        session(asked.session, asked.runs)
        return
    spent: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    with ExitStack() as stack:
        sessions = {way: stack.enter_context(_started(way, asked.runs)) for way in WAYS}
        for each in sessions.values():
            assert _line(each) == "ready"
        for number in range(asked.rounds):
            for way in WAYS[:: -1 if number % 2 else 1]:
                spent[way].append(_told(sessions[way]))
                print(f"round {number + 1}: {way} {spent[way][-1][0]:.1f} s, {spent[way][-1][1]:.1f} s of CPU")
    found = {"command": sys.argv, "cores": os.cpu_count(), "runs": asked.runs, "ways": _ratios(spent)}
    print(json.dumps(found, indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _ratios(spent: Mapping[str, list[list[float]]]) -> dict[str, Any]:
    """Each way against `hook`, round by round: the median, the least and the greatest ratio."""
    told: dict[str, Any] = {}
    for way, rounds in spent.items():
        told[way] = {"cpu_seconds": median(cpu for _, cpu in rounds)}
        for place, what in enumerate(("wall", "cpu")):
            ratios = [own[place] / hook[place] for own, hook in zip(rounds, spent["hook"], strict=True)]
            told[way][f"{what}_to_hook"] = [round(each, 3) for each in (median(ratios), min(ratios), max(ratios))]
    return told


def _started(way: str, runs: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.collecting", "--session", way, "--runs", str(runs)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _told(session: "subprocess.Popen[str]") -> list[float]:
    """Wall time and CPU time of one more round."""
    assert session.stdin is not None
    session.stdin.write("\n")
    session.stdin.flush()
    found: list[float] = json.loads(_line(session))
    return found


def _line(session: "subprocess.Popen[str]") -> str:
    assert session.stdout is not None
    return session.stdout.readline().strip()


if __name__ == "__main__":
    main()
