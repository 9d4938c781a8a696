"""Members that deliveries no longer cover, according to `transitional` rows (docs/spec/newtop.md 14, rule 5).

When the failure of members is agreed, the others deliver the rest of the old view without them. A notice says so, in
its place among deliveries and views. From there until a view without these members, nothing is claimed about them.
"""

from bisect import bisect_left

import pyarrow as pa

from antiphon.properties.tables.columns import KIND
from antiphon.properties.tables.history import History

_NOBODY: frozenset[int] = frozenset()


class Notices:
    """By process and group: the members of its view whose failure it had been told of."""

    def __init__(self, history: History) -> None:
        self._excused: dict[tuple[int, int], tuple[list[int], list[frozenset[int]]]] = {}
        named = _named_members(history)
        views = dict(zip(history.stays.row.tolist(), map(frozenset, history.stays.members), strict=True))
        members: dict[tuple[int, int], frozenset[int]] = {}
        rows = history.rows
        for row in history.of_kind("view", "transitional").tolist() if named else ():
            key = int(rows.process[row]), int(rows.group[row])
            at, sets = self._excused.setdefault(key, ([], []))
            excused = sets[-1] if sets else _NOBODY
            if rows.kind[row] == KIND["view"]:
                members[key] = views[row]
                excused &= views[row]
            else:
                excused |= members.get(key, _NOBODY) - named[row]
            at.append(row)
            sets.append(excused)

    def excused(self, process: int, group: int, row: int) -> frozenset[int]:
        """The members of its view about which a delivery at that row makes no claim."""
        at, sets = self._excused.get((process, group), ([], []))
        place = bisect_left(at, row)
        return sets[place - 1] if place else _NOBODY


def _named_members(history: History) -> dict[int, frozenset[int]]:
    """For each `transitional` row of a group, the members that it names."""
    rows = history.of_kind("transitional")
    rows = rows[history.rows.group[rows] >= 0]
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    lists = history.columns.source["members"].take(pa.array(history.columns.order[rows])).to_pylist()
    return {
        row: frozenset(code_of[name] for name in names or () if name in code_of)
        for row, names in zip(rows.tolist(), lists, strict=True)
    }
