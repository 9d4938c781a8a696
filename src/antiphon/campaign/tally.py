"""The sum of a campaign: each property over all runs, and whether the suite passes (docs/spec/properties.md 7)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Final, TypedDict

from antiphon.campaign.run import Kind, Outcome
from antiphon.properties.promises import JUDGED

RUNS_TELLING: Final = 100
"""With fewer runs, a property may lack opportunities by chance."""
SHARE_MIN: Final = 10
"""Of the runs that promise a property, at least one in this number must have opportunities for it."""


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
    """A run that makes the suite fail."""

    run: str
    seed: int
    property: str | None
    """The promise that it broke; None if it failed or never settled."""
    sentence: str


@dataclass(slots=True)
class Tally:
    """Counts outcomes; it keeps numbers, not traces."""

    runs: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    violated: list[Trouble] = field(default_factory=list)
    unsettled: list[Trouble] = field(default_factory=list)
    failed: list[Trouble] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """The runs with traces in the directory."""
    _rows: list[int] = field(default_factory=list)
    _opportunities: dict[str, list[int]] = field(default_factory=dict)
    _violations: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
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
            self.unsettled.append(self._trouble(outcome, "the run was stopped before it became quiet"))

    def properties(self) -> list[PropertyTally]:
        """Every property that some run promises, in the order of the verdicts."""
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
        """Properties with opportunities in too few of the runs that promise them; empty for a small campaign."""
        if self.runs < RUNS_TELLING:
            return []
        return [
            entry["property"]
            for entry in self.properties()
            if entry["runs_with_opportunities"] * SHARE_MIN < entry["runs"]
        ]

    def objections(self) -> Iterator[str]:
        """The reasons why the suite fails, one clause each; it passes if there are none."""
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
        """Median, maximum and total number of rows of the traces."""
        rows = self._rows or [0]
        return {"median": median(rows), "max": max(rows), "total": sum(rows)}

    def values(self, key: str) -> list[str | int]:
        """The values of a field of `Kind` in all runs, sorted."""
        return sorted({getattr(kind, key) for kind in self.kinds})

    def counts(self) -> list[dict[str, str | int]]:
        """The number of runs of each kind."""
        ordered = sorted(self.kinds.items(), key=lambda item: tuple(asdict(item[0]).values()))
        return [asdict(kind) | {"runs": count} for kind, count in ordered]

    @staticmethod
    def _trouble(outcome: Outcome, sentence: str, property_: str | None = None) -> Trouble:
        return Trouble(outcome.record.run, outcome.record.seed, property_, sentence)
