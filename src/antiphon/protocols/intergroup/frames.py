"""The frames of InterGroup: all datagrams, multicast to whoever listens to the group unless they are for one process.

Two sorts are numbered on a sender's stream: data, and keep-alives, which bear the number of the last data. Everything
else may be lost and is said again while it matters. Deeply immutable values.
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.intergroup.names import container_of
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.types import GroupId, ProcessId, ViewId


class _DataFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    seq: int
    stamp: int
    """Microseconds of the sender's clock."""
    epoch: ViewId
    """The view in which the sender sends it."""
    ack: int
    """Its sender has delivered everything stamped up to here (J0)."""
    payloads: tuple[bytes, ...]
    label: int = 0
    """Opaque: number of the first payload, for the recorder."""
    name: bytes = b""
    """What its application calls it, a path; may be empty (`names.py`)."""
    place: int = 0
    """Its number in the container that the name begins with."""


class DataFrame(_DataFields, FrameDefaults):
    """A message on its sender's stream."""

    __slots__ = ()

    @property
    def ticket(self) -> Ticket:
        """By what an application that frames its data asks for it."""
        return Ticket(self.sender, self.place, container_of(self.name))

    @property
    def clock(self) -> int:
        """The timestamp."""
        return self.stamp

    @property
    def serial(self) -> int:
        """Its number on the stream."""
        return self.seq


@dataclass(frozen=True, slots=True)
class KeepAliveFrame(FrameDefaults):
    """Its sender is there, has sent so much, and gives greater stamps only from now on (D7)."""

    group: GroupId
    sender: ProcessId
    seq: int
    stamp: int
    epoch: ViewId
    ack: int
    known: tuple[tuple[bytes, int], ...] = ()
    """How many messages there are in each of the containers that it used last."""

    @property
    def clock(self) -> int:
        """The timestamp."""
        return self.stamp

    @property
    def serial(self) -> int:
        """The timestamp: no two of its sender's are alike."""
        return self.stamp


@dataclass(frozen=True, slots=True)
class RequestFrame(FrameDefaults):
    """RTR: somebody lacks a message."""

    group: GroupId
    sender: ProcessId
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class RepairFrame(FrameDefaults):
    """RTX: somebody who holds a message sends it again, unchanged."""

    group: GroupId
    sender: ProcessId
    message: DataFrame

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        """The message."""
        return (self.message,)


@dataclass(frozen=True, slots=True)
class GoneFrame(FrameDefaults):
    """RTN: a message that was asked for is stable, and nobody keeps it any longer (R9)."""

    group: GroupId
    sender: ProcessId
    ticket: Ticket
    epoch: ViewId
    stable: int


@dataclass(frozen=True, slots=True)
class ReportFrame(FrameDefaults):
    """What a process acknowledges that does not send: it has everything stamped up to here."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    ack: int
    sources: tuple[ProcessId, ...] | None
    """Of these senders only; None: of all."""


@dataclass(frozen=True, slots=True)
class JoinRequestFrame(FrameDefaults):
    """To one sender: who has seen everything up to a stamp wants to receive the group's messages from later on."""

    group: GroupId
    sender: ProcessId
    floor: int


@dataclass(frozen=True, slots=True)
class JoinInfoFrame(FrameDefaults):
    """The answer: where to begin (J8)."""

    group: GroupId
    sender: ProcessId
    to: ProcessId
    epoch: ViewId
    start: int
    """T: what is stamped above it is delivered."""
    first: tuple[tuple[ProcessId, int], ...]
    """Of each member, the number of the first message that is wanted; sorted."""


@dataclass(frozen=True, slots=True)
class SourceRequestFrame(FrameDefaults):
    """To one sender: somebody wants its messages, in the order in which it sends them (§4.7.1)."""

    group: GroupId
    sender: ProcessId
    nonce: int


@dataclass(frozen=True, slots=True)
class SourceAcceptFrame(FrameDefaults):
    """The answer: from which number on, inclusive (D1)."""

    group: GroupId
    sender: ProcessId
    to: ProcessId
    nonce: int
    epoch: ViewId
    members: tuple[ProcessId, ...]
    first: int
    start: int
    """Everything of the source that is stamped above this comes from that number on."""


Answer = GoneFrame | ReportFrame | JoinRequestFrame | JoinInfoFrame | SourceRequestFrame | SourceAcceptFrame
"""What is said between a newcomer, or one who asks in vain, and those who can help it."""

InterGroupFrame = DataFrame | KeepAliveFrame | RequestFrame | RepairFrame | Answer
