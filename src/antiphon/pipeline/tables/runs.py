"""The table of runs: what the directory says about each run, its scenario, and what its trace shows."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.errors import TraceError
from antiphon.pipeline.tables import kept
from antiphon.pipeline.tables.columns import COUNT, TEXT, Table, column
from antiphon.pipeline.tables.parameters import PARAMETERS, RUNS, column_name, fault_counts, nanoseconds, values
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.pipeline.tables.silver import detail, fetched
from antiphon.trace.directory import has_index, read_index
from antiphon.trace.places import Place, opened
from antiphon.types import WORLD

_KEPT: Final = ("run", "combination", "seed", "settled", "error", *FIGURES.names)
"""The columns of figures.parquet that are not varied values."""

Row = dict[str, Any]


def table_of_runs(directory: Place) -> Table:
    """The columns of `runs` for a directory: after a sweep also the values that it varied in groups, faults and others.

    Values that have a column anyway get no second one.
    """
    if not (directory / kept.FIGURES).is_file():
        return RUNS
    own = [column for column, _ in _varied(_read(directory / kept.FIGURES))]
    return replace(RUNS, columns=pa.schema([*RUNS.columns, *own]))


def runs(directory: Place, traced: Iterable[Mapping[str, Any]]) -> pa.Table:
    """One row for each run of the directory's index, and for each run that only its traces know.

    `traced`: the rows of `traced_runs`; none if the directory has no traces.
    """
    found: dict[str, Row] = {}
    if has_index(directory):
        for record, text in read_index(directory):
            found[record.run] = asdict(record) | values(_scenario(record.run, text))
    for seen in traced:
        row = found.setdefault(seen["run"], {"run": seen["run"], **fault_counts(seen["faults_begun"])})
        row |= {**seen, "faults_begun": len(seen["faults_begun"])}
    for run, told in _kept(directory):
        found.get(run, {}).update(told)
    return pa.Table.from_pylist([*found.values()], schema=table_of_runs(directory).columns)


def traced_runs(events: DataFrame) -> list[Row]:
    """What the trace of each run shows: the number of its events, whether it settled, and the kinds of its faults."""
    rows = events.select("run", "process", "kind", "detail")
    is_begun = (F.col("process") == WORLD) & (F.col("kind") == "fault") & (detail("begins") == "true")
    counted = rows.groupBy("run").agg(
        F.count("*").alias("events"),
        F.bool_or(F.when(F.col("kind") == "end", detail("quiet") == "true")).alias("settled"),
        F.collect_list(F.when(is_begun, detail("kind"))).alias("faults_begun"),
    )
    return fetched(counted.orderBy("run"))


def _scenario(run: str, text: str) -> Row:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TraceError(f"the scenario of run {run} cannot be read: {error}") from error


def _kept(directory: Place) -> Iterator[tuple[str, Row]]:
    """By run, what a campaign or a sweep has kept of it."""
    if (directory / kept.OUTCOMES).is_file():
        for row in _read(directory / kept.OUTCOMES).to_pylist():
            yield row["run"], row
    if (directory / kept.FIGURES).is_file():
        table = _read(directory / kept.FIGURES)
        varied = _varied(table)
        columns = {field.name: values for field, values in varied}
        told = pa.table({name: table[name] for name in ("run", "settled", "error")} | columns).to_pylist()
        yield from ((row["run"], row) for row in told if row["run"] is not None)


def _varied(figures: pa.Table) -> list[tuple[pa.Field, pa.Array]]:
    """The varied values without a column of their own, each as a column; durations are nanoseconds."""
    keys = [name for name in figures.column_names if name not in _KEPT]
    return [_column(key, figures[key]) for key in keys if not _has_column(key)]


def _has_column(key: str) -> bool:
    return any(key == each.path or key.startswith(f"{each.path}.") for each in PARAMETERS)


def _column(key: str, written: pa.ChunkedArray) -> tuple[pa.Field, pa.Array]:
    name, meaning = column_name(key), f"`{key}`: varied by the sweep"
    if written.type == TEXT:
        times = [nanoseconds(value) for value in written.to_pylist()]
        if None not in times:
            return column(f"{name}_ns", COUNT, meaning), pa.array(times, COUNT)
    if "." not in key:  # a whole table, such as all faults
        return column(f"{name}_json", written.type, f"{meaning}, as JSON"), written.combine_chunks()
    return column(name, written.type, meaning), written.combine_chunks()


def _read(path: Place) -> pa.Table:
    try:
        return pq.ParquetFile(opened(path)).read()
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path} cannot be read: {error}") from error
