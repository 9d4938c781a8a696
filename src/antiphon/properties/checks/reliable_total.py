"""O7 reliable total order: a process that delivers in a view leaves out nothing that comes earlier in the order.

With an order f as in O6 this means: what the processes deliver in one view are prefixes of one sequence, the longest
one among them (docs/spec/properties.md 4). This is compared by hash and needs no f. Only if it fails, f is needed to
find the omitted message: the protocol's stamp if it proves the order, else the graph of deliveries (7.3). Whether a
message was left out does not depend on the choice of f. If no f exists, O7 is violated; it is reported with the cycle
that O6 reports. Further omissions are then named by the order of each view that has one.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from antiphon.properties.checks.delivery import delivered_elsewhere
from antiphon.properties.checks.total import realms, without_order
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.cycles import consecutive, placed
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import History
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.verdicts.findings import Violations, merged, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


@dataclass(frozen=True, slots=True)
class _Omission:
    """A message that was left out during a stay, and the first delivery there of a later one."""

    stay: int
    message: int
    row: int
    there: list[int]
    """All stays in that view."""


def check_reliable_total(history: History, promises: Promises, delivered: Delivered, stamps: Stamps) -> list[Verdict]:
    """O7: a process that delivers m' in a view has delivered all messages with a smaller f delivered in that view."""
    opportunities = np.zeros(len(history.groups), np.int64)
    views = _views(history, promises.pairs("O7"))
    for group, together in views:
        # A private view is shared with no other process that could deliver anything.
        shared = [stay for stay in together if not history.stays.private[stay]]
        opportunities[group] += sum(max(int(delivered.count[stay]) - 1, 0) for stay in shared)
    uneven = [(group, together) for group, together in views if not _one_sequence(delivered, together)]
    tied, omissions = [], []
    for groups, chosen in realms(history, promises, "O7"):
        place = _order(history, stamps, chosen)
        if place is None:
            tied += _without_order(history, groups, chosen)
        for together in (stays for group, stays in uneven if groups[group]):
            here = _order(history, stamps, chosen & _during(history, delivered, together)) if place is None else place
            if here is not None:
                omissions += _omissions(delivered, together, here)
    rows = np.array([omission.row for omission in omissions], np.int64)

    def describe(position: int) -> Violation:
        return _describe(history, delivered, omissions[position])

    broken = merged([*tied, Violations(rows, history.rows.group[rows], describe)])
    return over_groups(history, promises, "O7", opportunities, broken)


def _without_order(history: History, groups: BoolArray, chosen: BoolArray) -> list[Violations]:
    """The knots of each group by itself; knots across groups only if no single group has one."""
    first = history.first
    alone = [without_order(history, first.where(chosen & (first.group == group))) for group in np.flatnonzero(groups)]
    return [broken for broken in alone if len(broken.rows)] or [without_order(history, first.where(chosen))]


def _views(history: History, promised: BoolArray) -> list[tuple[int, list[int]]]:
    """For each view, its group and the stays of the processes that promise O7."""
    stays = history.stays
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for stay in np.flatnonzero(promised[stays.process, stays.group]).tolist():
        found[int(stays.group[stay]), int(stays.view[stay])].append(stay)
    return [(group, together) for (group, _), together in found.items()]


def _during(history: History, delivered: Delivered, together: list[int]) -> BoolArray:
    """Which of the first deliveries were made in these stays."""
    return np.isin(history.first.row, np.concatenate([delivered.rows(stay) for stay in together]))


def _one_sequence(delivered: Delivered, together: list[int]) -> bool:
    """True if all deliveries of a view are prefixes of the longest sequence among them."""
    longest = max(together, key=lambda stay: int(delivered.count[stay]))
    return all(delivered.sequence(stay) == delivered.opening(longest, int(delivered.count[stay])) for stay in together)


def _order(history: History, stamps: Stamps, chosen: BoolArray) -> IntArray | None:
    """For each message its place in an order that all chosen deliveries keep, -1 for others; None if there is none."""
    if stamps.flaw(chosen) is None:
        return stamps.of_messages(chosen)
    asked = history.first.where(chosen)
    place = placed(consecutive(asked), len(history.messages.number))
    if place is None:
        return None
    return np.where(np.isin(np.arange(len(place)), asked.message), place, -1)


def _omissions(delivered: Delivered, together: list[int], place: IntArray) -> list[_Omission]:
    """What each stay in a view leaves out before the last message that it delivers."""
    every = np.unique(np.concatenate([delivered.messages(stay) for stay in together]))
    every = every[place[every] >= 0]
    found = []
    for stay in together:
        own, row = delivered.messages(stay), delivered.rows(stay)
        own, row = own[place[own] >= 0], row[place[own] >= 0]
        if not len(own):
            continue
        missing = np.setdiff1d(every[place[every] < place[own[-1]]], own, assume_unique=True)
        # The process delivers in this order, so the first later message is found by bisection.
        behind = row[np.searchsorted(place[own], place[missing])]
        found += [_Omission(stay, *pair, together) for pair in zip(missing.tolist(), behind.tolist(), strict=True)]
    return found


def _describe(history: History, delivered: Delivered, omission: _Omission) -> Violation:
    """Names a process that delivered the omitted message, if possible before the later one, and its fate."""
    stays, message = history.stays, omission.message
    later = history.first.message[np.searchsorted(history.first.row, omission.row)]
    holders = [stay for stay in omission.there if message in delivered.messages(stay)]
    witness = min(holders, key=lambda stay: (later not in delivered.messages(stay), stay))
    at = {int(each): int(row) for each, row in zip(delivered.messages(witness), delivered.rows(witness), strict=True)}
    who, holder = (history.process_name(stays.process[stay]) for stay in (omission.stay, witness))
    view, names = (
        history.views[stays.view[omission.stay]],
        (history.message_at(omission.row), history.message_name(message)),
    )
    fate = delivered_elsewhere(history, int(stays.process[omission.stay]), at[message])
    if later in at:
        why = f"{holder} delivered {history.located(at[message])} before {history.located(at[int(later)])} there"
    else:
        why = f"{holder} delivered {history.located(at[message])} there, which comes earlier in the order"
    sentence = (
        f"{who} delivered {history.located(omission.row)} in view {view} but left out {names[1]}: "
        f"{why}, and {who} {fate}"
    )
    places = (history.index(omission.row), history.index(at[message]))
    return Violation(sentence, (who, holder), names, places, (view,))
