"""Answers to requests: every holder of a message may answer, and one answer is enough.

Berket00 §3.4, Fig. 3.2; errata R6.
"""

from dataclasses import dataclass
from typing import Final

from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.repair.adaptation import Profile, RepairBounds
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.protocols.intergroup.tickets import Ticket

HOLD_DOWN: Final = 3
"""For this number of distances after a repair, requests for the message count as late ones (R6)."""


@dataclass(slots=True)
class _Pending:
    asked: int
    distance: int


class Repairs:
    """The repairs of one process in one group."""

    def __init__(self, draw: Draw, profile: Profile = "default") -> None:
        self.bounds = RepairBounds(profile)
        self._draw = draw
        self._pending: dict[Ticket, _Pending] = {}
        self._timers: Timers[Ticket] = Timers()
        self._held_down: dict[Ticket, int] = {}

    @property
    def deadline(self) -> int | None:
        return self._timers.deadline

    def asked(self, ticket: Ticket, distance: int, now: int) -> None:
        """A process at that distance requests a message that we hold."""
        if ticket in self._pending or now < self._held_down.get(ticket, now):
            return
        self.bounds.renew()
        self._pending[ticket] = _Pending(now, distance)
        self._timers.set(ticket, now + self.bounds.bounds.delay(distance, self._draw()))

    def heard(self, ticket: Ticket, distance: int, now: int) -> None:
        """Another process has repaired the message.

        `distance` of that process counts only if no repair of ours was pending; otherwise the requester's does.
        """
        pending = self._pending.pop(ticket, None)
        if pending is not None:
            self.bounds.cancelled(now - pending.asked)
            self._timers.set(ticket, None)
        self._held_down[ticket] = now + HOLD_DOWN * (pending.distance if pending else distance)

    def freed(self, ticket: Ticket) -> None:
        """We hold the message no longer."""
        self._pending.pop(ticket, None)
        self._held_down.pop(ticket, None)
        self._timers.set(ticket, None)

    def due(self, now: int) -> list[Ticket]:
        """The messages to transmit again now."""
        repaired = self._timers.due(now)
        for ticket in repaired:
            pending = self._pending.pop(ticket)
            self._held_down[ticket] = now + HOLD_DOWN * pending.distance
            self.bounds.sent(now - pending.asked)
        return repaired
