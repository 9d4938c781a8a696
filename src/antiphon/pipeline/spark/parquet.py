"""Parquet files as DataFrames, and back. Java reads files of this machine; whatever is in a store is read by Arrow.

Spark's own reader would need a connector for each store. Arrow has them, and a task reads and writes with it as it
judges. Tables are always written by Arrow, for all places alike: each partition is one file that appears complete.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.errors import TraceError
from antiphon.pipeline.footers import unreadable
from antiphon.pipeline.spark.job import TASKS_PER_CORE, collected, silent
from antiphon.trace.places import Place, is_local, listed, opened, written

ROWS_PER_GROUP: Final = 250_000
"""Rows come from Java in small batches; this many are held back to make one row group."""


def spark_path(path: Place) -> str:
    """A path that Spark takes literally: Hadoop would expand brackets, braces and stars."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))


def read_parquet(spark: SparkSession, files: Sequence[Place], schema: pa.Schema) -> DataFrame:
    """The rows of these files with exactly these columns."""
    if not files:
        return spark.createDataFrame(schema.empty_table())
    if all(map(is_local, files)):
        paths = [spark_path(path) for path in files]
        columns = [f"`{name.replace('`', '``')}`" for name in schema.names]  # the name of a varied value has dots
        return spark.read.schema(from_arrow_schema(schema)).parquet(*paths).select(*columns)
    tasks = min(len(files), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for place in files[number::tasks]:
                    yield from _batches(place, schema)

    return spark.range(0, tasks, 1, numPartitions=tasks).mapInArrow(read, from_arrow_schema(schema))


def write_parquet(frame: DataFrame, folder: Place, schema: pa.Schema, title: str) -> int:
    """Write the rows as files in a folder, one for each partition that has rows; returns their number."""
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.absolute()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        part = folder / f"part-{context.partitionId():05}.parquet"  # the same for each attempt of the task
        yield pa.RecordBatch.from_pydict({"rows": [_written(batches, part, schema)]})

    rows = sum(collected(frame.mapInArrow(write, "rows long"), 1, silent, title)["rows"].to_pylist())
    if not rows:
        _written(iter(schema.empty_table().to_batches()), folder / "part-00000.parquet", schema, even_empty=True)
    found = sum(pq.read_metadata(opened(part)).num_rows for part, _ in listed(folder, ".parquet"))
    if found != rows:  # a worker has another folder under the same path
        raise TraceError(f"{rows - found:,} of {rows:,} rows are not in {folder}: all workers must share it")
    return int(rows)


def _batches(place: Place, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        file = pq.ParquetFile(opened(place))
        held = [name for name in schema.names if name in file.schema_arrow.names]  # as Java does: the rest is null
        for group in range(file.metadata.num_row_groups):
            found = file.read_row_group(group, columns=held, use_threads=False)
            nulls = {
                name: pa.nulls(found.num_rows, schema.field(name).type) for name in schema.names if name not in held
            }
            columns = [nulls[name] if name in nulls else found[name] for name in schema.names]
            table = pa.table(columns, names=schema.names).cast(schema)
            yield from table.to_batches(max_chunksize=65_536)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(place, error) from error


def _written(batches: Iterator[pa.RecordBatch], part: Place, schema: pa.Schema, *, even_empty: bool = False) -> int:
    """Write one file, and return the number of its rows; without rows there is none unless it is asked for."""
    groups = _groups(batches, schema)
    first = next(groups, schema.empty_table() if even_empty else None)
    if first is None:
        return 0
    rows = 0
    with written(part) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in chain([first], groups):
            rows += table.num_rows
            writer.write_table(table)
    return rows


def _groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= ROWS_PER_GROUP:
            yield pa.Table.from_batches(waiting).cast(schema)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting).cast(schema)
