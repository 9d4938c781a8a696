"""What every protocol core offers, and all that a simulator or a runtime may call (docs/adr/0002).

A core decides; it never acts. Inputs carry `now`, integer nanoseconds of the process's own clock. Output is
`drain`: everything there is to do, in one order. Between inputs a core holds no open question, so that a driver
may feed one frame or a thousand before it drains: the order of the output may differ, both are deterministic, and
every property holds either way.

    core.receive(frame, now)            any number of inputs, then
    for effect in core.drain(now): ...  carry the effects out in order, then
    wake me at core.deadline            and call tick; a tick too many is harmless
"""

from typing import Protocol

from antiphon.core.effects import Effect, Frame, Missing
from antiphon.types import GroupId, ProcessId, View


class Core(Protocol):
    """One process with all its groups, as a pure state machine."""

    @property
    def deadline(self) -> int | None:
        """When `tick` is next wanted, or None: an O(1) read after `drain`; after `tick` and `drain`, in the future."""

    @property
    def heeds_application(self) -> bool:
        """Whether `consumed` matters; a driver may leave it out otherwise."""

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:
        """The application multicasts. The message is numbered and packed when `drain` lets it leave.

        `label` is carried with the frame and never looked at; labels of one group count up by one.
        """

    def receive(self, frame: Frame, now: int) -> None:
        """A frame came in, from its channel's next place in order."""

    def tick(self, now: int) -> None:
        """Time has passed: `deadline` or later."""

    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        """The application has taken all messages of this group's first `position` `Deliver` effects (the papers' Δ).

        True if something may follow at once.
        """

    def writable(self, ready: bool, now: int) -> None:
        """Whether the transport takes more; while it does not, application messages gather and are packed."""

    def drain(self, now: int) -> list[Effect]:
        """Everything to do since the last call, in the order to do it."""

    def unstable(self, group: GroupId) -> int:
        """How many frames of this group are held because some member may still lack them."""


class Attended(Core, Protocol):
    """A core that is told of losses from outside, by a perfect failure detector or by channels that break."""

    def lost(self, process: ProcessId, now: int) -> None:
        """That process is gone for good. Whoever lives is told of the same losses, in the same order."""


class Connecting(Core, Protocol):
    """A core whose processes come and go."""

    @property
    def parts_in_order(self) -> bool:
        """Whether leaving ends with `Left`, in its place among the deliveries; otherwise it is over at once."""

    @property
    def unfinished(self) -> bool:
        """Whether time alone may still bring something: a way into some group, or messages that wait to leave."""

    def join(self, group: GroupId, now: int) -> None:
        """Connect with whoever is there."""

    def leave(self, group: GroupId, now: int) -> None:
        """Take leave of everybody."""


class Framing(Core, Protocol):
    """A core whose applications may name their messages, and ask for those that they lack."""

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0, name: bytes = b"") -> None:
        """As in `Core`; the name is a path, whose last part is a leaf of what comes before."""

    def request(self, effect: Missing, now: int) -> None:
        """The application wants these, of what it was told."""


class Asking(Core, Protocol):
    """A core that carries requests to a group, and their answers."""

    def ask(self, group: GroupId, payload: bytes, answers: str, now: int, label: int = 0) -> None:
        """The application asks the group and waits for `any`, the `first`, a `majority` or `all` answers."""

    def answer(self, frame: Frame, payload: bytes, now: int) -> None:
        """The application answers the request that this frame brought."""


class Suspecting(Core, Protocol):
    """A core that finds out for itself who has failed, and agrees on it with others."""

    def severed(self, peer: ProcessId, now: int, groups: frozenset[GroupId] | None = None) -> None:
        """The stream to or from that process has lost frames, for good: what still comes of it is no sign of life.

        Of the groups that used it (None: all that we share), nothing more may be fed from there: the core could not
        see the gap (E-47). Groups that are formed later use the next connection.
        """

    def viewed(self, view: View, now: int) -> None:
        """The application has got to that view, in its place among the deliveries."""

    def suspect(self, process: ProcessId, now: int) -> None:
        """Suspect it, in all groups that we share, whatever the clock says: what a wrong timeout would do."""


class StateSource(Protocol):
    """A state that is read while it leaves, so that nobody need hold all of it."""

    @property
    def total(self) -> int:
        """How many bytes it has; 0 if that is not known."""

    def read(self, size: int) -> bytes | None:
        """The next so many bytes, fewer only at the end; None: the rest cannot be told, now or later."""

    def close(self) -> None:
        """Nobody will read on."""


class StateSink(Protocol):
    """What puts a state together while it comes."""

    def write(self, piece: bytes, /) -> object:
        """The next piece of it."""

    def getvalue(self) -> bytes:
        """All of it."""


class Changing(Suspecting, Protocol):
    """A core whose groups are formed, joined, left and merged while they work (docs/spec/newtop.md 11).

    The application names a group by its name, which stays, whatever it becomes: in `send`, and here.
    """

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """Form a new group of these, ourselves among them; all must be willing. Tried until it is done, or left."""

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Become a member; some contact is asked to see to it, again and again until we are."""

    def leave(self, name: GroupId, now: int) -> None:
        """Cease to be one, when all that we sent is stable; ends with `Left`. Nothing may be sent there any more."""

    def merge(self, name: GroupId, others: tuple[ProcessId, ...], now: int) -> None:
        """Look for these at once, and unite with the groups of that name that they are in."""

    def retains(self, name: GroupId) -> bool:
        """Whether messages or states of that group are held because some member may lack them; nulls do not count."""

    def state(self, view: View, state: bytes | StateSource, now: int) -> None:
        """What the application's state was when it got to that view (`InstallView.snapshot`).

        A source is read only if it is on us to tell the state, and only as far as flow control lets it leave.
        """

    def incoming(self, name: GroupId) -> list[tuple[int, int]]:
        """Of each state that the application waits for, how many bytes have come, and of how many; 0: not known."""
