"""The frames of InterGroup. All are datagrams, multicast to all that listen to the group or addressed to one process.

Two kinds have a number on their sender's stream: data, and keep-alives, which carry the number of the last data frame.
Every other frame may be lost, and is repeated while it matters. Frames are deeply immutable values.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    Numbers,
    ProbeAnswerFrame,
    ProbeFrame,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.tickets import Ticket, container_of
from antiphon.types import GroupId, ProcessId, ViewId


class _DataFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    seq: int
    """Its number on the sender's stream."""
    stamp: int
    """Microseconds of the sender's clock."""
    epoch: ViewId
    """The view in which the sender sends it."""
    ack: int
    """The sender has delivered everything with a stamp up to here (J0)."""
    payloads: tuple[bytes, ...]
    label: int = 0
    """Opaque: number of the first payload, for the recorder."""
    name: bytes = b""
    """The name that the application gave it, a path; may be empty (`delivery/containers.py`)."""
    place: int = 0
    """Its number in the container that the name begins with."""
    change: tuple[ProcessId, int] | None = None
    """A message of the membership, with no payload: PAdd, the process added and its first number; or PLeave, the sender
    itself and 0."""


class DataFrame(_DataFields, FrameDefaults):
    """A message on its sender's stream."""

    __slots__ = ()

    @property
    def is_leave(self) -> bool:
        """PLeave: the last message of its sender, until another process adds it again."""
        return self.change is not None and self.change[0] == self.sender

    @property
    def kind(self) -> str:
        if self.change is None:
            return "data"
        return "leave" if self.is_leave else "add"

    @property
    def ticket(self) -> Ticket:
        """The ticket by which an application of the framed service requests it."""
        return Ticket(self.sender, self.place, container_of(self.name))

    @property
    def clock(self) -> int:
        return self.stamp

    @property
    def serial(self) -> int:
        return self.seq


@dataclass(frozen=True, slots=True)
class KeepAliveFrame(FrameDefaults):
    """The sender lives, has sent messages up to number `seq`, and its later stamps are above `stamp` (D7)."""

    group: GroupId
    sender: ProcessId
    seq: int
    stamp: int
    epoch: ViewId
    ack: int
    known: tuple[tuple[bytes, int], ...] = ()
    """The containers that the sender used last, with their numbers of messages."""

    @property
    def clock(self) -> int:
        return self.stamp

    @property
    def serial(self) -> int:
        """The timestamp: no two of one sender are equal."""
        return self.stamp


@dataclass(frozen=True, slots=True)
class RequestFrame(FrameDefaults):
    """RTR: the sender lacks a message."""

    group: GroupId
    sender: ProcessId
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class RepairFrame(FrameDefaults):
    """RTX: a process that holds a message transmits it again, unchanged."""

    group: GroupId
    sender: ProcessId
    message: DataFrame

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        return (self.message,)


@dataclass(frozen=True, slots=True)
class GoneFrame(FrameDefaults):
    """RTN: a requested message is stable, and no process keeps it any longer (R9)."""

    group: GroupId
    sender: ProcessId
    ticket: Ticket
    epoch: ViewId
    stable: int


@dataclass(frozen=True, slots=True)
class ReportFrame(FrameDefaults):
    """The acknowledgment of a process that does not send: it has everything with a stamp up to `ack`."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    ack: int
    sources: tuple[ProcessId, ...] | None
    """The senders that it speaks of; None: all; empty: the process leaves the group."""


@dataclass(frozen=True, slots=True)
class JoinRequestFrame(FrameDefaults):
    """To one sender: a joiner that has seen everything up to `floor` wants to receive the group's later messages."""

    group: GroupId
    sender: ProcessId
    floor: int


@dataclass(frozen=True, slots=True)
class JoinInfoFrame(FrameDefaults):
    """The answer to a join request: where to begin (J8)."""

    group: GroupId
    sender: ProcessId
    to: ProcessId
    epoch: ViewId
    view: ViewId
    """The base id of the view that the joiner is in from the start."""
    entered: int
    """The stamp at which the epoch began."""
    start: int
    """T: messages with stamps above it are delivered."""
    first: Numbers
    """For each member, the number of the first message to be delivered; sorted."""
    stints: Numbers
    left: tuple[tuple[ProcessId, int, int], ...]
    """The processes that left in order in this epoch, each with its stint and the number of its last message."""
    predecessors: tuple[ViewId, ...]
    """Earlier epochs that the answering process knows of."""


@dataclass(frozen=True, slots=True)
class SourceRequestFrame(FrameDefaults):
    """To one sender: the process wants to receive its messages in source order (§4.7.1)."""

    group: GroupId
    sender: ProcessId
    nonce: int


@dataclass(frozen=True, slots=True)
class SourceAcceptFrame(FrameDefaults):
    """The answer to a source request: the number to begin with, inclusive (D1)."""

    group: GroupId
    sender: ProcessId
    to: ProcessId
    nonce: int
    epoch: ViewId
    members: tuple[ProcessId, ...]
    first: int
    start: int
    """Every message of the source with a stamp above this has number `first` or a later one."""


InterGroupFrame = (
    DataFrame
    | KeepAliveFrame
    | RequestFrame
    | RepairFrame
    | GoneFrame
    | ReportFrame
    | JoinRequestFrame
    | JoinInfoFrame
    | SourceRequestFrame
    | SourceAcceptFrame
    | ProposalFrame
    | RecoveryInfoFrame
    | ReadyFrame
    | ChangeFrame
    | ChangeRequestFrame
    | CutFrame
    | ProbeFrame
    | ProbeAnswerFrame
    | SponsorRequestFrame
)
_TIMES: Final = ("stamp", "ack", "floor", "start", "gate", "receiver_gate", "entered")


def highest_stamp(frame: InterGroupFrame) -> int:
    """The largest time in a frame that can change the clock or the acknowledgments of its receiver."""
    if isinstance(frame, RepairFrame):
        return highest_stamp(frame.message)
    times = [getattr(frame, name) for name in _TIMES if hasattr(frame, name)]
    return max(times, default=0)
