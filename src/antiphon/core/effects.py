"""What a core asks its surroundings to do: values in one ordered list, never calls.

The order of the list is the order in which a driver carries the effects out; over all groups of a process it is
the agreed order of what the application sees. Named tuples, because millions of them are built.
"""

from enum import Enum
from typing import NamedTuple, Protocol

from antiphon.types import GroupId, ProcessId, View


class Frame(Protocol):
    """One protocol message. Deeply immutable, compared by value, encoded once whatever the fan-out."""

    @property
    def group(self) -> GroupId: ...
    @property
    def sender(self) -> ProcessId:
        """Who transmits it; a copy of somebody else's frame travels inside a frame of the one who relays it."""

    @property
    def author(self) -> ProcessId:
        """Whose application sent the messages in it: the sender's, unless that only numbered them (a sequencer)."""

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
        """Who gave that stamp, where it was not the sender."""

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
    """Whom a frame is for, when not for one process. The network knows them from the views it is told to install."""

    VIEW = "view"
    """Every other member of the sender's view of the frame's group."""
    RECEIVERS = "receivers"
    """Those whom the sender's view names as receivers of its messages (001 §2: R_s)."""
    SENDERS = "senders"
    """Those whom it names as senders of what it receives (001 §2: S_r)."""
    GROUP = "group"
    """Whoever listens to the group, in a view or not (InterGroup)."""
    LOCAL = "local"
    """The sender's local group (InterGroup)."""
    COORDINATORS = "coordinators"
    """The coordinator group (InterGroup)."""
    RING = "ring"
    """Whoever is within `ttl` hops (InterGroup's ring search)."""


class Channel(Enum):
    """What a frame asks of the transport."""

    STREAM = "stream"
    """FIFO and lossless while both ends live and are connected."""
    DATAGRAM = "datagram"
    """May be lost, doubled, reordered."""
    CONTROL = "control"
    """In its place on the group's own channel; the core lets it leave whatever flow control says."""


class Transmit(NamedTuple):
    """Let a frame leave. Fan-out belongs to the network: one effect serves any number of receivers."""

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
    """A request to the group, its process's request number so and so there, has the answers that it asked for."""

    group: GroupId
    request: int
    answers: tuple[tuple[ProcessId, bytes], ...]


class Departure(NamedTuple):
    """Why somebody is not in a view any more, and the evidence."""

    process: ProcessId
    last_block: int
    """Its last number that those who go on agreed to have."""
    reason: str
    """Why we suspected it: `silent` (owes a number), `unacknowledged` (owes the word that it has what waits for safe
    delivery), `mute` (owes a vote), `accused` (by others, unrefuted), `blocking` (flow control waits for it), `unready`
    (a change of views does), `deaf` (it answers nothing, on datagrams), `severed` (the connection is broken, where
    groups merge), `parted` (it has excluded us), `left` (it says so), `secession` (we go alone, cut off from one of
    them), `injected`."""
    accusers: tuple[ProcessId, ...]
    """Whose votes there were when it was confirmed."""
    silent_ns: int
    """How long nothing had come from it when we suspected it."""
    agreed_ns: int
    """From our suspicion to the agreement."""


class InstallView(NamedTuple):
    """From here on in the list, `view` is in force in its group."""

    view: View
    left: tuple[Departure, ...] = ()
    """Who was in the view before, and is not in this one."""
    signature: str | None = None
    """What its members add to their names, if not what `types.signature` says (E-29, for the simulator only)."""
    snapshot: bool = False
    """The application is to hand its state over when it gets here, before it takes anything else (`Changing.state`)."""


class Reach(NamedTuple):
    """From here on frames to that group go to the members of this view; the application gets to it later."""

    view: View


class InstallState(NamedTuple):
    """The application's state of a group is from here on what these classes had at its first view, merged in order."""

    group: GroupId
    states: tuple[tuple[int, bytes], ...]
    """By class other than our own, in order; a class that nobody of is left to tell has none."""
    own: int | None
    """Our own class, if we had a state: the application's, as it is now; it has its place among the others."""


class Left(NamedTuple):
    """From here on we are not in that group any more."""

    group: GroupId
    graceful: bool
    """All that we sent and delivered is held by everybody who stays; False: it took too long, or nobody knows."""
    successor: GroupId | None = None
    """What we went over to, if we did."""


class Missing(NamedTuple):
    """The application lacks messages that a sender has sent; it may ask for them (InterGroup's service `framed`)."""

    group: GroupId
    sender: ProcessId
    container: bytes
    """What their names begin with."""
    places: tuple[int, ...]
    gone: bool = False
    """Nobody has them any more: there is no use in asking."""


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
    """Who of the view in force has not failed."""


class Transitional(NamedTuple):
    """Others of the view have failed; its next deliveries speak for these alone (newtop.md 9.8, 14 rule 5)."""

    group: GroupId
    members: tuple[ProcessId, ...]


class Stable(NamedTuple):
    """Trace only: per sender, the largest label now known to be held by every member."""

    group: GroupId
    upto: tuple[tuple[ProcessId, int], ...]


class Discard(NamedTuple):
    """Trace only: per sender, the largest label now freed from the buffer."""

    group: GroupId
    upto: tuple[tuple[ProcessId, int], ...]
    evicted: bool = False
    """Freed for lack of a buffer, before it was known to be stable here (Macedo95 §3.3, rule fb2)."""


class Blocked(NamedTuple):
    """Flow control holds a message of the application back; told again when it waits for somebody else."""

    group: GroupId
    by: ProcessId
    """The member that has completed least: whom the sender waits for."""


class Unblocked(NamedTuple):
    """Flow control lets the next message leave."""

    group: GroupId


class Gauge(NamedTuple):
    """Trace only: a quantity that flow control bounds has reached a new high."""

    group: GroupId
    name: str
    value: int
    of: ProcessId | None = None
    """The member whom the quantity is about, where it is about one."""


Effect = (
    Transmit
    | Deliver
    | Query
    | Answered
    | InstallView
    | Reach
    | InstallState
    | Left
    | Missing
    | Suspected
    | Refuted
    | Confirmed
    | Transitional
    | Stable
    | Discard
    | Blocked
    | Unblocked
    | Gauge
)
