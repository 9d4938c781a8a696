"""Export silver and gold tables as folders of Parquet files, for notebooks."""

from dataclasses import dataclass

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antiphon.pipeline.jobs.sight import require_shared
from antiphon.pipeline.spark.job import Progress
from antiphon.pipeline.spark.parquet import write_parquet
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.pipeline.tables.catalog import COMMENTS, TablesOfRuns
from antiphon.pipeline.tables.columns import Table, commented
from antiphon.trace.places import Place, written


@dataclass(frozen=True, slots=True)
class Written:
    """One table that was written."""

    table: Table
    rows: int


def write_tables(spark: SparkSession, source: TablesOfRuns, out: Place, progress: Progress) -> list[Written]:
    """Write every table of these runs under `out`, each in a folder `layer/name`, with its comments.

    The events stay where they are.
    """
    tables = [table for table in source.tables.values() if table.layer != "bronze"]
    found = list[Written]()
    require_shared(spark, source.directory, [out])
    try:
        with as_trace_error(source.directory):
            for done, table in enumerate(tables):
                progress(done, len(tables))
                folder = out / table.layer / table.name
                rows = write_parquet(source.frame(spark, table), folder, table.columns, "antiphon tables")
                with written(folder / COMMENTS) as file:
                    pq.write_metadata(commented(table), file)
                found.append(Written(table, rows))
        progress(len(tables), len(tables))
    except BaseException:
        spark.sparkContext.cancelAllJobs()  # else a task could go on writing into a directory that was just removed
        raise
    return found
