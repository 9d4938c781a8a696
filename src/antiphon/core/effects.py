"""Effects: what a core asks its driver to do, as values in one ordered list, never as calls.

The order of the list is the order in which a driver carries the effects out; over all groups of a process it is
the agreed order of what the application sees. Named tuples, because millions of them are built.
"""

from enum import Enum
from typing import Literal, NamedTuple, Protocol

from antiphon.types import GroupId, ProcessId, View, ViewId


class Frame(Protocol):
    """One protocol message. Deeply immutable, compared by value, encoded once for any number of receivers."""

    @property
    def group(self) -> GroupId: ...
    @property
    def sender(self) -> ProcessId:
        """The process that transmits it; a copy of another process's frame is inside a frame of the relay."""

    @property
    def author(self) -> ProcessId:
        """The author of the messages in it: the sender, unless it only numbered them (a sequencer)."""

    @property
    def payloads(self) -> tuple[bytes, ...]:
        """The application messages packed in it; empty for messages of the protocol itself."""

    @property
    def label(self) -> int:
        """Opaque to the protocol: the recorder's number of the first payload, position gives the rest."""

    @property
    def clock(self) -> int:
        """The protocol's own stamp: block number or timestamp."""

    @property
    def orderer(self) -> ProcessId | None:
        """The process that assigned the stamp, if it is not the sender."""

    @property
    def kind(self) -> str:
        """`data`, `null`, … as traces show it."""

    @property
    def serial(self) -> int | None:
        """Its number among the frames of this kind that its sender transmits in the group; None: it needs no name."""

    @property
    def copies(self) -> tuple["Frame", ...]:
        """Frames of others that travel in it, unchanged; each counts as coming from its own sender."""

    @property
    def flow(self) -> tuple[int, ...] | None:
        """The numbers of flow control in it, for the trace; None: it carries none."""


class Scope(Enum):
    """The receivers of a frame that is not for one process. The network knows them from the installed views."""

    VIEW = "view"
    """Every other member of the sender's view of the frame's group."""
    RECEIVERS = "receivers"
    """The receivers in the sender's view (001 §2: R_s)."""
    SENDERS = "senders"
    """The senders in the sender's view (001 §2: S_r)."""
    GROUP = "group"
    """All processes that listen to the group, in a view or not (InterGroup)."""
    LOCAL = "local"
    """The sender's local group (InterGroup)."""
    COORDINATORS = "coordinators"
    """The coordinator group (InterGroup)."""
    RING = "ring"
    """All processes within `ttl` hops (InterGroup's ring search)."""


class Channel(Enum):
    """The transport service that a frame needs."""

    STREAM = "stream"
    """FIFO and lossless while both ends are up and connected."""
    DATAGRAM = "datagram"
    """May be lost, duplicated, reordered."""
    CONTROL = "control"
    """In order with the group's own channel; flow control never delays it."""


class Transmit(NamedTuple):
    """Transmit a frame. Fan-out belongs to the network: one effect serves any number of receivers."""

    frame: Frame
    to: ProcessId | Scope = Scope.VIEW
    channel: Channel = Channel.STREAM
    ttl: int = 0
    """Hops it may travel; 0 = no limit."""


class Deliver(NamedTuple):
    """Hand all payloads of a frame to the application, in their order."""

    frame: Frame


class Query(NamedTuple):
    """Hand a request to the application outside the order of the group: any one member may answer it."""

    frame: Frame


class Answered(NamedTuple):
    """A request to the group, identified by its number at this process, has the answers that it asked for."""

    group: GroupId
    request: int
    answers: tuple[tuple[ProcessId, bytes], ...]
    label: int | None = None
    """The label of the request, if it was a message of the group and the answers depend on the view of its delivery."""
    view: ViewId | None = None
    """The view in which the request ends; None if the request was not a message."""


class Unanswered(NamedTuple):
    """A request to the group ends without the answers that it asked for."""

    group: GroupId
    request: int
    reason: str
    """`few`: too few members of the view in which it was delivered are left. `left`: this process leaves the group."""
    answers: tuple[tuple[ProcessId, bytes], ...]
    """Those that have arrived."""
    label: int | None = None
    """As in `Answered`."""
    view: ViewId | None = None
    """As in `Answered`; None if the request ends because the process leaves."""


class Departure(NamedTuple):
    """Why a member is no longer in a view, and the evidence."""

    process: ProcessId
    last_block: int
    """Its last number that all survivors have, as agreed."""
    reason: str
    """Why we suspected it: `silent` (owes a number), `unacknowledged` (owes the acknowledgment that safe delivery
    needs), `mute` (owes a vote), `accused` (by others, unrefuted), `blocking` (flow control waits for it), `unready`
    (a change of views does), `deaf` (it answers nothing, on datagrams), `severed` (the connection is broken, where
    groups merge), `parted` (it has excluded us), `left` (it says so), `stalled` (it says that its application read
    nothing for too long), `stuck` (it is heard, but never advances), `secession` (we leave all, cut off from one of
    them), `gone` (the transport has evidence that it is dead), `injected`."""
    accusers: tuple[ProcessId, ...]
    """The members that had voted when it was confirmed."""
    silent_ns: int
    """Duration of its silence when we suspected it."""
    agreed_ns: int
    """From our suspicion to the agreement."""


class InstallView(NamedTuple):
    """From here on in the list, `view` is the current view of its group."""

    view: View
    left: tuple[Departure, ...] = ()
    """The members of the view before that are not in this one."""
    signature: str | None = None
    """The signature of its members, if it is not `types.signature` (E-29, for the simulator only)."""
    snapshot: bool = False
    """The application must hand its state over when it reads this, before anything else (`Changing.state`)."""


class Reach(NamedTuple):
    """From here on frames to that group go to the members of this view; the application reads it later."""

    view: View


class InstallState(NamedTuple):
    """From here on, the application's state of a group is the merge of these classes' states at its first view."""

    group: GroupId
    states: tuple[tuple[int, bytes], ...]
    """By class other than our own, in order; a class without remaining members has none."""
    own: int | None
    """Our own class, if we had a state: the application's current state has its place among the others."""
    primary: int | None = None
    """The class that comes from the last primary view that is known of, where views are voted on."""


class Left(NamedTuple):
    """From here on we are not in that group any more."""

    group: GroupId
    graceful: bool
    """All remaining members have all that we sent and delivered; False: a timeout, or unknown."""
    successor: GroupId | None = None
    """The successor group, if we went over to one."""


class Difference(NamedTuple):
    """A setting that differs between two processes; None: that process does not know it."""

    setting: str
    ours: str | None
    theirs: str | None


class Refused(NamedTuple):
    """We form no group of this name with that peer, because its settings differ from ours; the peer is told too."""

    group: GroupId
    """By name."""
    process: ProcessId
    differences: tuple[Difference, ...]
    """At least one, sorted by setting."""


class Missing(NamedTuple):
    """The application lacks messages that a sender has sent; it may ask for them (InterGroup's service `framed`)."""

    group: GroupId
    sender: ProcessId
    container: bytes
    """The common prefix of their names."""
    places: tuple[int, ...]
    gone: bool = False
    """No process has them any more: requests are useless."""


class Unavailable(NamedTuple):
    """A source that the application chose has not answered; it is asked again when it is heard (InterGroup)."""

    group: GroupId
    source: ProcessId


class Reset(NamedTuple):
    """We could not follow the group and begin again: messages may be missing between the views before and after.

    `reason`: `behind` (messages that we lack are gone), `stalled` (no progress although senders are heard), `beyond`
    (we delivered more than the others agreed on), `unsponsored` (no sender let us send).
    """

    group: GroupId
    reason: str


class ClockAhead(NamedTuple):
    """The clock of a process is far ahead of ours (P1)."""

    group: GroupId
    process: ProcessId
    ahead_us: int


class Wished(NamedTuple):
    """Trace only: the process wants to be a sender of the group from here on, or only a receiver (InterGroup)."""

    group: GroupId
    sends: bool


class Suspected(NamedTuple):
    """We suspect a member; `reason` as in `Departure`."""

    group: GroupId
    process: ProcessId
    last_block: int
    reason: str


class Refuted(NamedTuple):
    """We suspect it no longer."""

    group: GroupId
    process: ProcessId


class Confirmed(NamedTuple):
    """Agreed: these have failed, together. Trace only: what an application is told, and when, is `Transitional`."""

    group: GroupId
    failed: tuple[tuple[ProcessId, int], ...]
    """Each with the last of its numbers that counts as sent."""
    members: tuple[ProcessId, ...]
    """The members of the current view that have not failed."""


class Transitional(NamedTuple):
    """Others of the view have failed; the next deliveries are valid only for these (newtop.md 9.8, 14 rule 5)."""

    group: GroupId
    members: tuple[ProcessId, ...]


class Primary(NamedTuple):
    """From here on the view in force is primary, until the next `Transitional` or view (newtop.md 15)."""

    group: GroupId
    view: ViewId
    number: int
    """Rises from each primary view of a group to the next."""
    rule: str
    """Why it may be primary: `founded`, `majority`, `everybody`, `lost` or `static`."""
    after: tuple[ViewId, ...]
    """The primary view that it follows, and later ones that were attempted and may have been primary."""
    holds: bool = True
    """False: it is formed, but a member is known to have failed, so it is not primary here. For the trace alone."""


class Stable(NamedTuple):
    """Trace only: per sender, the largest label now known to be held by every member."""

    group: GroupId
    upto: tuple[tuple[ProcessId, int], ...]


class Discard(NamedTuple):
    """Trace only: per sender, the largest label now freed from the buffer."""

    group: GroupId
    upto: tuple[tuple[ProcessId, int], ...]
    evicted: bool = False
    """Freed because no buffer was left, before it was known to be stable here (Macedo95 §3.3, rule fb2)."""


class Blocked(NamedTuple):
    """Flow control delays a message of the application; repeated when it waits for another member."""

    group: GroupId
    by: ProcessId
    """The member that the sender waits for: it has completed the least."""


class Unblocked(NamedTuple):
    """Flow control permits the next message."""

    group: GroupId


ConcernReason = Literal["stalled", "unaccepted", "blocking", "lagging", "relayed", "deaf"]
"""`stalled`: its application does not take messages. `unaccepted`: it has not accepted the next view.
`blocking`: our messages have waited for it for long.
`lagging`: it has owed numbers or completions for long. `relayed`: what it sends reaches us only through others.
`deaf`: it does not hear us, or answers nothing."""


class Concern(NamedTuple):
    """A concern about a member of the view begins or ends. It is only for the application and has no other effect."""

    group: GroupId
    process: ProcessId
    """The member; it may be our own process, if its application is `stalled`."""
    reason: ConcernReason
    over: bool = False


class Evicted(NamedTuple):
    """The driver must leave this group on behalf of the application, which did not read it for too long.

    `reason`: `stalled`; or `unaccepted`: it has not accepted a view.
    """

    group: GroupId
    reason: str
    idle_ns: int
    """For how long."""


class Gauge(NamedTuple):
    """Trace only: a quantity that flow control bounds has reached a new high."""

    group: GroupId
    name: str
    value: int
    of: ProcessId | None = None
    """The member that the quantity is about, if any."""


Effect = (
    Transmit
    | Deliver
    | Query
    | Answered
    | Unanswered
    | InstallView
    | Reach
    | InstallState
    | Left
    | Refused
    | Missing
    | Unavailable
    | Reset
    | ClockAhead
    | Wished
    | Suspected
    | Refuted
    | Confirmed
    | Transitional
    | Primary
    | Stable
    | Discard
    | Blocked
    | Unblocked
    | Concern
    | Evicted
    | Gauge
)
