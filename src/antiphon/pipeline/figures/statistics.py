"""Statistics of a dataset: latency, throughput, overhead, flow control, buffers; per run, and over all or some runs.

Every run is measured by one kernel (`kernel.py`), in a Spark task or in this process. A task adds up the runs that it
measures (`totals.py`), so what it sends back does not grow with their number, unless single runs are asked for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, Source, Unit
from antiphon.pipeline.figures.configurations import configurations
from antiphon.pipeline.figures.measures import Percentiles, RunStatistics, Statistics
from antiphon.pipeline.figures.one_run import Measured, figures_of
from antiphon.pipeline.figures.parts import ROWS_PER_PART, measured_runs
from antiphon.pipeline.figures.totals import Totals
from antiphon.pipeline.footers import unreadable
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.trace.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXACT_EVENTS_MAX: Final = 2_000_000
"""Up to this many events percentiles are exact; above, they are off by 0.05 % at most. Those of runs by themselves are
exact in runs up to this size."""

RUNS_MAX: Final = 1_000
"""A dataset of more runs is told in total only; `antiphon tables` has a row for each run."""
_ALL: Final = ""
"""The part that holds all runs."""
_RESULTS: Final = pa.schema(
    [
        pa.field("share", pa.int64()),
        pa.field("run", pa.string()),
        pa.field("statistics", pa.binary()),
        *(field.with_nullable(nullable=True) for field in FIGURES),
        pa.field("part", pa.string()),
        pa.field("totals", pa.binary()),
        pa.field("error", pa.string()),
    ]
)
"""A row is a run, or the totals of a part of the runs, or an error."""


@dataclass(frozen=True, slots=True)
class _Measurement:
    """How a dataset is measured; sent to the tasks."""

    part_of: Mapping[str, str] | None
    """By run; a run that is not there is in no part. None: all runs are in one part."""
    exact: bool
    once: bool = True
    runs: bool = True
    """Whether the statistics of each run are asked for."""
    rows_per_part: int = ROWS_PER_PART

    def tables(self, shares: Iterator[tuple[int, Unit]]) -> Iterator[pa.Table]:
        """Measure the files of one task."""
        totals: dict[str, Totals] = {}
        rows: list[dict[str, Any]] = []
        place = 0
        for place, unit in shares:
            try:
                rows += [{"share": place, **self._counted(run, totals)} for run in self._runs(unit)]
            except TraceError as error:
                rows.append({"share": place, "error": _located(unit.files, str(error))})
            except OSError as error:
                rows.append({"share": place, "error": str(unreadable(unit.files[0], error))})
        rows += [{"share": place, "part": part, "totals": each.packed()} for part, each in totals.items()]
        yield pa.Table.from_pylist(rows, schema=_RESULTS)

    def _runs(self, unit: Unit) -> Iterator[Measured]:
        return measured_runs(unit, exact_events_max=EXACT_EVENTS_MAX, once=self.once, rows_per_part=self.rows_per_part)

    def _counted(self, run: Measured, totals: dict[str, Totals]) -> dict[str, Any]:
        name = run.statistics.run
        assert name is not None
        part = _ALL if self.part_of is None else self.part_of.get(name)
        if part is not None:
            totals.setdefault(part, Totals(exact=self.exact)).add(run.statistics, run.tallies, run.spreads)
        statistics = msgspec.msgpack.encode(run.statistics) if self.runs and part is not None else None
        return {"run": name, "statistics": statistics, **figures_of(run.statistics)}


def statistics(
    spark: "SparkSession | None",
    source: Source,
    *,
    exact_events_max: int = EXACT_EVENTS_MAX,
    once: bool = True,
    runs_max: float = RUNS_MAX,
    rows_per_part: int = ROWS_PER_PART,
) -> Statistics:
    """Compute all figures of a run directory or of a directory of many runs; without Spark in this process.

    Raises TraceError if rows occur more than once, unless `once` is False.
    """
    source = Dataset.of(source).sound()
    measurement, units = _planned(source, exact_events_max, None)
    measurement = replace(measurement, once=once, runs=len(units) <= runs_max, rows_per_part=rows_per_part)
    found = _measured(spark, source.directory, measurement, units)
    [figures] = _statistics(found, [_ALL], measurement).values()
    runs = found.filter(pc.is_valid(found["run"])).select(["run", *FIGURES.names])
    return replace(figures, configurations=configurations(source.directory, runs))


def statistics_of_parts(
    spark: "SparkSession",
    source: Source,
    parts: Mapping[str, Sequence[str]],
    *,
    exact_events_max: int = EXACT_EVENTS_MAX,
) -> dict[str, Statistics]:
    """Compute all figures of each part of a directory; a part is a set of runs, and no run is in two parts."""
    part_of = {run: part for part, runs in parts.items() for run in runs}
    source = Dataset.of(source).sound()
    measurement, units = _planned(source, exact_events_max, part_of)
    return _statistics(_measured(spark, source.directory, measurement, units), [*parts], measurement)


def _planned(
    found: Dataset,
    exact_events_max: int,
    part_of: Mapping[str, str] | None,
) -> tuple[_Measurement, list[Unit]]:
    """How to measure a dataset, and its files, those of a run together."""
    return _Measurement(part_of, exact=found.rows <= exact_events_max), found.units()


def _measured(
    spark: "SparkSession | None", directory: Place, measurement: _Measurement, units: Sequence[Unit]
) -> pa.Table:
    """The rows of all tasks, those of runs in the order of their names."""
    if spark is None:
        found = pa.concat_tables(measurement.tables(enumerate(units)))
    else:
        from antiphon.pipeline.jobs.tasks import in_tasks  # noqa: PLC0415 - without Spark it is not needed

        found = in_tasks(spark, directory, units, measurement.tables, _RESULTS, _silent, "antiphon stats")
    failed = found.filter(pc.is_valid(found["error"]))["error"].to_pylist()
    if failed:
        raise TraceError(f"{failed[0]}{f' (and {len(failed) - 1} more like it)' if len(failed) > 1 else ''}")
    return found.sort_by([("run", "ascending"), ("share", "ascending")])


def _statistics(found: pa.Table, parts: Sequence[str], measurement: _Measurement) -> dict[str, Statistics]:
    """The figures of each part."""
    totals = {part: Totals(exact=measurement.exact) for part in parts}
    for row in found.filter(pc.is_valid(found["part"])).select(["part", "totals"]).to_pylist():
        totals[row["part"]].merge(Totals.unpacked(row["totals"], exact=measurement.exact))
    runs: dict[str, list[RunStatistics]] = {part: [] for part in parts}
    count = Counter[str]()
    part_of, decoder = measurement.part_of, msgspec.msgpack.Decoder(RunStatistics)
    for row in found.filter(pc.is_valid(found["run"])).select(["run", "statistics"]).to_pylist():
        part = _ALL if part_of is None else part_of.get(row["run"])
        if part is not None:
            count[part] += 1
            if row["statistics"] is not None:
                runs[part].append(decoder.decode(row["statistics"]))
    percentiles: Percentiles = "exact" if measurement.exact else "approximate"
    return {part: Statistics(percentiles, totals[part].statistics(), tuple(runs[part]), count[part]) for part in parts}


def _silent(_done: int, _total: int) -> None:
    """Nobody sees the progress."""


def _located(files: Sequence[Place], sentence: str) -> str:
    """The sentence, with the file unless the sentence names it."""
    return sentence if any(str(path) in sentence for path in files) else f"{files[0]}: {sentence}"
