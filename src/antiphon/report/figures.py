"""How the page formats numbers: aligned, with one unit for each table."""

from dataclasses import dataclass
from typing import Final

NOTHING: Final = "\N{EN DASH}"
"""Stands for a missing figure."""

_DECIMALS: Final = 2


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The unit of all durations in one table or chart."""

    name: str
    ns: int

    def format(self, duration_ns: float | None) -> str:
        """The number alone; the unit is in the heading."""
        return NOTHING if duration_ns is None else f"{duration_ns / self.ns:,.{_DECIMALS}f}"


_UNITS: Final = (TimeUnit("µs", 1_000), TimeUnit("ms", 1_000_000), TimeUnit("s", 1_000_000_000))


def unit_for(longest_ns: float) -> TimeUnit:
    """The unit for durations up to the longest: seconds only if milliseconds would have five digits."""
    microseconds, milliseconds, seconds = _UNITS
    if longest_ns < milliseconds.ns:
        return microseconds
    return milliseconds if longest_ns < 10 * seconds.ns else seconds


def duration(duration_ns: float) -> str:
    """A duration with its unit, for a sentence."""
    unit = next((unit for unit in reversed(_UNITS) if duration_ns >= unit.ns), _UNITS[0])
    return f"{unit.format(duration_ns)} {unit.name}"


def whole(value: int | None) -> str:
    """Format a count."""
    return NOTHING if value is None else f"{value:,}"


def ratio(value: float | None) -> str:
    """Format a quotient with two decimals."""
    return NOTHING if value is None else f"{value:,.{_DECIMALS}f}"


def percent(value: float | None) -> str:
    """Format a share of one as a percentage."""
    return NOTHING if value is None else f"{100 * value:.1f} %"


def rate(value: float | None) -> str:
    """Format messages per second."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def count(number: int, noun: str) -> str:
    """A count with its noun: "1 run", "6 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
