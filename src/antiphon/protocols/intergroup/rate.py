"""How fast a sender sends: a rate that grows while nothing is lost, and a window (Berket00 §4.5.3; errata R8)."""

from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.adaptation import SECOND
from antiphon.protocols.intergroup.requests import Ticket

REDUCTION: Final = 0.75
_SIZE_GAIN: Final = 1 / 16
_FIRST_SIZE: Final = 128.0


@dataclass(frozen=True, slots=True)
class RateSettings:
    """Bytes a second, of all senders of a group together; None: as fast as one likes."""

    first: float | None = None
    increment: float = 10_000.0
    """Added each second without a loss."""
    lowest: float = 1_000.0
    highest: float = 12_500_000.0


class Rate:
    """Of one sender in one group."""

    def __init__(self, settings: RateSettings, senders: int) -> None:
        self._settings, self._senders = settings, senders
        self.bytes_per_second = settings.first
        self._size = _FIRST_SIZE
        self._raised = 0
        self._reduced: dict[Ticket, int] = {}
        self._last_reduction: int | None = None
        self.next_at = 0
        """When the next message may leave."""

    def sent(self, size_bytes: int, share: float, now: int) -> None:
        """A message leaves; the next one waits for the senders' common interval, drawn at that share of its range."""
        if self.bytes_per_second is None:
            return
        self._size += (size_bytes - self._size) * _SIZE_GAIN
        mean = self._size * self._senders / self.bytes_per_second * SECOND
        self.next_at = now + int(mean * (0.5 + share))

    def lost(self, ticket: Ticket, round_trip: int, now: int) -> None:
        """Somebody asks for a message of ours: at most one reduction for a ticket and in a round trip (R8)."""
        rate, last = self.bytes_per_second, self._last_reduction
        if rate is None or ticket in self._reduced or (last is not None and now - last < round_trip):
            return
        self._reduced[ticket] = self._last_reduction = self._raised = now
        self.bytes_per_second = max(rate * REDUCTION, self._settings.lowest)

    def freed(self, ticket: Ticket) -> None:
        """It is stable: nobody will ask for it again."""
        self._reduced.pop(ticket, None)

    def quiet(self, now: int) -> None:
        """Time has passed: each second without a loss allows for more."""
        if self.bytes_per_second is None:
            return
        seconds = (now - self._raised) // SECOND
        if seconds > 0:
            self._raised += seconds * SECOND
            raised = self.bytes_per_second + seconds * self._settings.increment
            self.bytes_per_second = min(raised, self._settings.highest)
