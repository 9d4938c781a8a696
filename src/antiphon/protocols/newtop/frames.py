"""The frames of Newtop: numbered ones, announcements, agreement on failures, repair of a lossy transport.

Deeply immutable values. A numbered frame takes a block number and is ordered; everything else is *control*: it is
unnumbered, never waits for flow control, and shares the channel of the group (E-20).
"""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from antiphon.core.contract import Presence
from antiphon.core.frames import FrameDefaults
from antiphon.protocols.newtop.settings import Values
from antiphon.types import Company, GroupId, ProcessId, ViewId


class Flow(NamedTuple):
    """The flow-control header, as of the moment before its own number is entered (Macedo95 §3.1)."""

    number: int
    """fb: flow number of a data frame; the largest one sent or seen for a null or an announcement. In groups with
    block numbering, the block number."""
    complete: int
    """m.D: the sender has, and its application has consumed, everything up to this number."""
    stable: int
    """m.S: every member has announced that it has completed this number."""
    super_stable: int
    """m.Σ: every member knows this number to be stable. Only algorithm 1 uses it."""


class MapStamp(NamedTuple):
    """Per (group, process) a number: GLDV of the Fast order, or the clocks of CBCAST."""

    entries: tuple[tuple[GroupId, ProcessId, int], ...]


class RelativeStamp(NamedTuple):
    """The Relative order's stamp: precise inside the group, one number for each other group (Macedo94 §5.6)."""

    delivered: tuple[int, ...]
    """LDV: by rank in the view of the frame's group, the last number sent or delivered."""
    blocks: tuple[tuple[GroupId, int], ...]
    """GBN: per group, the largest number sent or delivered in it, as far as the sender knows."""


Stamp = MapStamp | RelativeStamp


Suspicion = tuple[ProcessId, int]
"""A suspected member, and its last block number that the accuser has (Macedo94 §6.3.2: `{P_k, lbn_k}`)."""


class Notice(NamedTuple):
    """A notice in a numbered message, for members instead of the application: these have failed together."""

    kind: Literal["remove", "flush", "view"]
    """`remove`: views change where it is delivered (newtop.md 9.6). `flush`: its sender waits for the view (9.8).
    `view`: the sequencer says where the view changes (11.3 rule 6.3)."""
    failed: tuple[Suspicion, ...]
    """One detection as agreed, sorted."""


WORD: Final = -1
"""`BlockFrame.state` of a message about primary views (docs/spec/newtop.md 15)."""
_CONTENTS: Final = {None: "data", WORD: "word"}
"""Kinds of messages by their `state`; all others bring a state."""


class Ask(NamedTuple):
    """Marks a message as a request to the group, or as an answer to one (docs/spec/newtop.md 16)."""

    number: int
    """The number of the request: its asker counts its requests to a group of that name from 0."""
    asker: ProcessId | None = None
    """None: the message is the request, of its author. Otherwise it answers a request of this process."""


class Ordering(NamedTuple):
    """The header of a message that a sequencer has numbered (docs/spec/newtop.md 11.3)."""

    origin: ProcessId
    """The author of the message; the sequencer itself for nulls and views."""
    place: int
    """Its place among all submissions of the origin, from 1; 0 for frames that were not submitted."""
    stable: int
    """Every member has received and consumed everything up to this number, as far as the origin or sequencer knew."""


class BlockFrame(NamedTuple):
    """A data message with all the payloads packed in it; or a notice; or, with neither, a null message.

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
    """m.lcb: the sender's largest complete block when this left; block stability is computed from it."""
    payloads: tuple[bytes, ...] = ()
    label: int = 0
    """Opaque: number of the first payload, for the recorder; of a state, how large it is (0: unknown)."""
    flow: Flow | None = None
    """None if flow control is off."""
    stamp: Stamp | None = None
    """The causal stamp, besides the block number."""
    more: bool = False
    """The single payload is a fragment of a message that the sender's next data frame continues."""
    sequence: int = 0
    """On datagrams: its place among all that the sender multicast in the group, from 1 (E-66)."""
    excluded: tuple[ProcessId, ...] = ()
    """The mark x: members that the sender had excluded or confirmed failed when this left, sorted (E-45)."""
    notice: Notice | None = None
    state: int | None = None
    """The payload is the application's state of this class of a formed group, by its place in the first view.

    `WORD`: it is a word about primary views, for the protocol alone."""
    ordering: Ordering | None = None
    """In an asymmetric group, on every frame that its sequencer numbers; a frame without it only shows life."""
    ask: Ask | None = None
    """The single payload is a request or an answer, or a fragment of one."""

    @property
    def author(self) -> ProcessId:
        """The author of the message: the sender, unless it numbered the message for another member."""
        return self.sender if self.ordering is None else self.ordering.origin

    @property
    def clock(self) -> int:
        """The stamp that orders it."""
        return self.block

    @property
    def kind(self) -> str:
        """`data`; `fragment`, a piece that is not the last; `state`, `word`, a notice; or `null`: nothing."""
        if self.payloads:
            return "fragment" if self.more else _CONTENTS.get(self.state, "state")
        return "null" if self.notice is None else self.notice.kind

    @property
    def serial(self) -> int:
        """Numbers of one sender in one group strictly increase, except for the null of E-6 as printed."""
        return self.block

    @property
    def orderer(self) -> ProcessId | None:
        """The sequencer, where there is one; else the sender itself gave the number."""
        return None if self.ordering is None else self.sender

    @property
    def copies(self) -> tuple["BlockFrame", ...]:
        """None."""
        return ()


class _SubmitFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    block: int
    """m.c: the number that its sender would have assigned; the sequencer assigns a larger one."""
    place: int
    """Its place among all submissions of its sender in the group, from 1."""
    stable: int
    """As in the `Ordering` that it gets."""
    payloads: tuple[bytes, ...]
    label: int = 0
    more: bool = False
    """These three as in a numbered frame."""
    excluded: tuple[ProcessId, ...] = ()
    """As in a numbered frame; a sequencer that has not excluded them too keeps it waiting."""
    state: int | None = None
    """As in a numbered frame."""
    ask: Ask | None = None
    """As in a numbered frame."""


class SubmitFrame(_SubmitFields, FrameDefaults):
    """A message for the sequencer of an asymmetric group to number (docs/spec/newtop.md 11.3 rule 1).

    Sent again until it comes back; only its knowledge about stability is updated.
    """

    __slots__ = ()

    @property
    def clock(self) -> int:
        """The number that it is ordered above."""
        return self.block

    @property
    def kind(self) -> str:
        """`submit`; or `piece`: a fragment of a larger message (not the last one) or of a state."""
        return "piece" if self.more or self.state is not None else "submit"


@dataclass(frozen=True, slots=True)
class _Control(FrameDefaults):
    """A frame of the protocol itself: of a group, from one process."""

    group: GroupId
    sender: ProcessId


@dataclass(frozen=True, slots=True)
class NeedFrame(_Control):
    """To the sequencer: a message or a view of another group waits until this one reaches a number (11.3 rule 5)."""

    number: int


@dataclass(frozen=True, slots=True)
class _Unnumbered(_Control):
    """A control frame with a place in its sender's stream: it uses no number, and carries the last one used (E-20)."""

    block: int
    """The sender's last number in the group."""
    sequence: int = field(default=0, kw_only=True)
    """As in a numbered frame: control messages have their place in the stream (E-66)."""

    @property
    def clock(self) -> int:
        """Its position among its sender's numbers."""
        return self.block


@dataclass(frozen=True, slots=True)
class AliveFrame(_Unnumbered):
    """An announcement of what the sender has completed, when no numbered message carries it (E-51)."""

    complete_block: int
    flow: Flow | None = None
    stalled: bool = False
    """The sender's application takes nothing, or flow control holds back a null that the sender owes."""
    blocked: bool = False
    """A message of the sender's application has been refused for long: the receivers answer (9.2 d)."""

    @property
    def announces(self) -> bool:
        """True if it is more than a sign of life."""
        return self.complete_block > 0 or self.flow is not None


@dataclass(frozen=True, slots=True)
class SuspectFrame(_Unnumbered):
    """The sender suspects a member, and has everything of it up to `last_block` (docs/spec/newtop.md 9.4 i)."""

    suspect: ProcessId
    last_block: int


@dataclass(frozen=True, slots=True)
class RefuteFrame(_Unnumbered):
    """A suspicion is wrong: this frame contains the suspect's messages after `last_block` that we have (9.4 iii)."""

    suspect: ProcessId
    last_block: int
    messages: tuple[BlockFrame, ...]
    """All from the suspect, unchanged, in the order of their numbers."""

    @property
    def copies(self) -> tuple[BlockFrame, ...]:
        """Each counts as coming from the suspect."""
        return self.messages


@dataclass(frozen=True, slots=True)
class ConfirmedFrame(_Unnumbered):
    """All members that are not suspected agree: these have failed together (9.4 vii)."""

    failed: tuple[Suspicion, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True)
class StatusFrame(_Control):
    """To one member that has not acknowledged all: the sender's last sequence number (newtop.md 4, rule 6)."""

    last: int
    settled: int = 0
    """All members have acknowledged the stream up to here; copies need not be kept."""


@dataclass(frozen=True, slots=True)
class AckFrame(_Control):
    """The answer to a status: the sender has everything of the addressee up to `upto`."""

    upto: int


@dataclass(frozen=True, slots=True)
class RequestFrame(_Control):
    """Asks a holder for frames of `origin` that are missing."""

    origin: ProcessId
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RepairFrame(_Control):
    """Unchanged copies of frames that a member asked for; each counts as coming from its own sender."""

    repaired: tuple["SequencedFrame", ...]

    @property
    def copies(self) -> tuple["SequencedFrame", ...]:
        """The frames asked for."""
        return self.repaired


@dataclass(frozen=True, slots=True)
class LeavingFrame(_Unnumbered):
    """The sender has left the group (docs/spec/newtop.md 11.2 rule 1)."""

    passes_vote: bool = False
    """Everything that the sender has was stable: its vote on primary views passes to the others (15)."""
    stalled: bool = False
    """It leaves because its application has read nothing for too long (docs/spec/newtop.md 9.9)."""


@dataclass(frozen=True, slots=True)
class WantFrame(_Unnumbered):
    """The sender asks all members to complete this number and to say so: it is about to leave (newtop.md 8)."""

    wanted: int


# Requests (docs/spec/newtop.md 16): each to one process, outside the order


@dataclass(frozen=True, slots=True)
class _Asking(_Control):
    """About request number `request`, of the sender or of the addressee, in the group of that name."""

    request: int


@dataclass(frozen=True, slots=True)
class _AskingPayload(_Asking):
    payload: bytes

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return (self.payload,)


@dataclass(frozen=True, slots=True)
class QueryFrame(_AskingPayload):
    """A request of the sender that any one member may answer."""


@dataclass(frozen=True, slots=True)
class AnswerFrame(_AskingPayload):
    """The sender's answer to a request of the addressee."""


@dataclass(frozen=True, slots=True)
class AnsweredFrame(_Asking):
    """On datagrams: the sender has the addressee's answer to its request, or no longer needs it."""


# Formation (docs/spec/newtop.md 11.1): each to one process; `group` is the group to be formed, or a name in a question


@dataclass(frozen=True, slots=True)
class ProposeFrame(_Control):
    """The initiator proposes that these form a group."""

    members: tuple[tuple[ProcessId, GroupId | None], ...]
    """Sorted, each with the group of that name that it is believed to be in."""
    settings: Values = ()
    """The settings of the sender that others compare with theirs."""


@dataclass(frozen=True, slots=True)
class VoteFrame(_Control):
    """The answer: the sender has stopped delivering at this number; or None: it does not take part."""

    number: int | None
    epoch: int
    """The largest epoch of that name that the sender knows: a new group must be above it."""


@dataclass(frozen=True, slots=True)
class BaseFrame(_Control):
    """All take part: deliver everything up to this number."""

    base: int


@dataclass(frozen=True, slots=True)
class ReadyFrame(_Control):
    """The sender has delivered everything, and is in this view of its old group; None if it had none."""

    view: ViewId | None
    members: tuple[ProcessId, ...]
    """Of that view."""
    primary: bool
    """As that view says."""
    last: int = 0
    """The number of the last primary view that the sender's state comes from, where views are voted on."""
    history: int = 0
    """A digest of all that the sender has delivered in its old group; 0: not known."""


@dataclass(frozen=True, slots=True)
class InstallFrame(_Control):
    """The group is formed; the sender's first frame in it, to every member."""

    base: int
    companies: tuple[Company, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True)
class AbortFrame(_Control):
    """The sender will never be in that group."""


@dataclass(frozen=True, slots=True)
class ProbeFrame(_Control):
    """Asks a process outside the view for its group of that name; or asks to join."""

    joins: bool
    settings: Values = ()
    """As in a proposal."""


@dataclass(frozen=True, slots=True)
class FoundFrame(_Control):
    """The answer: the sender's group and its members."""

    members: tuple[ProcessId, ...]


@dataclass(frozen=True, slots=True)
class RefuseFrame(_Control):
    """To a process that probed or proposed: no group of that name with it, because its settings differ from these."""

    settings: Values = ()


@dataclass(frozen=True, slots=True)
class InquireFrame(_Control):
    """Asks for the presence of the receiver in the group of that name, and states that of the sender."""

    round: int
    """Repeated in the answer."""
    presence: Presence


@dataclass(frozen=True, slots=True)
class PresenceFrame(_Control):
    """The answer."""

    round: int
    presence: Presence


FormationFrame = (
    ProposeFrame
    | VoteFrame
    | BaseFrame
    | ReadyFrame
    | InstallFrame
    | AbortFrame
    | ProbeFrame
    | FoundFrame
    | RefuseFrame
    | InquireFrame
    | PresenceFrame
)
"""Frames of formations. They have no place in any stream: they may be lost or duplicated, and are repeated."""
MembershipFrame = SuspectFrame | RefuteFrame | ConfirmedFrame | LeavingFrame | WantFrame
"""Frames of the agreement on failures."""
SequencedFrame = BlockFrame | AliveFrame | SuspectFrame | RefuteFrame | ConfirmedFrame | LeavingFrame | WantFrame
"""Frames that a member multicasts in a group."""
NewtopFrame = (
    BlockFrame
    | AliveFrame
    | SuspectFrame
    | RefuteFrame
    | ConfirmedFrame
    | LeavingFrame
    | WantFrame
    | StatusFrame
    | AckFrame
    | RequestFrame
    | RepairFrame
)
AskingFrame = QueryFrame | AnswerFrame | AnsweredFrame
"""Frames of requests, outside all streams and connections; on datagrams they are repeated if necessary."""
ToSequencer = SubmitFrame | NeedFrame
"""Frames to the sequencer of an asymmetric group only; outside all streams, repeated if necessary."""
