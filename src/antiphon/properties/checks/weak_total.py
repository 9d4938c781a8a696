"""O5 and O5x weak total order: processes that go on together delivered in one order (docs/spec/properties.md 4, 7.2).

Both count pairs of processes. O5 compares by hash what two of them delivered in one view of one group. O5x compares
messages of two groups, each delivered in a view that both left for the same next one.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.cycles import Step, consecutive, describe_cycle, disagreement, knots, step
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.tables.survivors import surviving_together, view_and_next
from antiphon.properties.verdicts.findings import NOTHING, Violations, over_groups, over_run
from antiphon.properties.verdicts.verdict import Verdict, Violation

# -------------------------------------------------------------------------------- O5


@dataclass(frozen=True, slots=True)
class _Dispute:
    """Two stays that left one view together but delivered common messages in different orders."""

    stay: int
    steps: list[Step]


def check_one_group(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """O5: two processes that leave a view for the same next one delivered their common messages in the same order."""
    opportunities = np.zeros(len(history.groups), np.int64)
    disputes: list[_Dispute] = []
    for together in surviving_together(history, promises.pairs("O5")):
        comparable = [stay for stay in together if delivered.count[stay] > 1]
        opportunities[history.stays.group[together[0]]] += len(comparable) * (len(comparable) - 1) // 2
        disputes += _disputes(history, delivered, comparable)
    rows = np.array([_last_row(history, dispute.steps) for dispute in disputes], np.int64)

    def describe(position: int) -> Violation:
        return _describe_dispute(history, disputes[position])

    return over_groups(history, promises, "O5", opportunities, Violations(rows, history.rows.group[rows], describe))


def _disputes(history: History, delivered: Delivered, comparable: list[int]) -> list[_Dispute]:
    """All pairs that disagree. Sequences with equal hashes are grouped, so a good run needs no comparison."""
    camps: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for stay in comparable:
        camps[delivered.sequence(stay)].append(stay)
    found = []
    for left, right in combinations(camps.values(), 2):
        steps = disagreement(_log(history, delivered, left[0]), _log(history, delivered, right[0]))
        if steps:
            # One pair stands for all pairs that disagree in this way.
            found += [_Dispute(left[0], steps)] * (len(left) * len(right))
    return found


def _log(history: History, delivered: Delivered, stay: int) -> Deliveries:
    """What was delivered during the stay; unsent messages are reported by D1 alone."""
    message, stays = delivered.messages(stay), history.stays
    log = Deliveries(
        delivered.rows(stay),
        np.full_like(message, stays.process[stay]),
        message,
        np.full_like(message, stays.group[stay]),
    )
    return log.where(history.messages.known[message])


def _last_row(history: History, steps: list[Step]) -> int:
    """The row at which a reader of the trace would first see it."""
    return max((row for each in steps for row in each.rows), key=lambda row: (int(history.rows.time[row]), row))


def _describe_dispute(history: History, dispute: _Dispute) -> Violation:
    cycle, views = describe_cycle(history, dispute.steps), view_and_next(history, dispute.stay)
    onward = f"both went from view {views[0]} to view {views[1]}" if len(views) > 1 else "the run ended quiet"
    return Violation(f"{cycle.sentence}, and {onward}", cycle.processes, cycle.messages, cycle.indexes, views)


# -------------------------------------------------------------------------------- O5x


def check_many_groups(history: History, promises: Promises, delivered: Delivered, stamps: Stamps) -> list[Verdict]:
    """O5x: two processes delivered in the same order what they delivered in shared views of two groups.

    A stamp that proves a total order of these deliveries proves this too. Otherwise only messages that lie on a cycle
    of the graph of deliveries are compared.
    """
    together = [
        [stay for stay in stays if delivered.count[stay]]
        for stays in surviving_together(history, promises.pairs("O5x"))
    ]
    opportunities = _shared_pairs(history, together)
    if not opportunities:
        return over_run(history, promises, "O5x", 0, NOTHING)
    set_of_stay = np.full(len(history.stays.row), -1, np.int64)
    for number, stays in enumerate(together):
        set_of_stay[stays] = number
    first = history.first
    of_delivery = set_of_stay[history.first_stay]
    chosen = (of_delivery >= 0) & history.messages.known[first.message]
    if stamps.flaw(chosen) is None:
        return over_run(history, promises, "O5x", opportunities, NOTHING)
    disputes = _disputes_across(first.where(chosen), of_delivery[chosen])
    rows = np.array([_last_row(history, steps) for steps in disputes], np.int64)

    def describe(position: int) -> Violation:
        return describe_cycle(history, disputes[position])

    broken = Violations(rows, history.rows.group[rows], describe)
    return over_run(history, promises, "O5x", opportunities, broken)


def _shared_pairs(history: History, together: list[list[int]]) -> int:
    """The number of pairs of processes, for each pair of views in two groups that both left together."""
    stays = history.stays
    present = np.zeros((len(together), len(history.processes)), np.int64)
    for number, survivors in enumerate(together):
        present[number, stays.process[survivors]] = 1
    group = np.array([stays.group[survivors[0]] if survivors else -1 for survivors in together], np.int64)
    common = np.triu(present @ present.T) * (group[:, None] != group[None, :])
    return int((common * (common - 1) // 2).sum())


def _disputes_across(shared: Deliveries, survivors: IntArray) -> list[list[Step]]:
    """All pairs of processes that disagree on two messages of two groups."""
    # A message delivered in two views is not one message to compare, so deliveries are keyed by message and view.
    width = int(survivors.max()) + 1
    names, place = np.unique(shared.message * width + survivors, return_inverse=True)
    placed = Deliveries(shared.row, shared.process, place.astype(np.int64), shared.group)
    tied = [message for knot in knots(consecutive(placed), len(names)) for message in knot]
    left_over = placed.where(np.isin(placed.message, tied))
    logs = [left_over.where(left_over.process == process) for process in np.unique(left_over.process)]
    found = [_opposite_across(left, right) for left, right in combinations(logs, 2)]
    return [[_named(each, names // width) for each in steps] for steps in found if steps]


def _opposite_across(left: Deliveries, right: Deliveries) -> list[Step]:
    """The first message at the left that the right delivers before one of another group, contrary to the left."""
    _, at_left, at_right = np.intersect1d(left.message, right.message, assume_unique=True, return_indices=True)
    order = np.argsort(at_left)
    at_left, at_right, group = at_left[order], at_right[order], left.group[at_left[order]]
    first = len(order)
    for each in np.unique(group):
        # The last position at the right of all messages of other groups that come earlier at the left.
        furthest = np.maximum.accumulate(np.where(group == each, -1, at_right))
        first = min([first, *np.flatnonzero((group == each) & (furthest > at_right))[:1].tolist()])
    if first == len(order):
        return []
    before = np.flatnonzero((group[:first] != group[first]) & (at_right[:first] > at_right[first]))[-1]
    return [step(left, at_left[before], at_left[first]), step(right, at_right[first], at_right[before])]


def _named(each: Step, message: IntArray) -> Step:
    """The step with messages instead of their codes within shared views."""
    return Step(each.process, (int(message[each.messages[0]]), int(message[each.messages[1]])), each.rows)
