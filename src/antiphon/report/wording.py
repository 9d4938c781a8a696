"""The words of the page for each outcome and each fault."""

import json
from typing import Any, Final

from antiphon.properties.verdicts.verdict import Outcome

OUTCOMES: Final[dict[Outcome, str]] = {
    "pass": "holds",
    "violated": "violated",
    "vacuous": "no opportunity",
    "not promised": "not promised",
    "harness error": "trace ill-formed",
}
"""The words of the page for each outcome."""

SYMBOLS: Final = {
    "pass": "✓",
    "hold": "✓",
    "violated": "✗",
    "vacuous": "○",
    "not promised": "\N{EN DASH}",
    "harness error": "?",
    "unknown": "?",
}
"""A sign beside each outcome and verdict, so that colour is never the only difference."""


_AT_ONCE: Final = frozenset({"heal", "crash", "recover"})
"""Faults without an end."""


def fault(detail: str | None) -> str:
    """Describe a fault from the detail of its `fault` row: "pause of p3 begins"."""
    detail_of = _parsed(detail)
    what = str(detail_of.get("kind", "fault"))
    ending = "" if what in _AT_ONCE else " begins" if detail_of.get("begins", True) else " ends"
    return f"{what}{_place(detail_of)}{ending}"


def fault_kind(detail: str | None) -> str:
    """The kind of a fault that begins; empty for one that ends."""
    detail_of = _parsed(detail)
    return str(detail_of.get("kind", "")) if detail_of.get("begins", True) else ""


def _parsed(detail: str | None) -> dict[str, Any]:
    try:
        parsed = json.loads(detail or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _place(detail: dict[str, Any]) -> str:
    if "process" in detail:
        return f" of {detail['process']}"
    if "from" in detail or "to" in detail:
        return f" from {detail.get('from', 'all')} to {detail.get('to', 'all')}"
    if "sides" in detail:
        return " between " + " and ".join(" ".join(map(str, side)) for side in detail["sides"])
    return ""
