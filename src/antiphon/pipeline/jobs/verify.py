"""Judge every run of a dataset with Spark, and combine the verdicts.

The properties are the plain functions of `antiphon.properties`. Spark only distributes units of files over its workers
with `mapInArrow`, and shuffles nothing. A run with too many rows for one task is split into several (`shares.py`), in
the same job. An error inside a task comes back as a row that names its file, and is raised here as one sentence.
"""

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.errors import TraceError
from antiphon.pipeline.jobs.doubtful import UNKNOWN_RUN, cannot_tell, judgeable_units, located, missing_runs, placed
from antiphon.pipeline.jobs.shares import Judge, Share, deal, pointless, put_together
from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.job import TASKS_PER_CORE, Progress, collected
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdicts.verdict import VERDICTS, Verdict, from_table, to_table

ROWS_PER_TASK: Final = 4_000_000
"""A run with more rows is judged in parts of about this size, as far as it can be divided."""

_RESULTS: Final = pa.schema(
    [field.with_nullable(nullable=True) for field in VERDICTS]
    + [pa.field("error", pa.string()), pa.field("traceback", pa.string()), pa.field("share", pa.int64())]
)


def verify(
    spark: SparkSession,
    directory: Path,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Progress | None = None,
    judge: Judge | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> list[Verdict]:
    """Return the verdicts on every run under `directory`, ordered by run; TraceError if a file cannot be judged.

    The `required` properties are judged as if every service promised them. With `keep_going`, a file that cannot be
    judged gets a verdict that says why. `judge` replaces the properties; without it, a run with more than
    `rows_per_task` rows is judged in parts.
    """
    judged = verdict_table(
        spark,
        directory,
        required=required,
        keep_going=keep_going,
        progress=progress,
        judge=judge,
        rows_per_task=rows_per_task,
    )
    return from_table(judged)


def verdict_table(
    spark: SparkSession,
    directory: Path,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Progress | None = None,
    judge: Judge | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> pa.Table:
    """The same in rows of `VERDICTS`: thousands of runs have hundreds of thousands of verdicts."""
    required = known(required)
    units, unjudged = judgeable_units(directory, keep_going=keep_going)
    shares = _shares(units, judge, required, rows_per_task)
    table = _results(spark, directory, shares, progress or (lambda _done, _total: None)).sort_by("share")
    is_failed = pc.is_valid(table.column("error"))
    is_part = pc.is_in(table.column("share"), pa.array(_parts(shares), pa.int64()))
    parts = _by_share(table.filter(pc.and_(is_part, pc.invert(is_failed))))
    excused = pointless(shares, parts)
    failed = [row for row in table.filter(is_failed).to_pylist() if row["share"] not in excused]
    if failed and not keep_going:
        raise _failure(failed)
    whole = table.filter(pc.invert(pc.or_(is_part, is_failed))).select(VERDICTS.names).cast(VERDICTS)
    joined = to_table(put_together(shares, parts, {row["share"] for row in failed}))
    sentences = [*unjudged, *(row["error"] for row in failed)]
    untold = to_table(cannot_tell(UNKNOWN_RUN, sentence) for sentence in sentences)
    missing = to_table(missing_runs(directory, {*whole["run"].to_pylist(), *joined["run"].to_pylist()}))
    found = pa.concat_tables([untold, whole, joined, missing])
    return found.take(pc.sort_indices(found["run"]))  # a stable sort


def _shares(units: list[list[Path]], judge: Judge | None, required: frozenset[str], rows_per_task: int) -> list[Share]:
    """The work, the longest first, so that none is left alone at the end."""
    whole, limit = judge or partial(judge_all, required=required), None if judge else rows_per_task
    shares = [share for unit in units for share in deal(unit, whole, required, limit)]
    return sorted(shares, key=lambda share: share.bytes, reverse=True)


def _results(spark: SparkSession, directory: Path, shares: Sequence[Share], progress: Progress) -> pa.Table:
    """What the tasks found, in rows of `_RESULTS`."""
    with interrupt_held_back():
        tasks = min(len(shares), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        numbers = spark.range(0, tasks, 1, numPartitions=tasks)
        results = numbers.mapInArrow(_task(shares, tasks), from_arrow_schema(_RESULTS))
    with as_trace_error(directory):
        return collected(results, tasks, progress, "antiphon verify")


def _parts(shares: Sequence[Share]) -> list[int]:
    """The shares that are parts of large runs, by position: their verdicts must be joined."""
    return [place for place, share in enumerate(shares) if share.task is not None]


def _by_share(table: pa.Table) -> dict[int, list[Verdict]]:
    """The verdicts on each share."""
    found: dict[int, list[Verdict]] = defaultdict(list)
    for share, verdict in zip(table["share"].to_pylist(), from_table(table.select(VERDICTS.names)), strict=True):
        found[share].append(verdict)
    return found


def _task(shares: Sequence[Share], tasks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of a worker, given the number of its task: task i takes every share i + k·tasks."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for place in range(number, len(shares), tasks):
                    yield from _judged(shares[place], place).to_batches()
                    pa.default_memory_pool().release_unused()

    return judged


def _judged(share: Share, place: int) -> pa.Table:
    """The verdicts on one share, or one row that says why there are none."""
    files = share.files
    try:
        rows = to_table(placed(files, verdict) for verdict in share.judge()).to_pylist()
    except TraceError as error:
        rows = [{"error": located(files, str(error))}]
    except Exception as error:  # an error of a checker must not become a Java stack trace
        sentence = f"the checker failed with {type(error).__name__}: {error}"
        rows = [{"error": located(files, sentence), "traceback": traceback.format_exc()}]
    return pa.Table.from_pylist([{**row, "share": place} for row in rows], schema=_RESULTS)


def _failure(rows: Sequence[dict[str, str | None]]) -> TraceError:
    others = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
    error = TraceError(f"{rows[0]['error']}{others}")
    if rows[0]["traceback"]:
        error.add_note(rows[0]["traceback"])
    return error
