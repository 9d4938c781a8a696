"""What an application sees of a group: one stream, in the agreed order (docs/spec/interfaces.md 4)."""

from dataclasses import dataclass

import msgspec

from antiphon.core.effects import Departure
from antiphon.types import ProcessId, ViewId


class Message(msgspec.Struct, frozen=True, gc=False):
    """Somebody's message. Millions of them are built: nothing of it costs a step of Python, or of the collector."""

    sender: ProcessId
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """From here on in the stream these are the members, and everybody who sees this view agrees on that."""

    id: ViewId
    members: tuple[ProcessId, ...]
    """Sorted."""
    joined: tuple[ProcessId, ...] = ()
    """Who was not in the view before."""
    left: tuple[Departure, ...] = ()
    """Who was, and is not any more, each with the reason and the evidence."""
    together: tuple[ProcessId, ...] = ()
    """Who comes along from our view before: with these we have delivered the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Primary:
    """From here on the view is primary, until the next `Transitional` or `View`: no other view of the group is.

    In groups with `total-safe`, what is delivered while a view is primary is in every later primary view.
    """

    view: ViewId
    number: int
    """Rises from each primary view of the group to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """From here on the application's state is what these states give, merged in their order.

    A process that joins gets one, the group's; when sides of a partition merge, everybody gets those of all sides.
    """

    states: tuple[bytes, ...]
    """In the order in which all members merge them."""
    own: int | None = None
    """Which of them is what this process handed over itself; None: it had none."""
    primary: int | None = None
    """Which of them comes from the last primary view that is known of: a merge should begin with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitional:
    """Somebody has failed, and the view without it is still to come: until then deliveries speak for these alone."""

    members: tuple[ProcessId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The group waits for a member, or does so no longer: its application does not read, or it takes too long.

    One event when a blockage begins, and one when it is over. A window that is full for a moment is no blockage.
    """

    by: ProcessId | None
    """The member that we wait for, perhaps our own process; None: the blockage is over."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something is wrong with a member that stays in the view, or not any more."""

    member: ProcessId
    reason: str
    """`lagging`: it owes answers for long. `relayed`: what it sends reaches us only through other members.
    `deaf`: it does not hear us, or acknowledges nothing."""
    over: bool = False
    """True: it is over."""


Event = Message | View | Primary | Reset | Transitional | Blocked | Degraded
