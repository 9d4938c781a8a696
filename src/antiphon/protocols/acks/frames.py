"""The frames of the acknowledgment protocols: messages, acknowledgments, and frames that open and close connections.

Messages and the frames about connections travel on streams, so they arrive in the order in which they were sent.
Acknowledgments are datagrams. Frames are deeply immutable values.
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.acks.settings import Role
from antiphon.types import GroupId, ProcessId

MessageId = tuple[ProcessId, int]
"""Sender and stamp; the stamps of one sender strictly increase (T6)."""


class _MessageFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    stamp: int
    payloads: tuple[bytes, ...] = ()
    label: int = 0
    """Opaque: number of the payload, for the recorder."""
    past: tuple[MessageId, ...] = ()
    """Transitive acknowledgments: the direct predecessors. They and everything in *their* past are acknowledged."""
    alone: tuple[MessageId, ...] = ()
    """Transitive acknowledgments: received, but the sender cannot vouch for their past (T12)."""


class MessageFrame(_MessageFields, FrameDefaults):
    """A message or, without payload, a null: a sender that is idle for t_send transmits one."""

    __slots__ = ()

    @property
    def clock(self) -> int:
        return self.stamp

    @property
    def kind(self) -> str:
        """`data`, or `null` if there is nothing for the application."""
        return "data" if self.payloads else "null"

    @property
    def serial(self) -> int:
        return self.stamp


class _Acknowledgment(FrameDefaults):
    __slots__ = ()
    number: int

    @property
    def kind(self) -> str:
        """The same for all kinds of acknowledgments; in a trace they differ by their size."""
        return "acknowledgment"

    @property
    def serial(self) -> int:
        return self.number


@dataclass(frozen=True, slots=True)
class AckFrame(_Acknowledgment):
    """One number for all senders (timestamp), or for the sender that it is addressed to (explicit)."""

    group: GroupId
    sender: ProcessId
    number: int
    """Counts the acknowledgments of its sender in this group; distinguishes those of an earlier connection (T13)."""
    value: int
    """The sender of this frame has every message with a stamp up to here: of all senders, or of the addressee."""
    time: int = 0
    """With logical clocks and timestamp acknowledgments: the clock of the receiver (T9); otherwise 0."""

    @property
    def clock(self) -> int:
        return self.value


@dataclass(frozen=True, slots=True)
class VectorAckFrame(_Acknowledgment):
    """One number for each sender."""

    group: GroupId
    sender: ProcessId
    number: int
    entries: tuple[MessageId, ...]
    """For each sender, the last stamp received; sorted."""


@dataclass(frozen=True, slots=True)
class OpenFrame(FrameDefaults):
    """A process in the group opens its channels to another process, or answers such a frame."""

    group: GroupId
    sender: ProcessId
    session: int
    """The session of the sender in the group, counted from 1."""
    answers: int
    """The session of the addressee, as far as the sender knows it; 0: it knows none."""
    acks_from: int
    """The number of the sender's first acknowledgment that belongs to this connection."""
    role: Role
    sources: tuple[ProcessId, ...] | None
    """The senders whose messages it receives, sorted; None: all senders."""


@dataclass(frozen=True, slots=True)
class CloseFrame(FrameDefaults):
    """The last frame of a session: the sender has left the group."""

    group: GroupId
    sender: ProcessId
    session: int


Acknowledgment = AckFrame | VectorAckFrame
AcksFrame = MessageFrame | AckFrame | VectorAckFrame | OpenFrame | CloseFrame
