"""Export silver and gold tables as folders of Parquet files, for notebooks."""

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.errors import TraceError
from antiphon.pipeline.jobs.sight import require_shared
from antiphon.pipeline.spark.job import Progress
from antiphon.pipeline.spark.session import as_trace_error, works_here
from antiphon.pipeline.tables.catalog import COMMENTS, TablesOfRuns
from antiphon.pipeline.tables.columns import Table, commented

_COUNT_SECONDS_MAX: Final = 60.0
"""How long Spark may take to tell how many rows it has written; it usually has told before the writing ends."""


@dataclass(frozen=True, slots=True)
class Written:
    """One table that was written."""

    table: Table
    rows: int


def write_tables(spark: SparkSession, directory: Path, out: Path, progress: Progress) -> list[Written]:
    """Write every table of the runs in `directory` under `out`, each in a folder `layer/name`, with its comments.

    The events stay where they are.
    """
    source = TablesOfRuns(directory)
    tables = [table for table in source.tables.values() if table.layer != "bronze"]
    write = _write if works_here(spark) else _write_counted
    require_shared(spark, directory, [out])
    try:
        with as_trace_error(directory):
            for done, table in enumerate(tables):
                progress(done, len(tables))
                folder = out / table.layer / table.name
                write(source.frame(spark, table), folder)
                pq.write_metadata(commented(table), folder / COMMENTS)
        progress(len(tables), len(tables))
    except BaseException:
        spark.sparkContext.cancelAllJobs()  # else a task could go on writing into a directory that was just removed
        raise
    return [Written(table, _count(out / table.layer / table.name)) for table in tables]


def _write(rows: DataFrame, folder: Path) -> None:
    rows.write.option("compression", "zstd").parquet(f"file://{folder.absolute()}")


def _write_counted(rows: DataFrame, folder: Path) -> None:
    """Write on a cluster: a worker that came late may write into a folder that only it can see."""
    observation = Observation()
    _write(rows.observe(observation, F.count(F.lit(1)).alias("rows")), folder)
    sent, found = _observed(observation), _count(folder)
    if sent != found:
        raise TraceError(f"{sent - found:,} of {sent:,} rows are not in {folder}: all workers must share it")


def _observed(observation: Observation) -> int:
    """The number of rows; Spark tells it asynchronously, and a listener that is overloaded never tells."""
    told = Future[int]()

    def ask() -> None:
        try:
            told.set_result(observation.get["rows"])
        except BaseException as error:  # it is raised in the calling thread
            told.set_exception(error)

    Thread(target=ask, daemon=True).start()
    try:
        return told.result(_COUNT_SECONDS_MAX)
    except TimeoutError:
        raise TraceError("Spark did not tell how many rows it has written, so some may be missing") from None


def _count(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
