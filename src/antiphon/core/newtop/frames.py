"""The frames of Newtop: numbered ones, the announcement, and what repairs a lossy transport (glossary in docs).

Deeply immutable values. A numbered frame takes a block number and is ordered; everything else is *control*: it is
unnumbered, never waits for flow control, and shares the channel of the group (E-20).
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.control import Control
from antiphon.types import GroupId, ProcessId


class Flow(NamedTuple):
    """The flow-control header, as of the moment before its own number is entered (Macedo95 §3.1)."""

    number: int
    """fb: flow number of a data frame; the largest one sent or seen for a null or an announcement. In groups with
    block numbering, the block number."""
    complete: int
    """m.D: the sender has, and its application has taken, everything up to this number."""
    stable: int
    """m.S: every member has said so of this number."""
    super_stable: int
    """m.Σ: every member knows this number to be stable. Only algorithm 1 asks for it."""


class MapStamp(NamedTuple):
    """Per (group, process) a number: GLDV of the Fast order, or the clocks of CBCAST."""

    entries: tuple[tuple[GroupId, ProcessId, int], ...]


class RelativeStamp(NamedTuple):
    """The Relative order's stamp: precise inside the group, one number for each other group (Macedo94 §5.6)."""

    delivered: tuple[int, ...]
    """LDV: by rank in the view of the frame's group, the last number sent or delivered."""
    blocks: tuple[tuple[GroupId, int], ...]
    """GBN: per group, the largest number sent or delivered in it, as far as the sender has heard."""


Stamp = MapStamp | RelativeStamp


class BlockFrame(NamedTuple):
    """A data message with all the payloads packed in it or, without payloads, a null message.

    One frame is one protocol message: it takes one block number, and the papers' rules apply to it unchanged. The
    order key of an application message is (block, sender, position in the frame).
    """

    group: GroupId
    sender: ProcessId
    block: int
    """m.b: logical time of the message."""
    previous_block: int
    """m.pb: number of the sender's previous message in this group; reveals a gap or a copy."""
    complete_block: int
    """m.lcb: the sender's largest complete block when this left; what block stability is computed from."""
    payloads: tuple[bytes, ...] = ()
    label: int = 0
    """Opaque: number of the first payload, for the recorder."""
    flow: Flow | None = None
    """None where flow control is off."""
    stamp: Stamp | None = None
    """What a causal order needs beside the block number."""
    more: bool = False
    """The one payload is a piece of a message that the sender's next data frame continues."""
    sequence: int = 0
    """On datagrams: its place among all that the sender multicast in the group, from 1 (E-66)."""

    @property
    def clock(self) -> int:
        """The stamp that orders it."""
        return self.block

    @property
    def kind(self) -> str:
        """`data`, `fragment` for a piece that is not the last, or `null` where there is nothing for the application."""
        return "fragment" if self.more else "data" if self.payloads else "null"

    @property
    def serial(self) -> int:
        """Numbers of one sender in one group strictly increase, but for the null of E-6 as printed."""
        return self.block

    @property
    def orderer(self) -> None:
        """The sender itself gave the number."""

    @property
    def copies(self) -> tuple["BlockFrame", ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class AliveFrame(Control):
    """An announcement: what the sender has completed, when no numbered message is there to say it (E-51)."""

    group: GroupId
    sender: ProcessId
    block: int
    """The sender's last number in the group; this uses no new one."""
    complete_block: int
    flow: Flow | None = None
    stalled: bool = False
    """The sender owes a null that flow control holds back."""
    sequence: int = 0
    """As in a numbered frame: control messages have their place in the stream (E-66)."""

    @property
    def clock(self) -> int:
        """Where among its sender's numbers it stands."""
        return self.block


@dataclass(frozen=True, slots=True)
class StatusFrame(Control):
    """To one member that has not acknowledged all: the sender's last sequence number (newtop.md 4, rule 6)."""

    group: GroupId
    sender: ProcessId
    last: int
    settled: int = 0
    """Everybody has acknowledged the stream up to here; copies need not be kept."""


@dataclass(frozen=True, slots=True)
class AckFrame(Control):
    """The answer to a status: everything of the addressee up to `upto` is here."""

    group: GroupId
    sender: ProcessId
    upto: int


@dataclass(frozen=True, slots=True)
class RequestFrame(Control):
    """Asks a holder for frames of `origin` that are missing."""

    group: GroupId
    sender: ProcessId
    origin: ProcessId
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RepairFrame(Control):
    """Unchanged copies of frames that somebody asked for; each counts as coming from its own sender."""

    group: GroupId
    sender: ProcessId
    repaired: tuple[BlockFrame | AliveFrame, ...]

    @property
    def copies(self) -> tuple[BlockFrame | AliveFrame, ...]:
        """The frames asked for."""
        return self.repaired


SequencedFrame = BlockFrame | AliveFrame
"""What a member multicasts in a group."""
NewtopFrame = BlockFrame | AliveFrame | StatusFrame | AckFrame | RequestFrame | RepairFrame
