"""Export silver and gold tables as folders of Parquet files, for notebooks."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antiphon.pipeline.dataset import events
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.spark.job import Progress
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.pipeline.tables.gold import measured, recovery, view_changes
from antiphon.pipeline.tables.schemas import (
    BLOCKED,
    DELIVERIES,
    GOLD,
    MESSAGES,
    RECOVERY,
    SILVER,
    STABILITY,
    VIEW_CHANGES,
    VIEWS,
    Table,
)
from antiphon.pipeline.tables.silver import blocked, deliveries, messages, stability, views

QUERIES: Final[dict[Table, Callable[[DataFrame], DataFrame]]] = {
    MESSAGES: messages,
    DELIVERIES: deliveries,
    VIEWS: views,
    STABILITY: stability,
    BLOCKED: blocked,
    VIEW_CHANGES: view_changes,
    RECOVERY: recovery,
}
"""The tables that Spark computes from events and writes itself; the others are measures."""


@dataclass(frozen=True, slots=True)
class Written:
    """One table that was written."""

    table: Table
    rows: int


def write_tables(spark: SparkSession, directory: Path, out: Path, progress: Progress) -> list[Written]:
    """Write every table of the runs in `directory` under `out`, each in a folder `layer/name`."""
    total = len(QUERIES) + 1
    try:
        with as_trace_error(directory):
            source = events(spark, directory)
            for done, (table, query) in enumerate(QUERIES.items()):
                progress(done, total)
                query(source).write.option("compression", "zstd").parquet(f"file://{_folder(out, table).absolute()}")
        progress(total - 1, total)
        for table, rows in measured(statistics(spark, directory, runs_max=inf)).items():
            _write(rows, _folder(out, table))
        progress(total, total)
    except BaseException:
        spark.sparkContext.cancelAllJobs()  # else a task could go on writing into a directory that was just removed
        raise
    return [Written(table, _count(_folder(out, table))) for table in (*SILVER, *GOLD)]


def _folder(out: Path, table: Table) -> Path:
    return out / table.layer / table.name


def _write(rows: pa.Table, folder: Path) -> None:
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "part-0.parquet", compression="zstd")


def _count(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
