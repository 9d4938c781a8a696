"""A space-time diagram as SVG text: a lifeline for each process, time to the right, an arrow for each frame received.

A pure function of a scene. Elements carry classes, not colours: the page's style sheet gives those, in light and dark.
"""

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from statistics import fmean
from typing import Final

from antiphon.report.svg import add, drawing

ARROWS_MAX: Final = 400
"""More arrows cannot be distinguished: a diagram shows only the first ones, and says so."""

_WIDTH: Final = 1080
_RIGHT: Final = 20
_TOP: Final = 26
_AXIS: Final = 44
_ARROW_ROOM: Final = 46
"""Least height between two lifelines that labels leave free."""
_LINE: Final = 11
_LETTER: Final = 5.7
"""Approximate height of a line and width of a letter in a label."""
_SEND_LINES: Final = 2
_DELIVERY_LINES: Final = 5
"""Most lines of one label above and below a lifeline."""
_COLOURS: Final = 6
_WEIGHTY: Final = frozenset({"view", "crash", "recover"})
"""Kinds that a label names before all others."""
_GAP_WIDTH: Final = 64
_MS: Final = 1_000_000
_ON_MESSAGES: Final = ("send", "deliver")
"""Kinds that have their own sign and are labelled with their message."""


@dataclass(frozen=True, slots=True)
class Lifeline:
    """One process incarnation, from its first event to its last."""

    process: str
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """One frame, from the process that transmitted it to one that received it."""

    frame: str
    type: str
    """`data`, `null`, or another protocol message."""
    source: str
    target: str
    sent_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at one process: `send`, `deliver`, or another kind, which is shown by its name."""

    process: str
    index: int
    time_ns: int
    kind: str
    sender: str | None = None
    number: int | None = None
    group: str | None = None
    """Given only if sender and number alone do not identify a message."""

    @property
    def name(self) -> str:
        """The message as `p2:4`, or the kind of event."""
        if self.number is None or self.kind not in _ON_MESSAGES:
            return self.kind
        return f"{self.group}/{self.sender}:{self.number}" if self.group else f"{self.sender}:{self.number}"


@dataclass(frozen=True, slots=True)
class Happening:
    """An external event of the run, such as a fault."""

    time_ns: int
    text: str
    kind: str = ""
    """Of a fault that begins, as the scenario calls it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A window of one run. Times are nanoseconds since the run's first event."""

    window_ns: tuple[int, int]
    lifelines: tuple[Lifeline, ...]
    arrows: tuple[Arrow, ...]
    """In the order in which the frames were sent; includes those that cross an edge of the window."""
    marks: tuple[Mark, ...]
    """In the order of time; within one process, in the order of its history."""
    happenings: tuple[Happening, ...] = ()
    witness: frozenset[tuple[str, int]] = frozenset()
    """Process and index of the events that a violation names: they are circled."""
    arrows_total: int = 0
    """The number of arrows in the window, if `arrows` holds fewer."""
    processes_total: int = 0
    """The number of processes of the run, if `lifelines` holds fewer."""
    marks_cut: bool = False
    """True if the window has more marks than `marks`, which then holds the first ones."""
    gap_ns: tuple[int, int] | None = None
    """A part of the window that is not drawn: the time axis jumps over it."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """The drawing, and what its caption must mention."""

    svg: str
    description: str
    shown_ns: tuple[int, int]
    """The part of the window that is drawn."""
    arrows_shown: int
    arrows_total: int
    witness_shown: bool
    """True if an event is circled."""


def draw(scene: Scene, *, arrows_max: int = ARROWS_MAX, prefix: str = "spacetime") -> Diagram:
    """The scene as one SVG element; `prefix` begins every id in it.

    A window with more than `arrows_max` arrows is drawn only up to the start of the last one shown.
    """
    known = {line.process for line in scene.lifelines}
    arrows = [arrow for arrow in scene.arrows if {arrow.source, arrow.target} <= known]
    total = max(scene.arrows_total, len(arrows))
    arrows = arrows[:arrows_max]
    begin, end = scene.window_ns
    if arrows and total > len(arrows):
        end = max(begin + 1, min(end, max(arrow.sent_ns for arrow in arrows)))
    drawing = _Drawing(scene, arrows, (begin, end), prefix)
    description = _description(scene, len(arrows), (begin, end))
    circled = any(drawing.is_witness(mark) for mark in drawing.marks)
    return Diagram(drawing.svg(description), description, (begin, end), len(arrows), total, circled)


def _description(scene: Scene, arrows: int, window_ns: tuple[int, int]) -> str:
    begin, end = (f"{edge / _MS:,.2f}" for edge in window_ns)
    happened = [mark.kind for mark in scene.marks if window_ns[0] <= mark.time_ns <= window_ns[1]]
    return (
        f"{len(scene.lifelines)} processes from {begin} to {end} ms: {happened.count('send')} sends, "
        f"{arrows} arrows and {happened.count('deliver')} deliveries."
    )


@dataclass(frozen=True, slots=True)
class _Label:
    """One label for marks that are too close for labels of their own."""

    x: float
    lines: tuple[str, ...]


class _Drawing:
    """One diagram while it is drawn: the layout first, then the elements."""

    def __init__(self, scene: Scene, arrows: Sequence[Arrow], window_ns: tuple[int, int], prefix: str) -> None:
        self._scene, self._arrows, self._prefix = scene, arrows, prefix
        self._begin, self._end = window_ns
        self._gap = scene.gap_ns if scene.gap_ns and scene.gap_ns[1] < self._end else None
        self.marks = [mark for mark in scene.marks if self._shows(mark.time_ns)]
        names = [line.process for line in scene.lifelines]
        self._left = 26 + min(150.0, max([7.2 * len(name) for name in names], default=0))
        self._above = self._labels((mark for mark in self.marks if mark.kind != "deliver"), _SEND_LINES)
        self._below = self._labels((mark for mark in self.marks if mark.kind == "deliver"), _DELIVERY_LINES)
        over, under = self._height(self._above), self._height(self._below)
        pitch = _ARROW_ROOM + over + under
        self._y = {name: round(_TOP + 14 + over + row * pitch, 1) for row, name in enumerate(names)}
        self._bottom = _TOP + 14 + over + max(0, len(names) - 1) * pitch + under + 14
        self._colour = {name: row % _COLOURS for row, name in enumerate(names)}

    def svg(self, description: str) -> str:
        height = round(self._bottom + _AXIS)
        root = drawing("spacetime", (_WIDTH, height), self._prefix, "Space-time diagram", description)
        self._definitions(root)
        self._axis(root)
        self._happenings(root)
        self._lifelines(root)
        self._draw_arrows(root)
        self._draw_gap(root)
        self._draw_marks(root)
        self._draw_labels(root)
        if not self._arrows and not self.marks:
            middle = (self._left + _WIDTH - _RIGHT) / 2
            add(root, "text", "Nothing happens in this window.", x=middle, y=_TOP + 4, class_="empty")
        return ET.tostring(root, encoding="unicode")

    def is_witness(self, mark: Mark) -> bool:
        return (mark.process, mark.index) in self._scene.witness

    def _shows(self, time_ns: int) -> bool:
        in_gap = self._gap is not None and self._gap[0] < time_ns < self._gap[1]
        return self._begin <= time_ns <= self._end and not in_gap

    def _x(self, time_ns: int) -> float:
        width = _WIDTH - _RIGHT - self._left
        if self._gap is None:
            share = (time_ns - self._begin) / max(1, self._end - self._begin)
            return round(self._left + share * width, 1)
        low, high = self._gap
        scale = (width - _GAP_WIDTH) / max(1, self._end - self._begin - (high - low))
        if time_ns <= low:
            return round(self._left + (time_ns - self._begin) * scale, 1)
        return round(_WIDTH - _RIGHT - (self._end - max(time_ns, high)) * scale, 1)

    def _definitions(self, root: ET.Element) -> None:
        definitions = add(root, "defs")
        clip = add(definitions, "clipPath", id=f"{self._prefix}-plot")
        width = round(_WIDTH - _RIGHT - self._left + 4, 1)
        add(clip, "rect", x=round(self._left - 2, 1), y=0, width=width, height=self._bottom)
        for colour in sorted(set(self._colour.values())):
            head = add(
                definitions,
                "marker",
                id=f"{self._prefix}-head-{colour}",
                viewBox="0 0 8 8",
                refX=7.5,
                refY=4,
                markerWidth=7,
                markerHeight=7,
                markerUnits="userSpaceOnUse",
                orient="auto",
            )
            add(head, "path", d="M0 1 8 4 0 7Z", class_=f"fill-{colour}")

    def _axis(self, root: ET.Element) -> None:
        axis = add(root, "g", class_="axis")
        y, right = round(self._bottom, 1), _WIDTH - _RIGHT
        add(axis, "line", x1=self._left, y1=y, x2=right, y2=y)
        low, high = self._gap or (self._end, self._end)
        step_ns, decimals = _step(self._end - self._begin - (high - low))
        for part in ((self._begin, low), (high, self._end)):
            self._ticks(axis, part, step_ns, decimals)
        add(axis, "text", "ms since the run began", x=right, y=y + 36, class_="unit")

    def _ticks(self, axis: ET.Element, part_ns: tuple[int, int], step_ns: float, decimals: int) -> None:
        y = round(self._bottom, 1)
        for number in range(ceil(part_ns[0] / step_ns), floor(part_ns[1] / step_ns) + 1):
            x = self._x(round(number * step_ns))
            add(axis, "line", x1=x, y1=_TOP, x2=x, y2=y + 5, class_="grid")
            add(axis, "text", f"{number * step_ns / _MS:,.{decimals}f}", x=x, y=y + 18)

    def _draw_gap(self, root: ET.Element) -> None:
        if self._gap is None:
            return
        low, high = self._gap
        x, group = self._x(low), add(root, "g", class_="gap")
        add(group, "rect", x=x, y=_TOP - 8, width=_GAP_WIDTH, height=round(self._bottom - _TOP + 8, 1))
        lines = (f"{(high - low) / _MS:,.0f} ms", "not shown")
        for row, text in enumerate(lines):
            add(group, "text", text, x=x + _GAP_WIDTH / 2, y=round((_TOP + self._bottom) / 2 + row * 13, 1))

    def _happenings(self, root: ET.Element) -> None:
        free_from = 0.0
        for happening in self._scene.happenings:
            if not self._shows(happening.time_ns):
                continue
            x = self._x(happening.time_ns)
            group = add(root, "g", class_="happening")
            add(group, "title", happening.text)
            add(group, "line", x1=x, y1=14, x2=x, y2=round(self._bottom, 1))
            if x >= free_from:
                ends = x > _WIDTH / 2
                add(group, "text", happening.text, x=x - 4 if ends else x + 4, y=12, class_="ends" if ends else "")
                free_from = x + 12 + (0 if ends else _LETTER * len(happening.text))

    def _lifelines(self, root: ET.Element) -> None:
        for line in self._scene.lifelines:
            y, name = self._y[line.process], line.process
            group = add(root, "g", class_="lifeline")
            shown = name if len(name) <= 20 else name[:19] + "…"
            label = add(group, "text", shown, x=round(self._left - 14, 1), y=y + 4, class_=f"ink-{self._colour[name]}")
            if shown != name:
                add(label, "title", name)
            first, last = max(line.first_ns, self._begin), min(line.last_ns, self._end)
            if first <= last:
                add(group, "line", x1=self._x(first), y1=y, x2=self._x(last), y2=y)

    def _draw_arrows(self, root: ET.Element) -> None:
        group = add(root, "g", clip_path=f"url(#{self._prefix}-plot)")
        for arrow in self._arrows:
            colour = self._colour[arrow.source]
            kind = arrow.type if arrow.type in ("data", "null") else "other"
            line = add(
                group,
                "line",
                x1=self._x(arrow.sent_ns),
                y1=self._y[arrow.source],
                x2=self._x(arrow.received_ns),
                y2=self._y[arrow.target],
                class_=f"arrow {kind} line-{colour}",
                marker_end=f"url(#{self._prefix}-head-{colour})",
            )
            left, reached = arrow.sent_ns / _MS, arrow.received_ns / _MS
            title = (
                f"{arrow.frame} ({arrow.type}): {arrow.source} at {left:.3f} ms to {arrow.target} at {reached:.3f} ms"
            )
            add(line, "title", title)

    def _draw_marks(self, root: ET.Element) -> None:
        group = add(root, "g", class_="marks")
        for (process, x), marks in self._places(self.marks).items():
            y = self._y[process]
            kinds = {mark.kind for mark in marks}
            element = add(group, "g")
            names = ", ".join(f"{mark.kind} {mark.name}" if mark.kind in _ON_MESSAGES else mark.kind for mark in marks)
            add(element, "title", f"{process} at {marks[0].time_ns / _MS:.3f} ms: {names}")
            if any(map(self.is_witness, marks)):
                add(element, "circle", cx=x, cy=y, r=9, class_="witness")
            if kinds.difference(_ON_MESSAGES):
                add(element, "path", d=f"M{x} {y - 9}V{y + 9}", class_="tick")
            if "send" in kinds:
                add(element, "circle", cx=x, cy=y, r=4.5, class_=f"send fill-{self._colour[process]}")
            if "deliver" in kinds:
                add(element, "path", d=f"M{x} {y - 5}l5 5-5 5-5-5Z", class_="deliver")

    def _draw_labels(self, root: ET.Element) -> None:
        group = add(root, "g", class_="labels")
        for process, labels in self._above.items():
            for label in labels:
                for row, text in enumerate(reversed(label.lines)):
                    add(group, "text", text, x=label.x, y=round(self._y[process] - 9 - row * _LINE, 1))
        for process, labels in self._below.items():
            for label in labels:
                for row, text in enumerate(label.lines):
                    add(group, "text", text, x=label.x, y=round(self._y[process] + 17 + row * _LINE, 1))

    def _places(self, marks: Iterable[Mark]) -> dict[tuple[str, float], list[Mark]]:
        """Marks at the same place of the drawing, which are drawn once."""
        places = defaultdict(list)
        for mark in marks:
            places[mark.process, self._x(mark.time_ns)].append(mark)
        known = {line.process for line in self._scene.lifelines}
        return {place: own for place, own in places.items() if place[0] in known}

    def _labels(self, marks: Iterable[Mark], lines_max: int) -> dict[str, list[_Label]]:
        """For each process its labels, without overlap."""
        crowds: dict[str, list[tuple[list[float], list[Mark]]]] = defaultdict(list)
        for (process, x), own in self._places(marks).items():
            crowd = crowds[process]
            if crowd and x - fmean(crowd[-1][0]) < (_width(crowd[-1][1]) + _width(own)) / 2 + _LETTER:
                crowd[-1][0].append(x)
                crowd[-1][1].extend(own)
            else:
                crowd.append(([x], [*own]))
        return {
            process: [_Label(round(fmean(xs), 1), _cut(_mark_names(own), lines_max)) for xs, own in crowd]
            for process, crowd in crowds.items()
        }

    @staticmethod
    def _height(labels: dict[str, list[_Label]]) -> int:
        return _LINE * max((len(label.lines) for own in labels.values() for label in own), default=0)


def _mark_names(marks: Sequence[Mark]) -> list[str]:
    """The names of marks, important ones first; consecutive messages of one sender are joined by a dash."""
    marks = sorted(marks, key=lambda mark: mark.kind not in _WEIGHTY)
    runs: list[list[Mark]] = [[marks[0]]]
    for before, mark in pairwise(marks):
        follows = (
            before.kind in _ON_MESSAGES
            and before.number is not None
            and mark.number == before.number + 1
            and (mark.kind, mark.sender, mark.group) == (before.kind, before.sender, before.group)
        )
        if follows:
            runs[-1].append(mark)
        else:
            runs.append([mark])
    return [run[0].name if len(run) == 1 else f"{run[0].name}\N{EN DASH}{run[-1].number}" for run in runs]


def _width(marks: Sequence[Mark]) -> float:
    return _LETTER * max(map(len, _mark_names(marks)))


def _cut(lines: Sequence[str], lines_max: int) -> tuple[str, ...]:
    if len(lines) <= lines_max:
        return tuple(lines)
    return (*lines[: lines_max - 1], f"+{len(lines) - lines_max + 1} more")


def _step(span_ns: int) -> tuple[float, int]:
    """The distance of two ticks, and the decimals that distinguish them in ms."""
    rough = max(1, span_ns) / 9
    power = 10 ** floor(log10(rough))
    step_ns = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return step_ns, max(0, -floor(log10(step_ns / _MS)))
