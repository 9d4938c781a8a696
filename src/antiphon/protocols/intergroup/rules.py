"""Which classes a process is made of: the adopted rules, or a printed one in place of one of them (`literal.py`)."""

from dataclasses import dataclass
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.requests import Requests
from antiphon.protocols.intergroup.stability import Stability
from antiphon.protocols.intergroup.stream import Stream


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force; the defaults are the adopted ones."""

    clock: type[TimestampClock] = TimestampClock
    requests: type[Requests] = Requests
    stream: type[Stream[Any]] = Stream
    stability: type[Stability] = Stability


ADOPTED: Final = Rules()
