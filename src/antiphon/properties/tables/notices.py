"""Whom deliveries do not speak for any more: what `transitional` rows tell an application (newtop.md 14, rule 5).

When the failure of members is agreed, those who go on deliver without them what is left of the old view. A notice, in
its place among deliveries and views, says so; from it until a view without these members nothing is claimed of them.
"""

from bisect import bisect_left

import pyarrow as pa

from antiphon.properties.tables.columns import KIND
from antiphon.properties.tables.history import History

_NOBODY: frozenset[int] = frozenset()


class Notices:
    """By process and group, whose failure it had been told of and who was still in its view."""

    def __init__(self, history: History) -> None:
        self._excused: dict[tuple[int, int], tuple[list[int], list[frozenset[int]]]] = {}
        told = _told(history)
        views = dict(zip(history.stays.row.tolist(), map(frozenset, history.stays.members), strict=True))
        members: dict[tuple[int, int], frozenset[int]] = {}
        rows = history.rows
        for row in history.of_kind("view", "transitional").tolist() if told else ():
            key = int(rows.process[row]), int(rows.group[row])
            at, sets = self._excused.setdefault(key, ([], []))
            excused = sets[-1] if sets else _NOBODY
            if rows.kind[row] == KIND["view"]:
                members[key] = views[row]
                excused &= views[row]
            else:
                excused |= members.get(key, _NOBODY) - told[row]
            at.append(row)
            sets.append(excused)

    def excused(self, process: int, group: int, row: int) -> frozenset[int]:
        """The members of its view that what it delivers at that row says nothing about."""
        at, sets = self._excused.get((process, group), ([], []))
        place = bisect_left(at, row)
        return sets[place - 1] if place else _NOBODY


def _told(history: History) -> dict[int, frozenset[int]]:
    """For each `transitional` row of a group the members that it names."""
    rows = history.of_kind("transitional")
    rows = rows[history.rows.group[rows] >= 0]
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    lists = history.columns.source["members"].take(pa.array(history.columns.order[rows])).to_pylist()
    return {
        row: frozenset(code_of[name] for name in names or () if name in code_of)
        for row, names in zip(rows.tolist(), lists, strict=True)
    }
