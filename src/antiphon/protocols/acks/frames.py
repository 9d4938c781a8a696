"""The frames of the acknowledgment protocols: messages, acknowledgments, and what opens and closes connections.

Messages and the frames about connections travel on streams: what its sender has put on a stream earlier arrives
earlier. Acknowledgments are datagrams. Deeply immutable values.
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.acks.settings import Role
from antiphon.types import GroupId, ProcessId

MessageId = tuple[ProcessId, int]
"""Sender and stamp: stamps of one sender strictly increase (T6)."""


class _MessageFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    stamp: int
    payloads: tuple[bytes, ...] = ()
    label: int = 0
    """Opaque: number of the payload, for the recorder."""
    past: tuple[MessageId, ...] = ()
    """Transitive acknowledgments: the direct predecessors; with them, whatever lies in *their* past is acknowledged."""
    alone: tuple[MessageId, ...] = ()
    """Transitive acknowledgments: received, but with a past of which the sender cannot vouch (T12)."""


class MessageFrame(_MessageFields, FrameDefaults):
    """A message or, without payload, a null: what a sender sends that has had nothing to say for t_send."""

    __slots__ = ()

    @property
    def clock(self) -> int:
        """The timestamp."""
        return self.stamp

    @property
    def kind(self) -> str:
        """`data`, or `null` where there is nothing for the application."""
        return "data" if self.payloads else "null"

    @property
    def serial(self) -> int:
        """Stamps of one sender in one group strictly increase."""
        return self.stamp


class _Acknowledgment(FrameDefaults):
    __slots__ = ()
    number: int

    @property
    def kind(self) -> str:
        """The same for all kinds: the trace tells them apart by their size."""
        return "acknowledgment"

    @property
    def serial(self) -> int:
        """The receiver's own count."""
        return self.number


@dataclass(frozen=True, slots=True)
class AckFrame(_Acknowledgment):
    """One number for everybody (timestamp), or for the one sender that it is addressed to (explicit)."""

    group: GroupId
    sender: ProcessId
    number: int
    """The how many-th acknowledgment of its sender in this group: tells those of an earlier connection (T13)."""
    value: int
    """Every message with a stamp up to this one is here: of all senders, or of the addressee."""
    time: int = 0
    """With logical clocks and timestamp acknowledgments: the clock of the receiver (T9). Else 0, and not sent."""

    @property
    def clock(self) -> int:
        """What it acknowledges."""
        return self.value


@dataclass(frozen=True, slots=True)
class VectorAckFrame(_Acknowledgment):
    """Per sender one number."""

    group: GroupId
    sender: ProcessId
    number: int
    entries: tuple[MessageId, ...]
    """Of each sender, the last stamp received; sorted."""


@dataclass(frozen=True, slots=True)
class OpenFrame(FrameDefaults):
    """A process in the group opens its channels to another one, or answers that one's opening."""

    group: GroupId
    sender: ProcessId
    session: int
    """The how many-th stay of the sender in the group, from 1."""
    answers: int
    """The session of the addressee, as the sender knows it; 0: it knows of none."""
    acks_from: int
    """The first number of an acknowledgment of the sender that speaks of this connection."""
    role: Role
    sources: tuple[ProcessId, ...] | None
    """Whose messages it takes; None: every sender's. Sorted."""


@dataclass(frozen=True, slots=True)
class CloseFrame(FrameDefaults):
    """The last frame of a session: the sender has left the group."""

    group: GroupId
    sender: ProcessId
    session: int


Acknowledgment = AckFrame | VectorAckFrame
AcksFrame = MessageFrame | AckFrame | VectorAckFrame | OpenFrame | CloseFrame
