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
    primary: bool = True
    """Whether it holds a majority of the primary view before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """From here on the application's state is what these states give, merged in their order.

    A process that joins gets one, the group's; when sides of a partition merge, everybody gets those of all sides.
    """

    states: tuple[bytes, ...]
    """In the order in which all members merge them."""
    own: int | None = None
    """Which of them is what this process handed over itself; None: it had none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitional:
    """Somebody has failed, and the view without it is still to come: until then deliveries speak for these alone."""

    members: tuple[ProcessId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Flow control holds our messages back, or does so no longer."""

    by: ProcessId | None
    """The member that we wait for; None: our messages leave again."""


Event = Message | View | Reset | Transitional | Blocked
