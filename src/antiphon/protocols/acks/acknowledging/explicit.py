"""Explicit acknowledgments (Berket98 §1): each receiver answers each message, to its sender.

Answers may be lost, so every t_ack a receiver repeats to each sender the last stamp that it has received from it. The
paper does not say this; the repetition is ours. It also gives a connection its first acknowledgment.
"""

from collections.abc import Iterable

from antiphon.core.effects import Channel, Transmit
from antiphon.protocols.acks.acknowledging.per_sender import PerSenderAcks
from antiphon.protocols.acks.frames import AckFrame, MessageFrame
from antiphon.types import ProcessId


class ExplicitAcks(PerSenderAcks):
    """One frame for each message and receiver; no process learns about the messages of others."""

    def reply(self, frame: MessageFrame) -> Iterable[Transmit]:
        yield self._to(frame.sender)

    def acknowledge(self, now: int) -> Iterable[Transmit]:  # noqa: ARG002
        """The last acknowledgments again, in case they were lost."""
        return map(self._to, self._last_received)

    def _to(self, sender: ProcessId) -> Transmit:
        self._work += 1
        frame = AckFrame(self._group, self._me, self._next_number(), self._last_received[sender])
        return Transmit(frame, sender, Channel.DATAGRAM)
