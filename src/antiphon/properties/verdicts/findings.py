"""From violations found to verdicts told: one for each group or for the run (docs/spec/properties.md 7, Verdicts).

A checker finds violations as arrays; the sentence is made for the first alone, the others are counted.
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
class Broken:
    """The violations of one property in one run, not yet told."""

    rows: IntArray
    """The later event of each: where a person reading along would first see it."""
    groups: IntArray
    """The group each falls into."""
    tell: Callable[[int], Violation]
    """Makes the witness and the sentence of the violation at that position."""


def _untold(position: int) -> Violation:
    raise AssertionError(f"there is no violation {position} to tell")


NOTHING: Final = Broken(np.zeros(0, np.int64), np.zeros(0, np.int64), _untold)
"""What is found where a property cannot be judged, or holds."""


def merged(parts: Sequence[Broken]) -> Broken:
    """What was found in several places, as one."""
    begins = np.cumsum([0, *(len(part.rows) for part in parts)])

    def tell(position: int) -> Violation:
        part = int(np.searchsorted(begins, position, side="right")) - 1
        return parts[part].tell(position - int(begins[part]))

    rows, groups = ([getattr(part, name) for part in (NOTHING, *parts)] for name in ("rows", "groups"))
    return Broken(np.concatenate(rows), np.concatenate(groups), tell)


Found = tuple[int, int, Callable[[], Violation]]
"""One violation of the few that a walk over views finds: its row, its group, and how to tell it."""


def gathered(found: Sequence[Found]) -> Broken:
    """Violations that were found one by one."""
    rows, groups = (np.array([each[column] for each in found], np.int64) for column in (0, 1))
    return Broken(rows, groups, lambda position: found[position][2]()) if found else NOTHING


def over_run(
    history: History,
    promises: Promises,
    property_id: str,
    opportunities: int,
    broken: Broken,
    *,
    note: str | None = None,
) -> list[Verdict]:
    """One verdict for a property that ranges over all groups."""
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
    broken: Broken,
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


def nothing_asked(history: History, promises: Promises, property_id: str, *, note: str | None = None) -> list[Verdict]:
    """The verdicts on the groups where there is no opportunity, or no promise."""
    return over_groups(history, promises, property_id, np.zeros(len(history.groups), np.int64), NOTHING, note=note)


def not_promised(history: History, property_id: str, *, over_groups: bool) -> list[Verdict]:
    """The verdicts on a property that nobody promises: one on each group, or one on the run."""
    groups = history.groups if over_groups else (None,)
    return [_not_promised(history.run, property_id, group) for group in groups]


def _not_promised(run: str, property_id: str, group: str | None) -> Verdict:
    """Nobody there offers the property, so nothing was asked."""
    return Verdict(run, property_id, group, "not promised", opportunities=0, violations=0)


def outcome_of(opportunities: int, violations: int) -> Outcome:
    """What the counts of a property that is promised come to."""
    return "violated" if violations else "pass" if opportunities else "vacuous"


def _summary(history: History, broken: Broken, chosen: IntArray) -> tuple[int, Violation | None]:
    """How many of the violations were chosen, and the one seen first."""
    if not len(chosen):
        return 0, None
    rows = broken.rows[chosen]
    earliest = np.lexsort((rows, history.rows.process[rows], history.rows.time[rows]))[0]
    told = broken.tell(int(chosen[earliest]))
    return len(chosen), replace(told, seen=history.seen(int(rows[earliest])))
