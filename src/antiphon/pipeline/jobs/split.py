"""A run that is too large for one task: split into parts, each judged by the same functions, with combined verdicts.

A large run is judged exactly as a small run is. A task gets some checkers and the rows that they need (`registry.py`):
of some processes, about some senders, of some groups, or of all. The results of the parts add up: counts are summed,
and of all examples the earliest is reported, as for the whole run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import open_coded, read_coded
from antiphon.pipeline.jobs.survey import CODED_EVENTS, REPORTS, Flags, Survey, is_one_of, is_process, repeated
from antiphon.properties.checks import wellformed
from antiphon.properties.registry import BACKBONE, CHECKERS, LOGS, Checker, RowNeeds
from antiphon.properties.run_tables import RunTables
from antiphon.properties.tables.columns import READ
from antiphon.properties.tables.history import History, LackingError, load, load_part
from antiphon.properties.verdicts.findings import outcome_of
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.trace.places import Place
from antiphon.trace.typed import FRAMES, GAUGE, TYPED, untyped_rows, with_typed
from antiphon.types import ProcessId, split_process_id

_ALWAYS: Final = (
    "process incarnation index time kind group sender number sender_incarnation service view orderer clock digest"
).split()
"""The columns that are read of every row of the bulk."""


@dataclass(frozen=True, slots=True)
class Task:
    """Some properties, and the part of the run that decides them."""

    properties: frozenset[str]
    needs: RowNeeds
    processes: frozenset[str] | None = None
    """The processes that it covers; None for all."""
    groups: frozenset[str] | None = None
    """The groups that it covers; None for all."""
    rows: int = 0
    """The approximate number of bulk rows."""
    place: int = 0
    """Its position among the tasks of the run."""


# -------------------------------------------------------------------------------- the plan


def plan(survey: Survey, rows_per_task: int, required: frozenset[str] = frozenset()) -> list[Task]:
    """The tasks in which the run is judged, the well-formedness of all logs first."""
    needed: dict[RowNeeds, set[str]] = defaultdict(set)
    needed[LOGS].add("W")
    promised = _promised(survey, required)
    for checker in CHECKERS:
        needed[checker.needs if checker.property_id in promised else BACKBONE].add(checker.property_id)
    tasks = [
        task
        for needs, properties in needed.items()
        for task in _parts(survey, rows_per_task, needs, frozenset(properties))
    ]
    return [replace(task, place=place) for place, task in enumerate(_gathered(tasks))]


def _promised(survey: Survey, required: frozenset[str]) -> frozenset[str]:
    """The properties that some process promises; none if the trace does not tell, which a task reports too."""
    try:
        promises = RunTables(load(pa.concat_tables([survey.backbone, survey.shadows])), required).promises
    except TraceError:
        return frozenset()
    return frozenset(each.property_id for each in CHECKERS if promises.groups(each.property_id).any())


def _parts(survey: Survey, limit: int, needs: RowNeeds, properties: frozenset[str]) -> list[Task]:
    usual = needs.usual if needs.usual.kinds else needs
    everywhere = usual.all_processes | (usual.own_senders & REPORTS)
    shared = sum(count for (_, kind), count in survey.by.items() if kind in everywhere)
    if needs.by_process:
        sizes = {
            who: _count(survey.by, who, usual.own_processes) + _count(survey.about, who, usual.own_senders)
            for who in survey.processes
        }
        packs = _packed(sizes, limit - shared)
        return [Task(properties, needs, processes=who, rows=shared + size) for who, size in packs]
    if needs.by_group:
        packs = _packed({group: _count(survey.within, group, needs.all_processes) for group in survey.groups}, limit)
        if len(packs) > 1:
            return [Task(properties, needs, groups=which, rows=size) for which, size in packs]
    return [Task(properties, needs, rows=shared)]


def _count(rows: Counter[tuple[str, str]], name: str, kinds: Iterable[str]) -> int:
    return sum(rows[name, kind] for kind in kinds)


def _packed(sizes: dict[str, int], room: int) -> list[tuple[frozenset[str], int]]:
    """Pack neighbours together while there is room; a name that needs more gets a part to itself."""
    packs: list[tuple[list[str], int]] = []
    for name, size in sizes.items():
        if packs and (packs[-1][1] + size <= room or not size):
            packs[-1] = ([*packs[-1][0], name], packs[-1][1] + size)
        else:
            packs.append(([name], size))
    return [(frozenset(names), size) for names, size in packs]


def _gathered(tasks: list[Task]) -> list[Task]:
    """Merge each task over the whole run into one that holds all the rows that it needs."""
    over_all = [task for task in tasks if task.processes is None and task.groups is None and not task.needs.rare]
    host_of = {
        task: max(
            (each for each in over_all if task.needs.kinds <= each.needs.kinds), key=lambda each: len(each.needs.kinds)
        )
        for task in over_all
    }
    return [
        replace(task, properties=frozenset().union(*(guest.properties for guest in over_all if host_of[guest] is task)))
        if task in host_of
        else task
        for task in tasks
        if host_of.get(task, task) is task
    ]


# -------------------------------------------------------------------------------- one task


def judge_part(
    files: Sequence[Place], survey: Survey, task: Task, required: frozenset[str] = frozenset()
) -> list[Verdict]:
    """The verdicts of one task; a part that cannot be read as a trace gets one that says why."""
    remaining, found = [checker for checker in CHECKERS if checker.property_id in task.properties], list[Verdict]()
    for needs in dict.fromkeys((task.needs.usual, task.needs)):
        events = [_events(files, survey, replace(task, needs=needs))]  # an unreadable file is another error
        try:
            history = load_part(events, task.processes, needs.kinds)
            pa.default_memory_pool().release_unused()
            if needs == LOGS:
                return [wellformed.check(history)]
            judged, remaining = _judged(history, remaining, required)
        except TraceError as error:
            return [Verdict(survey.run, "W", None, "harness error", survey.rows, 1, Violation(str(error)))]
        found += judged
        if not remaining:
            return found
    raise LackingError(f"{', '.join(checker.property_id for checker in remaining)} needed more rows than declared")


def _judged(history: History, checkers: list[Checker], required: frozenset[str]) -> tuple[list[Verdict], list[Checker]]:
    """The verdicts of the checkers for which the rows are enough, and the other checkers.

    Checkers with the same needs are judged together: the tables that they share are large, and useless for others.
    A table is given up after the last checker that reads it.
    """
    found, lacking = list[Verdict](), list[Checker]()
    for needs in dict.fromkeys(checker.needs for checker in checkers):
        tables, alike = RunTables(history, required), [checker for checker in checkers if checker.needs == needs]
        alike.sort(key=lambda checker: "past" not in checker.tables)  # the largest table goes first
        for place, checker in enumerate(alike):
            try:
                found += checker.judge(tables)
            except LackingError:
                lacking.append(checker)
            tables.keep(frozenset().union(*(each.tables for each in alike[place + 1 :])))
    return found, lacking


def _events(files: Sequence[Place], survey: Survey, task: Task) -> pa.Table:
    """The rows that a task needs, with the backbone of the run and the shadows of the other rows."""
    shadows = survey.shadows
    if task.needs == LOGS and task.processes is not None:
        shadows = shadows.filter(pa.array(~is_process(shadows["process"], shadows["incarnation"], task.processes)))
    # Columns that no checker of the task reads would take memory for every row, although they are null.
    names = [name for name in READ if name not in TYPED or task.needs.with_text & _WITH_TYPES]
    pieces = [survey.backbone.select(names), shadows.select(names)]
    if task.needs.kinds:
        for path in files:
            pieces += _pieces(path, survey.run, task)
    return pa.concat_tables(pieces, promote_options="default").unify_dictionaries()


def _pieces(path: Place, run: str, task: Task) -> Iterator[pa.Table]:
    file, names = open_coded(path), _columns(task.needs)
    for group in range(file.metadata.num_row_groups):
        if not _may_hold(file.metadata, group, task):
            continue
        keys = read_coded(path, file, group, [name for name in _ALWAYS if name in _KEYS])
        chosen = _chosen(keys, task)
        if chosen.any():
            rest = read_coded(path, file, group, [name for name in names if name not in _KEYS])
            piece = _beside(keys, rest).filter(pa.array(chosen))
            if "frame_type" in names and len(untyped_rows(piece)):  # of an older version, or of another writer
                text = read_coded(path, file, group, ["detail"]).filter(pa.array(chosen))
                piece = with_typed(
                    _beside(piece.select([name for name in piece.column_names if name != "detail"]), text)
                )
            yield _restricted(piece, run, task)


def _columns(needs: RowNeeds) -> list[str]:
    """The columns to read. The hot keys of `detail` have columns of their own, so most tasks do not read that text."""
    frames, others = needs.with_text & _WITH_TYPES, needs.with_text - _WITH_TYPES
    return [
        *_ALWAYS,
        *(["upto"] if needs.kinds & REPORTS else []),
        *(["detail"] if others else []),
        *(["peer"] if others or GAUGE in frames else []),
        *([name for name in READ if name in TYPED] if frames else []),
    ]


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    return pa.table([*left.columns, *right.columns], names=[*left.column_names, *right.column_names])


_WITH_TYPES: Final = frozenset([*FRAMES, GAUGE])
"""The kinds of rows whose text is read from typed columns."""
_KEYS: Final = frozenset("process incarnation kind group sender sender_incarnation".split())
"""The columns that decide whether a task needs a row."""


def _may_hold(footer: pq.FileMetaData, group: int, task: Task) -> bool:
    """True if a row group may have rows for the task, according to its smallest and largest process."""
    if task.processes is None or task.needs.all_processes or task.needs.own_senders:
        return True
    columns = footer.row_group(group)
    at = next(i for i in range(footer.num_columns) if footer.schema.column(i).path == "process")
    statistics = columns.column(at).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return any(statistics.min <= split_process_id(ProcessId(who))[0] <= statistics.max for who in task.processes)


def _chosen(keys: pa.Table, task: Task) -> Flags:
    needs, kind = task.needs, keys["kind"]
    chosen = is_one_of(kind, needs.all_processes)
    if task.groups is not None:
        chosen &= is_one_of(keys["group"], task.groups)
    if task.processes is not None:
        if needs.own_processes:
            chosen |= is_one_of(kind, needs.own_processes) & is_process(
                keys["process"], keys["incarnation"], task.processes
            )
        if needs.own_senders:
            # Reports concern many senders; a receipt that names none may be of any sender.
            unsaid = np.asarray(keys["sender"].is_null().to_numpy(), np.bool_)
            named = is_process(keys["sender"], keys["sender_incarnation"], task.processes)
            chosen |= is_one_of(kind, needs.own_senders) & (named | unsaid)
    return chosen


def _restricted(piece: pa.Table, run: str, task: Task) -> pa.Table:
    """The rows without the values that the task does not need."""
    columns = dict(zip(piece.column_names, piece.columns, strict=True))
    has_text = pa.array(is_one_of(piece["kind"], task.needs.with_text))
    columns |= {name: pc.if_else(has_text, piece[name], None) for name in ("detail", "peer") if name in columns}
    if task.needs.own_senders & REPORTS and task.processes is not None:
        columns["upto"] = _about(piece["upto"].combine_chunks(), task.processes)
    columns["run"] = repeated(run, piece.num_rows)
    chosen = [field for field in CODED_EVENTS if field.name in columns]
    return pa.table([columns[field.name] for field in chosen], schema=pa.schema(chosen))


def _about(upto: pa.MapArray, senders: frozenset[str]) -> pa.MapArray:
    """The entries of these senders."""
    begin, end = (bounds.to_numpy() for bounds in (upto.offsets[:-1], upto.offsets[1:]))
    kept = np.asarray(pc.is_in(upto.keys, pa.array(sorted(senders))).to_numpy(zero_copy_only=False), np.bool_)
    running = np.concatenate([[0], np.cumsum(kept)])
    offsets = np.concatenate([running[begin[:1]], running[end]]) - running[begin[:1]]
    mask = pa.array(kept)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), upto.keys.filter(mask), upto.items.filter(mask))


# -------------------------------------------------------------------------------- put together


def _first_unread(verdicts: Iterable[Verdict]) -> Verdict | None:
    return next((verdict for verdict in verdicts if _is_unread(verdict)), None)


def _by_property(parts: Iterable[tuple[Task, Sequence[Verdict]]]) -> dict[tuple[str, str | None], list[Verdict]]:
    """By property and group, the verdicts of the tasks that judge that group."""
    found: dict[tuple[str, str | None], list[Verdict]] = defaultdict(list)
    for task, verdicts in parts:
        for verdict in verdicts:
            if task.groups is None or verdict.group in task.groups:
                found[verdict.property, verdict.group].append(verdict)
    return found


def joined(parts: Iterable[tuple[Task, Sequence[Verdict]]]) -> list[Verdict]:
    """Combine the verdicts of the tasks to those on the run, as `judge` would give them.

    A part that cannot be read comes first, then a trace that is not well formed, then all else.
    """
    ordered = sorted(parts, key=lambda part: part[0].place)
    logs = [verdict for task, found in ordered if task.needs == LOGS for verdict in found]
    if unread := _first_unread(logs):
        return [unread]
    wellformedness = _sum(logs)
    if wellformedness.violations:
        return [wellformedness]
    if unread := _first_unread(verdict for _, found in ordered for verdict in found):
        return [unread]
    by_property = _by_property(ordered)
    place = {checker.property_id: number for number, checker in enumerate(CHECKERS)} | {"W": -1}
    return [_sum(by_property[key]) for key in sorted(by_property, key=lambda key: (place[key[0]], key[1] or ""))]


def _is_unread(verdict: Verdict) -> bool:
    """True if it says why a part cannot be read; then it names no event."""
    return verdict.property == "W" and verdict.example is not None and verdict.example.seen is None


def _sum(parts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts of several parts of a run on one property."""
    opportunities, violations = (sum(getattr(part, name) for part in parts) for name in ("opportunities", "violations"))
    asked = [part for part in parts if part.outcome != "not promised"]
    if not asked:
        return parts[0]
    outcome = outcome_of(opportunities, violations)
    if parts[0].property == "W":
        outcome = "harness error" if violations else "pass"
    examples = [part.example for part in asked if part.example is not None]
    return replace(
        asked[0],
        outcome=outcome,
        opportunities=opportunities,
        violations=violations,
        example=min(examples, key=lambda example: _place(parts[0].property, example), default=None),
        note=next((part.note for part in asked if part.note), None),
    )


def _place(property_id: str, example: Violation) -> tuple[object, ...]:
    """The sort key of an example: for W the lowest rule first, else the earliest event."""
    assert example.seen is not None, "a violation is seen somewhere"
    time, process, index = example.seen
    rule = example.sentence[: len("W1")] if property_id == "W" else ""
    return rule, time, split_process_id(ProcessId(process)), index
