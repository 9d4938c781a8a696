"""The messages of our application on their way out: they wait for the rate, the window and the membership (§4.5)."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from antiphon.core.effects import Blocked, Unblocked
from antiphon.errors import FlowBlocked
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.containers import ContainerCounts
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.sending.rate import Rate
from antiphon.protocols.intergroup.sending.window import SendWindow
from antiphon.protocols.intergroup.stability.log import OrderedLog
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, ViewId

QUEUE_MAX: Final = 65_536
"""At most this number of messages waits, also while the process is not yet a sender."""


class Outbox:
    """Numbers, stamps and transmits what we send in one group. Numbers go on for as long as the process lives (D12)."""

    def __init__(self, context: MemberContext, outlet: Outlet, handoff: Handoff) -> None:
        settings = context.settings
        self._context, self._outlet, self._handoff = context, outlet, handoff
        self._waiting: deque[tuple[bytes, int, bytes]] = deque()
        self._writable = True
        self._rate = Rate(settings.rate, 1)
        self._window = SendWindow(settings.window)
        self._containers = ContainerCounts()
        self.keep_alive_at = 0
        self.sent_at = 0
        """When the application's last message left."""

    def __len__(self) -> int:
        """Number of messages that wait."""
        return len(self._waiting)

    @property
    def last(self) -> int:
        """The number of our last message."""
        return self._window.last

    @property
    def is_stable(self) -> bool:
        """True if every process that counts has all that we sent."""
        return not self._window.unstable

    def send(self, payload: bytes, label: int, name: bytes) -> None:
        if len(self._waiting) >= QUEUE_MAX:
            raise FlowBlocked(f"{QUEUE_MAX:,} messages wait in group {self._context.group}")
        self._containers.admit(name)
        self._waiting.append((payload, label, name))

    def drop_unsent(self) -> bool:
        """Drop what waits; True if anything did."""
        had_any = len(self._waiting) > 0
        self._waiting.clear()
        return had_any

    def set_writable(self, ready: bool) -> None:
        self._writable = ready

    def begin(self, senders: int, now: int) -> None:
        """We are in a view of that many senders; everything that we sent before is in no view of ours any more."""
        self.set_senders(senders)
        self._window.freed(self._window.last)
        self.sent_at = now
        self.rearm(now)

    def set_senders(self, senders: int) -> None:
        """The number of senders in the view, which share the rate."""
        self._rate.share_with(senders)

    def hurry(self, now: int) -> None:
        """A keep-alive is due at once: others wait for a first sign of us in a new view."""
        self.keep_alive_at = now

    def requested(self, message: DataFrame, distance: int, now: int) -> None:
        """Another process lacks a message of ours."""
        self._rate.lost(Ticket(message.sender, message.seq), 2 * distance, now)

    def freed(self, message: DataFrame) -> None:
        """A message of ours is stable."""
        self._window.freed(message.seq)
        self._rate.freed(Ticket(message.sender, message.seq))

    def transmit_waiting(self, epoch: ViewId, log: OrderedLog, now: int) -> bool:
        """Transmit what rate and window allow; True if that is anything."""
        before = self._window.last
        self._rate.quiet(now)
        if self._window.closed and self._may_send(log):
            self._outlet.add(Unblocked(self._context.group))
        while self._waiting and self._writable and now >= self._rate.next_at and self._may_send(log):
            payload, label, name = self._waiting.popleft()
            self.transmit(epoch, log, now, payload, label, name)
            self._rate.sent(len(payload), self._context.draw(), now)
            self.sent_at = now
        return self._window.last > before

    def _may_send(self, log: OrderedLog) -> bool:
        was_closed = self._window.closed
        if self._window.is_open():
            return True
        if not was_closed:
            self._outlet.add(Blocked(self._context.group, log.slowest() or self._context.me))
        return False

    def transmit(
        self, epoch: ViewId, log: OrderedLog, now: int, payload: bytes = b"", label: int = 0, name: bytes = b""
    ) -> DataFrame:
        """Transmit a message of the application."""
        context, seq = self._context, self._window.next_number()
        stamp, place = context.clock.stamp(now // 1000), self._containers.next_place(name)
        ack = log.ack(now)
        message = DataFrame(context.group, context.me, seq, stamp, epoch, ack, (payload,), label, name, place)
        self._leaves(message, log, now)
        self._handoff.sent(message)
        return message

    def transmit_change(self, epoch: ViewId, log: OrderedLog, change: tuple[ProcessId, int], now: int) -> DataFrame:
        """Transmit a message that changes the view: PAdd or PLeave."""
        context, seq = self._context, self._window.next_number()
        stamp = context.clock.stamp(now // 1000)
        message = DataFrame(context.group, context.me, seq, stamp, epoch, log.ack(now), (), change=change)
        self._leaves(message, log, now)
        return message

    def _leaves(self, message: DataFrame, log: OrderedLog, now: int) -> None:
        log.own(message)
        self._outlet.transmit(message)
        self.rearm(now)

    def transmit_keep_alive(self, epoch: ViewId, log: OrderedLog, now: int) -> None:
        context = self._context
        stamp, known, ack = context.clock.stamp(now // 1000), self._containers.told(), log.ack(now)
        self._outlet.transmit(KeepAliveFrame(context.group, context.me, self._window.last, stamp, epoch, ack, known))
        self.rearm(now)

    def rearm(self, now: int) -> None:
        low, high = self._context.settings.keep_alive_ns
        self.keep_alive_at = now + low + int(self._context.draw() * (high - low))

    def deadlines(self, *, may_send: bool) -> Iterable[int]:
        if may_send and self._waiting and self._writable and not self._window.closed:
            return self.keep_alive_at, self._rate.next_at
        return (self.keep_alive_at,)
