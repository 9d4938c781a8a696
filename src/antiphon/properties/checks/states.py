"""D12 and R2: the state that a joining or recovered process takes over (docs/spec/properties.md 3 and 6).

The application's state is opaque: `state` rows tell its digest. A class of the first view of a formed group is the set
of members that came from one view together. A class has a state if it came from a view (docs/spec/newtop.md 11.2 rule
7). What the members of a class delivered before that view is part of its state, so no process may deliver it again in
the new formation. A view may tell that some of its classes are alike: then they count as one class with one state.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.verdicts.findings import Found, as_violations, no_opportunity, over_groups
from antiphon.properties.verdicts.phrases import about, installed, names, view_of
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.types import split_process_id

# -------------------------------------------------------------------------------- D12


@dataclass(frozen=True, slots=True)
class _StateRow:
    """A `state` row."""

    row: int
    role: str
    class_index: int
    """Position of the class in the first view; -1 for a merged state."""
    digest: int
    streamed: bool
    """True if it was still being sent after the view: the row tells when all had left, not what had been delivered."""


@dataclass(slots=True)
class _Entry:
    """A process that installs the first view of a formed group, and the states in its log."""

    stay: int
    classes: tuple[tuple[int, ...], ...]
    """The classes of the view, as its first installer tells them. M4 judges whether others tell the same.

    Classes that are alike stand together at their first place.
    """
    own: int
    """The position of its own class."""
    states: list[_StateRow]
    needs: frozenset[int]
    """The other classes that have a state."""

    def rows(self, role: str) -> list[_StateRow]:
        return [state for state in self.states if state.role == role]

    @property
    def merged(self) -> _StateRow | None:
        """The row at which it has its complete state, if there is one."""
        return next(iter(self.rows("merged")), None)


def check_states(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """D12: each class of a formed group has one state, taken over before any delivery, and nothing is delivered twice.

    All members that hand over the state of a class hand over the same one, as it was before anything of the new group.
    A process that takes over a state takes that one. If the first view of a process has members of another class with a
    state, it takes over the state of each such class before it delivers anything, unless its views lose the class. If
    there is only one state, it takes it unchanged. Processes that merge the states of the same classes have the same
    state then; so have those that go on together from one view to the next, if that view has no class whose state one
    of them lacks. At a settled end no process waits for a state. What was delivered
    in one formation is delivered in no other; with a sequencer, in none that a process which delivered it entered.
    Members of classes that the view tells to be alike have delivered the same in the formation that they come from.
    """
    promised = promises.pairs("D12")
    if not promised.any():
        return no_opportunity(history, promises, "D12")
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    early, ordered = _early_snapshots(history), promises.pairs("O5")
    for (group, view), entries in _entries(history, membership, promised).items():
        opportunities[group] += sum(max(len(entry.states), len(entry.needs)) for entry in entries)
        found += _one_digest(history, entries, early.get((group, view), ()))
        found += _too_early(history, membership, entries)
        found += _incomplete(history, membership, entries)
        found += _differently_merged(history, membership, entries)
        found += _not_alike(history, membership, entries, ordered)
    found += _in_two_formations(history, promises, promised, opportunities)
    return over_groups(history, promises, "D12", opportunities, as_violations(found))


def awaited(history: History, promises: Promises, membership: Membership) -> dict[int, int]:
    """For each stay that begins a formation and waits for states: the row at which it has them, or NEVER."""
    entries = _entries(history, membership, promises.pairs("D12")).values()
    waiting = [entry for together in entries for entry in together if entry.needs]
    return {entry.stay: NEVER if entry.merged is None else entry.merged.row for entry in waiting}


def _entries(history: History, membership: Membership, promised: BoolArray) -> dict[tuple[int, int], list[_Entry]]:
    """By group and view: the processes that begin a formation with it."""
    states, found = _state_rows(history), dict[tuple[int, int], list[_Entry]]()
    firsts = _first_places(history)
    formed = [stay for stay in np.flatnonzero(history.stays.formed).tolist() if promised[_place(membership, stay)]]
    for key, stays in membership.sharing(formed).items():
        classes = _united(history.stays.classes[stays[0]], firsts.get(key, {}))
        place_of = {member: place for place, together in enumerate(classes) for member in together}
        states_of = {stay: states.get((membership.process[stay], *key), []) for stay in stays}
        # A process that came from a view brought a state. For a class without such a process, a snapshot shows it.
        stateful = {place_of.get(membership.process[stay], -1) for stay in stays if membership.preceding[stay] >= 0}
        stateful |= {each.class_index for rows in states_of.values() for each in rows if each.role == "snapshot"}
        found[key] = [
            _Entry(stay, classes, own, states_of[stay], frozenset(stateful.intersection(range(len(classes))) - {own}))
            for stay in stays
            for own in (place_of.get(membership.process[stay], -1),)
        ]
    return found


def _first_places(history: History) -> dict[tuple[int, int], dict[int, int]]:
    """By group and view: for each class that is like an earlier one, the place of the first like it."""
    stays, found = history.stays, dict[tuple[int, int], dict[int, int]]()
    for stay in np.flatnonzero(stays.formed).tolist():
        told = history.details.get(int(stays.row[stay]), {}).get("alike")
        if isinstance(told, list):
            places = range(len(stays.classes[stay]))  # a trace is not trusted: others are ignored
            lists = [[place for place in same if place in places] for same in told if isinstance(same, list)]
            key = int(stays.group[stay]), int(stays.view[stay])
            found.setdefault(key, {place: min(same) for same in lists for place in same})
    return found


def _united(classes: tuple[tuple[int, ...], ...], first: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """The classes, those that are alike together at their first place."""
    together: list[tuple[int, ...]] = [()] * len(classes)
    for place, members in enumerate(classes):
        together[first.get(place, place)] += members
    return tuple(together)


def _place(membership: Membership, stay: int) -> tuple[int, int]:
    return membership.process[stay], membership.group[stay]


def _state_rows(history: History) -> dict[tuple[int, int, int], list[_StateRow]]:
    """The `state` rows by process, group and first view."""
    rows, found = history.rows, defaultdict[tuple[int, int, int], list[_StateRow]](list)
    firsts = _first_places(history)
    for row in history.of_kind("state").tolist():
        detail: dict[str, Any] = history.details.get(row, {})
        of, role = detail.get("class"), str(detail.get("role", ""))
        which = of if isinstance(of, int) and role != "merged" else -1
        place = int(rows.process[row]), int(rows.group[row]), int(rows.view[row])
        which = firsts.get(place[1:], {}).get(which, which)
        streamed = detail.get("streamed") is True
        found[place].append(_StateRow(row, role, which, int(rows.digest[row]), streamed))
    return found


def _early_snapshots(history: History) -> dict[tuple[int, int], list[_StateRow]]:
    """By group and view: states handed over by processes whose applications never entered that view.

    An application without a state is not asked for it, so that its process hands over nothing at once.
    """
    stays = history.stays
    entered = {*zip(stays.process.tolist(), stays.group.tolist(), stays.view.tolist(), strict=True)}
    found = defaultdict[tuple[int, int], list[_StateRow]](list)
    for place, states in _state_rows(history).items():
        if place not in entered:
            found[place[1:]] += [state for state in states if state.role == "snapshot"]
    return found


def _one_digest(history: History, entries: list[_Entry], early: Iterable[_StateRow]) -> Iterable[Found]:
    """Snapshots of a class that differ or come from another class; states taken over that no process handed over."""
    handed: dict[int, _StateRow] = {state.class_index: state for state in early}
    for entry in entries:
        for state in entry.rows("snapshot"):
            first = handed.setdefault(state.class_index, state)
            if state.class_index != entry.own:
                yield _found(history, state, "is of a class that it does not belong to")
            elif state.digest != first.digest:
                yield _found(history, state, "differs from the one that another member of its class handed over", first)
    for entry in entries:
        for state in entry.rows("installed"):
            source = handed.get(state.class_index)
            if state.class_index == entry.own:
                yield _found(history, state, "is that of its own class, which it already has")
            elif source is not None and state.digest != source.digest:
                yield _found(history, state, "differs from the one that the class handed over", source)
            elif source is None and not _unheard(history, entry.classes, state.class_index):
                yield _found(history, state, "was not handed over by any process")


def _unheard(history: History, classes: tuple[tuple[int, ...], ...], of: int) -> bool:
    """True if a member of that class crashed: the end of its log, with the hand-over, may be lost."""
    return 0 <= of < len(classes) and any(history.logs.crashed[member] for member in classes[of])


def _too_early(history: History, membership: Membership, entries: list[_Entry]) -> Iterable[Found]:
    """Deliveries before the state is complete, or before it was handed over."""
    for entry in entries:
        begin, merged = membership.row[entry.stay], entry.merged
        until = max((state.row for state in entry.rows("snapshot") if not state.streamed), default=begin)
        if merged is not None:
            until = max(until, merged.row)
        elif entry.needs:
            until = _end_of_formation(history, membership, entry.stay)
        low, high = np.searchsorted(history.deliveries.row, [begin, until]).tolist()
        here = history.deliveries.group[low:high] == membership.group[entry.stay]
        for row in history.deliveries.row[low:high][here].tolist():
            describe = partial(_describe_too_early, history, membership, entry.stay, row)
            yield row, membership.group[entry.stay], describe


def _end_of_formation(history: History, membership: Membership, stay: int) -> int:
    """The row at which the process goes over to another formation, leaves, or its log ends."""
    return int(history.over[_last_before_the_next(membership, stay)])


def _last_before_the_next(membership: Membership, stay: int) -> int:
    """The last stay of a process in the formation that begins with this stay."""
    while membership.following[stay] >= 0 and not membership.formed[membership.following[stay]]:
        stay = membership.following[stay]
    return stay


def _incomplete(history: History, membership: Membership, entries: list[_Entry]) -> Iterable[Found]:
    """States that are missing in a merged state; and processes that still wait for a state at a settled end."""
    for entry in entries:
        group, process = membership.group[entry.stay], membership.process[entry.stay]
        taken, merged = {state.class_index for state in entry.rows("installed")}, entry.merged
        if merged is None:
            last = _last_of_formation(membership, entry.stay)
            waits = membership.stays_in(last) and _alive(membership, last, entry, taken)
            if waits and membership.settled[process] and history.world.component[process] >= 0:
                describe = partial(_describe_waiting, history, membership, entry.stay)
                yield int(history.logs.end[process]) - 1, group, describe
            continue
        here = _last_before_the_next(membership, entry.stay)  # it merges before it reaches a view without a class
        lacking = _alive(membership, here, entry, taken)
        if lacking and not history.logs.crashed[process] and not _stopped_reading(history, here):
            yield merged.row, group, partial(_describe_lacking, history, membership, entry, here, lacking)
        only = entry.rows("installed")
        if membership.preceding[entry.stay] < 0 and len(only) == 1 and merged.digest != only[0].digest:
            yield _found(history, merged, "is not the one that it took over, although it had none itself", only[0])


def _stopped_reading(history: History, stay: int) -> bool:
    """True if the application left without having read all events: views that it did not read have no rows."""
    leave = int(history.stays.leave[stay])
    return leave != NEVER and history.details.get(leave, {}).get("unread") is True


def _last_of_formation(membership: Membership, stay: int) -> int:
    while membership.following[stay] >= 0:
        stay = membership.following[stay]
        if membership.formed[stay]:
            return -1
    return stay


def _alive(membership: Membership, stay: int, entry: _Entry, taken: set[int]) -> frozenset[int]:
    """The classes whose state it needs and lacks, and that have a member in the view of the stay."""
    here = membership.members[stay]
    return frozenset(place for place in entry.needs - taken if here.intersection(entry.classes[place]))


def _differently_merged(history: History, membership: Membership, entries: list[_Entry]) -> Iterable[Found]:
    """Of the processes that merge the same states, or go on together with theirs, those that differ from the first.

    States of the same classes give the same result wherever they are merged.
    """
    known: dict[tuple[object, ...], _StateRow] = {}
    for entry in entries:
        merged = entry.merged
        if merged is None:
            continue
        own = {entry.own} if membership.preceding[entry.stay] >= 0 else set[int]()
        taken = frozenset(own | {state.class_index for state in entry.rows("installed")})
        keys: list[tuple[object, ...]] = [("classes", taken), *_decided(history, membership, entry, merged)]
        for key in keys:
            first = known.setdefault(key, merged)
            if first.digest != merged.digest:
                yield _found(history, merged, "differs from another process's, although both must be equal", first)
                break


def _decided(
    history: History, membership: Membership, entry: _Entry, merged: _StateRow
) -> Iterable[tuple[object, ...]]:
    """The changes of view in the formation by which it is decided which states the process has.

    It gives up the state of a class when a view loses the class. But it merges before it delivers anything, so its log
    tells that earlier: in the views before, members of that class may have merged more.
    """
    taken = {state.class_index for state in entry.rows("installed")}
    here = int(history.stay_at(np.array([merged.row]))[0])
    while (following := membership.following[here]) >= 0:
        formed = membership.formed[following]
        if not _alive(membership, here if formed else following, entry, taken):
            yield "view", membership.view[here], membership.view[following]
        if formed:
            return
        here = following


def _not_alike(history: History, membership: Membership, entries: list[_Entry], ordered: BoolArray) -> Iterable[Found]:
    """Members of classes that are told to be alike, and have not delivered the same before.

    Where no common order is promised, their order does not count.
    """
    known: dict[int, tuple[_Entry, tuple[int, list[int]]]] = {}
    told = history.stays.classes
    for entry in entries:
        if membership.preceding[entry.stay] < 0 or entry.own < 0 or entry.classes == told[entry.stay]:
            continue
        root, messages = _past(history, membership, entry.stay)
        past = root, messages if ordered[_place(membership, entry.stay)] else sorted(messages)
        first, same = known.setdefault(entry.own, (entry, past))
        if past != same:
            describe = partial(_describe_not_alike, history, membership, first.stay, entry.stay)
            yield membership.row[entry.stay], membership.group[entry.stay], describe


def _past(history: History, membership: Membership, stay: int) -> tuple[int, list[int]]:
    """The first view of the formation that a process comes from, and all that it delivered there, in order."""
    stays, first = history.stays, history.first
    root = int(stays.root[membership.preceding[stay]])
    of = (first.process == membership.process[stay]) & (first.group == membership.group[stay])
    within = of & (first.row >= int(stays.row[root])) & (first.row < membership.row[stay])
    return int(stays.view[root]), first.message[within].tolist()


_ROLES: Final = {"snapshot": "handed over", "installed": "took over", "merged": "had after merging"}


def _found(history: History, state: _StateRow, why: str, other: _StateRow | None = None) -> Found:
    return state.row, int(history.rows.group[state.row]), partial(_describe_state, history, state, why, other)


def _describe_state(history: History, state: _StateRow, why: str, other: _StateRow | None) -> Violation:
    rows, shown = history.rows, [state] if other is None else [state, other]
    who = [history.process_name(rows.process[each.row]) for each in shown]
    places = tuple(history.index(each.row) for each in shown)
    of = f" of class {state.class_index}" if state.class_index >= 0 else ""
    view = history.views[rows.view[state.row]]
    against = f" ({who[1]}, index {places[1]})" if other is not None else ""
    sentence = (
        f"the state{of} that {who[0]} {_ROLES.get(state.role, state.role)} in view {view} (index {places[0]}) {why}"
    )
    return Violation(f"{sentence}{against}", tuple(who), (), places, (view,))


def _describe_too_early(history: History, membership: Membership, stay: int, row: int) -> Violation:
    sentence = (
        f"{installed(history, membership, stay)} and delivered {history.located(row)} before its state was "
        f"handed over or complete"
    )
    who, view = history.process_name(membership.process[stay]), view_of(history, membership, stay)
    places = history.index(membership.row[stay]), history.index(row)
    return Violation(sentence, (who, who), (history.message_at(row),), places, (view,))


def _describe_not_alike(history: History, membership: Membership, one: int, other: int) -> Violation:
    sentence = (
        f"{installed(history, membership, other)}, which tells that its class and the class of "
        f"{history.process_name(membership.process[one])} are alike, but these two have not delivered the same before"
    )
    return about(history, membership, sentence, [one, other])


def _describe_waiting(history: History, membership: Membership, stay: int) -> Violation:
    sentence = f"{installed(history, membership, stay)} and still waited for its state when the run ended quiet"
    return about(history, membership, sentence, [stay])


def _describe_lacking(
    history: History, membership: Membership, entry: _Entry, here: int, lacking: frozenset[int]
) -> Violation:
    missing = " | ".join(names(history, entry.classes[place]) for place in sorted(lacking))
    sentence = (
        f"{installed(history, membership, entry.stay)} and went on without the state of {missing}, although there were "
        f"such members in its view {view_of(history, membership, here)}"
    )
    return about(history, membership, sentence, [entry.stay])


def _in_two_formations(
    history: History, promises: Promises, promised: BoolArray, opportunities: IntArray
) -> Iterable[Found]:
    """Deliveries of messages that were delivered in another formation of the group, where they are in the state."""
    stays, first = history.stays, history.first
    if not stays.formed.any():
        return
    root = stays.root[history.first_stay]
    asked = promised[first.process, first.group] & history.messages.known[first.message]
    at = np.flatnonzero(asked & (history.first_stay >= 0))
    formation = stays.view[root[at]]
    order = np.lexsort((at, history.rows.time[first.row[at]], first.message[at]))
    message, formation, at = first.message[at][order], formation[order], at[order]
    begins = np.concatenate([[True], np.diff(message) != 0]) if len(message) else np.zeros(0, np.bool_)
    reference = np.maximum.accumulate(np.where(begins, np.arange(len(message)), 0))
    opportunities += np.bincount(first.group[at][~begins], minlength=len(opportunities))
    process = first.process[at]
    entered = {*zip(stays.process.tolist(), stays.view[stays.root].tolist(), strict=True)}
    for place in np.flatnonzero(formation != formation[reference]).tolist():
        if promises.asymmetric[process[place], first.group[at[place]]]:
            begin = reference[place]  # it may not know of deliveries that only others made there (11.3 rule 7)
            same = (message == message[place]) & (formation == formation[begin])
            if not any((who, int(formation[place])) in entered for who in process[same].tolist()):
                continue
        row, there = int(first.row[at[place]]), int(first.row[at[reference[place]]])
        yield row, int(first.group[at[place]]), partial(_describe_two_formations, history, there, row)


def _describe_two_formations(history: History, there: int, row: int) -> Violation:
    who = [history.process_name(history.rows.process[each]) for each in (row, there)]
    views = [history.views[history.rows.view[each]] for each in (row, there)]
    places = history.index(row), history.index(there)
    sentence = (
        f"{who[0]} delivered {history.located(row)} in view {views[0]}, and {who[1]} (index {places[1]}) in view "
        f"{views[1]} of another formation of the group: what one formation delivered is in the state of the next"
    )
    return Violation(sentence, tuple(who), (history.message_at(row),), places, tuple(views))


# -------------------------------------------------------------------------------- R2


def check_new_incarnations(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """R2: a later incarnation of a process installs no view that an earlier one installed or was a member of.

    W3 judges that it sends no message in the name of an earlier incarnation.
    """
    if not promises.groups("R2").any():
        return no_opportunity(history, promises, "R2")
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    seen: dict[tuple[int, int, str], int] = {}
    for stay in membership.stays_promising("R2"):  # in the order of name, incarnation and row
        name, incarnation = split_process_id(history.processes[membership.process[stay]])
        key = membership.group[stay], membership.view[stay], name
        earlier = seen.setdefault(key, stay)
        opportunities[membership.group[stay]] += incarnation > 0
        if membership.process[earlier] != membership.process[stay]:
            describe = partial(_describe_reused, history, membership, earlier, stay)
            found.append((membership.row[stay], membership.group[stay], describe))
    return over_groups(history, promises, "R2", opportunities, as_violations(found))


def _describe_reused(history: History, membership: Membership, earlier: int, stay: int) -> Violation:
    who, index = history.process_name(membership.process[earlier]), history.index(membership.row[earlier])
    sentence = f"{installed(history, membership, stay)}, which {who} had installed before (index {index})"
    return about(history, membership, sentence, [earlier, stay])
