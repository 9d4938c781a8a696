"""A member of the sender group: sends, transmits keep-alives, and admits receivers (Berket00 §4.5, §4.7.1)."""

from collections import deque
from collections.abc import Iterable

from antiphon.core.effects import Blocked, Unblocked
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.containers import ContainerCounts
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
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.repair.recovery import Recovery
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.sending.rate import Rate
from antiphon.protocols.intergroup.sending.window import SendWindow
from antiphon.protocols.intergroup.stability.log import OrderedLog, no_change
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class Sender(Role):
    """The senders of a group do not change."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        members, settings = context.plan.view.members, context.settings
        self._recovery = Recovery(context, outlet, handoff)
        self._log = OrderedLog(context, outlet, handoff)
        self._log.begin(dict.fromkeys(members, 1), 0, 0, is_sender=True)
        self._outbox: deque[tuple[bytes, int, bytes]] = deque()
        self._writable = True
        self._rate = Rate(settings.rate, len(members))
        self._window = SendWindow(settings.window)
        self._containers = ContainerCounts()
        self._keep_alive_at = 0
        self._refused: dict[tuple[ProcessId, Ticket], int] = {}
        """By requester and ticket that it was told is gone: until when it is not told again."""

    # Requests of the application

    def begin(self, now: int) -> None:
        self._views.install(self._context.plan.view)
        self._rearm(now)

    def send(self, payload: bytes, label: int, name: bytes) -> None:
        self._containers.admit(name)
        self._outbox.append((payload, label, name))

    def set_writable(self, ready: bool) -> None:
        self._writable = ready

    # Frames of the streams

    def data(self, message: DataFrame, now: int) -> None:
        self._log.acknowledged(message.sender, message.ack, now)
        self._recovery.received(self._log, message, now)

    def repair(self, frame: RepairFrame, now: int) -> None:
        self._log.repaired(frame, now)
        self._recovery.received(self._log, frame.message, now, repair=True)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._log.acknowledged(frame.sender, frame.ack, now)
        self._recovery.keep_alive(self._log, frame, now)

    # Requests of other processes

    @property
    def handlers(self) -> Handlers:
        return {
            ReportFrame: self._reported,
            JoinRequestFrame: self._admit,
            SourceRequestFrame: self._accept_as_source,
        }

    def _reported(self, frame: ReportFrame, now: int) -> None:
        self._log.reported(frame, self._context.epoch, now)

    def requested(self, frame: RequestFrame, now: int) -> None:
        self._recovery.heard(frame, now)
        self._log.requested(frame, now)
        ticket, distance = frame.ticket, self._context.settings.distance(frame.sender)
        if ticket.sender != self._context.me:
            return
        held = self._log.get(ticket)
        if held is not None:
            self._rate.lost(Ticket(held.sender, held.seq), 2 * distance, now)
        elif ticket.container or ticket.seq <= self._window.last:
            self._refuse(frame, distance, now)

    def _refuse(self, frame: RequestFrame, distance: int, now: int) -> None:
        """The message is stable and gone (R9); a requester is told so once per round trip."""
        key = frame.sender, frame.ticket
        if now >= self._refused.get(key, now):
            self._refused = {each: until for each, until in self._refused.items() if until > now}
            self._refused[key] = now + 2 * distance
            context = self._context
            gone = GoneFrame(context.group, context.me, frame.ticket, context.epoch, self._log.stable)
            self._outlet.transmit(gone, frame.sender)

    def _admit(self, frame: JoinRequestFrame, now: int) -> None:
        """Tell a joiner where to begin; it must be above everything that the joiner has seen (J8)."""
        context, gate = self._context, self._log.gate
        context.clock.merge(frame.floor + 1)
        if gate <= frame.floor:
            return  # the joiner asks again, and by then our gate is higher
        self._log.hold(frame.sender, gate, now)
        first = tuple(sorted((member, last + 1) for member, last in self._log.delivered.items()))
        epoch, stints = context.epoch, tuple((member, 1) for member, _ in first)
        info = JoinInfoFrame(
            context.group, context.me, frame.sender, epoch, epoch, 0, gate, first, stints, left=(), predecessors=()
        )
        self._outlet.transmit(info, frame.sender)

    def _accept_as_source(self, frame: SourceRequestFrame, now: int) -> None:
        """Offer everything that we send from now on; what is stamped above our gate cannot vanish before (T5)."""
        context, gate, view = self._context, self._log.gate, self._context.plan.view
        self._log.hold(frame.sender, gate, now)
        first = self._window.last + 1
        accept = SourceAcceptFrame(
            context.group, context.me, frame.sender, frame.nonce, view.id, view.members, first, gate
        )
        self._outlet.transmit(accept, frame.sender)

    # Consequences

    def conclude(self, now: int) -> None:
        self._rate.quiet(now)
        self._recovery.transmit_due(now)
        self._log.transmit_repairs(now)
        self._advance(now)
        while self._transmit_waiting(now):
            self._advance(now)
        if now >= self._keep_alive_at:
            self._transmit_keep_alive(now)

    def _advance(self, now: int) -> None:
        for message in self._log.advance(no_change, now):
            if message.sender == self._context.me:
                self._window.freed(message.seq)
                self._rate.freed(Ticket(message.sender, message.seq))

    def _transmit_waiting(self, now: int) -> bool:
        """Transmit what rate and window allow; True if that is anything."""
        before = self._window.last
        if self._window.closed and self._may_send():
            self._outlet.add(Unblocked(self._context.group))
        while self._outbox and self._writable and now >= self._rate.next_at and self._may_send():
            self._transmit(*self._outbox.popleft(), now)
        return self._window.last > before

    def _may_send(self) -> bool:
        was_closed = self._window.closed
        if self._window.is_open():
            return True
        if not was_closed:
            self._outlet.add(Blocked(self._context.group, self._log.slowest() or self._context.me))
        return False

    def _transmit(self, payload: bytes, label: int, name: bytes, now: int) -> None:
        context, seq = self._context, self._window.next_number()
        stamp = context.clock.stamp(now // 1000)
        place = self._containers.next_place(name)
        ack = self._log.ack(now)
        message = DataFrame(context.group, context.me, seq, stamp, context.epoch, ack, (payload,), label, name, place)
        self._log.own(message)
        self._outlet.transmit(message)
        self._rate.sent(len(payload), context.draw(), now)
        self._handoff.sent(message)
        self._rearm(now)

    def _transmit_keep_alive(self, now: int) -> None:
        context = self._context
        stamp, known, ack = context.clock.stamp(now // 1000), self._containers.told(), self._log.ack(now)
        frame = KeepAliveFrame(context.group, context.me, self._window.last, stamp, context.epoch, ack, known)
        self._outlet.transmit(frame)
        self._rearm(now)

    def _rearm(self, now: int) -> None:
        low, high = self._context.settings.keep_alive_ns
        self._keep_alive_at = now + low + int(self._context.draw() * (high - low))

    def deadlines(self) -> Iterable[int]:
        waiting = (self._rate.next_at,) if self._outbox and self._writable and not self._window.closed else ()
        return (*self._recovery.deadlines(), *self._log.deadlines(), self._keep_alive_at, *waiting)

    @property
    def unstable(self) -> int:
        return len(self._log)

    @property
    def has_unsent(self) -> bool:
        return bool(self._outbox)

    @property
    def unfinished(self) -> bool:
        return len(self._recovery) > 0
