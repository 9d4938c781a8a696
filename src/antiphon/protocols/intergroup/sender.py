"""A member of the sender group: sends, keeps itself in mind, lets receivers in (Berket00 §4.5, §4.7.1)."""

from collections.abc import Iterable

from antiphon.core.effects import Blocked, Unblocked
from antiphon.protocols.intergroup.frames import (
    Answer,
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    ReportFrame,
    RequestFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.holder import Holder
from antiphon.protocols.intergroup.names import Given
from antiphon.protocols.intergroup.orders import GroupTimestamp
from antiphon.protocols.intergroup.party import Part
from antiphon.protocols.intergroup.rate import Rate
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.protocols.intergroup.settings import HOLD_NS
from antiphon.types import ProcessId


class Sender(Holder):
    """Of a group whose senders do not change."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        me, plan, settings, _, _, rules = part
        members = plan.view.members
        self._order = GroupTimestamp(me, dict.fromkeys(members, 1), 0, rules.stream)
        self._stability = rules.stability(me, members, 0, settings.stall_ns)
        self._rate = Rate(settings.rate, len(members))
        self._names = Given()
        self._seq = self._freed = 0  # numbers of our last message, and of our last that is stable
        self._keep_alive_at = 0
        self._blocked = False
        self._refused: dict[
            tuple[ProcessId, Ticket], int
        ] = {}  # whom we told that something is gone, and until when that is enough

    def _begin(self, now: int) -> None:
        self._install(self._plan.view)
        self._rearm(now)

    # What comes in

    def _request(self, frame: RequestFrame, now: int) -> None:
        super()._request(frame, now)
        ticket, distance = frame.ticket, self._settings.distance(frame.sender)
        if ticket.sender != self._me:
            return
        held = self._buffer.get(ticket)
        if held is not None:
            self._rate.lost(Ticket(held.sender, held.seq), 2 * distance, now)
        elif ticket.container or ticket.seq <= self._seq:
            self._refuse(frame, distance, now)

    def _refuse(self, frame: RequestFrame, distance: int, now: int) -> None:
        """It is stable and gone (R9); said once in a while."""
        key = frame.sender, frame.ticket
        if now >= self._refused.get(key, now):
            self._refused = {each: until for each, until in self._refused.items() if until > now}
            self._refused[key] = now + 2 * distance
            gone = GoneFrame(self._name, self._me, frame.ticket, self._plan.view.id, self._stability.stable)
            self._say(gone, frame.sender)

    def _answer(self, frame: Answer, now: int) -> None:
        if isinstance(frame, ReportFrame):
            self._reported(frame, now)
        elif isinstance(frame, JoinRequestFrame):
            self._let_in(frame, now)
        elif isinstance(frame, SourceRequestFrame):
            self._accept(frame, now)

    def _let_in(self, frame: JoinRequestFrame, now: int) -> None:
        """Tell somebody where to begin; it must be above all that it has seen (J8)."""
        self._clock.merge(frame.floor + 1)
        gate = self._order.gate
        if gate <= frame.floor:
            return  # it asks again, and by then it will be
        self._stability.hold(frame.sender, gate, now + HOLD_NS)
        first = tuple(sorted((member, last + 1) for member, last in self._order.delivered.items()))
        info = JoinInfoFrame(self._name, self._me, frame.sender, self._plan.view.id, gate, first)
        self._say(info, frame.sender)

    def _accept(self, frame: SourceRequestFrame, now: int) -> None:
        """Everything that we send from now on; what is stamped above our gate cannot vanish before (T5)."""
        gate, view = self._order.gate, self._plan.view
        self._stability.hold(frame.sender, gate, now + HOLD_NS)
        accept = SourceAcceptFrame(
            self._name, self._me, frame.sender, frame.nonce, view.id, view.members, self._seq + 1, gate
        )
        self._say(accept, frame.sender)

    # What goes out

    def _conclude(self, now: int) -> None:
        self._rate.quiet(now)
        super()._conclude(now)
        while self._send_waiting(now):
            self._advance(now)
        if now >= self._keep_alive_at:
            stamp = self._clock.stamp(now // 1000)
            epoch, known = self._plan.view.id, self._names.told()
            self._say(KeepAliveFrame(self._name, self._me, self._seq, stamp, epoch, self._ack(now), known))
            self._rearm(now)

    def _send_waiting(self, now: int) -> bool:
        """What rate and window allow for; whether there was anything."""
        before = self._seq
        if self._blocked and self._may_send():
            self._effects.append(Unblocked(self._name))
        while self.outbox and self.writable and now >= self._rate.next_at and self._may_send():
            self._send(*self.outbox.popleft(), now)
        return self._seq > before

    def _may_send(self) -> bool:
        """The window: closed when it is full, open again when it is half empty (§4.5.3)."""
        unstable, was_blocked = self._seq - self._freed, self._blocked
        self._blocked = unstable >= self._settings.window // (2 if was_blocked else 1)
        if self._blocked and not was_blocked:
            self._effects.append(Blocked(self._name, self._stability.slowest() or self._me))
        return not self._blocked

    def _send(self, payload: bytes, label: int, name: bytes, now: int) -> None:
        self._seq += 1
        stamp = self._clock.stamp(now // 1000)
        epoch, place = self._plan.view.id, self._names.place(name)
        message = DataFrame(
            self._name, self._me, self._seq, stamp, epoch, self._ack(now), (payload,), label, name, place
        )
        self._buffer.keep(message)
        self._order.own(message)
        self._say(message)
        self._rate.sent(len(payload), self._draw(), now)
        self._deliver(self._service.arrived(message, repair=False))
        self._deliver(self._service.in_source_order(message))
        self._service.heard(self._me, stamp)
        self._rearm(now)

    def _rearm(self, now: int) -> None:
        low, high = self._settings.keep_alive_ns
        self._keep_alive_at = now + low + int(self._draw() * (high - low))

    def _let_go(self, ticket: Ticket) -> None:
        super()._let_go(ticket)
        if ticket.sender == self._me:
            self._freed = ticket.seq
            self._rate.freed(ticket)

    def _deadlines(self) -> Iterable[int]:
        waiting = (self._rate.next_at,) if self.outbox and self.writable and not self._blocked else ()
        return (*super()._deadlines(), self._keep_alive_at, *waiting)
