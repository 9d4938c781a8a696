"""Requests for missing messages: one request for a loss that many share (Berket00 §3.3, Fig. 3.1; errata R1, R2, R5).

Every process that misses a message waits a random time, and the first to wake requests it for all. A process that
hears the request backs off, and requests later if the message still has not arrived. A ticket lives until the message
arrives or is no longer wanted (R2).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.repair.adaptation import SECOND, Profile, RequestBounds
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

Draw = Callable[[], float]
"""Draws a random number in [0, 1)."""

BASE: Final = 3
"""Each back-off multiplies the delay by this."""
BACKOFFS_MAX: Final = 5
DELAY_MAX: Final = 2 * SECOND


@dataclass(slots=True)
class Pending:
    """A message that is missing."""

    noticed: int
    distance: int
    backoffs: int = 0
    ignore_until: int = 0
    """Until then, requests of others belong to the round that the last request began (R1)."""


class Requests:
    """The open tickets of one process in one group."""

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
        return self._timers.deadline

    def missing(self, ticket: Ticket, distance: int, now: int) -> None:
        """Open a ticket, unless it is open already; `distance`: how far away the sender of the message is."""
        if ticket in self._pending:
            return
        self.bounds.renew(self._duplicates)
        self._duplicates = 0
        self._pending[ticket] = pending = Pending(now, distance)
        self._arm(ticket, pending, now)

    def heard(self, ticket: Ticket, now: int) -> None:
        """Another process requests the message."""
        pending = self._pending.get(ticket)
        if pending is None:
            return
        if now < pending.ignore_until:
            self._duplicates += 1  # R5: a request was heard or sent in this round
        else:
            self._overhear(pending, now)
            self._back_off(ticket, pending, now)

    def done(self, ticket: Ticket) -> None:
        """Close a ticket: the message is here, or no longer wanted."""
        self._pending.pop(ticket, None)
        self._timers.set(ticket, None)

    def forget(self, sender: ProcessId, below: int) -> None:
        """Close all tickets of that sender with numbers below `below`."""
        for ticket in [each for each in self._pending if each.sender == sender and each.seq < below]:
            self.done(ticket)

    def of(self, senders: Collection[ProcessId]) -> list[Ticket]:
        """The open tickets of these senders."""
        return [ticket for ticket in self._pending if ticket.sender in senders]

    def due(self, now: int) -> list[Ticket]:
        """The messages to request now."""
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
        """Our request leaves; it is repeated later if the message does not arrive (R2)."""
        self._back_off(ticket, pending, now)

    def _back_off(self, ticket: Ticket, pending: Pending, now: int) -> None:
        pending.backoffs = min(pending.backoffs + 1, BACKOFFS_MAX)
        pending.ignore_until = now + self._arm(ticket, pending, now) // 2

    def _arm(self, ticket: Ticket, pending: Pending, now: int) -> int:
        """Start the timer of a ticket, and return its delay."""
        delay = self._delay(pending)
        self._timers.set(ticket, now + delay)
        return delay

    def _delay(self, pending: Pending) -> int:
        delay = int(BASE**pending.backoffs) * self.bounds.bounds.delay(pending.distance, self._draw())
        return min(delay, DELAY_MAX)
