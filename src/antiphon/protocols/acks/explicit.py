"""Explicit acknowledgments (Berket98 §1): every message is answered, by each of its receivers, to its sender.

Answers get lost; so every t_ack a receiver repeats to each sender the last stamp that it has of it. The repetition is
our completion of what the paper only names; it also is the first acknowledgment of a connection.
"""

from collections.abc import Iterable

from antiphon.core.effects import Channel, Transmit
from antiphon.protocols.acks.frames import AckFrame, MessageFrame
from antiphon.protocols.acks.per_sender import PerSenderAcks
from antiphon.types import ProcessId


class ExplicitAcks(PerSenderAcks):
    """One frame per message and receiver; nobody learns of the messages of others."""

    def reply(self, frame: MessageFrame) -> Iterable[Transmit]:
        """The acknowledgment of this very message."""
        yield self._to(frame.sender)

    def acknowledge(self, now: int) -> Iterable[Transmit]:  # noqa: ARG002
        """The same again, in case that one was lost."""
        return map(self._to, self._last_received)

    def _to(self, sender: ProcessId) -> Transmit:
        self._work += 1
        frame = AckFrame(self._group, self._me, self._next_number(), self._last_received[sender])
        return Transmit(frame, sender, Channel.DATAGRAM)
