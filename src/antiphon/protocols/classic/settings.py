"""The settings of the classic cores: field, unit, default, one sentence."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from antiphon.types import View

Service = Literal["reliable", "fifo", "causal", "total"]
"""Algorithms R, F, C and A of the notes."""
Answers = Literal["any", "first", "majority", "all"]
"""How many members must answer a request."""
ANSWERS: Final[tuple[str, ...]] = get_args(Answers)


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """The same for every process."""

    datagrams: bool = False
    """Whether links may reorder and repeat what they carry; they lose nothing either way, as the notes ask."""
    retry_ns: int = 100_000_000
    """How long a request to any one member waits for an answer before it goes to the next member."""


@dataclass(frozen=True, slots=True)
class ClassicGroupPlan:
    """One group, as one of its processes sees it."""

    view: View
    """The members: those who deliver."""
    service: Service
    delivers: bool = True
    """False: this process stands outside the group and only sends to it (the notes' diagram a)."""
    first_clock: int = 0
    """Algorithm A: where this site's clock starts."""
