"""Views and suspicions of a run, arranged for the membership checkers (docs/spec/properties.md 2).

`view`, `suspect` and `confirm` rows are few, so they are walked one by one. Private views are left out, because
processes do not agree on them.
"""

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.suspectors import Suspectors


class Accusation(NamedTuple):
    """A process accuses a peer in a group: it suspects the peer, or the peer's failure is agreed."""

    row: int
    time: int
    process: int
    group: int
    peer: int


class Membership:
    """The stays of a run as plain lists, and the accusations."""

    def __init__(self, history: History, promises: Promises) -> None:
        self._history, self._promises = history, promises
        self.suspectors: Suspectors = promises.suspectors
        self.roles: BoolArray = promises.of_family(lambda promised: promised.onlookers)
        """By process: members are added and leave in order, within a formation (InterGroup)."""
        stays = history.stays
        self.row: list[int] = stays.row.tolist()
        self.time: list[int] = history.rows.time[stays.row].tolist()
        self.process: list[int] = stays.process.tolist()
        self.group: list[int] = stays.group.tolist()
        self.view: list[int] = stays.view.tolist()
        self.preceding: list[int] = stays.preceding.tolist()
        self.following: list[int] = stays.following.tolist()
        self.final: list[bool] = stays.final.tolist()
        self.formed: list[bool] = stays.formed.tolist()
        self.root: list[int] = stays.root.tolist()
        sets = {members: frozenset(members) for members in set(stays.members)}
        self.members: list[frozenset[int]] = [sets[members] for members in stays.members]
        self.shared: list[bool] = (~stays.private).tolist()
        self.last_fault: int = _last_fault(history)
        """The time of the last fault, repair, join or leave; 0 if there was none."""

    def stays_promising(self, property_id: str, *, private: bool = False) -> list[int]:
        """The stays of processes that promise the property, in shared views, or also in private ones."""
        promised = self._promises.pairs(property_id).tolist()
        return [
            stay
            for stay, (process, group) in enumerate(zip(self.process, self.group, strict=True))
            if promised[process][group] and (private or self.shared[stay])
        ]

    def passages(self, property_id: str) -> list[tuple[int, int]]:
        """The stays among these that replace a view, each with the stay before: p goes V' -> V."""
        return [(self.preceding[stay], stay) for stay in self.stays_promising(property_id) if self.preceding[stay] >= 0]

    def sharing(self, stays: list[int]) -> dict[tuple[int, int], list[int]]:
        """These stays by group and view."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for stay in stays:
            found[self.group[stay], self.view[stay]].append(stay)
        return found

    @cached_property
    def suspicions(self) -> list[Accusation]:
        """The `suspect` rows, in the order of rows."""
        return _accusations(self._history, "suspect")

    @cached_property
    def refuted(self) -> dict[tuple[int, int, int], list[int]]:
        """By (group, process, peer): the rows at which the process took back that it suspects the peer there."""
        rows: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for each in _accusations(self._history, "refute"):
            rows[each.group, each.process, each.peer].append(each.row)
        return rows

    @cached_property
    def confirmations(self) -> list[Accusation]:
        """The `confirm` rows, in the order of rows."""
        return _accusations(self._history, "confirm")

    @cached_property
    def suspected(self) -> dict[tuple[int, int, int], int]:
        """By (group, process, peer): the row at which the process last suspected the peer in that group."""
        return {(each.group, each.process, each.peer): each.row for each in self.suspicions}

    def apart(self, one: int, other: int) -> bool:
        """True if one of the processes of two stays in a group has suspected the other since."""
        for mine, yours in ((one, other), (other, one)):
            row = self.suspected.get((self.group[mine], self.process[mine], self.process[yours]), -1)
            if row > self.row[mine]:
                return True
        return False

    def stays_in(self, stay: int) -> bool:
        """True if it is the last stay of its process in the group, and the process did not leave."""
        return self.final[stay] and self._history.stays.leave[stay] == NEVER

    @cached_property
    def settled(self) -> BoolArray:
        """For each process: the run ended quiet, long enough after the last fault that its views are final.

        Groups that merge are final earlier, once all have been in one view for a while.
        """
        world, end = self._history.world, int(self._history.rows.time.max(initial=0))
        late: BoolArray = end - self.last_fault >= self.suspectors.settling
        last_view = max(self.time, default=0)
        united = self._united & (end - max(self.last_fault, last_view) >= self.suspectors.excluding)
        return (late | united) if world.quiet else np.zeros_like(late)

    @cached_property
    def _united(self) -> BoolArray:
        """For each process: its component is in one view in every group that its members are in, or asked to join."""
        history, component = self._history, self._history.world.component
        views: dict[tuple[int, int], set[int]] = defaultdict(set)
        for stay, process in enumerate(self.process):
            if self.stays_in(stay) and not self._promises.roles.receiving[stay]:
                views[int(component[process]), self.group[stay]].add(self.view[stay])
        for row in history.of_kind("join").tolist():
            process, group = int(history.rows.process[row]), int(history.rows.group[row])
            if history.away[process, group] and not history.left[process, group]:
                views[int(component[process]), group].add(-1)
        apart = {place[0] for place, found in views.items() if len(found) > 1}
        return np.array([each >= 0 and each not in apart for each in component.tolist()], np.bool_)

    @cached_property
    def _pairs(self) -> IntArray:
        width = len(self._history.processes)
        pairs = [stay * width + member for stay, members in enumerate(self.members) for member in members]
        return np.unique(np.array(pairs, np.int64))

    def has(self, stay: IntArray, member: IntArray) -> BoolArray:
        """True for each stay whose view has that member."""
        if not len(self._pairs):
            return np.zeros(len(stay), np.bool_)
        keys = stay * len(self._history.processes) + member
        at = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        found: BoolArray = (stay >= 0) & (self._pairs[at] == keys)
        return found


def _accusations(history: History, kind: str) -> list[Accusation]:
    rows = history.of_kind(kind)
    if not len(rows):
        return []
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    peers = history.columns.texts("peer", rows).to_pylist()
    columns = (column[rows].tolist() for column in (history.rows.time, history.rows.process, history.rows.group))
    return [
        Accusation(row, time, process, group, code_of[peer])
        for row, time, process, group, peer in zip(rows.tolist(), *columns, peers, strict=True)
        if group >= 0 and peer in code_of
    ]


def _last_fault(history: History) -> int:
    faults = history.of_kind("fault", "crash", "join", "leave")
    return int(history.rows.time[faults].max(initial=0))
