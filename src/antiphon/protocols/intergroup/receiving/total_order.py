"""A receiver of the group timestamp order: asks a sender where to begin, and begins again when it cannot follow.

From docs/spec/intergroup.md 7.3 and 7.7; errata M16, M27, J8 to J10, J13.
"""

from collections.abc import Iterable

from antiphon.core.effects import Reset
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    RequestFrame,
)
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.repair.recovery import Recovery
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.settings import ASK_EVERY_NS
from antiphon.protocols.intergroup.stability.log import OrderedLog, no_change
from antiphon.protocols.intergroup.stability.schedule import ReportSchedule
from antiphon.types import ProcessId, View, ViewId


class TotalOrderReceiver(Role):
    """Either asks where to begin, or follows the order."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        self._recovery = Recovery(context, outlet, handoff)
        self._floor = 0
        """The largest stamp up to which the application has seen messages."""
        self._resets = 0
        self._reports = ReportSchedule(context.me, context.settings.report_every_ns, context.draw)
        self._heard: dict[ProcessId, int] = {}
        """By sender, when something was last heard of it."""
        self._forget(0)

    def _forget(self, now: int) -> None:
        """Return to the state before the first frame; only the floor stays."""
        self._following = False
        self._log = OrderedLog(self._context, self._outlet, self._handoff)
        self._log.follow(self._context.plan.view.members, {}, self._floor)
        self._recovery.reset()
        self._asked = 0
        self._is_behind = False
        self._next_at = now  # the time of the next question
        self._acked, self._moved_at = 0, now  # what we acknowledge, and when that last rose

    def begin(self, now: int) -> None:
        self._forget(now)

    def end(self) -> None:
        if self._following:
            context = self._context
            self._outlet.transmit(ReportFrame(context.group, context.me, context.epoch, self._log.gate, ()))
        self._forget(0)

    # Frames

    def data(self, message: DataFrame, now: int) -> None:
        self._note_heard(message.sender, now)
        self._log.acknowledged(message.sender, message.ack, now)
        self._recovery.received(self._log, message, now)

    def repair(self, frame: RepairFrame, now: int) -> None:
        self._log.repaired(frame, now)
        self._recovery.received(self._log, frame.message, now, repair=True)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._note_heard(frame.sender, now)
        self._log.acknowledged(frame.sender, frame.ack, now)
        self._recovery.keep_alive(self._log, frame, now)

    def requested(self, frame: RequestFrame, now: int) -> None:
        self._recovery.heard(frame, now)
        self._log.requested(frame, now)

    @property
    def handlers(self) -> Handlers:
        return {ReportFrame: self._reported, JoinInfoFrame: self._admitted, GoneFrame: self._note_gone}

    def _note_gone(self, frame: GoneFrame, now: int) -> None:  # noqa: ARG002
        """A message that we lack is gone: we are behind stability, and our own watchdog will end that (R9, J13)."""
        self._is_behind = self._is_behind or (frame.epoch == self._context.epoch and frame.ticket in self._recovery)

    def _reported(self, frame: ReportFrame, now: int) -> None:
        self._reports.note(frame, now)
        self._log.reported(frame, self._context.epoch, now)

    def _note_heard(self, sender: ProcessId, now: int) -> None:
        self._heard[sender] = now
        if not self._asked:
            self._next_at = min(self._next_at, now)

    def _admitted(self, info: JoinInfoFrame, now: int) -> None:
        """Begin where a sender says. An answer for another sender group, or from a process outside it, is ignored."""
        context, first = self._context, dict(info.first)
        if info.to != context.me or self._following:
            return
        senders = frozenset(context.plan.view.members)
        fits = info.sender in senders and first.keys() == senders
        if not fits or info.epoch != context.epoch or info.start <= self._floor:
            return
        self._following, self._floor = True, info.start
        self._log.follow(first, first, info.start)
        self._install(f"{info.start:020d}.3.{info.epoch}", tuple(sorted(first)))
        self._moved_at = now
        self._reports.begin(now)  # the first report tells that we have begun (J9)

    # Consequences

    def conclude(self, now: int) -> None:
        if not self._following:
            self._ask_if_due(now)
            return
        self._recovery.transmit_due(now)
        self._log.transmit_repairs(now)
        self._log.advance(no_change, now)
        self._floor = max(self._floor, self._log.gate)
        ack = self._log.ack(now)
        if ack > self._acked:
            self._acked, self._moved_at = ack, now
        elif now - self._moved_at >= self._context.settings.stall_ns and self._is_stalled():
            self._reset(now)
            if not self._handoff:
                self._ask(now)
            return
        if self._reports.is_due(now):
            self._report(ack, now)

    def _report(self, ack: int, now: int) -> None:
        context = self._context
        self._outlet.transmit(ReportFrame(context.group, context.me, context.epoch, ack, None))
        self._reports.sent(now)

    def _is_stalled(self) -> bool:
        """True if senders are heard and yet we make no progress (J13); in an idle group, keep-alives bring progress.

        An application that consumes nothing stalls us too. Then we begin again after it has consumed everything.
        """
        return any(at > self._moved_at for at in self._heard.values())

    def _ask_if_due(self, now: int) -> None:
        if now >= self._next_at and not self._handoff:
            self._ask(now)

    def _ask(self, now: int) -> None:
        """Ask one of the senders that we hear, another one each time."""
        context, candidates = self._context, sorted(self._heard)
        if candidates:
            frame = JoinRequestFrame(context.group, context.me, self._floor)
            self._outlet.transmit(frame, candidates[self._asked % len(candidates)])
            self._asked += 1
        self._next_at = now + ASK_EVERY_NS

    def _reset(self, now: int) -> None:
        """We cannot follow: a view of our own ends what the view before it promised (M16)."""
        me = self._context.me
        self._resets += 1
        self._outlet.add(Reset(self._context.group, "behind" if self._is_behind else "stalled"))
        self._install(f"{self._floor:020d}.4.{me}.{self._resets:06d}", (me,))
        self._forget(now)

    def _install(self, name: str, members: tuple[ProcessId, ...]) -> None:
        """Install a view; its id tells where it begins (M27, J10)."""
        before = self._views.current
        together = tuple(member for member in members if before is not None and member in before.members)
        previous = before.id if before is not None else None
        group = self._context.group
        self._views.install(View(group, ViewId(name), members, previous=previous, transitional=together))

    def deadlines(self) -> Iterable[int]:
        if not self._following:
            return () if self._handoff else (self._next_at,)
        stall = (self._moved_at + self._context.settings.stall_ns,) if self._is_stalled() else ()
        return (*self._recovery.deadlines(), *self._log.deadlines(), self._reports.next_at, *stall)

    @property
    def unstable(self) -> int:
        return len(self._log)

    @property
    def unfinished(self) -> bool:
        return len(self._recovery) > 0 or (not self._following and not self._handoff)
