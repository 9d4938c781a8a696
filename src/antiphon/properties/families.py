"""What the checkers must know of a family of protocols beyond its promises: what its views and groups mean.

Said once here, so that a checker asks for the difference and not for a name.
"""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Family:
    """How the rules of one family bear on what is asked."""

    cuts: bool
    """A change of views is a cut: what was sent before it is owed only to those who go on together, in that view.

    Otherwise views only say who is there: whoever was addressed and stays owes the delivery, in whatever view.
    """
    apart: bool
    """Each group keeps its order by itself: nothing is promised about messages of two groups."""
    frees: Literal["everything", "own", "nothing"]
    """What a process holds until it is stable and frees then, as its `discard` rows tell.

    Of those who only receive, where there are such, only who gets the order of all holds anything.
    """
    onlookers: bool = False
    """Some processes only receive, and are in no view: their own views name those whom they hear."""


NEWTOP: Final = Family(cuts=True, apart=False, frees="everything")
CLASSIC: Final = Family(cuts=False, apart=True, frees="nothing")
ACKS: Final = Family(cuts=False, apart=True, frees="own")
INTERGROUP: Final = Family(cuts=True, apart=True, frees="everything", onlookers=True)

FAMILIES: Final = {"newtop": NEWTOP, "classic": CLASSIC, "acks": ACKS, "intergroup": INTERGROUP}
"""By protocol; another one is asked what Newtop is asked, if anything is required of it."""


def family(protocol: str) -> Family:
    """The family of a protocol."""
    return FAMILIES.get(protocol, NEWTOP)
