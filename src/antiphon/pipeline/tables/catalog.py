"""The tables of a directory: which there are, and each as a DataFrame when it is asked for.

A directory holds traces, or what a campaign or sweep kept of its runs, or both; or it holds tables that were written
before. What was kept is never computed again: a campaign has judged its runs, a sweep has measured them.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from math import inf
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, events
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.jobs.sight import Sight
from antiphon.pipeline.jobs.verify import verdict_table
from antiphon.pipeline.spark.parquet import read_parquet
from antiphon.pipeline.tables import kept
from antiphon.pipeline.tables.columns import Table
from antiphon.pipeline.tables.gold import measured, recovery, view_changes
from antiphon.pipeline.tables.judged import verdict_rows
from antiphon.pipeline.tables.parameters import RUNS
from antiphon.pipeline.tables.runs import runs, table_of_runs, traced_runs
from antiphon.pipeline.tables.schemas import (
    BLOCKED,
    BRONZE,
    DELIVERIES,
    EVENT_ROWS,
    FIGURES_BY_RUN,
    GOLD,
    MESSAGES,
    RECOVERY,
    SILVER,
    STABILITY,
    VERDICTS,
    VIEW_CHANGES,
    VIEWS,
)
from antiphon.pipeline.tables.silver import blocked, deliveries, messages, shaped, stability, views
from antiphon.trace.directory import require_complete
from antiphon.trace.places import Place, listed, opened, place_of, require_reachable

CONTENTS: Final = "tables.json"
"""The file that describes the tables of a directory; only `antiphon tables` writes it."""
COMMENTS: Final = "_common_metadata"
"""The file in the folder of a table that holds its comments. Arrow and Spark read no rows from it."""

QUERIES: Final[dict[Table, Callable[[DataFrame], DataFrame]]] = {
    EVENT_ROWS: lambda events: shaped(events, EVENT_ROWS),
    MESSAGES: messages,
    DELIVERIES: deliveries,
    VIEWS: views,
    STABILITY: stability,
    BLOCKED: blocked,
    VIEW_CHANGES: view_changes,
    RECOVERY: recovery,
}
"""The tables that Spark computes from events, and only as far as they are used."""


class Catalog(Protocol):
    """The tables of a directory."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """By name."""
        ...

    def frame(self, spark: SparkSession, table: Table) -> DataFrame:
        """The rows of one of the tables."""
        ...


def catalog(directory: Place) -> Catalog:
    """The tables of a run directory, a directory of runs, or one that `antiphon tables` wrote.

    TraceError if it is none of these, or its event files cannot be read.
    """
    return WrittenTables(directory) if (directory / CONTENTS).is_file() else TablesOfRuns(directory)


class TablesOfRuns:
    """The tables of runs: kept ones, and those that are computed from traces."""

    def __init__(self, directory: Place) -> None:
        require_reachable(directory)
        require_complete(directory)
        self.directory = directory
        self._kept = {
            table: directory / name
            for table, name in ((VERDICTS, kept.FINDINGS), (FIGURES_BY_RUN, kept.FIGURES))
            if (directory / name).is_file()
        }
        is_traced = not (directory / "runs.parquet").is_file() or any(listed(directory / "events", ".parquet"))
        self._traces = Dataset.of(directory).sound() if is_traced else None
        self._measured: Mapping[Table, pa.Table] | None = None
        self._sight = Sight()

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        own = (RUNS, *self._kept) if self._traces is None else (*BRONZE, *SILVER, *GOLD)
        return {table.name: table_of_runs(self.directory) if table is RUNS else table for table in own}

    def frame(self, spark: SparkSession, table: Table) -> DataFrame:
        if table in QUERIES:
            return QUERIES[table](self._events(spark))
        if table in self._kept:
            self._sight.require(spark, self.directory, [self._kept[table]])
            rows = read_parquet(spark, [self._kept[table]], pq.read_schema(opened(self._kept[table])))
            return shaped(rows.filter("run IS NOT NULL AND error IS NULL") if "error" in rows.columns else rows, table)
        return shaped(spark.createDataFrame(self._rows(spark, table)), table)

    def _rows(self, spark: SparkSession, table: Table) -> pa.Table:
        if table.name == RUNS.name:
            traced = () if self._traces is None else traced_runs(self._events(spark))
            return runs(self.directory, traced)
        if table is VERDICTS:
            return verdict_rows(verdict_table(spark, self._dataset))
        if self._measured is None:
            self._measured = measured(statistics(spark, self._dataset, runs_max=inf))
        return self._measured[table]

    def _events(self, spark: SparkSession) -> DataFrame:
        self._sight.require(spark, self.directory, [file.place for file in self._dataset.files])
        return events(spark, self._dataset)

    @property
    def _dataset(self) -> Dataset:
        assert self._traces is not None, "only directories with traces have such tables"
        return self._traces


class WrittenTables:
    """Tables that `antiphon tables` wrote; and the events, if they are still where they were."""

    def __init__(self, directory: Place) -> None:
        require_complete(directory)
        self._directory = directory
        self._sight = Sight()
        try:
            contents = json.loads((directory / CONTENTS).read_text("utf-8"))
            tables = [self._described(each) for each in contents["tables"]]
            self._traces = place_of(contents["events"] or "").parent
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise TraceError(f"cannot read the tables in {directory}: {error}") from error
        traced = BRONZE if contents["events"] and listed(self._traces / "events", ".parquet") else ()
        self.tables: Mapping[str, Table] = {table.name: table for table in (*traced, *tables)}

    def frame(self, spark: SparkSession, table: Table) -> DataFrame:
        if table in BRONZE:
            found = Dataset.of(self._traces).sound()
            self._sight.require(spark, self._traces, [file.place for file in found.files])
            return QUERIES[table](events(spark, found))
        folder = self._directory / table.layer / table.name
        files = [path for path, _ in listed(folder, ".parquet")]
        self._sight.require(spark, self._directory, files)
        return shaped(read_parquet(spark, files, table.columns), table)

    def _described(self, told: Mapping[str, Any]) -> Table:
        folder = self._directory / told["layer"] / told["name"]
        return Table(told["layer"], told["name"], told["row"], pq.read_schema(opened(folder / COMMENTS)))
