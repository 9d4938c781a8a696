"""Verdicts added up: one word for a dataset, and one entry for each property and group over all its runs."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal, TypedDict

from antiphon.properties.verdicts.verdict import Outcome, Verdict

Overall = Literal["hold", "violated", "unknown"]

_WORST_FIRST: Final[tuple[Outcome, ...]] = ("violated", "harness error", "pass", "vacuous", "not promised")


class PropertySummary(TypedDict):
    """One property in one group over all runs, as `check --json` prints it."""

    property: str
    group: str | None
    outcome: Outcome
    """The worst over the runs; `pass` if some runs had opportunities and others none."""
    opportunities: int
    violations: int
    example: dict[str, Any] | None
    """The first violation with its `sentence`, witness and `run`."""
    runs: int
    """How many runs gave a verdict."""
    note: str | None


def summarise(verdicts: Iterable[Verdict]) -> Overall:
    """One word for all. A violation outweighs a trace that could not be judged.

    It is `unknown` without verdicts, and if nothing is promised: a well-formed trace alone proves nothing.
    """
    judged = [verdict for verdict in verdicts if verdict.outcome != "not promised"]
    outcomes = {verdict.outcome for verdict in judged}
    if "violated" in outcomes:
        return "violated"
    if "harness error" in outcomes or nothing_promised(judged):
        return "unknown"
    return "hold"


def nothing_promised(verdicts: Iterable[Verdict]) -> bool:
    """True if no property was judged, except that the traces are well formed."""
    return all(verdict.property == "W" or verdict.outcome == "not promised" for verdict in verdicts)


def by_property(verdicts: Iterable[Verdict]) -> list[PropertySummary]:
    """Add up the verdicts over the runs: one entry for each property and group, in order of appearance."""
    entries: dict[tuple[str, str | None], list[Verdict]] = {}
    for verdict in verdicts:
        entries.setdefault((verdict.property, verdict.group), []).append(verdict)
    return [_summary(entry) for entry in entries.values()]


def _summary(verdicts: Sequence[Verdict]) -> PropertySummary:
    notes = dict.fromkeys(verdict.note for verdict in verdicts if verdict.note)
    examples = ({"run": verdict.run, **asdict(verdict.example)} for verdict in verdicts if verdict.example)
    return {
        "property": verdicts[0].property,
        "group": verdicts[0].group,
        "outcome": min((verdict.outcome for verdict in verdicts), key=_WORST_FIRST.index),
        "opportunities": sum(verdict.opportunities for verdict in verdicts),
        "violations": sum(verdict.violations for verdict in verdicts),
        "example": next(examples, None),
        "runs": len({verdict.run for verdict in verdicts}),
        "note": "; ".join(notes) or None,
    }
