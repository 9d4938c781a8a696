"""The contract between a protocol core and its driver (docs/design/adr/0002): all that a driver may call.

A core decides; it never acts. Inputs carry `now`, integer nanoseconds of the process's own clock. The output is
`drain`: everything there is to do, in one order. Between inputs a core holds no open question. A driver may therefore
feed one frame or a thousand before it drains. The order of the output may differ; both are deterministic, and every
property holds either way.

    core.receive(frame, now)            any number of inputs, then
    for effect in core.drain(now): ...  carry the effects out in order, then
    wake me at core.deadline            and call tick; a tick too many is harmless

`Core` is what every core offers. The other protocols add inputs. Each core declares in `capabilities` which of them it
offers; the functions at the end (`is_changing`, …) narrow the type by that declaration.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeGuard

from antiphon.core.effects import Effect, Frame, Missing
from antiphon.core.services import GroupService
from antiphon.types import GroupId, ProcessId, View


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a core offers beyond `Core`. Declared by its class; a driver asks here and nowhere else."""

    told_of_losses: bool = False
    """`Attended`: it does not detect crashes; the driver tells it."""
    joins: bool = False
    """`Joining`: its processes join and leave groups without an agreement."""
    leaves_in_order: bool = False
    """Leaving ends with `Left`, in its place among the deliveries; otherwise it is over at once."""
    changes_senders: bool = False
    """`Promoting`: the processes of a group change between sending and only receiving."""
    names_messages: bool = False
    """`Framing`: messages have names, and the application may request missing ones."""
    asks: bool = False
    """`Asking`: it carries requests to a group, and the answers."""
    answers_in_order: bool = False
    """`AnsweringInOrder`: members may answer by messages of the group."""
    suspects: bool = False
    """`Suspecting`: it detects crashes itself, and members agree on views."""
    counts_connections: bool = False
    """`Connected`: it needs to know by which connection a frame arrived."""
    changes: bool = False
    """`Changing`: its groups are formed, joined, left and merged while they work."""
    counts_costs: bool = False
    """`Counting`: it reports figures at the end of a run."""


class Core(Protocol):
    """One process with all its groups, as a pure state machine."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def deadline(self) -> int | None:
        """When `tick` is due, or None. An O(1) read after `drain`; after `tick` and `drain` it lies in the future."""

    @property
    def needs_consumed(self) -> bool:
        """True if `consumed` has an effect; otherwise a driver may skip the call."""

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:
        """The application sends a message. `drain` numbers and packs it when it may leave.

        `label` is sent with the frame and never read by the core. Labels of one group count up by one.
        """

    def receive(self, frame: Frame, now: int) -> None:
        """A frame has arrived; on a stream it is the next one of its sender.

        Raises `ProtocolViolation` if no correct peer could have sent it. The core has not taken the frame in then. On a
        stream that is a gap, so the driver ends the connection.
        """

    def tick(self, now: int) -> None:
        """Time has passed: `deadline` or later."""

    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        """The application has taken all messages of this group's first `position` `Deliver` effects (the papers' Δ).

        True if this may have an effect at once.
        """

    def writable(self, ready: bool, now: int) -> None:
        """Whether the transport takes more. While it does not, application messages gather and are packed."""

    def drain(self, now: int) -> list[Effect]:
        """Everything to do since the last call, in the order to do it."""

    def unstable(self, group: GroupId) -> int:
        """The number of frames of this group that are held because some member may lack them."""


class Counting(Core, Protocol):
    """A core that reports what its protocol has cost."""

    def costs(self) -> Mapping[str, int]:
        """Figures for the `stop` row of a trace."""


class Attended(Core, Protocol):
    """A core that is told of losses: by a perfect failure detector, or by channels that break."""

    def lost(self, process: ProcessId, now: int) -> None:
        """That process is gone for good. All survivors are told of the same losses, in the same order."""


class Joining(Core, Protocol):
    """A core whose processes join and leave without an agreement."""

    @property
    def unfinished(self) -> bool:
        """Whether something happens as time passes: entry into a group, or transmission of waiting messages."""

    def join(self, group: GroupId, now: int) -> None:
        """Connect with the processes of that group."""

    def leave(self, group: GroupId, now: int) -> None:
        """Tell the processes of that group that we leave."""


class Promoting(Joining, Protocol):
    """A core whose groups have senders, which agree on views, and processes that only receive."""

    def promote(self, group: GroupId, now: int) -> None:
        """Become a sender of that group."""

    def demote(self, group: GroupId, now: int) -> None:
        """Become a receiver of that group."""

    def suspect(self, process: ProcessId, now: int) -> None:
        """Suspect a sender in all groups, as a wrong timeout would."""


class Framing(Core, Protocol):
    """A core whose applications may name their messages and request missing ones."""

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0, name: bytes = b"") -> None:
        """As in `Core`. The name is a path; its last part is a leaf of the part before it."""

    def request(self, effect: Missing, now: int) -> None:
        """The application wants the messages that this effect reported."""


class Asking(Core, Protocol):
    """A core that carries requests to a group, and the answers."""

    def ask(self, group: GroupId, payload: bytes, answers: str, now: int, label: int = 0) -> int:
        """The application asks the group and waits for `any`, the `first`, a `majority` or `all` answers.

        Returns the number of the request: requests of a process to a group count from 0. It ends with `Answered`, or,
        where groups change, with `Unanswered`.
        """

    def is_request(self, frame: Frame) -> bool:
        """Whether a delivered frame brings a request that the application must answer."""

    def answer(self, frame: Frame, payload: bytes, now: int) -> None:
        """The application answers the request that this frame brought."""

    def withdraw(self, group: GroupId, request: int, now: int) -> tuple[tuple[ProcessId, bytes], ...]:
        """The application no longer waits for answers; returns those that have arrived. Nothing else follows."""


class AnsweringInOrder(Asking, Protocol):
    """A core in which an answer may be a message of the group. `ask` also accepts the mode `available`."""

    def answer_in_order(self, frame: Frame, payload: bytes, now: int, label: int = 0) -> None:
        """As `answer`, but all members deliver the answer, in its place in the order."""


class Connected(Core, Protocol):
    """A core on streams that break and are replaced (docs/spec/newtop.md 1, E-47).

    The network numbers the connections from one process to another, from 0. A connection that has lost frames is
    replaced by one with the next number.
    """

    def admits(self, frame: Frame, connection: int, /) -> bool:
        """True if a frame from this connection of its sender is accepted.

        If not, the driver drops it: its group does not use that connection, or the core keeps it for later.
        """

    def is_bound(self, frame: Frame) -> bool:
        """Whether a frame belongs to the connection that its group uses. Frames that form a group do not."""

    def connected(self, peer: ProcessId, connection: int, now: int) -> Iterable[Frame]:
        """From now on frames to that peer use this connection. Returns kept frames, to receive now."""

    def disconnected(self, peer: ProcessId, now: int) -> None:
        """From now on there is no connection to that peer; a frame to it is lost."""

    def broke(
        self, peer: ProcessId, connection: int, now: int, *, incoming: bool = True, outgoing: bool = True
    ) -> None:
        """A connection has lost frames for good: those from the peer, those to it, or both.

        The report may be late. Groups that used the connection are dead on the next one, because a core cannot see the
        gap between the two.
        """

    def gone(self, peer: ProcessId, now: int) -> None:
        """There is evidence that a peer is dead, such as a reset connection and a refused new one.

        It is evidence, not proof: other members may still hear the peer. A frame of the peer that comes later
        withdraws it.
        """


class Suspecting(Connected, Protocol):
    """A core that detects crashes itself and agrees on them with others."""

    def viewed(self, view: View, now: int) -> None:
        """The application has reached that view, in its place among the deliveries."""

    def suspect(self, process: ProcessId, now: int) -> None:
        """Suspect a process in all shared groups, as a wrong timeout would."""


class StateSource(Protocol):
    """A state that is read while it leaves, so that no process need hold all of it."""

    @property
    def total(self) -> int:
        """Its size in bytes; 0 if unknown."""

    def read(self, size: int) -> bytes | None:
        """The next `size` bytes, fewer only at the end. None: the rest will never be available."""

    def close(self) -> None:
        """Nothing more will be read."""


class StateSink(Protocol):
    """A buffer that collects a state while it arrives."""

    def write(self, piece: bytes, /) -> object: ...

    def getvalue(self) -> bytes: ...


class Presence(IntEnum):
    """What a process says about itself and one group (docs/spec/newtop.md 11.2). The values are those on the wire."""

    ABSENT = 0
    """It is not in the group, and its application has not asked for it."""
    JOINING = 1
    """It is not in the group and wants to be, but may not found it."""
    FOUNDING = 2
    """It is not in the group, wants to be, and may found it."""
    FORMING = 3
    """It takes part in a formation of the group: the outcome is not known yet."""
    MEMBER = 4


class Answer(NamedTuple):
    """What a process has said about itself and one group."""

    presence: Presence
    at: int
    """When the answer was received."""


class Changing(Suspecting, Protocol):
    """A core whose groups are formed, joined, left and merged while they work (docs/spec/newtop.md 11).

    The application uses the name of a group, which stays when the group is replaced by a successor.
    """

    def accept(self, group: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """The application accepts the view of these members, where the service of the group asks for it."""

    def choose(self, name: GroupId, service: GroupService) -> None:
        """The application chooses the service of a group before it forms or joins it."""

    def send_all(self, group: GroupId, payloads: list[bytes], now: int, label: int = 0) -> None:
        """`send` for many messages; `label` is that of the first."""

    def waiting(self, name: GroupId) -> int:
        """The number of messages sent there that have not left yet."""

    def first_unstable(self, name: GroupId) -> int | None:
        """The label of our first message that a member of that group may lack; None if there is none.

        Messages that have not left do not count, and members that have failed do not. 0 if we are not in the group.
        """

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """Form a new group of these, including ourselves. All must agree. Retried until done or left."""

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Become a member. Contacts are asked repeatedly until one of them arranges it."""

    def inquire(self, name: GroupId, peers: tuple[ProcessId, ...], now: int, *, founding: bool) -> None:
        """Ask each of these once whether it is in that group; `founding`: tell them that we may found it."""

    def answers(self, name: GroupId) -> Mapping[ProcessId, Answer]:
        """What processes have said since the first `inquire` for that group. Empty after leaving the group."""

    def leave(self, name: GroupId, now: int) -> None:
        """Leave when all that we sent is stable; ends with `Left`. Nothing may be sent there any more."""

    def entitle(self, name: GroupId, now: int) -> None:
        """Say that this process may found the first primary view of that group, where views are voted on."""

    def merge(self, name: GroupId, others: tuple[ProcessId, ...], now: int) -> None:
        """Search for these at once, and merge with their groups of that name."""

    def retains(self, name: GroupId) -> bool:
        """Whether messages or states of that group are held because some member may lack them. Nulls do not count."""

    def state(self, view: View, state: bytes | StateSource, now: int) -> None:
        """The application's state at that view (`InstallView.snapshot`).

        A source is read only if this process must send the state, and only as fast as flow control permits.
        """

    def incoming(self, name: GroupId) -> list[tuple[int, int]]:
        """Per state that the application waits for: bytes received, and total bytes (0: unknown)."""


def is_counting(core: Core) -> TypeGuard[Counting]:
    return core.capabilities.counts_costs


def is_attended(core: Core) -> TypeGuard[Attended]:
    return core.capabilities.told_of_losses


def is_joining(core: Core) -> TypeGuard[Joining]:
    return core.capabilities.joins


def is_promoting(core: Core) -> TypeGuard[Promoting]:
    return core.capabilities.changes_senders


def is_framing(core: Core) -> TypeGuard[Framing]:
    return core.capabilities.names_messages


def is_asking(core: Core) -> TypeGuard[Asking]:
    return core.capabilities.asks


def is_answering_in_order(core: Core) -> TypeGuard[AnsweringInOrder]:
    return core.capabilities.answers_in_order


def is_connected(core: Core) -> TypeGuard[Connected]:
    return core.capabilities.counts_connections


def is_suspecting(core: Core) -> TypeGuard[Suspecting]:
    return core.capabilities.suspects


def is_changing(core: Core) -> TypeGuard[Changing]:
    return core.capabilities.changes
