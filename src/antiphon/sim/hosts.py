"""The machine under a simulated process: its CPU, first come first served, and its clock."""

from fractions import Fraction
from typing import Final

_RATE_PARTS: Final = 1_000_000
"""Clock rates are exact to a millionth, so that reading and alarm of a clock agree to the nanosecond."""


class Host:
    """One machine: a single CPU, first come first served."""

    def __init__(self) -> None:
        self._free_at = 0

    def work(self, now: int, cost_ns: int) -> int:
        """Queue work; returns the time at which it is done."""
        self._free_at = max(self._free_at, now) + cost_ns
        return self._free_at


class Clock:
    """The clock of one process, with the offset and rate that its faults set."""

    def __init__(self) -> None:
        self._shown = self._since = 0
        self._rate = Fraction(1)

    def read(self, now: int) -> int:
        """What this clock shows at world time `now`."""
        return self._shown + (now - self._since) * self._rate.numerator // self._rate.denominator

    def when(self, reading: int) -> int:
        """The first world time at which this clock shows `reading` or more."""
        ahead = (reading - self._shown) * self._rate.denominator
        return self._since - (-ahead // self._rate.numerator)

    def set(self, now: int, offset_ns: int, rate: float) -> None:
        """Jump by `offset_ns`, and run at `rate` from now on."""
        self._shown, self._since = self.read(now) + offset_ns, now
        self._rate = Fraction(rate).limit_denominator(_RATE_PARTS) or Fraction(1, _RATE_PARTS)
