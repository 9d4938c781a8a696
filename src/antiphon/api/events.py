"""What an application sees of a group: one stream, in the agreed order (docs/spec/interfaces.md 4)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from antiphon.core.effects import Departure
from antiphon.types import ProcessId, ViewId


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message from a member. Millions are built, so building one runs no Python code and no garbage collection."""

    sender: ProcessId
    payload: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request from a member, perhaps from this process itself. An application need not answer."""

    sender: ProcessId
    payload: bytes
    in_order: bool
    """True: all members get it in this place of the order. False: it was sent to this member alone (`Any`)."""
    _reply: Callable[..., Awaitable[None]] = field(repr=False)

    async def answer(self, payload: bytes, *, ordered: bool = False) -> None:
        """Answer, to the sender alone; or by a message that all members deliver in order.

        The first answer of a member counts. An answer is dropped if it comes too late, or if the sender of the request
        is no longer in the view. It has at most 65,536 bytes unless it is `ordered`; then it may be as large as a
        message, and this waits while flow control holds messages back.
        """
        await self._reply(payload, ordered=ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From here on in the stream these are the members. All processes that see this view agree on them."""

    id: ViewId
    members: tuple[ProcessId, ...]
    """Sorted."""
    joined: tuple[ProcessId, ...] = ()
    """Members that were not in the view before."""
    left: tuple[Departure, ...] = ()
    """Members of the view before that are gone, each with the reason and the evidence."""
    together: tuple[ProcessId, ...] = ()
    """Members that come with us from our view before: they have delivered the same messages as we have."""
    excluded: int = 0
    """Number of members excluded since the group was formed, joined or merged; 0 in its first view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Primary:
    """From here on the view is primary, until the next `Transitional` or `View`: no other view of the group is.

    In groups with `Total(safe=True)`, what is delivered while a view is primary is in every later primary view.
    """

    view: ViewId
    number: int
    """Rises from each primary view of the group to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """From here on the application's state is the result of these states, merged in their order.

    A joiner gets one state, that of the group. When sides of a partition merge, all members get all their states.
    """

    states: tuple[bytes, ...]
    """In the order in which all members merge them."""
    own: int | None = None
    """The index of the state that this process provided itself; None: it provided none."""
    primary: int | None = None
    """The index of the state from the last known primary view: a merge should begin with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitional:
    """A member has failed; until the view without it, deliveries hold only for the members named here."""

    members: tuple[ProcessId, ...]
    _accepted: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    async def accept(self) -> None:
        """Let the view of these members begin: in groups with `Total(views="closed", accept=True)` it waits for this.

        It waits for every member, and messages that are sent meanwhile wait for the view. In other groups it does
        nothing.
        """
        if self._accepted is not None:
            self._accepted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The group waits for a member, or no longer does.

    Its application does not read, or has not accepted the next view, or the member is too slow.

    One event marks the begin of a blockage and one its end. A window that is full for a moment is not a blockage.
    """

    by: ProcessId | None
    """The member that we wait for, perhaps our own process; None: the blockage is over."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something is wrong with a member that stays in the view, or is right again."""

    member: ProcessId
    reason: str
    """`lagging`: its answers are late. `relayed`: its messages reach us only through other members.
    `deaf`: it does not hear us, or acknowledges nothing."""
    over: bool = False
    """True: the problem is over."""


Event = Message | Request | View | Primary | Reset | Transitional | Blocked | Degraded
