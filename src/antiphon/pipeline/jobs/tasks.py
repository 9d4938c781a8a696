"""Shares of work in Spark tasks: task i takes every share i + k · tasks, and sends rows back.

Spark only distributes; it shuffles nothing. An error inside a task comes back as a row that names its share, so that
it can be told in one sentence.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.job import TASKS_PER_CORE, Progress, collected
from antiphon.pipeline.spark.session import as_trace_error

_KEPT_BYTES_MAX: Final = 256 << 20

Share = TypeVar("Share")
Work = Callable[[Iterator[tuple[int, Share]]], Iterator[pa.Table]]
"""Does the shares of one task, each with its place among all; gives tables of the schema of the job."""


def in_tasks(
    spark: SparkSession,
    directory: Path,
    shares: Sequence[Share],
    work: Work[Share],
    schema: pa.Schema,
    progress: Progress,
    title: str,
) -> pa.Table:
    """All rows that the tasks send back; TraceError if Spark fails on the directory."""
    with interrupt_held_back():
        tasks = max(1, min(len(shares), TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        numbers = spark.range(0, tasks, 1, numPartitions=tasks)

        def done(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    own = ((place, shares[place]) for place in range(number, len(shares), tasks))
                    for table in work(own):
                        yield from table.to_batches()
                        _release(pa.default_memory_pool())

        results = numbers.mapInArrow(done, from_arrow_schema(schema))
    with as_trace_error(directory):
        return collected(results, tasks, progress, title)


def _release(pool: pa.MemoryPool) -> None:
    """Return memory that is not used, if large runs are read here; small ones are read sooner if it is kept."""
    if pool.max_memory() > _KEPT_BYTES_MAX:
        pool.release_unused()
