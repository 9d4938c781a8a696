"""Shares of work in Spark tasks: task i takes every share i + k · tasks, and sends rows back.

Spark only distributes; it shuffles nothing. An error inside a task comes back as a row that names its share, so that
it can be told in one sentence.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.cloudpickle import dumps, loads
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.job import TASKS_PER_CORE, Progress, collected
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.trace.places import Place

MANY: Final = 1_000
_KEPT_BYTES_MAX: Final = 256 << 20

Share = TypeVar("Share")
Work = Callable[[Iterator[tuple[int, Share]]], Iterator[pa.Table]]
"""Does the shares of one task, each with its place among all; gives tables of the schema of the job."""


def in_tasks(
    spark: SparkSession,
    directory: Place,
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
        own, count = _own_shares(shares, tasks), len(shares)

        def done(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    places = range(number, count, tasks)
                    for table in work(zip(places, own(number), strict=True)):
                        yield from table.to_batches()
                        _release(pa.default_memory_pool())

        results = numbers.mapInArrow(done, from_arrow_schema(schema))
    with as_trace_error(directory):
        return collected(results, tasks, progress, title)


def _own_shares(shares: Sequence[Share], tasks: int) -> Callable[[int], Sequence[Share]]:
    """From the number of a task to its shares.

    Every task receives all that its function names. A few shares may have much in common, such as what is known about
    a large run. Many are packed for each task, so that it unpacks only its own.
    """
    if len(shares) < MANY:
        return lambda number: shares[number::tasks]
    packed: list[bytes] = [
        dumps(shares[number::tasks])  # type: ignore[no-untyped-call]
        for number in range(tasks)
    ]

    def unpacked(number: int) -> Sequence[Share]:
        own: Sequence[Share] = loads(packed[number])
        return own

    return unpacked


def _release(pool: pa.MemoryPool) -> None:
    """Return memory that is not used, if large runs are read here; small ones are read sooner if it is kept."""
    if pool.max_memory() > _KEPT_BYTES_MAX:
        pool.release_unused()
