"""M12, M13, L11: primary views that were voted on (docs/spec/newtop.md 15).

A `primary` row says that a view is formed: `number`, `detail.after` (the primary views that it follows) and
`detail.holds`. If `holds` is false, a member was already known to have failed, so the view is not primary at this
process; the row still shows how the chain continues.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.verdicts.findings import Found, as_violations, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_CONFIGURED: Final = f"0000.000000.{0:016x}"
"""What the first primary view of a configured group follows."""
_LOST: Final = "lost"
"""The rule that lets primary return although no voter has kept the state (newtop.md 15)."""
_FORKING: Final = ("everybody", _LOST)
"""The rules that let primary return although a majority has crashed; a chain may fork there."""


@dataclass(slots=True)
class Formed:
    """One view that was formed."""

    group: int
    view: int
    number: int
    rule: str
    after: tuple[str, ...]
    row: int
    """The first row that names it."""
    holds: dict[int, int] = field(default_factory=dict)
    """By process at which it was primary, the row."""


class Chain:
    """All formed views of a run, and what each of them follows."""

    def __init__(self, history: History, property_id: str, promises: Promises) -> None:
        self._history = history
        self.formed: dict[tuple[int, int], Formed] = {}
        self.conflicts: list[tuple[Formed, int]] = []
        """Views for which two members report different numbers, with the row of the second."""
        self.rows: list[tuple[int, Formed]] = []
        rows, promised = history.rows, promises.pairs(property_id)
        for row in sorted(history.of_kind("primary").tolist(), key=lambda row: int(rows.time[row])):
            process, group, view = int(rows.process[row]), int(rows.group[row]), int(rows.view[row])
            if not promised[process, group]:
                continue
            detail: dict[str, Any] = history.details.get(row, {})
            told = Formed(
                group, view, int(rows.number[row]), str(detail.get("rule")), tuple(detail.get("after", ())), row
            )
            known = self.formed.setdefault((group, view), told)
            if (known.number, known.after) != (told.number, told.after):
                self.conflicts.append((known, row))
            if detail.get("holds") is not False:
                known.holds.setdefault(process, row)
            self.rows.append((row, known))
        self._closures: dict[tuple[int, int], frozenset[str]] = {}

    @cached_property
    def primary(self) -> list[Formed]:
        """The views that were primary at some process, by number."""
        return sorted(
            (each for each in self.formed.values() if each.holds), key=lambda each: (each.group, each.number, each.row)
        )

    @cached_property
    def _by_name(self) -> dict[tuple[int, str], Formed]:
        return {(each.group, self._history.views[each.view]): each for each in self.formed.values()}

    def before(self, later: Formed) -> frozenset[str]:
        """The ids of all views that it follows, directly or not."""
        key = later.group, later.view
        if key not in self._closures:
            found: set[str] = set()
            waiting = [*later.after]
            while waiting:
                name = waiting.pop()
                if name in found:
                    continue
                found.add(name)
                known = self._by_name.get((later.group, name))
                waiting += () if known is None else known.after
            self._closures[key] = frozenset(found)
        return self._closures[key]

    def follows(self, later: Formed, earlier: Formed) -> bool:
        """Whether `earlier` is in the history of `later`."""
        return self._history.views[earlier.view] in self.before(later)

    def may_fork(self, later: Formed) -> bool:
        """Whether part of its history is unknown, or a view in it was formed because all members were back."""
        history = [self._by_name.get((later.group, name)) for name in self.before(later) - {_CONFIGURED}]
        return any(each is None or each.rule in _FORKING for each in (later, *history))

    def may_lose(self, later: Formed, earlier: Formed) -> bool:
        """Whether a view on the way from one to the other was formed although no voter had kept the state."""
        history = (self._by_name.get((later.group, name)) for name in self.before(later))
        on_the_way = (each for each in (later, *history) if each is not None and self.follows(each, earlier))
        return any(each.rule == _LOST for each in on_the_way)


def check_chain(history: History, promises: Promises) -> list[Verdict]:
    """M12: primary views form one chain, with rising numbers, and all members agree on the number of each."""
    chain = Chain(history, "M12", promises)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for known, row in chain.conflicts:
        found.append((row, known.group, partial(_describe, history, known, row, "is contradicted by another member")))
    last: dict[tuple[int, int], Formed] = {}
    for row, known in sorted(chain.rows, key=lambda each: each[0]):  # by process, in the order of its history
        place = int(history.rows.process[row]), known.group
        earlier = last.get(place)
        if earlier is not None and earlier.number >= known.number:
            why = f"comes after number {earlier.number} at the same process"
            found.append((row, known.group, partial(_describe, history, known, row, why)))
        last[place] = known
    for rank, later in enumerate(chain.primary):
        for earlier in chain.primary[:rank]:
            if earlier.group != later.group:
                continue
            opportunities[later.group] += 1
            if chain.follows(later, earlier) and earlier.number < later.number:
                continue
            if not chain.may_fork(later) and not chain.may_fork(earlier):
                describe = partial(_describe_fork, history, earlier, later)
                found.append((max(earlier.row, later.row), later.group, describe))
    return over_groups(history, promises, "M12", opportunities, as_violations(found))


def check_kept(history: History, promises: Promises) -> list[Verdict]:
    """M13: a message that a process delivers in a primary view is in every later primary view that follows it.

    Each process at which the later view is primary has delivered the message by then, or got it with a state. That is
    not expected if a view on the way was formed although no voter had kept the state.
    """
    chain, holdings = Chain(history, "M13", promises), Holdings(history)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for place, earlier in enumerate(chain.primary):
        delivered = _delivered_in(history, earlier)
        successors = [
            each
            for each in chain.primary[place + 1 :]
            if each.group == earlier.group and chain.follows(each, earlier) and not chain.may_lose(each, earlier)
        ]
        for later in successors if delivered else ():
            opportunities[later.group] += 1
            for process, row in later.holds.items():
                missing = next((each for each in delivered if not holdings.has(process, row, each)), None)
                if missing is not None:
                    describe = partial(_describe_lost, history, earlier, later, row, delivered[missing])
                    found.append((row, later.group, describe))
    return over_groups(history, promises, "M13", opportunities, as_violations(found))


def check_returns(history: History, promises: Promises) -> list[Verdict]:
    """L11: at a quiet end a view is primary if it has most members of each view that shares a member with it.

    These views include all that its members attempted or heard of. One of its members must have seen a view become
    primary: those that only attempted the first one do not know that it was formed, and wait for the others (newtop.md
    15, rule 3). With a configured size, a majority of that size decides.
    """
    chain = Chain(history, "L11", promises)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    stays, promised = history.stays, promises.pairs("L11")
    saw: dict[int, set[int]] = defaultdict(set)
    for each in chain.primary:
        saw[each.group].update(each.holds)
    for stay in np.flatnonzero(stays.final & (stays.leave == NEVER)).tolist():
        process, group, view = int(stays.process[stay]), int(stays.group[stay]), int(stays.view[stay])
        if saw[group].isdisjoint(stays.members[stay]) or not promised[process, group]:
            continue
        if not _is_settled(history, stay):
            continue
        size = int(promises.primary_size[process])
        if 2 * len(stays.members[stay]) > size if size else _has_most(history, stay):
            opportunities[group] += 1
            known = chain.formed.get((group, view))
            if known is None or process not in known.holds:
                row = int(history.logs.end[process]) - 1
                found.append((row, group, partial(_describe_not_primary, history, stay, row)))
    return over_groups(history, promises, "L11", opportunities, as_violations(found))


def _has_most(history: History, stay: int) -> bool:
    """Whether a view has most members of each view of its group that shares a member with it.

    A member that left and came back may have passed its vote on, so it does not count for either side.
    """
    stays, group = history.stays, history.stays.group[stay]
    members = frozenset(stays.members[stay])
    left = stays.process[(stays.leave != NEVER) & (stays.group == group)]
    returned = members.intersection(left.tolist())
    others = {frozenset(each) for at, each in enumerate(stays.members) if stays.group[at] == group}
    return all(2 * len((members - returned) & other) > len(other - returned) for other in others if members & other)


def _is_settled(history: History, stay: int) -> bool:
    """Whether the run ended quiet, and all members are in that view at the end, alive and connected."""
    stays, members = history.stays, frozenset(history.stays.members[stay])
    same = (stays.group == stays.group[stay]) & (stays.view == stays.view[stay])
    there: IntArray = stays.process[stays.final & (stays.leave == NEVER) & same]
    alive = {int(each) for each in there if not history.logs.crashed[each]}
    components = {int(history.world.component[each]) for each in alive}
    return history.world.quiet and members <= alive and len(components) == 1 and -1 not in components


def _describe_not_primary(history: History, stay: int, row: int) -> Violation:
    who, view = history.process_name(history.stays.process[stay]), history.views[history.stays.view[stay]]
    sentence = (
        f"the last view of {who} in {history.groups[history.stays.group[stay]]}, {view}, has most members of all views "
        f"that it comes from, but it is not primary when the run ends quiet"
    )
    return Violation(sentence, (who,), (), (history.index(row),), (view,))


class Holdings:
    """Which messages a process has: those that it delivered, and those that were in a state that it took over."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._delivered: dict[int, dict[int, int]] = defaultdict(dict)
        first = history.first
        for row, process, message in zip(
            first.row.tolist(), first.process.tolist(), first.message.tolist(), strict=True
        ):
            self._delivered[process][message] = row
        self._installed: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        """By process: row, first view of the formation, and class of each state that it took over."""
        for row in history.of_kind("state").tolist():
            detail: dict[str, Any] = history.details.get(row, {})
            if detail.get("role") == "installed":
                process = int(history.rows.process[row])
                self._installed[process].append((row, int(history.rows.view[row]), int(detail["class"])))
        self._entries: dict[tuple[int, int], list[int]] = defaultdict(list)
        """By first view of a formation and class: the stays of its members."""
        stays = history.stays
        for stay in np.flatnonzero(stays.formed).tolist():
            for place, together in enumerate(stays.classes[stay]):
                if int(stays.process[stay]) in together:
                    self._entries[int(stays.view[stay]), place].append(stay)
        self._known: dict[tuple[int, int, int], bool] = {}

    def has(self, process: int, row: int, message: int) -> bool:
        """Whether the process has the message before that row; True also if no row tells what was in a state."""
        if self._delivered[process].get(message, NEVER) < row:
            return True
        return any(
            at < row and self._in_state(view, place, message) for at, view, place in self._installed.get(process, ())
        )

    def _in_state(self, view: int, place: int, message: int) -> bool:
        key = view, place, message
        if key not in self._known:
            entries = self._entries.get((view, place), [])
            stays = self._history.stays
            self._known[key] = not entries or any(
                self.has(int(stays.process[stay]), int(stays.row[stay]), message) for stay in entries
            )
        return self._known[key]


def _delivered_in(history: History, formed: Formed) -> dict[int, int]:
    """The messages that processes delivered while that view was primary there, each with the row of one delivery."""
    found: dict[int, int] = {}
    ends = np.sort(history.of_kind("view", "transitional", "leave", "crash"))
    deliveries = history.first
    for process, row in formed.holds.items():
        after = ends[(ends > row) & (history.rows.process[ends] == process)]
        in_group = (history.rows.group[after] == formed.group) | (history.rows.group[after] < 0)
        end = int(after[in_group][0]) if in_group.any() else int(history.logs.end[process])
        low, high = np.searchsorted(deliveries.row, [row, end]).tolist()
        for at in range(low, high):
            if deliveries.process[at] == process and deliveries.group[at] == formed.group:
                found.setdefault(int(deliveries.message[at]), int(deliveries.row[at]))
    return found


def _describe(history: History, formed: Formed, row: int, why: str) -> Violation:
    who, view = history.process_name(history.rows.process[row]), history.views[formed.view]
    sentence = f"view {view} is primary with number {formed.number}, and this {why} ({who}, index {history.index(row)})"
    return Violation(sentence, (who,), (), (history.index(row),), (view,))


def _describe_fork(history: History, earlier: Formed, later: Formed) -> Violation:
    views = history.views[earlier.view], history.views[later.view]
    who = tuple(history.process_name(history.rows.process[each.row]) for each in (earlier, later))
    places = tuple(history.index(each.row) for each in (earlier, later))
    sentence = (
        f"{who[0]} has the primary view {views[0]} with number {earlier.number} (index {places[0]}) and {who[1]} has "
        f"{views[1]} with number {later.number} (index {places[1]}), but the second does not follow the first"
    )
    return Violation(sentence, who, (), places, views)


def _describe_lost(history: History, earlier: Formed, later: Formed, row: int, delivery: int) -> Violation:
    who = tuple(history.process_name(history.rows.process[each]) for each in (delivery, row))
    views = history.views[earlier.view], history.views[later.view]
    sentence = (
        f"{who[0]} delivered {history.located(delivery)} in the primary view {views[0]}, but {who[1]} does not have "
        f"it when the later view {views[1]} is primary (index {history.index(row)})"
    )
    places = history.index(delivery), history.index(row)
    return Violation(sentence, who, (history.message_at(delivery),), places, views)
