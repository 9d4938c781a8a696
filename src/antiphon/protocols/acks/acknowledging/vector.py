"""Vector acknowledgments (Berket98 §1, §4): every t_ack, a receiver acknowledges the last stamp of each sender."""

from collections.abc import Iterable

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Channel, Scope, Transmit
from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.protocols.acks.acknowledging.per_sender import PerSenderAcks
from antiphon.protocols.acks.connections.links import Links
from antiphon.protocols.acks.frames import Acknowledgment, VectorAckFrame
from antiphon.types import GroupId, ProcessId


class VectorAcks(PerSenderAcks):
    """A sender reads its own entry of an acknowledgment; if it watches all senders, it reads every entry."""

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        super().__init__(group, links, clock, watches_all=watches_all)
        self._acked_of: dict[ProcessId, Minimum] = {}  # of the messages of others, if we watch all senders

    def add_sender(self, sender: ProcessId, value: int) -> None:
        """Add an entry; if we watch all senders, add a row and a column."""
        super().add_sender(sender, value)
        if self._watches_all:
            others = [*self._acked_of]
            self._acked_of[sender] = Minimum()
            for other in others:
                self._acked_of[sender].add(other, 0)
                self._acked_of[other].add(sender, 0)

    def remove_sender(self, sender: ProcessId) -> None:
        super().remove_sender(sender)
        if self._watches_all:
            del self._acked_of[sender]
            for acked in self._acked_of.values():
                acked.remove(sender)

    def acknowledge(self, now: int) -> Iterable[Transmit]:  # noqa: ARG002
        """The whole vector, to all senders in it."""
        if self._last_received:
            self._work += len(self._last_received)
            frame = VectorAckFrame(self._group, self._me, self._next_number(), tuple(self._last_received.items()))
            yield Transmit(frame, Scope.SENDERS, Channel.DATAGRAM)

    def said_of_me(self, frame: Acknowledgment) -> int | None:
        if not isinstance(frame, VectorAckFrame):
            return None
        return next((value for sender, value in frame.entries if sender == self._me), None)

    def acknowledged(self, frame: Acknowledgment) -> None:
        super().acknowledged(frame)
        if self._watches_all and isinstance(frame, VectorAckFrame):
            for sender, stamp in frame.entries:
                acked = self._acked_of.get(sender)
                if acked is not None and frame.sender in acked:
                    acked.raise_to(frame.sender, stamp)

    def stable_of(self, sender: ProcessId) -> int:
        """The smallest entry of the sender, including our own."""
        others, held = self._acked_of[sender].smallest, self._last_received[sender]
        return held if others is None else min(others, held)

    @property
    def sender_work(self) -> int:
        """O(N_r log N_r) per period; N_s times that if we watch all senders."""
        return super().sender_work + sum(acked.steps for acked in self._acked_of.values())
