"""Every seeded trace fault of properties.md 9 as one dataset, judged under Spark: the mutation score of the checkers.

    python -m tests.properties.mutants [--traces 100] [--good 1000]

writes that many traces of each fault, and good runs with failures, partitions and merges beside them, into one
directory, judges it as `antiphon check` does, and tells what was caught and whether a good run raised an alarm.
"""

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antiphon.campaign.families import FAMILIES
from antiphon.pipeline.jobs.verify import verify
from antiphon.pipeline.spark.session import spark_session
from antiphon.sim.run import simulate
from antiphon.trace.schema import EVENTS
from antiphon.trace.table import events_table
from tests.support.traces.acks_mutations import ACKS_FAULTS
from tests.support.traces.acks_traces import good_acks_trace
from tests.support.traces.causal_traces import good_causal_trace
from tests.support.traces.changing_mutations import CHANGING_MUTATIONS
from tests.support.traces.changing_traces import changing_trace
from tests.support.traces.classic_mutations import CLASSIC_FAULTS
from tests.support.traces.classic_traces import good_classic_trace
from tests.support.traces.handmade import good_trace
from tests.support.traces.intergroup_mutations import INTERGROUP_MUTATIONS
from tests.support.traces.intergroup_traces import good_intergroup_trace
from tests.support.traces.membership_mutations import MEMBERSHIP_MUTATIONS
from tests.support.traces.mutations import CAUSAL_MUTATIONS, GROUP_MUTATIONS, MUTATIONS, Log, Mutation
from tests.support.traces.safe_traces import SAFE_MUTATIONS, safe_trace
from tests.support.traces.sender_mutations import SENDER_MUTATIONS, changing_senders_trace
from tests.support.traces.stability_mutations import FLOW_MUTATIONS, STABILITY_MUTATIONS

SEEDS_MAX: Final = 1500
"""Some faults find a place in few traces only."""
GOOD_FAMILIES: Final = ("membership", "changes", "sequencer", "safe", "intergroup")
"""Crashes, partitions, false suspicions; joins, leaves and merges; every service of InterGroup."""
ROWS_PER_FILE: Final = 200_000

Source = Callable[[int], pa.Table]


@dataclass(frozen=True)
class Seeded:
    """A fault, and the source of the good traces into which it is seeded."""

    name: str
    mutation: Mutation
    source: Source

    def traces(self, number: int) -> Iterator[pa.Table]:
        """The given number of traces with the fault, or fewer if it has too few places."""
        mutants = (self.mutation.apply(Log(self.source(seed)), random.Random(seed)) for seed in range(SEEDS_MAX))
        return islice((mutant for mutant in mutants if mutant is not None), number)


def simulated(family: str, seed: int) -> pa.Table:
    """A run of a campaign, unchanged; the campaign itself finds bad ones."""
    run = simulate(FAMILIES[family].draw(seed))
    return events_table(run.id, run.histories)


def seeded() -> Iterator[Seeded]:
    """All faults, except the one for closed views only; `test_membership_mutations.py` tests that one."""
    for family, mutations, source in (
        ("total", (*MUTATIONS, *GROUP_MUTATIONS, *STABILITY_MUTATIONS, *FLOW_MUTATIONS), good_trace),
        ("causal", CAUSAL_MUTATIONS, good_causal_trace),
        ("safe", SAFE_MUTATIONS, safe_trace),
        ("changing", CHANGING_MUTATIONS, changing_trace),
        ("membership", MEMBERSHIP_MUTATIONS, partial(simulated, "membership")),
        ("intergroup", INTERGROUP_MUTATIONS, good_intergroup_trace),
        ("senders", SENDER_MUTATIONS, changing_senders_trace),
    ):
        for mutation in mutations:
            yield Seeded(f"{family}: {mutation.name}", mutation, source)
    for fault in CLASSIC_FAULTS:
        for service in fault.services:
            yield Seeded(
                f"classic {service}: {fault.mutation.name}",
                fault.mutation,
                partial(good_classic_trace, service=service),
            )
    for told in ACKS_FAULTS:
        for stability in told.stability:
            yield Seeded(
                f"acks {stability}: {told.mutation.name}",
                told.mutation,
                partial(good_acks_trace, stability=stability),
            )


@dataclass(frozen=True)
class Score:
    """The result."""

    mutants: dict[str, int]
    """Number of traces of each fault."""
    missed: dict[str, set[str]]
    """By trace, the properties that were raised instead."""
    good: int
    alarms: dict[str, set[str]]


def score(spark: SparkSession, directory: Path, faults: Sequence[Seeded], traces: int, good: int) -> Score:
    """Write the dataset into an empty directory, and judge it."""
    fault_of: dict[str, Seeded] = {}
    shelf = _PackedRuns(directory / "events")
    for fault in faults:
        for number, mutant in enumerate(fault.traces(traces)):
            run = f"{fault.name}, {number}"
            fault_of[run] = fault
            shelf.put(run, mutant)
    for number in range(good):
        family = GOOD_FAMILIES[number % len(GOOD_FAMILIES)]
        shelf.put(f"good: {family}, {number}", simulated(family, 1 + number // len(GOOD_FAMILIES)))
    shelf.close()
    raised: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verify(spark, directory):
        found = "harness error" if verdict.outcome == "harness error" else verdict.property
        raised[verdict.run].update([found] if verdict.violations else [])
    assert len(raised) == len(fault_of) + good
    mutants = dict.fromkeys((fault.name for fault in faults), 0)
    for fault in fault_of.values():
        mutants[fault.name] += 1
    missed = {run: raised[run] for run, fault in fault_of.items() if not fault.mutation.is_caught(raised[run])}
    alarms = {run: found for run, found in raised.items() if run not in fault_of and found}
    return Score(mutants, missed, good, alarms)


class _PackedRuns:
    """Small runs, several in each file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._names = count()
        self._tables: list[pa.Table] = []

    def put(self, run: str, events: pa.Table) -> None:
        column = pa.array([run] * len(events), pa.string())
        self._tables.append(events.set_column(0, EVENTS.field("run"), column).cast(EVENTS))
        if sum(map(len, self._tables)) >= ROWS_PER_FILE:
            self.close()

    def close(self) -> None:
        if self._tables:
            pq.write_table(pa.concat_tables(self._tables), self._folder / f"{next(self._names):06}.parquet")
            self._tables.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=100, help="of each fault")
    parser.add_argument("--good", type=int, default=1000, help="runs without a fault in the trace")
    asked = parser.parse_args()
    spark = spark_session()
    with tempfile.TemporaryDirectory() as scratch:
        told = score(spark, Path(scratch), [*seeded()], asked.traces, asked.good)
    for name, traces in told.mutants.items():
        missed = sum(run.startswith(f"{name}, ") for run in told.missed)
        print(f"{traces - missed:>6,} of {traces:>6,} caught  {name}")  # noqa: T201
    for what, runs in (("missed", told.missed), ("false alarm", told.alarms)):
        for run, raised in runs.items():
            print(f"{what}: {run} raised {', '.join(sorted(raised)) or 'nothing'}")  # noqa: T201
    total, places = sum(told.mutants.values()), len(told.mutants)
    share = (total - len(told.missed)) / total
    print(  # noqa: T201
        f"mutation score {share:.1%}: {total - len(told.missed):,} of {total:,} traces, {places} faults; "
        f"{len(told.alarms):,} false alarms on {told.good:,} good runs"
    )
    sys.exit(1 if told.missed or told.alarms or not all(told.mutants.values()) else 0)


if __name__ == "__main__":
    main()
