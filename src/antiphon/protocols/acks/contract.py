"""Where the four protocols differ: how receipt is told, and how a sender concludes that a message is stable.

Connections, stamps, buffers and timers are the same for all and belong to `group.py`, which calls a protocol for its
vectors. A process is a receiver of some (`…_sender`, `received`, `acknowledge`) and a sender to some (`…_receiver`,
`sent`, `acknowledged`, `stable`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Transmit
from antiphon.protocols.acks.frames import AckFrame, Acknowledgment, MessageFrame, MessageId
from antiphon.protocols.acks.links import Links, Peer
from antiphon.protocols.acks.minimum import Minimum
from antiphon.types import GroupId, ProcessId

EVERYTHING: Final = 1 << 62
"""Above every stamp: with nobody to receive them, all messages are stable."""


class AckProtocol(ABC):
    """One process in one group, as receiver and as sender."""

    rides: ClassVar[bool] = False
    """Whether acknowledgments travel in messages and nulls instead of frames of their own."""

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        self._group = group
        self._me = links.me
        self._links = links
        self._clock = clock
        self._watches_all = watches_all
        self._acked_by = Minimum()  # ackVector: of our own messages, what each in R_s has acknowledged
        self.numbered = 0
        """How many acknowledgments were sent: the number of the last one."""

    # As a receiver

    def hear(self, peer: Peer, *, from_start: bool = False) -> None:  # noqa: B027  # few need it
        """From now on frames of a peer may come."""

    def forget(self, process: ProcessId) -> None:  # noqa: B027
        """Nothing more comes from a peer."""

    def first_value(self, now: int) -> int:  # noqa: ARG002
        """What the acknowledgment that is about to leave says to senders that it is the first for.

        0 where each sender has a number of its own; only a number for all must not fall when somebody comes (T8).
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
        """Whether the message is new, and from a sender in S_r; then it counts as received."""

    def reply(self, frame: MessageFrame) -> Iterable[Transmit]:  # noqa: ARG002
        """What a message is answered with at once."""
        return ()

    @abstractmethod
    def acknowledge(self, now: int) -> Iterable[Transmit]:
        """What is due every t_ack; nothing while S_r is empty."""

    # As a sender

    def add_receiver(self, receiver: ProcessId, value: int) -> None:
        """R_s gains a receiver that has acknowledged `value`."""
        self._acked_by.add(receiver, value)

    def remove_receiver(self, receiver: ProcessId) -> None:
        """R_s loses a receiver."""
        self._acked_by.remove(receiver)

    def past(self) -> tuple[tuple[MessageId, ...], tuple[MessageId, ...]]:
        """What the message that is about to leave acknowledges: `past` and `alone` of its frame."""
        return (), ()

    def sent(self, frame: MessageFrame) -> None:  # noqa: B027
        """A message or null of our own leaves."""

    def said_of_me(self, frame: Acknowledgment) -> int | None:
        """What an acknowledgment says of our own messages; None: nothing."""
        return frame.value if isinstance(frame, AckFrame) else None

    def acknowledged(self, frame: Acknowledgment) -> None:
        """An acknowledgment of somebody in R_s has come; one that comes late says nothing new (Fig. 1)."""
        value = self.said_of_me(frame)
        if value is not None:
            self._acked_by.raise_to(frame.sender, value)

    @property
    def stable(self) -> int:
        """Our messages up to this stamp are at everyone in R_s: Fig. 1's minAck."""
        smallest = self._acked_by.smallest
        return EVERYTHING if smallest is None else smallest

    def stable_of(self, sender: ProcessId) -> int:  # noqa: ARG002
        """Where all send to all: the messages of `sender` up to this stamp are at everyone (theorem 2).

        None of them, as far as one knows whom nobody tells: explicit acknowledgments go to the sender alone.
        """
        return 0

    # What it costs, in entries written, compared or walked

    @property
    @abstractmethod
    def receiver_work(self) -> int:
        """As a receiver."""

    @property
    def sender_work(self) -> int:
        """As a sender."""
        return self._acked_by.steps

    def _next_number(self) -> int:
        self.numbered += 1
        return self.numbered
