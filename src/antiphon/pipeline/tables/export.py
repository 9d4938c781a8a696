"""Export silver and gold tables as folders of Parquet files, for notebooks."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antiphon.pipeline.spark.job import Progress
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.pipeline.tables.catalog import COMMENTS, TablesOfRuns
from antiphon.pipeline.tables.columns import Table, commented


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
    try:
        with as_trace_error(directory):
            for done, table in enumerate(tables):
                progress(done, len(tables))
                folder = out / table.layer / table.name
                rows = source.frame(spark, table).write.option("compression", "zstd")
                rows.parquet(f"file://{folder.absolute()}")
                pq.write_metadata(commented(table), folder / COMMENTS)
        progress(len(tables), len(tables))
    except BaseException:
        spark.sparkContext.cancelAllJobs()  # else a task could go on writing into a directory that was just removed
        raise
    return [Written(table, _count(out / table.layer / table.name)) for table in tables]


def _count(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
