"""S1, S2, S4: a stable message has reached all, stays stable, and only then is freed (docs/spec/properties.md 5).

Stability is reported as prefixes, so only the increase of each report is judged (docs/spec/properties.md 7.6).
"""

from dataclasses import dataclass

import numpy as np

from antiphon.properties.checks.states import awaited
from antiphon.properties.promises import Promises
from antiphon.properties.tables.arrivals import NEVER, Arrivals
from antiphon.properties.tables.codes import distinct
from antiphon.properties.tables.columns import NO_CLOCK, BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.marks import Marks, running_maximum
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.tables.windows import Windows
from antiphon.properties.verdicts.findings import NOTHING, Violations, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


@dataclass(frozen=True, slots=True)
class _Added:
    """The messages that reports add to their marks, one by one."""

    report: IntArray
    """The report that adds it."""
    message: IntArray
    """Its code in `Arrivals`."""
    unheard: IntArray
    """Reports that add a number which no log sent or received."""


def _added(arrivals: Arrivals, marks: Marks, reports: IntArray, above: IntArray) -> _Added:
    """What these reports add above these numbers."""
    begin, end = arrivals.between(marks.group[reports], marks.sender[reports], above, marks.number[reports])
    count = end - begin
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    unheard = reports[count < marks.number[reports] - above]
    return _Added(np.repeat(reports, count), np.repeat(begin, count) + offset, unheard)


# -------------------------------------------------------------------------------- S1


def check_stable_everywhere(history: History, promises: Promises, stability: StabilityReports) -> list[Verdict]:
    """S1: when a process learns in a view that a message is stable, every member of that view has received it.

    Messages sent in a predecessor of the group are excluded, because a joiner has them in its state. Members whose
    failure the process had confirmed by then are excluded. `receipts.py` says which processes a private view concerns.
    "Has received" is judged by `time`, and an equal time suffices; at the process itself, by its own history.
    """
    marks, arrivals = stability.stable, stability.arrivals
    reports = np.flatnonzero(marks.rising() & promises.pairs("S1")[marks.process, marks.group])
    above = np.maximum(marks.before[reports], stability.predecessors(marks, reports))
    added = _added(arrivals, marks, reports, above)
    early = stability.receipts.missing(marks.row[added.report], added.message)
    early_report, early_message = added.report[early], added.message[early]
    rows = marks.row[np.concatenate([early_report, added.unheard])]

    def describe(position: int) -> Violation:
        if position < len(early_message):
            row = int(marks.row[early_report[position]])
            return _describe_early(history, stability, "learned that", "is stable", row, int(early_message[position]))
        return _describe_unheard(history, arrivals, marks, int(added.unheard[position - len(early_message)]), "stable")

    counted = np.concatenate([added.report, added.unheard])
    opportunities = np.bincount(marks.group[counted], minlength=len(history.groups))
    return over_groups(history, promises, "S1", opportunities, Violations(rows, history.rows.group[rows], describe))


def _describe_early(
    history: History, stability: StabilityReports, did: str, what: str, row: int, message: int
) -> Violation:
    """Names the process that received it last, or never."""
    arrivals, stay = stability.arrivals, int(history.stay_at(np.array([row]))[0])
    who, view = history.process_name(history.rows.process[row]), history.views[history.stays.view[stay]]
    slow, first = _slowest(history, stability, row, message)
    name, other, index = _name(history, arrivals, message), history.process_name(slow), history.index(row)
    had = "sent" if slow == arrivals.sender[message] else "received"
    if first == NEVER:
        later, places = f"never {had} it", (index, history.index(history.logs.end[slow] - 1))
    else:
        places = (index, history.index(first))
        later = f"{had} it only later (index {places[1]})"
    role = "a receiver" if history.stays.private[stay] else "a member"
    member = "itself" if other == who else f"{other}, {role} of view {view},"
    sentence = f"{who} {did} {name} {what} (index {index}), but {member} {later}"
    return Violation(sentence, (who, other), (name,), places, (view,))


def _slowest(history: History, stability: StabilityReports, row: int, message: int) -> tuple[int, int]:
    """The process that had the message last, or the process of the row if it was late itself; and the row."""
    arrivals, process = stability.arrivals, int(history.rows.process[row])
    members = stability.receipts.required_receivers(row, message)
    asked = np.array([process, *members])
    first = arrivals.first_row(asked, np.full(len(asked), message))
    if first[0] > row:
        return process, int(first[0])
    slowest = int(np.argmax(arrivals.times(int(arrivals.group[message]), members, np.array([message]))[:, 0]))
    return members[slowest], int(first[1 + slowest])


def _describe_unheard(history: History, arrivals: Arrivals, marks: Marks, report: int, what: str) -> Violation:
    group, sender, above = marks.group[report], marks.sender[report], marks.before[report]
    heard = arrivals.number[(arrivals.group == group) & (arrivals.sender == sender) & (arrivals.number > above)]
    # The numbers are sorted, so the first that differs from a sequence without gaps shows the gap.
    expected = above + 1 + np.arange(len(heard))
    missing = int(above + 1 + np.argmax(np.append(heard != expected, True)))
    who, row = history.process_name(marks.process[report]), int(marks.row[report])
    name = f"{history.groups[group]}/{history.process_name(sender)}:{missing}"
    sentence = f"{who} calls {name} {what} (index {history.index(row)}), but no log has sent or received such a message"
    return Violation(sentence, (who,), (name,), (history.index(row),))


def _name(history: History, arrivals: Arrivals, message: int) -> str:
    group, sender = history.groups[arrivals.group[message]], history.process_name(arrivals.sender[message])
    return f"{group}/{sender}:{arrivals.number[message]}"


# -------------------------------------------------------------------------------- S2


@dataclass(frozen=True, slots=True)
class _Order:
    """First deliveries in groups whose stability is by blocks, with their position in both orders."""

    deliveries: Deliveries
    clock: IntArray
    stable_row: IntArray
    """The row at which its process first called it stable; one past all rows if it never did."""


def check_stable_prefix(
    history: History, promises: Promises, stability: StabilityReports, windows: Windows
) -> list[Verdict]:
    """S2: stable marks never go back; with total order and stability by blocks they are closed in delivery order.

    Closed means: at each `stable` row, no delivered message is unstable while one with an equal or larger clock is
    stable. Messages of one block have one clock, and a block becomes stable as a whole. This holds within a formation:
    what was not stable in a group when its successor was formed need not become stable.
    """
    marks = stability.stable
    promised = promises.pairs("S2")
    judged = promised[marks.process, marks.group]
    lowered = np.flatnonzero(judged & (marks.number < marks.before))
    # A total order that is only required of a process says nothing about how it detects stability.
    by_blocks = promised & promises.offered("O6") & (windows.by_block | ~windows.on[:, None] | promises.offered("S3"))
    order = _order(history, marks, by_blocks)
    skipped, seen_at = _skipped(history, promises, marks, order)

    def describe(position: int) -> Violation:
        if position < len(lowered):
            return _describe_lowered(history, marks, int(lowered[position]))
        at = position - len(lowered)
        return _describe_skipped(history, order, int(skipped[at]), int(seen_at[at]))

    rows = np.concatenate([marks.row[lowered], seen_at])
    opportunities = np.bincount(marks.group[judged], minlength=len(history.groups))
    return over_groups(history, promises, "S2", opportunities, Violations(rows, history.rows.group[rows], describe))


def _order(history: History, marks: Marks, asked: BoolArray) -> _Order:
    first, rows, messages = history.first, history.rows, history.messages
    clock = rows.clock[first.row]
    # A message that no process sent cannot become stable; D1 reports it.
    chosen = asked[first.process, first.group] & (clock != NO_CLOCK) & messages.known[first.message]
    kept = first.where(chosen)
    stable_row = marks.since(kept.process, kept.group, messages.sender[kept.message], messages.number[kept.message])
    return _Order(kept, clock[chosen], stable_row)


def _skipped(history: History, promises: Promises, marks: Marks, order: _Order) -> tuple[IntArray, IntArray]:
    """Deliveries left unstable below a stable one, and the last `stable` row at which each was.

    The largest clock among the stable ones only grows. So a delivery was left out at some row exactly if it was left
    out at the last row before it became stable itself.
    """
    deliveries, width = order.deliveries, len(history.rows.kind) + 1
    stays = history.stays
    # A receive-only process starts again with each of its views.
    begun = np.where(promises.roles.receiving, np.arange(len(stays.row)), stays.root)
    root = np.append(begun, -1)
    pair = root[history.stay_at(deliveries.row)]
    reports = distinct(marks.row)
    reports = np.sort(root[history.stay_at(reports)] * width + reports)
    last = np.searchsorted(reports, pair * width + order.stable_row) - 1
    seen = np.append(reports, -1)[last] - pair * width
    highest = _highest_stable(order, pair, width, seen)
    left = np.flatnonzero((last >= 0) & (seen > deliveries.row) & (highest >= order.clock))
    return left, seen[left]


def _highest_stable(order: _Order, pair: IntArray, width: int, row: IntArray) -> IntArray:
    """For each delivery: the largest clock delivered and stable at its process, in its formation, by that row."""
    both = np.maximum(order.deliveries.row, order.stable_row)
    place = pair * width + both
    by_place = np.argsort(place, kind="stable")
    highest = running_maximum(order.clock[by_place], np.diff(pair[by_place], prepend=-1) != 0)
    found = np.searchsorted(place[by_place], pair * width + row, side="right") - 1
    same = (found >= 0) & (np.append(pair[by_place], -1)[found] == pair)
    return np.where(same, np.append(highest, NO_CLOCK)[found], NO_CLOCK)


def _describe_lowered(history: History, marks: Marks, report: int) -> Violation:
    who, sender = history.process_name(marks.process[report]), history.process_name(marks.sender[report])
    index, group = history.index(marks.row[report]), history.groups[marks.group[report]]
    sentence = (
        f"{who} calls the messages of {sender} in {group} stable up to number {marks.number[report]} (index {index}), "
        f"after it had called them stable up to number {marks.before[report]}"
    )
    return Violation(sentence, (who,), (f"{group}/{sender}:{marks.number[report]}",), (index,))


def _describe_skipped(history: History, order: _Order, left: int, row: int) -> Violation:
    deliveries = order.deliveries
    same = (deliveries.process == deliveries.process[left]) & (deliveries.group == deliveries.group[left])
    stable = np.flatnonzero(same & (deliveries.row < row) & (order.stable_row <= row))
    other = stable[np.argmax(order.clock[stable])]
    who = history.process_name(deliveries.process[left])
    names = tuple(history.message_name(deliveries.message[each]) for each in (other, left))
    clocks = (order.clock[other], order.clock[left])
    places = (history.index(row), history.index(deliveries.row[left]))
    sentence = (
        f"{who} knows {names[0]} (clock {clocks[0]}) to be stable at index {places[0]}, but not {names[1]} "
        f"(clock {clocks[1]}), which it delivered at index {places[1]} and which does not come later in the order"
    )
    return Violation(sentence, (who, who), names, places)


# -------------------------------------------------------------------------------- S4


def check_no_early_discard(
    history: History, promises: Promises, stability: StabilityReports, membership: Membership
) -> list[Verdict]:
    """S4: a process called a message stable before it frees it. A predecessor's messages are freed with it.

    An evicted message (docs/spec/flow-control.md fb2) may be freed without that, if another member of the view had
    called it stable, every member had received it, and the process itself had delivered it (invariant I4). A message
    whose turn comes while the application waits for a state is kept elsewhere, and need not be in a buffer
    (docs/spec/newtop.md 11.2 rule 7).
    """
    freed, stable = stability.freed, stability.stable
    reports = np.flatnonzero(freed.rising() & promises.pairs("S4")[freed.process, freed.group])
    known = stable.at(freed.process[reports], freed.group[reports], freed.sender[reports], freed.row[reports])
    known = np.maximum(known, stability.predecessors(freed, reports))
    early = known < freed.number[reports]
    evicted = early & _evicted(history, freed.row[reports])
    bare = reports[early & ~evicted]
    unsafe = NOTHING
    if evicted.any():
        states = awaited(history, promises, membership)
        unsafe = _Evictions(history, stability, states, reports[evicted], known[evicted]).broken

    def describe(position: int) -> Violation:
        if position < len(bare):
            return _describe_bare(history, stability, int(bare[position]))
        return unsafe.describe(position - len(bare))

    rows = np.concatenate([freed.row[bare], unsafe.rows])
    opportunities = np.bincount(freed.group[reports], minlength=len(history.groups))
    return over_groups(history, promises, "S4", opportunities, Violations(rows, history.rows.group[rows], describe))


def _evicted(history: History, rows: IntArray) -> BoolArray:
    evicted = [row for row, detail in history.details.items() if detail.get("evicted") is True]
    return np.isin(rows, np.array(evicted, np.int64))


def _describe_bare(history: History, stability: StabilityReports, report: int) -> Violation:
    freed = stability.freed
    at = (freed.process, freed.group, freed.sender, freed.row)
    known = int(stability.stable.at(*(column[[report]] for column in at))[0])
    who, sender = history.process_name(freed.process[report]), history.process_name(freed.sender[report])
    group, index = history.groups[freed.group[report]], history.index(freed.row[report])
    name = f"{group}/{sender}:{max(known, int(freed.before[report])) + 1}"
    until = f"only those up to number {known} were" if known >= 0 else "none of its messages was"
    sentence = (
        f"{who} freed {name} (index {index}) before it knew it to be stable: of {sender} in {group}, {until} by then"
    )
    return Violation(sentence, (who,), (name,), (index,))


class _Evictions:
    """The evictions that were not safe, one for each message."""

    def __init__(
        self, history: History, stability: StabilityReports, states: dict[int, int], reports: IntArray, known: IntArray
    ) -> None:
        self._history, self._prefixes, self._states = history, stability, states
        marks, arrivals = stability.freed, stability.arrivals
        # What an earlier row freed, or what is stable here, is not freed by this row.
        added = _added(arrivals, marks, reports, np.maximum(marks.before[reports], known))
        row = marks.row[added.report]
        self._early = stability.receipts.missing(row, added.message)
        self._unknown = self._first_claim(row, added.message) > history.rows.time[row]
        undelivered = self._delivery(marks.process[added.report], added.message) > row
        undelivered &= ~self._held_back(row, added.message)
        self._bad = np.flatnonzero(self._early | self._unknown | undelivered)
        self._message, self._row, self._unheard = added.message, row, added.unheard
        rows = np.concatenate([row[self._bad], marks.row[added.unheard]])
        self.broken = Violations(rows, history.rows.group[rows], self._describe)

    def _describe(self, position: int) -> Violation:
        """The first of the three conditions that is violated."""
        history, arrivals = self._history, self._prefixes.arrivals
        if position >= len(self._bad):
            report = int(self._unheard[position - len(self._bad)])
            return _describe_unheard(history, arrivals, self._prefixes.freed, report, "freed")
        at = self._bad[position]
        row, message = int(self._row[at]), int(self._message[at])
        if self._early[at]:
            return _describe_early(history, self._prefixes, "evicted", "from its buffer", row, message)
        who, name, index = (
            history.process_name(history.rows.process[row]),
            _name(history, arrivals, message),
            history.index(row),
        )
        why = "no member of its view had called it stable" if self._unknown[at] else "it had not delivered it itself"
        return Violation(f"{who} evicted {name} (index {index}) although {why} by then", (who,), (name,), (index,))

    def _first_claim(self, row: IntArray, message: IntArray) -> IntArray:
        """When another member of the view at each row first called the message stable."""
        history, stable = self._history, self._prefixes.stable
        stays, claims = history.stay_at(row), np.full(len(message), NEVER, np.int64)
        group, sender, number = (column[message] for column in self._columns())
        times = np.append(history.rows.time, NEVER)
        for stay in np.unique(stays).tolist():
            asked = stays == stay
            for member in set(history.stays.members[stay]) - {int(history.stays.process[stay])}:
                who = np.full(np.count_nonzero(asked), member, np.int64)
                since = stable.since(who, group[asked], sender[asked], number[asked])
                claims[asked] = np.minimum(claims[asked], times[since])
        return claims

    def _columns(self) -> tuple[IntArray, IntArray, IntArray]:
        arrivals = self._prefixes.arrivals
        return arrivals.group, arrivals.sender, arrivals.number

    def _held_back(self, row: IntArray, message: IntArray) -> BoolArray:
        """Which messages arrived before the states that the process of each row waited for in that formation."""
        root = self._history.stays.root[self._history.stay_at(row)].tolist()
        until = np.array([self._states.get(stay, -1) for stay in root], np.int64)
        held_back: BoolArray = self._prefixes.arrivals.first_row(self._history.rows.process[row], message) < until
        return held_back

    def _delivery(self, process: IntArray, message: IntArray) -> IntArray:
        """The row at which each process first delivered each message; NEVER if it did not."""
        if not len(message):
            return message
        first, arrivals, rows = self._history.first, self._prefixes.arrivals, self._history.rows
        total = len(arrivals.number)
        code = arrivals.find(first.group, rows.sender[first.row], rows.number[first.row])
        key = np.where(code >= 0, first.process * total + code, -1)
        order = np.argsort(key, kind="stable")
        found = np.searchsorted(key[order], process * total + message)
        same = np.append(key[order], -1)[found] == process * total + message
        return np.where(same, np.append(first.row[order], NEVER)[found], NEVER)
