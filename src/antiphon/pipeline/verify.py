"""Every run of a dataset judged under Spark, and the verdicts added up.

The properties are the plain functions of `antiphon.properties`; Spark only spreads units of files over its
workers with `mapInArrow` and shuffles nothing. What goes wrong inside a task comes back as a row that names
its file, and is raised here as one sentence.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.errors import TraceError
from antiphon.pipeline.read import find_event_files, plan_units, read_events, traced_runs
from antiphon.pipeline.session import as_trace_error
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdict import VERDICTS, Verdict, Violation, from_table, to_table

Judge = Callable[[pa.Table], Iterable[Verdict]]
"""Judges all runs of an events table."""
Progress = Callable[[int, int], None]
"""Called with how many tasks are done and how many there are, in the calling thread, ever increasing."""

TASKS_PER_CORE_MAX: Final = 64
"""Above this many units a core, a task takes several: smaller tasks would only add overhead."""

_POLL_SECONDS: Final = 0.1
_RESULTS: Final = pa.schema(
    [field.with_nullable(nullable=True) for field in VERDICTS]
    + [pa.field("error", pa.string()), pa.field("traceback", pa.string())]
)


def verify(
    spark: SparkSession,
    directory: Path,
    *,
    required: frozenset[str] = frozenset(),
    progress: Progress | None = None,
    judge: Judge | None = None,
) -> list[Verdict]:
    """The verdicts on every run under `directory`, ordered by run; TraceError if a file cannot be judged.

    What is `required` is judged as if every service promised it. Without `judge` the properties are judged.
    """
    judge = judge or partial(judge_all, required=known(required))
    units = plan_units(path.absolute() for path in find_event_files(directory))
    units.sort(key=_size_bytes, reverse=True)  # the longest tasks first, so that none is left alone at the end
    tasks = min(len(units), TASKS_PER_CORE_MAX * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, tasks, 1, numPartitions=tasks)
    results = numbers.mapInArrow(_task(units, tasks, judge), from_arrow_schema(_RESULTS))
    with as_trace_error(directory):
        table = _collected(results, tasks, progress or (lambda _done, _total: None))
    failed = table.filter(pc.is_valid(table.column("error")))
    if failed.num_rows:
        raise _failure(failed.to_pylist())
    verdicts = from_table(table.select(VERDICTS.names))
    return sorted([*verdicts, *_missing(directory, verdicts)], key=lambda verdict: verdict.run)


def _missing(directory: Path, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """A run whose events should be there and are not must not pass unnoticed."""
    lost = traced_runs(directory) - {verdict.run for verdict in verdicts}
    sentence = "runs.parquet names this run, and no file in events holds it"
    return [Verdict(run, "W", None, "harness error", 0, 1, Violation(sentence)) for run in lost]


def _size_bytes(unit: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in unit)


def _task(
    units: Sequence[Sequence[Path]], tasks: int, judge: Judge
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the number of its task: task i takes every unit i + k·tasks."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for files in units[number::tasks]:
                    yield from _judged(files, judge).to_batches()

    return judged


def _judged(files: Sequence[Path], judge: Judge) -> pa.Table:
    """The verdicts on one unit, or one row that says why there are none."""
    try:
        rows = to_table(judge(read_events(files))).to_pylist()
    except TraceError as error:
        rows = [{"error": _located(files, str(error))}]
    except Exception as error:  # a checker's own fault must not become a Java stack trace
        sentence = f"the checker failed with {type(error).__name__}: {error}"
        rows = [{"error": _located(files, sentence), "traceback": traceback.format_exc()}]
    return pa.Table.from_pylist(rows, schema=_RESULTS)


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


def _collected(results: DataFrame, tasks: int, progress: Progress) -> pa.Table:
    """Runs the query in a thread of its own, so that this one can show progress and be interrupted."""
    context = results.sparkSession.sparkContext
    group = f"antiphon-{uuid4()}"

    def collect() -> pa.Table:
        context.setJobGroup(group, "antiphon verify", interruptOnCancel=True)
        return results.toArrow()

    progress(0, tasks)
    with ThreadPoolExecutor(max_workers=1) as executor:
        future = executor.submit(inheritable_thread_target(results.sparkSession)(collect))
        shown = 0
        try:
            while not future.done():
                try:
                    future.result(timeout=_POLL_SECONDS)
                except NotYet:
                    done = min(_tasks_done(context, group), tasks - 1)  # the last is shown with its result
                    if done > shown:
                        progress(shown := done, tasks)
        except BaseException:
            context.cancelJobGroup(group)
            raise
        table = future.result()
    progress(tasks, tasks)
    return table


def _tasks_done(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
