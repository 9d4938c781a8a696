"""The settings of the classic cores, and the plan of a group."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from antiphon.types import View

Service = Literal["reliable", "fifo", "causal", "total", "fifo-total", "causal-total", "synchronous"]
"""Algorithms R, F, C and A of the notes; A combined with FIFO or causal order; synchronous rounds over R."""
Answers = Literal["any", "first", "majority", "all"]
"""Which members must answer a request."""
ANSWERS: Final[tuple[str, ...]] = get_args(Answers)


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """Equal at all processes."""

    datagrams: bool = False
    """Whether links may reorder and repeat frames; they never lose any, as the notes require."""
    retry_ns: int = 100_000_000
    """Time that a request of mode `any` waits for an answer before it goes to the next member."""
    round_ns: int = 100_000_000
    """Δ: the length of a round of service `synchronous`."""


@dataclass(frozen=True, slots=True)
class ClassicGroupPlan:
    """One group, as one of its processes sees it."""

    view: View
    """The members: the processes that deliver."""
    service: Service
    delivers: bool = True
    """False: this process is outside the group and only sends to it (diagram a of the notes)."""
    first_clock: int = 0
    """Algorithm A: the first value of this site's clock."""
