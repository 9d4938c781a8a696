"""From violations to verdicts: one for each group, or one for the run (docs/spec/properties.md 7, Verdicts).

A checker finds violations as arrays. Only the first one gets a sentence; the others are counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.verdicts.verdict import Outcome, Verdict, Violation


@dataclass(frozen=True, slots=True)
class Violations:
    """The violations of one property in one run, not yet described."""

    rows: IntArray
    """The later event of each violation: where a reader of the trace would first see it."""
    groups: IntArray
    """The group of each violation."""
    describe: Callable[[int], Violation]
    """Builds the witness and the sentence of the violation at that position."""


def _no_violation(position: int) -> Violation:
    raise AssertionError(f"there is no violation {position} to describe")


NOTHING: Final = Violations(np.zeros(0, np.int64), np.zeros(0, np.int64), _no_violation)
"""The result if a property holds or cannot be judged."""


def merged(parts: Sequence[Violations]) -> Violations:
    """Combine the violations found in several places."""
    begins = np.cumsum([0, *(len(part.rows) for part in parts)])

    def describe(position: int) -> Violation:
        part = int(np.searchsorted(begins, position, side="right")) - 1
        return parts[part].describe(position - int(begins[part]))

    rows, groups = ([getattr(part, name) for part in (NOTHING, *parts)] for name in ("rows", "groups"))
    return Violations(np.concatenate(rows), np.concatenate(groups), describe)


Found = tuple[int, int, Callable[[], Violation]]
"""One violation of the few that a walk over views finds: its row, its group, and how to describe it."""


def as_violations(found: Sequence[Found]) -> Violations:
    """Combine violations that were found one by one."""
    rows, groups = (np.array([each[column] for each in found], np.int64) for column in (0, 1))
    return Violations(rows, groups, lambda position: found[position][2]()) if found else NOTHING


def over_run(
    history: History,
    promises: Promises,
    property_id: str,
    opportunities: int,
    broken: Violations,
    *,
    note: str | None = None,
) -> list[Verdict]:
    """One verdict for a property that covers all groups."""
    if not promises.groups(property_id).any():
        return [_not_promised(history.run, property_id, None)]
    violations, example = _summary(history, broken, np.arange(len(broken.rows)))
    outcome = outcome_of(opportunities, violations)
    return [Verdict(history.run, property_id, None, outcome, opportunities, violations, example, note)]


def over_groups(
    history: History,
    promises: Promises,
    property_id: str,
    opportunities: IntArray,
    broken: Violations,
    *,
    note: str | None = None,
) -> list[Verdict]:
    """One verdict for each group; `opportunities` is by group."""
    verdicts = []
    promised = promises.groups(property_id)
    for code, group in enumerate(history.groups):
        if not promised[code]:
            verdicts.append(_not_promised(history.run, property_id, group))
            continue
        counted = int(opportunities[code])
        violations, example = _summary(history, broken, np.flatnonzero(broken.groups == code))
        outcome = outcome_of(counted, violations)
        verdicts.append(Verdict(history.run, property_id, group, outcome, counted, violations, example, note))
    return verdicts


def no_opportunity(history: History, promises: Promises, property_id: str, *, note: str | None = None) -> list[Verdict]:
    """Verdicts for groups without an opportunity, or without a promise."""
    return over_groups(history, promises, property_id, np.zeros(len(history.groups), np.int64), NOTHING, note=note)


def not_quiet(history: History, promises: Promises, property_id: str) -> list[Verdict]:
    """Verdicts on a run that did not end quiet: no opportunities, and the reason."""
    return no_opportunity(history, promises, property_id, note=f"not judged: {history.world.reason}")


def not_promised(history: History, property_id: str, *, over_groups: bool) -> list[Verdict]:
    """Verdicts on a property that no process promises: one for each group, or one for the run."""
    groups = history.groups if over_groups else (None,)
    return [_not_promised(history.run, property_id, group) for group in groups]


def _not_promised(run: str, property_id: str, group: str | None) -> Verdict:
    return Verdict(run, property_id, group, "not promised", opportunities=0, violations=0)


def outcome_of(opportunities: int, violations: int) -> Outcome:
    """The outcome that these counts give for a promised property."""
    return "violated" if violations else "pass" if opportunities else "vacuous"


def _summary(history: History, broken: Violations, chosen: IntArray) -> tuple[int, Violation | None]:
    """The number of chosen violations, and the first one."""
    if not len(chosen):
        return 0, None
    rows = broken.rows[chosen]
    earliest = np.lexsort((rows, history.rows.process[rows], history.rows.time[rows]))[0]
    example = broken.describe(int(chosen[earliest]))
    return len(chosen), replace(example, seen=history.seen(int(rows[earliest])))
