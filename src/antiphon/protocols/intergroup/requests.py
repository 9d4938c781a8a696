"""Asking for what is missing: one request for a loss that many share (Berket00 §3.3, Fig. 3.1; errata R1, R2, R5).

Everybody who misses a message waits a while; whoever is first asks for all. Who hears that backs off, and asks later if
the message still has not come: a ticket lives until it is answered or not wanted any more (R2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.adaptation import SECOND, Profile, RequestBounds
from antiphon.types import ProcessId

Draw = Callable[[], float]
"""A number in [0, 1), as if chance had drawn it."""

BASE: Final = 3
"""A back-off waits so many times as long as the one before."""
BACKOFFS_MAX: Final = 5
DELAY_MAX: Final = 2 * SECOND


class Ticket(NamedTuple):
    """A message that is missing."""

    sender: ProcessId
    seq: int
    """Its number on the sender's stream, or in a container."""
    container: bytes = b""
    """In which one it is counted; empty: on the stream."""


@dataclass(slots=True)
class Pending:
    """What is known of a ticket."""

    noticed: int
    distance: int
    backoffs: int = 0
    ignore_until: int = 0
    """Until then requests of others belong to the round that the last one began (R1)."""


class Requests:
    """The tickets of one process in one group."""

    def __init__(self, draw: Draw, profile: Profile = "default") -> None:
        self.bounds = RequestBounds(profile)
        self._draw = draw
        self._pending: dict[Ticket, Pending] = {}
        self._timers: Timers[Ticket] = Timers()
        self._duplicates = 0  # since the last new ticket

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self._pending

    @property
    def deadline(self) -> int | None:
        """When the next request may be due."""
        return self._timers.deadline

    def missing(self, ticket: Ticket, distance: int, now: int) -> None:
        """A gap was seen; its sender is so far away. Nothing, if we know already."""
        if ticket in self._pending:
            return
        self.bounds.renew(self._duplicates)
        self._duplicates = 0
        self._pending[ticket] = pending = Pending(now, distance)
        self._arm(ticket, pending, now)

    def heard(self, ticket: Ticket, now: int) -> None:
        """Somebody else asks for it."""
        pending = self._pending.get(ticket)
        if pending is None:
            return
        if now < pending.ignore_until:
            self._duplicates += 1  # R5: one was seen or sent in this round
        else:
            self._overhear(pending, now)
            self._back_off(ticket, pending, now)

    def done(self, ticket: Ticket) -> None:
        """It is here, or not wanted any more."""
        self._pending.pop(ticket, None)
        self._timers.set(ticket, None)

    def forget(self, sender: ProcessId, below: int) -> None:
        """Nothing of that sender before this number is wanted any more."""
        for ticket in [each for each in self._pending if each.sender == sender and each.seq < below]:
            self.done(ticket)

    def due(self, now: int) -> list[Ticket]:
        """What is to be asked for now."""
        asked = self._timers.due(now)
        for ticket in asked:
            pending = self._pending[ticket]
            self.bounds.asked(now - pending.noticed, pending.distance, again=pending.backoffs > 0)
            self._asked(ticket, pending, now)
        return asked

    def _overhear(self, pending: Pending, now: int) -> None:
        if not pending.backoffs:
            self.bounds.overheard(now - pending.noticed, pending.distance)

    def _asked(self, ticket: Ticket, pending: Pending, now: int) -> None:
        """We ask: again, later, if nothing comes of it (R2)."""
        self._back_off(ticket, pending, now)

    def _back_off(self, ticket: Ticket, pending: Pending, now: int) -> None:
        pending.backoffs = min(pending.backoffs + 1, BACKOFFS_MAX)
        pending.ignore_until = now + self._arm(ticket, pending, now) // 2

    def _arm(self, ticket: Ticket, pending: Pending, now: int) -> int:
        """Wait for a while; gives how long."""
        delay = self._delay(pending)
        self._timers.set(ticket, now + delay)
        return delay

    def _delay(self, pending: Pending) -> int:
        delay = int(BASE**pending.backoffs) * self.bounds.bounds.delay(pending.distance, self._draw())
        return min(delay, DELAY_MAX)
