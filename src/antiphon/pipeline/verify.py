"""Every run of a dataset judged under Spark, and the verdicts added up.

The properties are the plain functions of `antiphon.properties`; Spark only spreads units of files over its
workers with `mapInArrow` and shuffles nothing. What goes wrong inside a task comes back as a row that names
its file, and is raised here as one sentence.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.errors import TraceError
from antiphon.pipeline.jobs import Progress, collected
from antiphon.pipeline.read import find_event_files, plan_units, read_events, traced_runs
from antiphon.pipeline.session import as_trace_error
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdict import VERDICTS, Verdict, Violation, from_table, to_table

Judge = Callable[[pa.Table], Iterable[Verdict]]
"""Judges all runs of an events table."""

TASKS_PER_CORE_MAX: Final = 16
"""Above this many units a core, a task takes several: each task costs Spark and its worker a tenth of a second."""

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
        table = collected(results, tasks, progress or (lambda _done, _total: None), "antiphon verify")
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
