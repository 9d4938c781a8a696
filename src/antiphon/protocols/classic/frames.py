"""The frames of the classic multicasts: the message itself, and what each algorithm says about it (Notes).

Deeply immutable values. `sender` is who transmits a frame; a copy of somebody else's message travels inside.
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.types import GroupId, ProcessId


class MessageName(NamedTuple):
    """What algorithm R tags a message with: its sender, and its number among that sender's messages in the group."""

    origin: ProcessId
    sequence: int


class Stamp(NamedTuple):
    """A time on the clock of one site. The site's name makes it unique, and orders equal times."""

    time: int
    site: ProcessId


class Known(NamedTuple):
    """What a site knows of a message whose originator is lost."""

    message: MessageName
    held: bool
    """Whether the message ever reached it."""
    stamp: Stamp | None = None
    """Algorithm A: its own proposal or, if committed, the final stamp."""
    committed: bool = False


class _DataFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    sequence: int
    """seq#(m): from 1, per sender and group."""
    payloads: tuple[bytes, ...]
    """One: these algorithms pack nothing."""
    label: int = 0
    """Opaque: the recorder's number of the message."""
    request: int | None = None
    """The sender waits for answers to it, as to its request of this number."""
    copies: tuple["DataFrame", ...] = ()
    """Algorithm C: what the sender delivered before it sent this and somebody may lack, in order."""
    stamp: Stamp | None = None
    """Algorithm A: the final stamp, known at delivery. It never travels in this frame."""


class DataFrame(_DataFields, FrameDefaults):
    """A message of the application."""

    __slots__ = ()

    @property
    def name(self) -> MessageName:
        """Its name, whoever carries it."""
        return MessageName(self.sender, self.sequence)

    @property
    def clock(self) -> int:
        """The time of its stamp; without one, its number."""
        return self.sequence if self.stamp is None else self.stamp.time

    @property
    def orderer(self) -> ProcessId | None:
        """Whose proposal became its stamp, if not its sender's own."""
        return None if self.stamp is None or self.stamp.site == self.sender else self.stamp.site

    @property
    def serial(self) -> int:
        """Its number."""
        return self.sequence


@dataclass(frozen=True, slots=True)
class RelayFrame(FrameDefaults):
    """Algorithm R: a message passed on by somebody who has just received it for the first time."""

    group: GroupId
    sender: ProcessId
    relayed: DataFrame

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        """The message."""
        return (self.relayed,)


@dataclass(frozen=True, slots=True)
class ProposalFrame(FrameDefaults):
    """Algorithm A, first phase: a site's proposal for message number `sequence` of the one it is addressed to."""

    group: GroupId
    sender: ProcessId
    sequence: int
    stamp: Stamp
    committed: int
    """The site knows the final stamps of all the addressee's messages up to this number."""

    @property
    def clock(self) -> int:
        """The time proposed."""
        return self.stamp.time


@dataclass(frozen=True, slots=True)
class CommitFrame(FrameDefaults):
    """Algorithm A, second phase: the final stamp, from the originator or from whoever took over from it."""

    group: GroupId
    sender: ProcessId
    message: MessageName
    stamp: Stamp
    settled: int = 0
    """Every site knows the final stamps of the originator's messages up to this number; nobody will ask for them."""

    @property
    def clock(self) -> int:
        """The final time."""
        return self.stamp.time


@dataclass(frozen=True, slots=True)
class InquiryFrame(FrameDefaults):
    """What do you know of these messages? Their originators are lost."""

    group: GroupId
    sender: ProcessId
    losses: int
    """How many losses the sender had been told of. With its name, the ballot under which it takes over."""
    messages: tuple[MessageName, ...]
    handed: tuple[DataFrame, ...] = ()
    """Algorithm A: the messages themselves, for one who said it lacked them."""

    @property
    def copies(self) -> tuple[DataFrame, ...]:
        """The messages handed over."""
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
        """What is asked."""
        return (self.payload,)


@dataclass(frozen=True, slots=True)
class AnswerFrame(FrameDefaults):
    """A member's answer to a request of the one it is addressed to."""

    group: GroupId
    sender: ProcessId
    request: int
    payload: bytes

    @property
    def payloads(self) -> tuple[bytes, ...]:
        """What is answered."""
        return (self.payload,)


ClassicFrame = (
    DataFrame | RelayFrame | ProposalFrame | CommitFrame | InquiryFrame | ReportFrame | QueryFrame | AnswerFrame
)
