"""Verdicts added up: one word for a dataset, and one entry for each property and group over all its runs.

Summaries of different runs can be added up too, so no process ever needs the verdicts on all runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypedDict

import msgspec

from antiphon.properties.verdicts.verdict import Outcome, Verdict

Overall = Literal["hold", "violated", "unknown"]
_Example = dict[str, Any]

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


@dataclass(slots=True)
class _Entry:
    """The verdicts on one property in one group."""

    place: tuple[str, int]
    """Where the first of them stands: its run, and its position among the verdicts on that run."""
    outcome: Outcome
    opportunities: int = 0
    violations: int = 0
    runs: int = 0
    last_run: str | None = None
    example: dict[str, Any] | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """With each note the first run that has it."""

    def add(self, verdict: Verdict) -> None:
        """Count one verdict; those on one run follow each other."""
        self.runs += verdict.run != self.last_run
        self.last_run = verdict.run
        example = None if verdict.example is None else {"run": verdict.run, **asdict(verdict.example)}
        notes = {verdict.note: verdict.run} if verdict.note else {}
        self._count(verdict.outcome, verdict.opportunities, verdict.violations, example, notes)

    def merge(self, other: "_Entry") -> None:
        """Count the verdicts of another entry, which are on other runs."""
        self.place = min(self.place, other.place)
        self.runs += other.runs
        self._count(other.outcome, other.opportunities, other.violations, other.example, other.notes)

    def _count(
        self,
        outcome: Outcome,
        opportunities: int,
        violations: int,
        example: dict[str, Any] | None,
        notes: dict[str, str],
    ) -> None:
        self.outcome = min(self.outcome, outcome, key=_WORST_FIRST.index)
        self.opportunities += opportunities
        self.violations += violations
        if example is not None and (self.example is None or example["run"] < self.example["run"]):
            self.example = example
        for note, run in notes.items():
            self.notes[note] = min(run, self.notes.get(note, run))

    def told(self, name: str, group: str | None) -> PropertySummary:
        """As it is printed."""
        return {
            "property": name,
            "group": group,
            "outcome": self.outcome,
            "opportunities": self.opportunities,
            "violations": self.violations,
            "example": self.example,
            "runs": self.runs,
            "note": "; ".join(sorted(self.notes, key=lambda note: self.notes[note])) or None,
        }


class _Packed(msgspec.Struct):
    """A summary in a form that can be sent to another process."""

    entries: list[tuple[tuple[str, str | None], _Entry]]
    ill_formed: list[tuple[str, str]]
    runs: list[str]


class VerdictSummary:
    """The verdicts on some runs."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str | None], _Entry] = {}
        self._ill_formed: list[tuple[str, str]] = []
        self.runs: set[str] = set()
        """All runs that have a verdict."""

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "VerdictSummary":
        """The summary of these verdicts; those on one run follow each other."""
        summary = cls()
        summary.add(verdicts)
        return summary

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Count the verdicts on runs that were not counted before."""
        for place, verdict in enumerate(verdicts):
            key = verdict.property, verdict.group
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry((verdict.run, place), verdict.outcome)
            entry.add(verdict)
            self.runs.add(verdict.run)
            if verdict.outcome == "harness error" and verdict.example is not None:
                self._ill_formed.append((verdict.run, verdict.example.sentence))

    def merge(self, other: "VerdictSummary") -> None:
        """Count the runs of another summary, which are other runs."""
        for key, entry in other._entries.items():
            known = self._entries.setdefault(key, entry)
            if known is not entry:
                known.merge(entry)
        self._ill_formed += other._ill_formed
        self.runs |= other.runs

    @property
    def overall(self) -> Overall:
        """One word for all. A violation outweighs a trace that could not be judged.

        It is `unknown` without verdicts, and if nothing is promised: a well-formed trace alone proves nothing.
        """
        outcomes = {entry.outcome for entry in self._entries.values()}
        if "violated" in outcomes:
            return "violated"
        return "unknown" if "harness error" in outcomes or not self._is_anything_judged else "hold"

    @property
    def promises_nothing(self) -> bool:
        """Whether the traces are sound, and nothing is promised."""
        outcomes = {entry.outcome for entry in self._entries.values()}
        return bool(outcomes) and "harness error" not in outcomes and not self._is_anything_judged

    @property
    def _is_anything_judged(self) -> bool:
        """Whether a property was judged besides that traces are well formed."""
        return any(name != "W" and entry.outcome != "not promised" for (name, _), entry in self._entries.items())

    @property
    def ill_formed(self) -> Sequence[tuple[str, str]]:
        """The runs that could not be judged, each with the reason."""
        return sorted(self._ill_formed)

    @property
    def properties(self) -> list[PropertySummary]:
        """One entry for each property and group, in the order in which they first appear."""
        ordered = sorted(self._entries.items(), key=lambda item: item[1].place)
        return [entry.told(name, group) for (name, group), entry in ordered]

    def packed(self) -> bytes:
        """In a form that can be sent to another process."""
        return msgspec.msgpack.encode(_Packed([*self._entries.items()], self._ill_formed, sorted(self.runs)))

    @classmethod
    def unpacked(cls, packed: bytes) -> "VerdictSummary":
        """The inverse of `packed`."""
        found = msgspec.msgpack.decode(packed, type=_Packed)
        summary = cls()
        summary._entries = dict(found.entries)
        summary._ill_formed, summary.runs = found.ill_formed, {*found.runs}
        return summary


def summarise(verdicts: Iterable[Verdict]) -> Overall:
    """One word for all these verdicts."""
    return VerdictSummary.of(verdicts).overall


def by_property(verdicts: Iterable[Verdict]) -> list[PropertySummary]:
    """One entry for each property and group, in order of appearance."""
    return VerdictSummary.of(verdicts).properties
