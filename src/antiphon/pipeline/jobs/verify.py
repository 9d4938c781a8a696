"""Judge every run of a dataset with Spark, and combine the verdicts.

The properties are the plain functions of `antiphon.properties`; `tasks.py` distributes units of files over workers. A
run with too many rows for one task is split into several (`shares.py`), in the same job. An error inside a task comes
back as a row that names its file, and is raised here as one sentence.
"""

import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, Source
from antiphon.pipeline.jobs.doubtful import UNKNOWN_RUN, cannot_tell, judgeable_units, located, missing_runs, placed
from antiphon.pipeline.jobs.shares import Judge, Share, deal, pointless, put_together
from antiphon.pipeline.jobs.tasks import in_tasks
from antiphon.pipeline.spark.job import Progress, silent
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdicts.summary import VerdictSummary
from antiphon.properties.verdicts.verdict import VERDICTS, Verdict, from_table, to_table

ROWS_PER_TASK: Final = 2_000_000
"""A run with more rows is judged in parts of about this size, as far as it can be divided.

A row of a part takes 300 to 350 bytes while it is judged, so such a part takes about 0.7 GiB.
"""

_RESULTS: Final = pa.schema(
    [field.with_nullable(nullable=True) for field in VERDICTS]
    + [
        pa.field("summary", pa.binary()),
        pa.field("error", pa.string()),
        pa.field("traceback", pa.string()),
        pa.field("share", pa.int64()),
    ]
)
"""A row is a verdict, or the summary of all whole runs of a task, or an error."""


def verify(
    spark: SparkSession,
    source: Source,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Progress | None = None,
    judge: Judge | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> list[Verdict]:
    """Return the verdicts on every run under `source`, ordered by run; TraceError if a file cannot be judged.

    The `required` properties are judged as if every service promised them. With `keep_going`, a file that cannot be
    judged gets a verdict that says why. `judge` replaces the properties; without it, a run with more than
    `rows_per_task` rows is judged in parts.
    """
    judged = verdict_table(
        spark,
        source,
        required=required,
        keep_going=keep_going,
        progress=progress,
        judge=judge,
        rows_per_task=rows_per_task,
    )
    return from_table(judged)


def verdict_table(
    spark: SparkSession,
    source: Source,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Progress | None = None,
    judge: Judge | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> pa.Table:
    """The same in rows of `VERDICTS`: thousands of runs have hundreds of thousands of verdicts."""
    required, source = known(required), Dataset.of(source)
    shares, unjudged = _shares(source, judge, required, rows_per_task, keep_going=keep_going)
    table = in_tasks(spark, source.directory, shares, _each_verdict, _RESULTS, progress or silent, "antiphon verify")
    table = table.sort_by("share")
    is_part = pc.is_in(table["share"], pa.array(_parts(shares), pa.int64()))
    is_whole = pc.invert(pc.or_(is_part, pc.is_valid(table["error"])))
    whole = table.filter(is_whole).select(VERDICTS.names).cast(VERDICTS)
    doubtful = _verdicts(shares, table.filter(pc.invert(is_whole)), keep_going=keep_going)
    rest = to_table([*_cannot_tell(unjudged), *doubtful])
    missing = missing_runs(source.directory, {*whole["run"].to_pylist(), *rest["run"].to_pylist()})
    found = pa.concat_tables([rest, whole, to_table(missing)])
    return found.take(pc.sort_indices(found["run"]))  # a stable sort


def verify_in_total(
    spark: SparkSession,
    source: Source,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Progress | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> VerdictSummary:
    """The summary of these verdicts. Tasks add up what they judge, so the driver needs no memory for each run."""
    required, source = known(required), Dataset.of(source)
    shares, unjudged = _shares(source, None, required, rows_per_task, keep_going=keep_going)
    table = in_tasks(spark, source.directory, shares, _in_total, _RESULTS, progress or silent, "antiphon verify")
    is_summary = pc.is_valid(table["summary"])
    rest = _verdicts(shares, table.filter(pc.invert(is_summary)), keep_going=keep_going)
    summary = VerdictSummary.of([*_cannot_tell(unjudged), *rest])
    for packed in table.filter(is_summary)["summary"].to_pylist():
        summary.merge(VerdictSummary.unpacked(packed))
    summary.add(missing_runs(source.directory, summary.runs))
    return summary


def _shares(
    source: Source, judge: Judge | None, required: frozenset[str], rows_per_task: int, *, keep_going: bool
) -> tuple[list[Share], list[str]]:
    """The work, and why the rest cannot be judged.

    The longest share comes first, so that none is left alone at the end. If it is a part of a large run, the shortest
    shares follow it: it takes most of the memory, so little else should be in memory beside it.
    """
    units, unjudged = judgeable_units(source, keep_going=keep_going)
    whole, limit = judge or partial(judge_all, required=required), None if judge else rows_per_task
    shares = [share for unit in units for share in deal(unit, whole, required, limit)]
    shares.sort(key=lambda share: share.bytes, reverse=True)
    if shares and shares[0].task is not None:
        shares[1:] = reversed(shares[1:])
    return shares, unjudged


def _verdicts(shares: Sequence[Share], table: pa.Table, *, keep_going: bool) -> list[Verdict]:
    """The verdicts in these rows; those on parts of a large run are put together."""
    is_failed = pc.is_valid(table["error"])
    found = _by_share(table.filter(pc.invert(is_failed)))
    excused = pointless(shares, found)
    failed = [row for row in table.filter(is_failed).to_pylist() if row["share"] not in excused]
    if failed and not keep_going:
        raise _failure(failed)
    verdicts = put_together(shares, found, {row["share"] for row in failed})
    return [*_cannot_tell(row["error"] for row in failed), *verdicts]


def _cannot_tell(sentences: Iterable[str]) -> list[Verdict]:
    return [cannot_tell(UNKNOWN_RUN, sentence) for sentence in sentences]


def _parts(shares: Sequence[Share]) -> list[int]:
    """The shares that are parts of large runs, by position: their verdicts must be joined."""
    return [place for place, share in enumerate(shares) if share.task is not None]


def _by_share(table: pa.Table) -> dict[int, list[Verdict]]:
    """The verdicts on each share."""
    found: dict[int, list[Verdict]] = defaultdict(list)
    for share, verdict in zip(table["share"].to_pylist(), from_table(table.select(VERDICTS.names)), strict=True):
        found[share].append(verdict)
    return found


def _each_verdict(shares: Iterator[tuple[int, Share]]) -> Iterator[pa.Table]:
    """One row for each verdict."""
    for place, share in shares:
        yield _told(place, *_judged(share))


def _in_total(shares: Iterator[tuple[int, Share]]) -> Iterator[pa.Table]:
    """One row for all verdicts on whole runs. Those on parts of runs cannot be added up."""
    summary = VerdictSummary()
    for place, share in shares:
        verdicts, errors = _judged(share)
        if share.task is None:
            summary.add(verdicts)
            verdicts = []
        if verdicts or errors:
            yield _told(place, verdicts, errors)
    yield pa.Table.from_pylist([{"summary": summary.packed()}], schema=_RESULTS)


def _judged(share: Share) -> tuple[list[Verdict], list[dict[str, str]]]:
    """The verdicts on one share, or why there are none."""
    files = share.files
    try:
        return [placed(files, verdict) for verdict in share.judge()], []
    except TraceError as error:
        return [], [{"error": located(files, str(error))}]
    except Exception as error:  # an error of a checker must not become a Java stack trace
        sentence = f"the checker failed with {type(error).__name__}: {error}"
        return [], [{"error": located(files, sentence), "traceback": traceback.format_exc()}]


def _told(place: int, verdicts: Sequence[Verdict], errors: Sequence[dict[str, str]]) -> pa.Table:
    found = to_table(verdicts)
    columns = {**dict(zip(found.column_names, found.columns, strict=True)), "share": pa.array([place] * len(found))}
    told = [columns.get(field.name, pa.nulls(len(found), field.type)) for field in _RESULTS]
    failed = [{**row, "share": place} for row in errors]
    return pa.concat_tables([pa.table(told, schema=_RESULTS), pa.Table.from_pylist(failed, schema=_RESULTS)])


def _failure(rows: Sequence[dict[str, str | None]]) -> TraceError:
    others = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
    error = TraceError(f"{rows[0]['error']}{others}")
    if rows[0]["traceback"]:
        error.add_note(rows[0]["traceback"])
    return error
