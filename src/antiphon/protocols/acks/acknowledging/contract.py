"""Where the four protocols differ: how receipt is acknowledged, and how a sender concludes that a message is stable.

Connections, stamps, buffers and timers are the same for all; `group.py` has them, and asks a protocol for its vectors.
A process receives from some processes (`…_sender`, `received`, `acknowledge`) and sends to some (`…_receiver`, `sent`,
`acknowledged`, `stable`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Transmit
from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.protocols.acks.connections.links import Links, Peer
from antiphon.protocols.acks.frames import AckFrame, Acknowledgment, MessageFrame, MessageId
from antiphon.types import GroupId, ProcessId

EVERYTHING: Final = 1 << 62
"""Above every stamp: without receivers, all messages are stable."""


class AckProtocol(ABC):
    """One process in one group, as receiver and as sender."""

    piggybacks: ClassVar[bool] = False
    """True if acknowledgments travel in messages and nulls instead of frames of their own."""

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        self._group = group
        self._me = links.me
        self._links = links
        self._clock = clock
        self._watches_all = watches_all
        self._acked_by = Minimum()  # ackVector: what each process in R_s has acknowledged of our messages
        self.numbered = 0
        """Number of the last acknowledgment that we sent."""

    # As a receiver

    def hear(self, peer: Peer, *, from_start: bool = False) -> None:  # noqa: B027  # few need it
        """From now on, frames of a peer may arrive."""

    def forget(self, process: ProcessId) -> None:  # noqa: B027
        """No more frames of a peer arrive."""

    def first_value(self, now: int) -> int:  # noqa: ARG002
        """The value of the acknowledgment about to leave for senders that get their first one.

        It is 0 if each sender has its own number. A single number for all senders must not fall for a new one (T8).
        """
        return 0

    @abstractmethod
    def add_sender(self, sender: ProcessId, value: int) -> None:
        """S_r gains a sender. Its messages up to `value`, the first acknowledgment, are ignored."""

    @abstractmethod
    def remove_sender(self, sender: ProcessId) -> None:
        """S_r loses a sender."""

    @abstractmethod
    def received(self, frame: MessageFrame) -> bool:
        """Count a message as received; False if it is old, or if its sender is not in S_r."""

    def reply(self, frame: MessageFrame) -> Iterable[Transmit]:  # noqa: ARG002
        """The frames that answer a message at once."""
        return ()

    @abstractmethod
    def acknowledge(self, now: int) -> Iterable[Transmit]:
        """The acknowledgments due every t_ack; none while S_r is empty."""

    # As a sender

    def add_receiver(self, receiver: ProcessId, value: int) -> None:
        """R_s gains a receiver that has acknowledged `value`."""
        self._acked_by.add(receiver, value)

    def remove_receiver(self, receiver: ProcessId) -> None:
        """R_s loses a receiver."""
        self._acked_by.remove(receiver)

    def past(self) -> tuple[tuple[MessageId, ...], tuple[MessageId, ...]]:
        """What the message about to leave acknowledges: `past` and `alone` of its frame."""
        return (), ()

    def sent(self, frame: MessageFrame) -> None:  # noqa: B027
        """A message or null of our own leaves."""

    def said_of_me(self, frame: Acknowledgment) -> int | None:
        """The stamp up to which an acknowledgment covers our messages; None if it says nothing of them."""
        return frame.value if isinstance(frame, AckFrame) else None

    def acknowledged(self, frame: Acknowledgment) -> None:
        """A process in R_s acknowledges; a late acknowledgment changes nothing (Fig. 1)."""
        value = self.said_of_me(frame)
        if value is not None:
            self._acked_by.raise_to(frame.sender, value)

    @property
    def stable(self) -> int:
        """Every process in R_s has our messages up to this stamp: minAck of Fig. 1."""
        smallest = self._acked_by.smallest
        return EVERYTHING if smallest is None else smallest

    def stable_of(self, sender: ProcessId) -> int:  # noqa: ARG002
        """If all send to all: every process has the messages of `sender` up to this stamp (theorem 2).

        It stays 0 for explicit acknowledgments, which reach only the sender.
        """
        return 0

    # The costs, in entries written, compared or walked

    @property
    @abstractmethod
    def receiver_work(self) -> int: ...

    @property
    def sender_work(self) -> int:
        return self._acked_by.steps

    def _next_number(self) -> int:
        self.numbered += 1
        return self.numbered
