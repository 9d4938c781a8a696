"""What the page says in words: each outcome, each fault."""

import json
from typing import Any, Final

from antiphon.properties.verdicts.verdict import Outcome

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
