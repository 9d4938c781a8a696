"""A campaign added up: what each property saw over all runs, and whether the suite passes (properties.md 7)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Final, TypedDict

from antiphon.campaign.run import Kind, Outcome
from antiphon.properties.promises import JUDGED

RUNS_TELLING: Final = 100
"""With fewer runs, a property without opportunities may be chance."""
SHARE_MIN: Final = 10
"""One run in so many of those that promise a property must put it to the test."""


class PropertyTally(TypedDict):
    """One property over all runs that promise it."""

    property: str
    runs: int
    runs_with_opportunities: int
    opportunities_median: float
    opportunities: int
    violations: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """A run that speaks against the suite, and in what words."""

    run: str
    seed: int
    property: str | None
    """The promise it broke; none if it failed or never settled."""
    sentence: str


@dataclass(slots=True)
class Tally:
    """Grows with each outcome; keeps numbers, not traces."""

    runs: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    violated: list[Trouble] = field(default_factory=list)
    unsettled: list[Trouble] = field(default_factory=list)
    failed: list[Trouble] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """The runs whose traces stay."""
    _rows: list[int] = field(default_factory=list)
    _opportunities: dict[str, list[int]] = field(default_factory=dict)
    _violations: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one more run."""
        self.runs += 1
        self._rows.append(outcome.rows)
        self.kinds[outcome.kind] += 1
        if outcome.kept:
            self.kept.append(outcome.record.run)
        for finding in outcome.findings:
            self._opportunities.setdefault(finding.property, []).append(finding.opportunities)
            self._violations[finding.property] += finding.violations
            if finding.violations:
                told = finding.sentence or f"{finding.violations} violations"
                self.violated.append(self._trouble(outcome, told, finding.property))
        if outcome.failure is not None:
            self.failed.append(self._trouble(outcome, outcome.failure))
        elif not outcome.settled:
            self.unsettled.append(self._trouble(outcome, "the run was cut off before it was quiet"))

    def properties(self) -> list[PropertyTally]:
        """Every property promised in some run, in the order of the verdicts."""
        rank = {name: place for place, name in enumerate(JUDGED)}
        return [
            {
                "property": name,
                "runs": len(seen),
                "runs_with_opportunities": sum(count > 0 for count in seen),
                "opportunities_median": median(seen),
                "opportunities": sum(seen),
                "violations": self._violations[name],
            }
            for name, seen in sorted(self._opportunities.items(), key=lambda item: rank.get(item[0], len(rank)))
        ]

    def untested(self) -> list[str]:
        """Properties put to the test in too few of the runs that promise them; a small campaign cannot tell."""
        if self.runs < RUNS_TELLING:
            return []
        return [
            entry["property"]
            for entry in self.properties()
            if entry["runs_with_opportunities"] * SHARE_MIN < entry["runs"]
        ]

    def objections(self) -> Iterator[str]:
        """What stands against the suite, a clause each; it passes if there is none."""
        for count, what in (
            (len({trouble.run for trouble in self.violated}), "violated a promised property"),
            (len(self.unsettled), "never settled"),
            (len(self.failed), "failed"),
        ):
            if count:
                yield f"{count:,} of {self.runs:,} runs {what}"
        if names := self.untested():
            yield f"{', '.join(names)} had opportunities in fewer than one in ten of the runs that promise them"

    def rows(self) -> dict[str, float]:
        """How long the traces are."""
        rows = self._rows or [0]
        return {"median": median(rows), "max": max(rows), "total": sum(rows)}

    def values(self, key: str) -> list[str | int]:
        """What occurs in the runs under a field of `Kind`, in order."""
        return sorted({getattr(kind, key) for kind in self.kinds})

    def counts(self) -> list[dict[str, str | int]]:
        """How many runs of each kind."""
        ordered = sorted(self.kinds.items(), key=lambda item: tuple(asdict(item[0]).values()))
        return [asdict(kind) | {"runs": count} for kind, count in ordered]

    @staticmethod
    def _trouble(outcome: Outcome, sentence: str, property_: str | None = None) -> Trouble:
        return Trouble(outcome.record.run, outcome.record.seed, property_, sentence)
