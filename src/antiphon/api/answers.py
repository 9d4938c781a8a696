"""How many answers a request waits for, and the answers themselves (docs/spec/interfaces.md 4)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from antiphon.types import ProcessId


class Answer(NamedTuple):
    """The answer of one member."""

    sender: ProcessId
    payload: bytes


@dataclass(frozen=True, slots=True)
class First:
    """One answer, of any member: the first that arrives. All members get the request, in the group's order."""

    mode: ClassVar = "first"


@dataclass(frozen=True, slots=True)
class Majority:
    """Answers of more than half of the members of the view in which this process delivered the request."""

    mode: ClassVar = "majority"


@dataclass(frozen=True, slots=True)
class All:
    """Answers of all members of that view, except those that have failed or left since."""

    mode: ClassVar = "all"


@dataclass(frozen=True, slots=True)
class Available:
    """The answers of `All`, or those that have arrived when the time is over, perhaps none."""

    mode: ClassVar = "available"


@dataclass(frozen=True, slots=True)
class Any:
    """One answer. The request goes to one member after another, outside the order, until one answers.

    For reads: a member may get the request twice, and most members do not get it.
    """

    mode: ClassVar = "any"


Answers = First | Majority | All | Available | Any
