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
    """One word for all. A violation outweighs a trace that could not be judged. Without verdicts it is `unknown`."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if "violated" in outcomes:
        return "violated"
    if not outcomes or "harness error" in outcomes:
        return "unknown"
    return "hold"


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
