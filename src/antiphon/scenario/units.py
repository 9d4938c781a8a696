"""Quantities with a unit as in a scenario, "50ms" or "100Mbit"; values are integer nanoseconds or bits per second."""

import re
from fractions import Fraction
from typing import Final

_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_BITS: Final = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]+)")
_TEXT_MAX: Final = 40
_BANDWIDTH_MAX: Final = 10**15
_DURATION_NS_MAX: Final = 10**18
"""About 31 years: times stay well inside the 64-bit integers of a trace."""


class Duration(int):
    """Nanoseconds, never negative."""

    @classmethod
    def parse(cls, text: object) -> "Duration":
        """Read "50ms" and the like."""
        value = _parse(text, _NS, "a duration", '"50ms"')
        if value > _DURATION_NS_MAX:
            raise ValueError(f"{text!r} is longer than the longest possible run")
        return cls(value)

    def __str__(self) -> str:
        return _render(self, _NS, "s")


class Bandwidth(int):
    """Bits per second, above zero."""

    @classmethod
    def parse(cls, text: object) -> "Bandwidth":
        """Read "100Mbit" and the like."""
        value = _parse(text, _BITS, "a bandwidth", '"100Mbit"')
        if not 0 < value <= _BANDWIDTH_MAX:
            raise ValueError("a bandwidth must be above zero and below a petabit a second")
        return cls(value)

    def __str__(self) -> str:
        return _render(self, _BITS, "bit")


def _parse(text: object, units: dict[str, int], what: str, example: str) -> int:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) and len(text) <= _TEXT_MAX else None
    if match is None or match[2] not in units:
        wanted = ", ".join(units)
        shown = repr(text) if isinstance(text, str | int | float) and len(repr(text)) <= _TEXT_MAX else "this"
        raise ValueError(f"{shown} is not {what} such as {example} (units: {wanted})")
    value = Fraction(match[1]) * units[match[2]]
    if value.denominator != 1:
        raise ValueError(f"{text!r} has more digits than the smallest unit, {next(iter(units))}")
    return int(value)


def _render(value: int, units: dict[str, int], zero: str) -> str:
    """The shortest exact text: the largest unit that divides the value."""
    if not value:
        return f"0{zero}"
    unit = max((unit for unit, factor in units.items() if value % factor == 0), key=units.__getitem__)
    return f"{value // units[unit]}{unit}"


def quantity(kind: type, value: object) -> object:
    """Read a value with a unit; msgspec calls this for types that it does not know."""
    if kind is Duration:
        return Duration.parse(value)
    assert kind is Bandwidth
    return Bandwidth.parse(value)
