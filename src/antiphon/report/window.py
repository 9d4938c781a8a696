"""Which part of a run the diagram shows, and its rows; little is fetched, however long the run is.

Times that come in and go out are nanoseconds since the run's first event; inside the queries they are the trace's own.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.tables.silver import MESSAGE_KEY, detail
from antiphon.properties.verdicts.verdict import Violation
from antiphon.report.spacetime import ARROWS_MAX, Arrow, Happening, Lifeline, Mark, Scene
from antiphon.report.wording import fault, fault_kind
from antiphon.types import WORLD, process_id

MESSAGES_SHOWN: Final = 12
"""How many messages the default window follows from the first send to their deliveries."""
PROCESSES_MAX: Final = 24
MARKS_MAX: Final = 4_000
HAPPENINGS_MAX: Final = 20

_NOTED: Final = "view suspect confirm crash recover join leave block unblock".split()
"""Kinds other than sends and deliveries that a diagram shows by name."""
_MARGIN: Final = 0.03
_SPAN_NS_MIN: Final = 100_000
_GAP_SPANS_MIN: Final = 1.5
"""A stretch of time is left out only if that makes the drawing clearly larger."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The processes of a run, and its faults and other external events."""

    began_ns: int
    """The run's first event, in the trace's own time: the zero of all times shown."""
    lifelines: tuple[Lifeline, ...]
    """In natural order of their names: p2 before p10."""
    happenings: tuple[Happening, ...]


@dataclass(frozen=True, slots=True)
class Highlight:
    """The part of a run that tells most about it."""

    window_ns: tuple[int, int]
    reason: str
    gap_ns: tuple[int, int] | None = None


def cast(events: DataFrame) -> Cast:
    """The processes of one run and its external events."""
    rows = events.select("process", "incarnation", "time").groupBy("process", "incarnation")
    spans = _rows(rows.agg(F.min("time").alias("first"), F.max("time").alias("last")))
    began_ns = min(row["first"] for row in spans)
    lifelines = [
        Lifeline(_identity(row), row["first"] - began_ns, row["last"] - began_ns)
        for row in spans
        if row["process"] != WORLD
    ]
    world = events.filter((F.col("process") == WORLD) & (F.col("kind") == "fault"))
    faults = _rows(world.select("index", "time", "detail").orderBy("index").limit(HAPPENINGS_MAX))
    happenings = tuple(
        Happening(row["time"] - began_ns, fault(row["detail"]), fault_kind(row["detail"])) for row in faults
    )
    return Cast(began_ns, tuple(sorted(lifelines, key=lambda line: _natural(line.process))), happenings)


def first_messages_window(events: DataFrame, began_ns: int) -> tuple[int, int]:
    """From the first send until about when the first messages are delivered; one straggler does not stretch it."""
    sends = events.filter(F.col("kind") == "send").select(*MESSAGE_KEY, F.col("time").alias("sent"))
    first = sends.orderBy("sent", *MESSAGE_KEY).limit(MESSAGES_SHOWN)
    delivers = events.filter(F.col("kind") == "deliver").select(*MESSAGE_KEY, "time")
    met = first.join(delivers, on=list(MESSAGE_KEY), how="left")
    each = met.groupBy(*MESSAGE_KEY).agg(
        F.min("sent").alias("sent"), F.min("time").alias("earliest"), F.max("time").alias("latest")
    )
    bounds = each.agg(
        F.min("sent").alias("begin"),
        F.max("sent").alias("sent"),
        F.max("earliest").alias("earliest"),
        F.max("latest").alias("latest"),
    )
    row = _rows(bounds)[0]
    if row["begin"] is None:
        return (0, 1_000_000)
    begin, met_ns = row["begin"], max(row["sent"], row["earliest"] or 0)
    end = min(max(row["sent"], row["latest"] or 0), begin + 2 * (met_ns - begin))
    return _widened(begin - began_ns, max(end, begin + _SPAN_NS_MIN) - began_ns)


def highlight(events: DataFrame, cast: Cast, span_ns: int) -> Highlight | None:
    """A kill and the view that answers it, else a pause, else a change of view, else another fault; None if calm.

    About `span_ns` is shown around each of two moments; what lies between them is left out.
    """
    faults = {happening.kind: happening for happening in reversed(cast.happenings) if happening.kind}
    changes = _view_changes(events, cast.began_ns)
    kill, pause = faults.get("crash"), faults.get("pause")
    if kill is not None:
        answer = next((change for change in changes if change[0] > kill.time_ns), None)
        reason = f"around the {kill.text}" + (" and the view that answers it" if answer else "")
        return _between((kill.time_ns, kill.time_ns), answer, span_ns, reason)
    if pause is not None:
        ends = (each for each in cast.happenings if each.text == pause.text.replace("begins", "ends"))
        end = next((each.time_ns for each in ends if each.time_ns > pause.time_ns), pause.time_ns)
        return _between((pause.time_ns,) * 2, (end, end), span_ns, f"around the {pause.text.removesuffix(' begins')}")
    if changes:
        return _between(changes[0], None, span_ns, "around the first change of a view")
    if faults:
        first = min(faults.values(), key=lambda happening: happening.time_ns)
        return _between((first.time_ns,) * 2, None, span_ns, f"around the moment when {first.text}")
    return None


def _view_changes(events: DataFrame, began_ns: int) -> list[tuple[int, int]]:
    """When each view that follows another was first and last installed, in the order of time."""
    views = events.filter((F.col("kind") == "view") & F.col("previous").isNotNull()).select("group", "view", "time")
    each = views.groupBy("group", "view").agg(F.min("time").alias("first"), F.max("time").alias("last"))
    return sorted((row["first"] - began_ns, row["last"] - began_ns) for row in _rows(each))


def _between(first: tuple[int, int], second: tuple[int, int] | None, span_ns: int, reason: str) -> Highlight:
    """From shortly before the first moment until shortly after the second, without what lies between."""
    if second is None or second[0] < first[1]:
        second = first
    before, after = span_ns // 4, span_ns - span_ns // 4  # what follows from a moment is the more interesting part
    window = max(0, first[0] - before), min(second[1], second[0] + span_ns) + after
    gap = first[1] + after, second[0] - before
    return Highlight(window, reason, gap if gap[1] - gap[0] > _GAP_SPANS_MIN * span_ns else None)


def violation_window(
    events: DataFrame, began_ns: int, witness: Sequence[tuple[str, int]], span_ns: int
) -> tuple[int, int] | None:
    """About `span_ns` around the events of a witness; around the first one, if they are too far apart."""
    named = events.select("process", "incarnation", "index", "time").filter(
        F.col("index").isin({at for _, at in witness})
    )
    times = {(_identity(row), row["index"]): row["time"] - began_ns for row in _rows(named)}
    known = [times[event] for event in witness if event in times]
    if not known:
        return None
    low, high = min(known), max(known)
    if high - low > 2 * span_ns:
        low = high = known[0]
    margin_ns = max(0, span_ns - (high - low)) // 2 + span_ns // 10
    return max(0, low - margin_ns), high + margin_ns


def witness_events(violation: Violation) -> list[tuple[str, int]]:
    """Process and index of each event that a violation names; its processes have equally many, in order."""
    if not violation.processes:
        return []
    each = max(1, len(violation.indexes) // len(violation.processes))
    last = len(violation.processes) - 1
    return [(violation.processes[min(at // each, last)], index) for at, index in enumerate(violation.indexes)]


def scene(
    events: DataFrame,
    cast: Cast,
    window_ns: tuple[int, int],
    witness: Collection[tuple[str, int]] = (),
    gap_ns: tuple[int, int] | None = None,
) -> Scene:
    """What one run did in a window, without the gap in it."""
    shown = _shown(cast.lifelines, {process for process, _ in witness})
    names = {line.process for line in shown}
    begin, end = (edge + cast.began_ns for edge in window_ns)
    identified = events.withColumn("who", _identity_column()).filter(F.col("who").isin(names))
    if gap_ns is not None:
        left_out = F.col("time").between(gap_ns[0] + cast.began_ns + 1, gap_ns[1] + cast.began_ns - 1)
        identified = identified.filter(~left_out)
    arrows, total = _arrows(identified, begin, end)
    marks = _marks(identified, begin, end, cast.began_ns, witness)
    return Scene(
        window_ns=window_ns,
        lifelines=shown,
        arrows=tuple(_since(arrow, cast.began_ns) for arrow in arrows),
        marks=marks[:MARKS_MAX],
        happenings=cast.happenings,
        witness=frozenset(witness),
        arrows_total=total,
        processes_total=len(cast.lifelines),
        marks_cut=len(marks) > MARKS_MAX,
        gap_ns=gap_ns,
    )


def _shown(lifelines: Sequence[Lifeline], named: Collection[str]) -> tuple[Lifeline, ...]:
    """All lifelines, or as many as fit, including those of a witness."""
    by_need = sorted(lifelines, key=lambda line: line.process not in named)[:PROCESSES_MAX]
    return tuple(line for line in lifelines if line in by_need)


def _arrows(events: DataFrame, begin: int, end: int) -> tuple[list[Arrow], int]:
    """The first frames in transit in the window, one for each receiver, and their total number."""
    transmits = events.filter((F.col("kind") == "transmit") & (F.col("time") <= end)).select(
        detail("frame").alias("frame"),
        detail("type").alias("type"),
        F.col("who").alias("source"),
        F.col("time").alias("sent_ns"),
    )
    receives = events.filter((F.col("kind") == "receive") & (F.col("time") >= begin)).select(
        detail("frame").alias("frame"), F.col("who").alias("target"), F.col("time").alias("received_ns")
    )
    once = receives.groupBy("frame", "target").agg(F.min("received_ns").alias("received_ns"))
    met = transmits.join(once, on="frame", how="inner").select(
        "frame", "type", "source", "target", "sent_ns", "received_ns"
    )
    first = met.orderBy("sent_ns", "frame", "received_ns", "target").limit(ARROWS_MAX + 1)
    arrows = [Arrow(**row) for row in _rows(first)]
    return arrows[:ARROWS_MAX], len(arrows) if len(arrows) <= ARROWS_MAX else met.count()


def _since(arrow: Arrow, began_ns: int) -> Arrow:
    return replace(arrow, sent_ns=arrow.sent_ns - began_ns, received_ns=arrow.received_ns - began_ns)


def _marks(
    events: DataFrame, begin: int, end: int, began_ns: int, witness: Collection[tuple[str, int]]
) -> tuple[Mark, ...]:
    """The events in the window that a diagram shows or a witness names."""
    shown = F.col("kind").isin("send", "deliver", *_NOTED)
    for process, index in sorted(set(witness)):
        shown = shown | ((F.col("who") == process) & (F.col("index") == index))
    rows = events.filter(F.col("time").between(begin, end) & shown).select(
        "who", "index", "time", "kind", "group", "sender", "sender_incarnation", "number"
    )
    found = _rows(rows.orderBy("time", "who", "index").limit(MARKS_MAX + 1))
    ambiguous = _ambiguous(found)
    return tuple(_mark(row, began_ns, with_group=ambiguous) for row in found)


def _ambiguous(rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if sender and number do not identify a message, because a sender sends in several groups."""
    streams = {(row["sender"], row["sender_incarnation"], row["group"]) for row in rows if row["number"] is not None}
    return len(streams) > len({stream[:2] for stream in streams})


def _mark(row: Mapping[str, Any], began_ns: int, *, with_group: bool) -> Mark:
    place = row["who"], row["index"], row["time"] - began_ns, row["kind"]
    if row["number"] is None:
        return Mark(*place)
    sender = process_id(row["sender"], row["sender_incarnation"])
    return Mark(*place, sender, row["number"], row["group"] if with_group else None)


def _widened(begin: int, end: int) -> tuple[int, int]:
    margin = round((end - begin) * _MARGIN)
    return max(0, begin - margin), end + margin


def _identity(row: Mapping[str, Any]) -> str:
    return process_id(row["process"], row["incarnation"])


def _identity_column() -> Column:
    incarnation = F.col("incarnation")
    return F.when(incarnation == 0, F.col("process")).otherwise(F.concat_ws("#", "process", incarnation))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that puts p2 before p10."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", name)]


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
