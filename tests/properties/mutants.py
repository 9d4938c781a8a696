"""Every seeded trace fault of properties.md 9 as one dataset: the mutation score of the checkers, wherever they run.

    python -m tests.properties.mutants [--traces 100] [--good 1000] [--where in-process|local|cluster|all]

writes that many traces of each fault, and good runs with failures, partitions and merges beside them, into one
directory, judges it as `antiphon check` does, and tells what was caught and whether a good run raised an alarm. With
`all` it is judged in this process, by local Spark and by a standalone cluster of two workers on this machine. All three
must give the same verdicts.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count, islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.campaign.families import FAMILIES
from antiphon.pipeline.jobs.in_process import verify_in_process
from antiphon.pipeline.jobs.verify import verify
from antiphon.pipeline.spark.session import spark_session
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.sim.run import simulate
from antiphon.trace.schema import EVENTS
from antiphon.trace.table import events_table
from tests.support.spark_cluster import BOTH, spark_cluster
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
from tests.support.traces.sender_mutations import SENDER_MUTATIONS, changing_senders_trace, judged_in
from tests.support.traces.stability_mutations import FLOW_MUTATIONS, STABILITY_MUTATIONS

SEEDS_MAX: Final = 1500
"""Some faults find a place in few traces only."""
GOOD_FAMILIES: Final = ("membership", "changes", "sequencer", "safe", "intergroup")
"""Crashes, partitions, false suspicions; joins, leaves and merges; every service of InterGroup."""
ROWS_PER_FILE: Final = 200_000
PLACES: Final = ("in-process", "local", "cluster")

Source = Callable[[int], pa.Table]


@lru_cache(maxsize=64)
def _log(source: Source, seed: int) -> Log:
    """A good trace, read once for all faults that are seeded into it."""
    return Log(source(seed))


@dataclass(frozen=True)
class Seeded:
    """A fault, and the source of the good traces into which it is seeded."""

    name: str
    mutation: Mutation
    source: Source
    judged: Callable[[int], frozenset[str]] | None = None
    """The properties that the good trace of a seed puts to the test, where this is not the same for all seeds."""

    def traces(self, number: int) -> Iterator[pa.Table]:
        """The given number of traces with the fault, or fewer if it has too few places."""
        mutants = (self._trace(seed) for seed in range(SEEDS_MAX))
        return islice((mutant for mutant in mutants if mutant is not None), number)

    def _trace(self, seed: int) -> pa.Table | None:
        mutant = self.mutation.apply(_log(self.source, seed), random.Random(seed))
        if mutant is None or self.judged is None:
            return mutant
        return mutant if all(wanted & self.judged(seed) for wanted in self.mutation.one_of) else None


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
            judged = judged_in if family == "senders" else None
            yield Seeded(f"{family}: {mutation.name}", mutation, source, judged)
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


def written(directory: Path, faults: Sequence[Seeded], traces: int, good: int) -> dict[str, Seeded]:
    """Write the dataset into an empty directory; returns the fault of each run that has one."""
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
    return fault_of


def score(verdicts: Iterable[Verdict], fault_of: Mapping[str, Seeded], good: int) -> Score:
    """What the verdicts on a dataset say about the checkers."""
    raised: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        found = "harness error" if verdict.outcome == "harness error" else verdict.property
        raised[verdict.run].update([found] if verdict.violations else [])
    assert len(raised) == len(fault_of) + good
    mutants = dict.fromkeys((fault.name for fault in fault_of.values()), 0)
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
    parser.add_argument("--where", choices=(*PLACES, "all"), default="local", help="judge here; all three must agree")
    asked = parser.parse_args()
    faults = [*seeded()]
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs"
        fault_of = written(runs, faults, asked.traces, asked.good)
        places = PLACES if asked.where == "all" else (asked.where,)
        verdicts = {place: judged_at(place, runs, Path(scratch)) for place in places}
    scores = {place: score(found, fault_of, asked.good) for place, found in verdicts.items()}
    _print_each(scores[places[0]])
    perfect = [place for place, told in scores.items() if _is_perfect(place, told, len(faults))]
    is_equal = all(found == verdicts[places[0]] for found in verdicts.values())
    if len(places) > 1:
        number = len(verdicts[places[0]])
        print(f"{number:,} verdicts, {'equal' if is_equal else 'NOT equal'} in {', '.join(places)}")  # noqa: T201
    sys.exit(0 if len(perfect) == len(places) and is_equal else 1)


def judged_at(place: str, runs: Path, scratch: Path) -> list[Verdict]:
    """The verdicts on the dataset, from one of `PLACES`."""
    began = time.perf_counter()
    if place == "in-process":
        verdicts = verify_in_process(runs)
    elif place == "local":
        verdicts = _by_spark(runs, None)
    else:
        folder = scratch / "cluster"
        folder.mkdir()
        with spark_cluster(folder, apart=False) as cluster:
            verdicts = _by_spark(runs, cluster.url)
    print(f"judged {place} in {time.perf_counter() - began:.0f} s", flush=True)  # noqa: T201
    return verdicts


def _by_spark(runs: Path, master: str | None) -> list[Verdict]:
    spark = spark_session(master, conf=dict(setting.split("=") for setting in BOTH) if master else None)
    try:
        return verify(spark, runs)
    finally:
        spark.stop()


def _print_each(told: Score) -> None:
    for name, traces in told.mutants.items():
        missed = sum(run.startswith(f"{name}, ") for run in told.missed)
        print(f"{traces - missed:>6,} of {traces:>6,} caught  {name}")  # noqa: T201
    for what, runs in (("missed", told.missed), ("false alarm", told.alarms)):
        for run, raised in runs.items():
            print(f"{what}: {run} raised {', '.join(sorted(raised)) or 'nothing'}")  # noqa: T201


def _is_perfect(place: str, told: Score, faults: int) -> bool:
    total = sum(told.mutants.values())
    share = (total - len(told.missed)) / total
    print(  # noqa: T201
        f"{place}: mutation score {share:.1%}: {total - len(told.missed):,} of {total:,} traces, "
        f"{len(told.mutants)} of {faults} faults; {len(told.alarms):,} false alarms on {told.good:,} good runs"
    )
    return not told.missed and not told.alarms and len(told.mutants) == faults


if __name__ == "__main__":
    main()
