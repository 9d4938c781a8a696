"""What a system that is not ours promises, in the words of its trace (docs/reference/trace-lines.md).

The words together are the name of a service, always in the same order; `properties/other_systems.py` says which
properties each of them stands for.
"""

from collections.abc import Iterable
from typing import Final

PROTOCOL: Final = "other"
"""The protocol in the `start` rows of such systems."""
SENDING: Final = "sending"
"""The service of a process that only sends in a group: nothing is delivered to it there."""
NOTHING: Final = "nothing"
"""The service of a process that promises nothing in a group."""

WORDS: Final = ("reliable", "at-most-once", "at-least-once", "causal", "fifo", "total", "uniform", "views")
"""In the order in which a service names them."""

_INCLUDED: Final = {"reliable": frozenset({"at-most-once", "at-least-once"}), "causal": frozenset({"fifo"})}
"""Words that include others."""


def parts_of(words: Iterable[str]) -> frozenset[str]:
    """These words and all that they include; `ValueError` for a word that is none."""
    found = {*words}
    if unknown := sorted(found - {*WORDS}):
        raise ValueError(f"{unknown[0]!r} is no promise; the promises are {', '.join(WORDS)}")
    for word, included in _INCLUDED.items():
        if word in found:
            found |= included
    return frozenset(found | {"reliable"} if _INCLUDED["reliable"] <= found else found)


def service_of(words: Iterable[str]) -> str:
    """The name of the service that promises these; `ValueError` for a word that is none."""
    found = parts_of(words)
    included = set[str]().union(*(_INCLUDED.get(word, ()) for word in found))
    return "+".join(word for word in WORDS if word in found - included) or NOTHING
