"""The rate of a sender: it grows while nothing is lost (Berket00 §4.5.3; errata R8)."""

from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.tickets import Ticket

REDUCTION: Final = 0.75
_SIZE_GAIN: Final = 1 / 16
_FIRST_SIZE: Final = 128.0


@dataclass(frozen=True, slots=True)
class RateSettings:
    """Bytes per second of all senders of a group together."""

    first: float | None = None
    """The rate at the beginning; None: no limit."""
    increment: float = 10_000.0
    """Added after each second without a loss."""
    lowest: float = 1_000.0
    highest: float = 12_500_000.0


class Rate:
    """The rate of one sender in one group."""

    def __init__(self, settings: RateSettings, senders: int) -> None:
        self._settings = settings
        self._senders = senders
        self.bytes_per_second = settings.first
        self._size = _FIRST_SIZE
        self._raised = 0
        self._reduced: dict[Ticket, int] = {}
        self._last_reduction: int | None = None
        self.next_at = 0
        """The time from which the next message may leave."""

    def share_with(self, senders: int) -> None:
        """Share the rate with this number of senders, including us."""
        self._senders = senders

    def sent(self, size_bytes: int, share: float, now: int) -> None:
        """A message leaves. The next one waits for an interval that is drawn at that share of its range, 0 to 1."""
        if self.bytes_per_second is None:
            return
        self._size += (size_bytes - self._size) * _SIZE_GAIN
        mean = self._size * self._senders / self.bytes_per_second * SECOND
        self.next_at = now + int(mean * (0.5 + share))

    def lost(self, ticket: Ticket, round_trip: int, now: int) -> None:
        """A message of ours is requested: reduce the rate, at most once per ticket and per round trip (R8)."""
        rate, last = self.bytes_per_second, self._last_reduction
        if rate is None or ticket in self._reduced or (last is not None and now - last < round_trip):
            return
        self._reduced[ticket] = self._last_reduction = self._raised = now
        self.bytes_per_second = max(rate * REDUCTION, self._settings.lowest)

    def freed(self, ticket: Ticket) -> None:
        """The message is stable: it will not be requested again."""
        self._reduced.pop(ticket, None)

    def quiet(self, now: int) -> None:
        """Time has passed: raise the rate for each second without a loss."""
        if self.bytes_per_second is None:
            return
        seconds = (now - self._raised) // SECOND
        if seconds > 0:
            self._raised += seconds * SECOND
            raised = self.bytes_per_second + seconds * self._settings.increment
            self.bytes_per_second = min(raised, self._settings.highest)
