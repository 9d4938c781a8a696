"""Timestamp acknowledgments (Berket98 §3, Fig. 1): one number acknowledges the messages of all senders.

A receiver acknowledges the smallest of the last stamps that it has received from each sender. No message with a stamp
up to it can be missing, because the stamps of one sender arrive in order. So one number is enough for all senders, and
the slowest sender decides for all.
"""

from collections.abc import Iterable

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Channel, Scope, Transmit
from antiphon.protocols.acks.acknowledging.contract import AckProtocol
from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.protocols.acks.connections.links import Links
from antiphon.protocols.acks.frames import AckFrame, MessageFrame
from antiphon.types import GroupId, ProcessId


class TimestampAcks(AckProtocol):
    """Invariant: no entry of the timestamp vector is below the last acknowledgment, which therefore never falls."""

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        super().__init__(group, links, clock, watches_all=watches_all)
        self._last_received = Minimum()  # timestampVector
        self._last_ack = 0
        self._own_entry = links.itself.role == "both"
        if self._own_entry:
            self._last_received.add(self._me, 0)  # our own last stamp (docs/spec/stability.md 2)

    def first_value(self, now: int) -> int:
        """The acknowledgment that would leave now or, while S_r is empty, the clock (T8)."""
        smallest = self._last_received.smallest
        return max(self._last_ack, self._clock.read(now)) if smallest is None else smallest

    def add_sender(self, sender: ProcessId, value: int) -> None:
        """Its entry is its first acknowledgment. The other senders get the same one, so the minimum does not fall."""
        self._last_received.add(sender, value)

    def remove_sender(self, sender: ProcessId) -> None:
        """The acknowledgment may rise at once."""
        self._last_received.remove(sender)

    def received(self, frame: MessageFrame) -> bool:
        """Receive a message as in Fig. 1."""
        last = self._last_received
        if frame.sender not in last or frame.stamp <= last[frame.sender]:
            return False
        last.raise_to(frame.sender, frame.stamp)
        return True

    def acknowledge(self, now: int) -> Iterable[Transmit]:
        """Acknowledge as in Fig. 1. With logical clocks this is an event like the sending of a message (T9)."""
        if len(self._last_received) == self._own_entry:
            return
        value = self._last_received.smallest
        assert value is not None
        assert value >= self._last_ack
        self._last_ack = value
        time = 0 if self._clock.physical else self._clock.stamp(now)
        frame = AckFrame(self._group, self._me, self._next_number(), value, time)
        yield Transmit(frame, Scope.SENDERS, Channel.DATAGRAM)

    def sent(self, frame: MessageFrame) -> None:
        if self._own_entry:
            self._last_received.raise_to(self._me, frame.stamp)

    def stable_of(self, sender: ProcessId) -> int:  # noqa: ARG002
        """The minimum of minAck and of what we hold ourselves; the same for every sender."""
        held = self._last_received.smallest
        assert held is not None
        return min(self.stable, held)

    @property
    def receiver_work(self) -> int:
        """O(N_s log N_s) per period."""
        return self._last_received.steps
