"""A receiver of the group timestamp order: asks a sender where to begin, and begins anew when it cannot follow.

Intergroup.md 7.3 and 7.7; errata M16, M27, J8 to J10, J13.
"""

from collections.abc import Iterable

from antiphon.protocols.intergroup.buffer import Buffer
from antiphon.protocols.intergroup.frames import (
    Answer,
    DataFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    ReportFrame,
)
from antiphon.protocols.intergroup.holder import Holder
from antiphon.protocols.intergroup.orders import GroupTimestamp
from antiphon.protocols.intergroup.party import Part
from antiphon.protocols.intergroup.repairs import Repairs
from antiphon.protocols.intergroup.settings import ASK_EVERY_NS
from antiphon.types import ProcessId, View, ViewId


class Follower(Holder):
    """Not a sender; asking, or following."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._floor = 0  # the greatest stamp that the application has been shown
        self._resets = 0
        self._heard: dict[ProcessId, int] = {}  # senders, and when
        self._forget(0)

    def _forget(self, now: int) -> None:
        """As if nothing had ever come."""
        members = self._plan.view.members
        self._following = False
        self._order = GroupTimestamp(None, {}, start=self._floor)
        self._stability = self._rules.stability(self._me, members, 0, self._settings.stall_ns)
        self._requests = self._no_requests()
        self._repairs = Repairs(self._draw, self._settings.profile)
        self._buffer = Buffer()
        self._asked = 0
        self._next_at = now  # the next question, or the next report
        self._moved_at, self._acked = now, 0  # when what we acknowledge last rose, and to where

    def _begin(self, now: int) -> None:
        self._forget(now)

    def _end(self) -> None:
        if self._following:
            self._say(ReportFrame(self._name, self._me, self._plan.view.id, self._order.gate, ()))
        self._forget(0)

    @property
    def unfinished(self) -> bool:
        """Whether it has not begun, and could; or lacks something."""
        return super().unfinished or (self.joined and not self._following and not self._untaken)

    # What comes in

    def _data(self, message: DataFrame, now: int) -> None:
        self._hear(message.sender, now)
        super()._data(message, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._hear(frame.sender, now)
        super()._keep_alive(frame, now)

    def _hear(self, sender: ProcessId, now: int) -> None:
        self._heard[sender] = now
        if not self._asked:
            self._next_at = min(self._next_at, now)

    def _answer(self, frame: Answer, now: int) -> None:
        if isinstance(frame, ReportFrame):
            self._reported(frame, now)
        elif isinstance(frame, JoinInfoFrame) and frame.to == self._me and not self._following:
            self._follow(frame, now)

    def _follow(self, info: JoinInfoFrame, now: int) -> None:
        """Begin there; not by what a stranger says, or what was said of another sender group."""
        fits = info.sender in self._senders and dict(info.first).keys() == self._senders
        if not fits or info.epoch != self._plan.view.id or info.start <= self._floor:
            return
        self._following, self._floor = True, info.start
        self._order = GroupTimestamp(None, dict(info.first), info.start, self._rules.stream)
        self._enter(f"{info.start:020d}.3.{info.epoch}", tuple(sorted(dict(info.first))))
        self._next_at = self._moved_at = now  # the first report says that we have begun (J9)

    # What follows

    def _conclude(self, now: int) -> None:
        if not self._following:
            if now >= self._next_at and not self._untaken:
                self._ask(now)
            return
        super()._conclude(now)
        self._floor = max(self._floor, self._order.gate)
        ack = self._ack(now)
        if ack > self._acked:
            self._acked, self._moved_at = ack, now
        elif now - self._moved_at >= self._settings.stall_ns and self._hears_in_vain():
            self._reset(now)
            if not self._untaken:
                self._ask(now)
            return
        if now >= self._next_at:
            self._say(ReportFrame(self._name, self._me, self._plan.view.id, ack, None))
            self._next_at = now + int(self._settings.report_every_ns * (0.5 + self._draw()))

    def _hears_in_vain(self) -> bool:
        """Somebody sends, and yet we get no further (J13); in an idle group keep-alives would move us on.

        Nor do we while our application takes nothing: then we begin anew when it has taken what it was handed.
        """
        return any(at > self._moved_at for at in self._heard.values())

    def _ask(self, now: int) -> None:
        """One of the senders that are heard, another each time."""
        candidates = sorted(self._heard)
        if candidates:
            frame = JoinRequestFrame(self._name, self._me, self._floor)
            self._say(frame, candidates[self._asked % len(candidates)])
            self._asked += 1
        self._next_at = now + ASK_EVERY_NS

    def _reset(self, now: int) -> None:
        """We cannot follow: a view of our own ends what was promised of the one before (M16)."""
        self._resets += 1
        self._enter(f"{self._floor:020d}.4.{self._me}.{self._resets:06d}", (self._me,))
        self._forget(now)

    def _enter(self, name: str, members: tuple[ProcessId, ...]) -> None:
        """Of an id that tells where it begins (M27, J10)."""
        before = self._view
        together = tuple(member for member in members if before is not None and member in before.members)
        previous = before.id if before is not None else None
        self._install(View(self._name, ViewId(name), members, previous=previous, transitional=together))

    def _deadlines(self) -> Iterable[int]:
        if not self._following:
            return () if self._untaken else (self._next_at,)
        watch = (self._moved_at + self._settings.stall_ns,) if self._hears_in_vain() else ()
        return (*super()._deadlines(), self._next_at, *watch)
