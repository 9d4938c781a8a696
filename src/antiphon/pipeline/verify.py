"""Every run of a dataset judged under Spark, and the verdicts added up.

The properties are the plain functions of `antiphon.properties`; Spark only spreads units of files over its
workers with `mapInArrow` and shuffles nothing. A run with too many rows for one task is dealt out to several
(`split.py`), in the same job. What goes wrong inside a task comes back as a row that names its file, and is raised here
as one sentence.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.errors import TraceError
from antiphon.pipeline.jobs import Progress, collected
from antiphon.pipeline.read import count_events, find_event_files, one_run, plan_units, read_events, traced_runs
from antiphon.pipeline.session import as_trace_error
from antiphon.pipeline.split import Task, judge_part, plan, put_together
from antiphon.pipeline.survey import survey
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdict import VERDICTS, Verdict, Violation, from_table, to_table

Judge = Callable[[pa.Table], Iterable[Verdict]]
"""Judges all runs of an events table."""

TASKS_PER_CORE_MAX: Final = 64
"""Above this many units a core, a task takes several: smaller tasks would only add overhead."""

ROWS_PER_TASK: Final = 4_000_000
"""A run with more rows is judged in parts, which hold about so many at most, as far as it can be divided."""

_RESULTS: Final = pa.schema(
    [field.with_nullable(nullable=True) for field in VERDICTS]
    + [pa.field("error", pa.string()), pa.field("traceback", pa.string())]
    + [pa.field("large", pa.int64()), pa.field("task", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class _Share:
    """What is judged in one go: a unit of files, or what one task of a large run looks at."""

    files: Sequence[Path]
    judge: Callable[[], Iterable[Verdict]]
    bytes: int
    large: int | None = None
    """The number of the large run, and that of the task among its tasks."""
    task: int | None = None


def verify(
    spark: SparkSession,
    directory: Path,
    *,
    required: frozenset[str] = frozenset(),
    progress: Progress | None = None,
    judge: Judge | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> list[Verdict]:
    """The verdicts on every run under `directory`, ordered by run; TraceError if a file cannot be judged.

    What is `required` is judged as if every service promised it. Without `judge` the properties are judged, those of a
    run with more than `rows_per_task` rows in parts.
    """
    required = known(required)
    units = plan_units(path.absolute() for path in find_event_files(directory))
    large = [] if judge else [unit for unit in units if count_events(unit) > rows_per_task and one_run(unit)]
    whole = partial(judge_all, required=required) if judge is None else judge
    shares = [_Share(unit, partial(_judge_unit, unit, whole), _size_bytes(unit)) for unit in units if unit not in large]
    plans: list[list[Task]] = []
    for number, unit in enumerate(large):
        found = survey(unit)
        plans.append(plan(found, rows_per_task, required))
        for place, task in enumerate(plans[-1]):
            size = _size_bytes(unit) * task.rows // found.rows
            shares.append(_Share(unit, partial(judge_part, unit, found, task, required), size, number, place))
    shares.sort(key=lambda share: share.bytes, reverse=True)  # the longest first, so that none is left alone at the end
    tasks = min(len(shares), TASKS_PER_CORE_MAX * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, tasks, 1, numPartitions=tasks)
    results = numbers.mapInArrow(_task(shares, tasks), from_arrow_schema(_RESULTS))
    with as_trace_error(directory):
        table = collected(results, tasks, progress or (lambda _done, _total: None), "antiphon verify")
    failed = table.filter(pc.is_valid(table.column("error")))
    if failed.num_rows:
        raise _failure(failed.to_pylist())
    verdicts = [*_told(table), *_put_together(plans, table)]
    return sorted([*verdicts, *_missing(directory, verdicts)], key=lambda verdict: verdict.run)


def _told(table: pa.Table, large: int | None = None, task: int | None = None) -> list[Verdict]:
    """The verdicts on small runs, or those of one task of a large one."""
    chosen = pc.is_null(table["large"]) if large is None else pc.equal(table["large"], large)
    if task is not None:
        chosen = pc.and_(chosen, pc.equal(table["task"], task))
    return from_table(table.filter(chosen).select(VERDICTS.names))


def _put_together(plans: Sequence[Sequence[Task]], table: pa.Table) -> Iterator[Verdict]:
    """The verdicts on large runs."""
    for large, tasks in enumerate(plans):
        yield from put_together(tasks, [_told(table, large, task) for task in range(len(tasks))])


def _missing(directory: Path, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """A run whose events should be there and are not must not pass unnoticed."""
    lost = traced_runs(directory) - {verdict.run for verdict in verdicts}
    sentence = "runs.parquet names this run, and no file in events holds it"
    return [Verdict(run, "W", None, "harness error", 0, 1, Violation(sentence)) for run in lost]


def _size_bytes(unit: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in unit)


def _judge_unit(files: Sequence[Path], judge: Judge) -> Iterable[Verdict]:
    return judge(read_events(files))


def _task(shares: Sequence[_Share], tasks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the number of its task: task i takes every share i + k·tasks."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for share in shares[number::tasks]:
                    yield from _judged(share).to_batches()
                    pa.default_memory_pool().release_unused()

    return judged


def _judged(share: _Share) -> pa.Table:
    """The verdicts on one share, or one row that says why there are none."""
    try:
        rows = to_table(share.judge()).to_pylist()
    except TraceError as error:
        rows = [{"error": _located(share.files, str(error))}]
    except Exception as error:  # a checker's own fault must not become a Java stack trace
        sentence = f"the checker failed with {type(error).__name__}: {error}"
        rows = [{"error": _located(share.files, sentence), "traceback": traceback.format_exc()}]
    where = {"large": share.large, "task": share.task}
    return pa.Table.from_pylist([{**row, **where} for row in rows], schema=_RESULTS)


def _located(files: Sequence[Path], message: str) -> str:
    sentence = message.split("\n", maxsplit=1)[0]
    if any(str(path) in sentence for path in files):
        return sentence
    others = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{others}: {sentence}"


def _failure(rows: Sequence[dict[str, str | None]]) -> TraceError:
    others = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
    error = TraceError(f"{rows[0]['error']}{others}")
    if rows[0]["traceback"]:
        error.add_note(rows[0]["traceback"])
    return error
