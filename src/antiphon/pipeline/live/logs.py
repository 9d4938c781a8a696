"""What one process incarnation has done so far, by group, from its rows in order."""

from typing import Final

import msgspec
import numpy as np

from antiphon.pipeline.live.latencies import RECENT_S, SECOND_NS
from antiphon.pipeline.live.numbers import Numbers
from antiphon.pipeline.live.rows import IntArray, Rows, by
from antiphon.pipeline.live.sequences import Stay, stream_word
from antiphon.properties.families import promised_by

_COUNTED: Final = {"suspect": "suspicions", "refute": "refutations", "confirm": "confirmations"}
_TURNS: Final = ("view", "leave", "block", "unblock", *_COUNTED)
"""Kinds of rows that are rare, and processed one by one."""


class _Service(msgspec.Struct, frozen=True):
    service: str = ""


class _Options(msgspec.Struct, frozen=True):
    suspect_after: str | None = None


class _Start(msgspec.Struct):
    protocol: str = ""
    groups: dict[str, _Service] = {}
    options: _Options = _Options()


class _View(msgspec.Struct):
    receivers: list[str] | None = None
    """Only in a private view."""
    classes: list[list[str]] = []
    """Only in the first view of a formed group."""


class Count(msgspec.Struct):
    """The opportunities and violations of a property."""

    opportunities: int = 0
    violations: int = 0
    first: str | None = None
    """The sentence of the first violation."""

    def violated(self, sentence: str) -> None:
        """Count a violation."""
        self.violations += 1
        self.first = self.first or sentence


class Passage(msgspec.Struct):
    """A stay that has ended."""

    view: str
    onward: str | None
    """The next view; None if it left the group."""
    stay: Stay


class Seat(msgspec.Struct):
    """A process incarnation in one group."""

    service: str = ""
    sent: int = 0
    delivered: int = 0
    recent: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By second: the numbers of messages sent and delivered."""
    views: int = 0
    first_view: str | None = None
    joined_formed: bool = False
    """True if its first view was the first one of a formed group."""
    view: str | None = None
    members: tuple[str, ...] = ()
    private: bool = False
    left: bool = False
    blocked: bool = False
    suspicions: int = 0
    refutations: int = 0
    confirmations: int = 0
    numbers: dict[str, Numbers] = msgspec.field(default_factory=dict)
    """By sender."""
    stay: Stay = msgspec.field(default_factory=Stay)
    passages: list[Passage] = msgspec.field(default_factory=list)


class Log(msgspec.Struct):
    """One process incarnation. `counts` is by property and group."""

    protocol: str = ""
    suspects: bool = True
    """True if members may suspect one another, so that views may change."""
    rows: int = 0
    """The number of rows counted; the next row has this index."""
    last_ns: int = 0
    state: str = "up"
    """`up`, `stopped` or `crashed`."""
    seats: dict[str, Seat] = msgspec.field(default_factory=dict)
    counts: dict[tuple[str, str], Count] = msgspec.field(default_factory=dict)

    def promises(self, property_id: str, group: str) -> bool:
        """True if it promises the property in the group (docs/spec/properties.md 8)."""
        promised = promised_by(self.protocol)
        if property_id in promised.moving and not self.suspects:
            return False
        return property_id in promised.services.get(self.seats[group].service, ())

    def take(self, who: str, rows: Rows) -> None:
        """Take the next rows, without gaps."""
        for position in rows.where("start").tolist():
            self._start(rows.detail(position, _Start))
        for code, positions in by(rows.group):
            group = rows.names.groups[code]
            self.seats.setdefault(group, Seat())
            self._take_group(who, group, rows.at(positions))
        self.rows += len(rows.index)
        self.last_ns = int(rows.time[-1])
        ends = rows.where("crash", "stop")
        if len(ends):
            self.state = "crashed" if rows.names.kinds[rows.kind[ends[-1]]] == "crash" else "stopped"

    def _start(self, start: "_Start") -> None:
        self.protocol = start.protocol
        after = start.options.suspect_after
        self.suspects = after is None or any(digit in after for digit in "123456789")
        for group, chosen in start.groups.items():
            self.seats[group] = Seat(service=chosen.service)

    def _take_group(self, who: str, group: str, rows: Rows) -> None:
        seat = self.seats[group]
        named = rows.service[rows.service >= 0]
        if len(named) and not seat.service:
            seat.service = rows.names.services[int(named[0])]
        sends, delivers = rows.where("send"), rows.where("deliver")
        seat.sent += len(sends)
        seat.delivered += len(delivers)
        for place, positions in enumerate((sends, delivers)):
            _count_recent(seat, rows.time[positions], place)
        turns = rows.where(*_TURNS)
        for segment, turn in zip(
            np.split(delivers, np.searchsorted(delivers, turns)), [*turns.tolist(), -1], strict=True
        ):
            if len(segment):
                self._deliver(who, group, rows.at(segment))
            if turn >= 0:
                self._turn(who, group, rows, turn)

    def _deliver(self, who: str, group: str, rows: Rows) -> None:
        """Deliveries within one view."""
        seat = self.seats[group]
        is_first = np.ones(len(rows.index), np.bool_)
        streams = np.zeros(len(rows.index), np.uint64)
        for code, positions in by(rows.sender):
            sender = rows.names.senders[code]
            streams[positions] = stream_word(group, sender)
            numbers = rows.number[positions]
            taken = seat.numbers.setdefault(sender, Numbers()).take(numbers)
            is_first[positions[taken.repeated]] = False
            name = f"{group}/{sender}"
            if self.promises("D2", group):
                count = self._count("D2", group)
                count.opportunities += len(positions)
                for at in taken.repeated:
                    count.violated(f"{who} delivered {name}:{numbers[at]} twice")
            if self.promises("O1", group):
                count = self._count("O1", group)
                count.opportunities += taken.compared
                for at, before in taken.overtaken:
                    count.violated(f"{who} delivered {name}:{before} before {name}:{numbers[at]}")
        if is_first.any():
            seat.stay.take(streams[is_first], rows.number[is_first])

    def _turn(self, who: str, group: str, rows: Rows, at: int) -> None:
        seat, kind = self.seats[group], rows.names.kinds[rows.kind[at]]
        if kind == "view":
            self._install(who, group, rows, at)
        elif kind == "leave":
            seat.left = True
        elif kind in _COUNTED:
            setattr(seat, _COUNTED[kind], getattr(seat, _COUNTED[kind]) + 1)
        else:
            seat.blocked = kind == "block"

    def _install(self, who: str, group: str, rows: Rows, at: int) -> None:
        seat, view, previous = self.seats[group], str(rows.cell(at, "view")), rows.cell(at, "previous")
        detail = rows.detail(at, _View)
        seat.private = detail.receivers is not None
        if seat.view is None:
            seat.first_view, seat.joined_formed = view, bool(detail.classes)
        else:
            seat.passages.append(Passage(seat.view, None if seat.left and previous is None else view, seat.stay))
            seat.stay.marks.clear()
            seat.stay = Stay()
            if not seat.private and self.promises("M2", group):
                self._compare(who, group, seat.view, view)
        seat.view, seat.members = view, tuple(rows.cell(at, "members") or ())
        seat.views += 1
        seat.left = False

    def _compare(self, who: str, group: str, earlier: str, later: str) -> None:
        count = self._count("M2", group)
        count.opportunities += 1
        if later <= earlier:
            count.violated(f"{who} installed view {later} after view {earlier}, but its id is not larger")

    def _count(self, property_id: str, group: str) -> Count:
        return self.counts.setdefault((property_id, group), Count())


def _count_recent(seat: Seat, times: IntArray, place: int) -> None:
    """Count the messages of the last few seconds, and forget the older ones."""
    seconds, counts = np.unique(times // SECOND_NS, return_counts=True)
    for second, count in zip(seconds[-RECENT_S - 1 :].tolist(), counts[-RECENT_S - 1 :].tolist(), strict=True):
        before = seat.recent.get(second, (0, 0))
        seat.recent[second] = (before[0] + count, before[1]) if place == 0 else (before[0], before[1] + count)
    for second in sorted(seat.recent)[: -RECENT_S - 1]:
        del seat.recent[second]
