"""The shares of a Spark job: units of files, and the tasks of a large run."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Unit, read_events
from antiphon.pipeline.jobs.split import Task, joined, judge_part, plan
from antiphon.pipeline.jobs.survey import survey
from antiphon.properties.registry import LOGS
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.trace.places import Place

Judge = Callable[[pa.Table], Iterable[Verdict]]
"""Judges all runs of an event table."""


@dataclass(frozen=True, slots=True)
class Share:
    """What is judged in one piece."""

    files: Sequence[Place]
    judge: Callable[[], Iterable[Verdict]]
    bytes: int
    task: Task | None = None
    """For a large run: the part that this share covers."""


def deal(unit: Unit, judge: Judge, required: frozenset[str], rows_per_task: int | None) -> list[Share]:
    """One share for a unit of files; several shares for one run with more than `rows_per_task` rows.

    An unreadable large run is reported by its task, like an unreadable small unit.
    """
    files, size = unit.files, unit.bytes
    if rows_per_task is None or unit.rows <= rows_per_task or not unit.is_one_run:
        return [Share(files, partial(_judge_whole, files, judge), size)]
    try:
        found = survey(files)
    except TraceError as error:
        return [Share(files, partial(_refuse, error), size)]
    return [
        Share(files, partial(judge_part, files, found, task, required), size * task.rows // found.rows, task)
        for task in plan(found, rows_per_task, required)
    ]


def _judge_whole(files: Sequence[Place], judge: Judge) -> Iterable[Verdict]:
    return judge(read_events(files))


def _refuse(error: TraceError) -> NoReturn:
    raise error


def pointless(shares: Sequence[Share], verdicts: Mapping[int, Sequence[Verdict]]) -> set[int]:
    """The shares, by position, that judge more than W of a run that is not well formed.

    Their results do not matter, because checkers rely on well-formed traces.
    """
    ill_formed = {tuple(shares[place].files) for place, found in verdicts.items() for each in found if _is_flaw(each)}
    large = [
        (place, share) for place, share in enumerate(shares) if share.task is not None and share.task.needs != LOGS
    ]
    return {place for place, share in large if tuple(share.files) in ill_formed}


def _is_flaw(verdict: Verdict) -> bool:
    return verdict.property == "W" and verdict.violations > 0


def put_together(
    shares: Sequence[Share], verdicts: Mapping[int, Sequence[Verdict]], failed: Iterable[int]
) -> list[Verdict]:
    """The verdicts on the large runs, from those on each of their shares; none on a run if one of its tasks failed."""
    spoilt = {tuple(shares[place].files) for place in failed}
    large: dict[tuple[Place, ...], list[tuple[Task, Sequence[Verdict]]]] = defaultdict(list)
    for place, share in enumerate(shares):
        if share.task is not None and tuple(share.files) not in spoilt:
            large[tuple(share.files)].append((share.task, verdicts.get(place, ())))
    return [verdict for parts in large.values() for verdict in joined(parts)]
