"""The frames of the classic multicasts: the message itself, and what each algorithm says about it (Notes).

Frames are deeply immutable values. `sender` is the process that transmits a frame; a copy of another process's message
travels inside.
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.types import GroupId, ProcessId


class MessageName(NamedTuple):
    """The tag of algorithm R: the sender of a message, and its number among the sender's messages in the group."""

    origin: ProcessId
    sequence: int


class Stamp(NamedTuple):
    """A time on the clock of one site. The name of the site makes it unique, and orders equal times."""

    time: int
    site: ProcessId


class Known(NamedTuple):
    """What a site knows about a message with a lost originator."""

    message: MessageName
    held: bool
    """Whether the message has ever reached the site."""
    stamp: Stamp | None = None
    """Algorithm A: its own proposal or, if committed, the final stamp."""
    committed: bool = False


class _DataFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    sequence: int
    """seq#(m): from 1, per sender and group."""
    payloads: tuple[bytes, ...]
    """Exactly one: these algorithms pack nothing."""
    label: int = 0
    """Opaque: the recorder's number of the message."""
    request: int | None = None
    """The number of the request that the message is; None: the sender waits for no answers."""
    copies: tuple["DataFrame", ...] = ()
    """Algorithm C: what the sender delivered before and some member may lack, in order."""
    stamp: Stamp | None = None
    """Algorithm A: the final stamp, set at delivery. What travels: the round, or a time below every proposal."""


class DataFrame(_DataFields, FrameDefaults):
    """A message of the application."""

    __slots__ = ()

    @property
    def name(self) -> MessageName:
        """The same in the frame of its sender and in relays."""
        return MessageName(self.sender, self.sequence)

    @property
    def clock(self) -> int:
        """The time of its stamp or, without one, its number."""
        return self.sequence if self.stamp is None else self.stamp.time

    @property
    def orderer(self) -> ProcessId | None:
        """The site whose proposal became its stamp, unless it is the sender."""
        return None if self.stamp is None or self.stamp.site == self.sender else self.stamp.site

    @property
    def serial(self) -> int:
        return self.sequence


@dataclass(frozen=True, slots=True)
class RelayFrame(FrameDefaults):
    """Algorithm R: a message relayed by a member that has just received it for the first time."""

    group: GroupId
    sender: ProcessId
    relayed: DataFrame

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        return (self.relayed,)


@dataclass(frozen=True, slots=True)
class ProposalFrame(FrameDefaults):
    """Algorithm A, first phase: the proposal of a site for message number `sequence` of the addressee."""

    group: GroupId
    sender: ProcessId
    sequence: int
    stamp: Stamp
    committed: int
    """The site knows the final stamps of all messages of the addressee up to this number."""

    @property
    def clock(self) -> int:
        return self.stamp.time


@dataclass(frozen=True, slots=True)
class CommitFrame(FrameDefaults):
    """Algorithm A, second phase: the final stamp, from the originator or from the process that took over."""

    group: GroupId
    sender: ProcessId
    message: MessageName
    stamp: Stamp
    settled: int = 0
    """All sites know the final stamps of the originator's messages up to this number; none will ask for them."""

    @property
    def clock(self) -> int:
        return self.stamp.time


@dataclass(frozen=True, slots=True)
class InquiryFrame(FrameDefaults):
    """Asks what a member knows about these messages of lost originators."""

    group: GroupId
    sender: ProcessId
    losses: int
    """Number of losses that the sender was told of. With its name, the ballot under which it takes over."""
    messages: tuple[MessageName, ...]
    handed: tuple[DataFrame, ...] = ()
    """Algorithm A: the messages themselves, for a member that lacks them."""

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        return self.handed


@dataclass(frozen=True, slots=True)
class ReportFrame(FrameDefaults):
    """The answer to an inquiry."""

    group: GroupId
    sender: ProcessId
    losses: int
    """As in the inquiry."""
    known: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class QueryFrame(FrameDefaults):
    """A request to one member, outside the order of the group."""

    group: GroupId
    sender: ProcessId
    request: int
    payload: bytes

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return (self.payload,)


@dataclass(frozen=True, slots=True)
class AnswerFrame(FrameDefaults):
    """The answer of a member to a request of the addressee."""

    group: GroupId
    sender: ProcessId
    request: int
    payload: bytes

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return (self.payload,)


ClassicFrame = (
    DataFrame | RelayFrame | ProposalFrame | CommitFrame | InquiryFrame | ReportFrame | QueryFrame | AnswerFrame
)
