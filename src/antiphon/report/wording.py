"""What the page says in words: each property in one sentence, each outcome, each fault.

The statements are those of properties.md, told for a reader who has not read it.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from antiphon.properties.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Promise:
    """One property, for people."""

    name: str
    sentence: str


PROMISES: Final = {
    "W": Promise("well-formed trace", "Every history is complete and consistent in itself, so that it can be judged."),
    "D1": Promise("delivery integrity", "Whatever is delivered was sent before, in that group and with that content."),
    "D2": Promise("no duplication", "No process delivers a message twice."),
    "D8": Promise(
        "virtual synchrony", "Processes that go on together from one view delivered the same messages in that view."
    ),
    "O1": Promise("FIFO order", "Messages of one sender are delivered in the order in which it sent them."),
    "O3": Promise("causal order", "No message is delivered before one that could have caused it."),
    "O6": Promise(
        "strong total order", "One order of all messages exists that every process keeps, over all groups and views."
    ),
    "L2": Promise(
        "multicast liveness", "By the end of a quiet run, all members that remain have delivered what one of them sent."
    ),
    "L3": Promise("self delivery", "A process that does not crash delivers its own messages."),
}
"""By property id, in the order in which they are judged."""

OUTCOMES: Final[dict[Outcome, str]] = {
    "pass": "holds",
    "violated": "violated",
    "vacuous": "never put to the test",
    "not promised": "not promised",
    "harness error": "trace ill-formed",
}
"""What the page calls an outcome."""

SYMBOLS: Final = {
    "pass": "✓",
    "hold": "✓",
    "violated": "✗",
    "vacuous": "○",
    "not promised": "\N{EN DASH}",
    "harness error": "?",
    "unknown": "?",
}
"""A sign beside each outcome and verdict: colour is never the only difference."""


def promise(property_id: str) -> Promise:
    """The wording of a property; one that has none yet goes by its id."""
    return PROMISES.get(property_id, Promise("", f"Property {property_id}."))


def fault(detail: str | None) -> str:
    """What the world did, from the detail of a `fault` row: "pause of p3 begins"."""
    told = _told(detail)
    what = str(told.get("kind", "fault"))
    ending = "" if what == "heal" else " begins" if told.get("begins", True) else " ends"
    return f"{what}{_place(told)}{ending}"


def _told(detail: str | None) -> dict[str, Any]:
    try:
        told = json.loads(detail or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _place(told: dict[str, Any]) -> str:
    if "process" in told:
        return f" of {told['process']}"
    if "from" in told or "to" in told:
        return f" from {told.get('from', 'all')} to {told.get('to', 'all')}"
    if "sides" in told:
        return " between " + " and ".join(" ".join(map(str, side)) for side in told["sides"])
    return ""
