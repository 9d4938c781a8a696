"""The printed rule that is wrong: evidence, for the simulator only (docs/spec/errata-intergroup.md 8)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.protocols.classic.ordering.two_phase import SiteClock
from antiphon.protocols.classic.rules import ADOPTED, Rules


class EventClock(SiteClock):
    """N1, Notes: "a counter which is incremented after each send or receive event"; committed stamps are not merged.

    The arrival of a commit is an event like any other.
    """

    __slots__ = ()

    def committed(self, time: int) -> None:  # noqa: ARG002
        self.value += 1


_RULES: Final[Mapping[str, Mapping[str, Any]]] = {"N1": {"clock": EventClock}}
_TOTAL: Final = frozenset({"total", "fifo-total", "causal-total"})
ERRATA: Final = tuple(_RULES)
"""The errata whose printed rule can be run."""


def concerns(erratum: str, services: frozenset[str]) -> bool:
    """True if the printed rule has an effect under these services."""
    return erratum in _RULES and not services.isdisjoint(_TOTAL)


def printed(errata: tuple[str, ...]) -> Rules:
    """The adopted rules, except that these errata follow the printed rule."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, **_RULES[erratum])
    return rules
