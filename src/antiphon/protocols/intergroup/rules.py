"""The classes that implement the rules: the adopted ones, unless `as_printed.py` replaces some by printed ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.repair.buffer import Buffer
from antiphon.protocols.intergroup.repair.requests import Requests
from antiphon.protocols.intergroup.stability.stability import Stability


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a process; the defaults are the adopted ones."""

    clock: type[TimestampClock] = TimestampClock
    requests: type[Requests] = Requests
    stream: type[Stream[Any]] = Stream
    stability: type[Stability] = Stability
    buffer: type[Buffer] = Buffer
    relevant: Callable[[list[int]], int] = min
    """Of the horizons of its sources, the stamp that a receiver in source order acknowledges (T3)."""


ADOPTED: Final = Rules()
