"""The throughput of a sweep as a Spark job, compared with a bare process pool, and the limits of a campaign.

The same function on the same runs, by a `ProcessPoolExecutor` and by `antiphon.pipeline.jobs.spread`, turn by turn,
because machines are noisy; both are started and warmed up before. The ratio is that of the seconds of all rounds; those
of single rounds show the noise, and the ratio of CPU seconds, Java included, estimates the result on a quiet machine.
The number of tasks in a round is fixed, so many rounds make small tasks and a worse ratio. Then runs of the
family `membership` as a Spark job, and where the CPU time of such a run goes.

    python -m benchmarks.sweeping [--runs 1000] [--rounds 2] [--campaign 1000] [--json FILE]
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import SparkSession

from antiphon.campaign.families import FAMILIES
from antiphon.campaign.run import OUTCOMES
from antiphon.campaign.run import Runner as CampaignRunner
from antiphon.pipeline.jobs.spread import Item as AnyItem
from antiphon.pipeline.jobs.spread import Work, results, spread
from antiphon.pipeline.spark.session import spark_session
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.sweep.plan import parse_sweep
from antiphon.sweep.run import RESULTS, Item, Runner
from antiphon.trace.table import events_table
from tools.lab.cpu import cpu_seconds

TEXT: Final = """
name = "sweeping"
options = { suspect_after = "0s" }
[[group]]
name = "g"
members = 4
[[workload]]
group = "g"
messages = 60
interval = "5ms"
jitter = 0.5
[sweep]
"group.g.members" = [3, 4, 5]
"options.time_silence" = ["0ms", "20ms"]
"""
FAMILY: Final = "membership"
PROFILED: Final = 100
"""Runs of a campaign that are taken apart."""


def items(runs: int) -> list[Item]:
    """A number of runs of six combinations, mixed."""
    sweep = parse_sweep(TEXT, seeds=-(-runs // 6))
    scenarios = [each.scenario for each in sweep.combinations if each.scenario is not None]
    return [(scenario, seed) for seed in sweep.seeds for scenario in scenarios][:runs]


class Spent:
    """Elapsed seconds, and CPU seconds of this process and its descendants."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), cpu_seconds()
        self.wall = self.cpu = 0.0

    def end(self) -> "Spent":
        """Stop counting."""
        began, before = self._began
        self.wall = time.perf_counter() - began
        self.cpu = sum(seconds - before.get(process, 0.0) for process, seconds in cpu_seconds().items())
        return self


def by_spark(spark: SparkSession, work: Work[AnyItem], chosen: Sequence[AnyItem]) -> Spent:
    """As a sweep or campaign does it."""
    with TemporaryDirectory() as scratch:
        spent = Spent()
        spread(lambda: spark, work, chosen, Path(scratch) / "parts", lambda _done, _total: None)
        spent.end()
        assert len(results(Path(scratch) / "parts", work.schema)) == len(chosen)
    return spent


def by_pool(pool: ProcessPoolExecutor, runner: Runner, chosen: Sequence[Item]) -> Spent:
    """One run at a time, so that no core waits long for another."""
    spent = Spent()
    assert len([*pool.map(runner, chosen)]) == len(chosen)
    return spent.end()


def compared(spark: SparkSession, runs: int, rounds: int) -> dict[str, Any]:
    """The sweep, by pool and by Spark."""
    runner = Runner(limit_seconds=60, directory=None)
    work, all_items = Work(runner, runner.lost, RESULTS), items(runs)
    spent: dict[str, list[Spent]] = {"pool": [], "spark": []}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        by_pool(pool, runner, all_items[:20])
        by_spark(spark, work, all_items[:20])
        for number in range(rounds):
            chosen = all_items[number::rounds]
            for name in ("pool", "spark") if number % 2 else ("spark", "pool"):
                took = by_spark(spark, work, chosen) if name == "spark" else by_pool(pool, runner, chosen)
                spent[name].append(took)
                print(f"round {number + 1}: {name} {took.wall:.1f} s, {took.cpu:.1f} s of CPU", flush=True)
    wall = {name: sum(each.wall for each in found) for name, found in spent.items()}
    cpu = {name: sum(each.cpu for each in found) for name, found in spent.items()}
    ratios = [pool.wall / spark.wall for pool, spark in zip(spent["pool"], spent["spark"], strict=True)]
    return {
        "runs": runs,
        "pool_runs_per_second": runs / wall["pool"],
        "spark_runs_per_second": runs / wall["spark"],
        "pool_cpu_ms_per_run": cpu["pool"] * 1000 / runs,
        "spark_cpu_ms_per_run": cpu["spark"] * 1000 / runs,
        "ratio": wall["pool"] / wall["spark"],
        "ratio_of_rounds": [min(ratios), max(ratios)],
        "ratio_of_cpu": cpu["pool"] / cpu["spark"],
    }


def campaign(spark: SparkSession, runs: int) -> dict[str, Any]:
    """Runs of a family a second, and the CPU milliseconds that each part of one takes."""
    runner = CampaignRunner(FAMILY, "failures", None)
    work = Work(runner, runner.lost, OUTCOMES)
    by_spark(spark, work, range(10))
    spent = by_spark(spark, work, range(1, runs + 1))
    parts = profile(range(1, PROFILED + 1))
    return {
        "family": FAMILY,
        "runs": runs,
        "runs_per_second": runs / spent.wall,
        "cpu_ms_per_run": spent.cpu * 1000 / runs,
        "of_these": {name: took * 1000 / PROFILED for name, took in parts.items()},
    }


def profile(seeds: Sequence[int]) -> dict[str, float]:
    """CPU seconds of the parts of runs, one after the other in this process."""
    spent = dict.fromkeys(("draw", "simulate", "table", "judge"), 0.0)
    for seed in seeds:
        began = time.process_time()
        scenario = FAMILIES[FAMILY].draw(seed)
        drawn = time.process_time()
        run = simulate(scenario)
        simulated = time.process_time()
        table = events_table(run.id, run.histories)
        tabled = time.process_time()
        judge(table)
        spent["draw"] += drawn - began
        spent["simulate"] += simulated - drawn
        spent["table"] += tabled - simulated
        spent["judge"] += time.process_time() - tabled
    return spent


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--campaign", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    spark = spark_session()
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()}
    found["sweep"] = compared(spark, arguments.runs, arguments.rounds)
    found["campaign"] = campaign(spark, arguments.campaign)
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
