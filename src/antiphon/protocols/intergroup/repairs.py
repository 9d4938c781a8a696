"""Answering requests: whoever holds a message may, and one answer is enough (Berket00 §3.4, Fig. 3.2; errata R6)."""

from dataclasses import dataclass
from typing import Final

from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.adaptation import Profile, RepairBounds
from antiphon.protocols.intergroup.requests import Draw, Ticket

HOLD_DOWN: Final = 3
"""After a repair, requests for it are late ones for so many distances (R6)."""


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
        """When the next repair may be due."""
        return self._timers.deadline

    def asked(self, ticket: Ticket, distance: int, now: int) -> None:
        """Somebody so far away asks for what we hold."""
        if ticket in self._pending or now < self._held_down.get(ticket, now):
            return
        self.bounds.renew()
        self._pending[ticket] = _Pending(now, distance)
        self._timers.set(ticket, now + self.bounds.bounds.delay(distance, self._draw()))

    def heard(self, ticket: Ticket, distance: int, now: int) -> None:
        """Somebody else has repaired it: whoever asked us is so far away, if we were not about to."""
        pending = self._pending.pop(ticket, None)
        if pending is not None:
            self.bounds.cancelled(now - pending.asked)
            self._timers.set(ticket, None)
        self._held_down[ticket] = now + HOLD_DOWN * (pending.distance if pending else distance)

    def freed(self, ticket: Ticket) -> None:
        """We hold it no longer."""
        self._pending.pop(ticket, None)
        self._held_down.pop(ticket, None)
        self._timers.set(ticket, None)

    def due(self, now: int) -> list[Ticket]:
        """What is to be repaired now."""
        repaired = self._timers.due(now)
        for ticket in repaired:
            pending = self._pending.pop(ticket)
            self._held_down[ticket] = now + HOLD_DOWN * pending.distance
            self.bounds.sent(now - pending.asked)
        return repaired
