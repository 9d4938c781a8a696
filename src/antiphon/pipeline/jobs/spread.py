"""Run many small pieces of work as Spark tasks. Work done before an interrupt or a crash is not repeated.

A task processes a slice of the items and writes their rows as one Parquet file, a part, under a temporary name that is
renamed at the end. A task that is retried because its worker died writes the same part. The next call with the same
items and directory does only those that no part holds. If a worker outlived an interrupt and two parts hold an item,
one counts. On a cluster all workers write to the same directory, or to
the same store.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antiphon.errors import NotShared, TraceError
from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.job import TASKS_PER_CORE, Progress, collected
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.trace.places import Place, in_parallel, is_local, listed, opened, written

Item = TypeVar("Item")
Row = Mapping[str, Any]

ITEMS_PER_TASK_MAX: Final = 50
"""At most this many items per task are lost by an interrupt."""
DEATHS_MAX: Final = 2
"""An item is abandoned after it has killed this many workers; one may be killed by chance."""
_PLACE: Final = pa.field("place", pa.int64(), nullable=False)
"""The position of the row's item among all items."""
_BLIND: Final = "host string"
"""A row that a task sends back: the host of a worker that does not see the folder. To try again elsewhere would hide
that, and give a result whenever chance is kind."""


@dataclass(frozen=True, slots=True)
class Work(Generic[Item]):
    """What is done with each item."""

    row: Callable[[Item], Row]
    """An exception ends the whole job, so expected errors of an item belong in its row."""
    lost: Callable[[Item], Row]
    """The row of an item that kills its workers."""
    schema: pa.Schema
    """The schema of the rows."""


def spread(
    session: Callable[[], SparkSession], work: Work[Item], items: Sequence[Item], parts: Place, progress: Progress
) -> None:
    """Do the items that no part holds yet. A single item is done in this process, because Spark takes longer to start.

    Raises TraceError if Spark fails.
    """
    parts = parts.absolute()
    parts.mkdir(exist_ok=True)
    _remove_damaged(parts)
    done = _places(parts)
    open_places = [place for place in range(len(items)) if place not in done]
    progress(len(done), len(items))
    if len(open_places) == 1:
        _work_through(work, items, open_places, parts / _name(open_places[0], uuid4()))
    elif open_places:
        _run(session(), work, items, open_places, parts, progress)
    progress(len(items), len(items))


def results(parts: Place, schema: pa.Schema) -> pa.Table:
    """The rows of all parts, in the order of the items."""
    tables = in_parallel(lambda path: pq.ParquetFile(opened(path)).read(), _files(parts))
    rows = pa.concat_tables([pa.schema([_PLACE, *schema]).empty_table(), *tables])
    _, first = np.unique(rows.column("place").to_numpy(), return_index=True)
    return rows.take(first)


def _remove_damaged(parts: Place) -> None:
    """Remove damaged parts: a power cut can leave a renamed file without its bytes."""
    if not is_local(parts):
        return  # in a store a file appears complete or not at all
    for path in _files(parts):
        try:
            pq.ParquetFile(path).read()
        except (pa.ArrowException, OSError):
            path.unlink()


def _places(parts: Place) -> set[int]:
    """The positions of the items that are done."""

    def places(path: Place) -> list[int]:
        found: list[int] = pq.ParquetFile(opened(path)).read(columns=["place"]).column("place").to_pylist()
        return found

    return {place for own in in_parallel(places, _files(parts)) for place in own}


def _files(parts: Place) -> list[Place]:
    return [path for path, _ in listed(parts, ".parquet")]


def _run(
    spark: SparkSession,
    work: Work[Item],
    items: Sequence[Item],
    open_places: Sequence[int],
    parts: Place,
    progress: Progress,
) -> None:
    job = uuid4()
    with interrupt_held_back():
        tasks = _tasks(len(open_places), spark.sparkContext.defaultParallelism)

    def worked_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                if is_local(parts) and not parts.is_dir():
                    yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()]})
                    return
                places = open_places[number::tasks]
                _work_through(work, items, places, parts / _name(places[0], job))

    def advance(done: int, of: int) -> None:
        progress(len(items) - len(open_places) + len(open_places) * done // of, len(items))

    with as_trace_error(parts.parent):
        with interrupt_held_back():
            numbers = spark.range(0, tasks, 1, numPartitions=tasks)
            results = numbers.mapInArrow(worked_through, _BLIND)
        blind = collected(results, tasks, advance, "antiphon spread")
    for host in blind["host"].to_pylist():
        raise NotShared(str(parts), host)
    missing = {*range(len(items))} - _places(parts)
    if missing:
        raise TraceError(f"{len(missing):,} of {len(items):,} results are not in {parts}: all workers must share it")


def _tasks(items: int, cores: int) -> int:
    return min(items, max(TASKS_PER_CORE * cores, -(-items // ITEMS_PER_TASK_MAX)))


def _name(first: int, job: UUID) -> str:
    return f"{first:07}-{job}.parquet"


def _work_through(work: Work[Item], items: Sequence[Item], places: Sequence[int], part: Place) -> None:
    """Work on a slice of the items, and write the part."""
    note = part.with_suffix(".at")
    deaths = note.read_text("utf-8").split() if note.exists() else []
    rows = []
    for place in places:
        if deaths.count(str(place)) < DEATHS_MAX:
            with _noted(note, deaths, place):
                row = work.row(items[place])
        else:
            row = work.lost(items[place])
        rows.append({"place": place, **row})
    with written(part) as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema([_PLACE, *work.schema])), file, compression="zstd")
    note.unlink(missing_ok=True)


@contextmanager
def _noted(note: Place, deaths: Sequence[str], place: int) -> Iterator[None]:
    """Record the current item after those that killed a worker: if this worker dies too, the next one knows why."""
    note.write_text(" ".join([*deaths, str(place)]), "utf-8")
    try:
        yield
    except BaseException:
        note.write_text(" ".join(deaths), "utf-8")
        raise
