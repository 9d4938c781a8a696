"""D1 integrity, D2 no duplication, D8 virtual synchrony (docs/spec/properties.md 3 and 7.2)."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.causality import Causality, Wait
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import History
from antiphon.properties.tables.survivors import end_of_stay, surviving_together, view_and_next
from antiphon.properties.verdicts.findings import Violations, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

# -------------------------------------------------------------------------------- D1


def check_integrity(history: History, promises: Promises, causality: Causality) -> list[Verdict]:
    """D1: each delivered message was sent before, by that sender, in that group, with that payload."""
    deliveries = history.deliveries
    asked = deliveries.where(promises.pairs("D1")[deliveries.process, deliveries.group])
    send_row = history.messages.send_row[asked.message]
    digest = history.rows.digest
    never_sent = ~history.messages.known[asked.message]
    altered = (send_row >= 0) & (digest[asked.row] != digest[send_row])
    bad = asked.row[never_sent | altered]
    circles = [circle for circle in causality.circles if promises.pairs("D1")[_place(history, circle)]]
    rows = np.concatenate([bad, np.array([circle[0].row for circle in circles], np.int64)])

    def describe(position: int) -> Violation:
        if position < len(bad):
            return _describe_forged(history, int(bad[position]))
        return _describe_circle(history, circles[position - len(bad)])

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    return over_groups(history, promises, "D1", opportunities, Violations(rows, history.rows.group[rows], describe))


def _place(history: History, circle: list[Wait]) -> tuple[int, int]:
    """The process and group under which a circle is counted."""
    return circle[0].process, int(history.rows.group[circle[0].row])


def _describe_forged(history: History, row: int) -> Violation:
    deliveries = history.deliveries
    message = deliveries.message[np.searchsorted(deliveries.row, row)]
    who, name = history.process_name(history.rows.process[row]), history.message_at(row)
    sender, send_row = (
        history.process_name(history.messages.sender[message]),
        history.messages.send_row[message],
    )
    if send_row < 0:
        sentence = f"{who} delivered {history.located(row)}, but {sender} never sent such a message in that group"
        return Violation(sentence, (who,), (name,), (history.index(row),))
    places = (history.index(row), history.index(send_row))
    sentence = f"{who} delivered {history.located(row)} with a different digest than {sender} sent (index {places[1]})"
    return Violation(sentence, (who, sender), (name,), places)


def _describe_circle(history: History, circle: list[Wait]) -> Violation:
    steps, indexes = [], []
    for wait, cause in zip(circle, [circle[-1], *circle[:-1]], strict=True):
        # `cause` waits for a message of this process, which it sent only after this delivery.
        delivered, sent = wait.row, int(history.messages.send_row[cause.message])
        who = history.process_name(wait.process)
        if sent < 0:  # beyond the end of a crashed log, hence after everything in it
            sent = int(history.logs.end[wait.process]) - 1
            sent_message = f"{history.message_name(cause.message)} (beyond the end of its log)"
        else:
            sent_message = history.located(sent)
        steps.append(f"{who} delivered {history.located(delivered)} before it sent {sent_message}")
        indexes += [history.index(delivered), history.index(sent)]
    return Violation(
        ", but ".join(steps) + ": it was delivered before it was sent",
        tuple(history.process_name(wait.process) for wait in circle),
        tuple(history.message_name(wait.message) for wait in circle),
        tuple(indexes),
    )


# -------------------------------------------------------------------------------- D2


def check_duplication(history: History, promises: Promises) -> list[Verdict]:
    """D2: a process delivers a message at most once."""
    deliveries, first = history.deliveries, history.first
    promised = promises.pairs("D2")[deliveries.process, deliveries.group]
    repeated = promised & ~np.isin(deliveries.row, first.row, assume_unique=True)
    again = deliveries.where(repeated)

    def describe(position: int) -> Violation:
        process, message = again.process[position], again.message[position]
        once = first.row[(first.process == process) & (first.message == message)][0]
        who, name = history.process_name(process), history.message_name(message)
        places = (history.index(once), history.index(again.row[position]))
        sentence = f"{who} delivered {name} twice (index {places[0]} and index {places[1]})"
        return Violation(sentence, (who, who), (name,), places)

    opportunities = np.bincount(deliveries.group[promised], minlength=len(history.groups))
    return over_groups(history, promises, "D2", opportunities, Violations(again.row, again.group, describe))


# -------------------------------------------------------------------------------- D8


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two stays that should have delivered the same messages but did not."""

    stay: int
    reference: int
    """A stay of the largest camp of processes that agree with each other."""


def check_virtual_synchrony(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D8: processes that go from one view to the same next one delivered the same messages in the first."""
    opportunities = np.zeros(len(history.groups), np.int64)
    differences: list[_Difference] = []
    for together in surviving_together(history, promises.pairs("D8")):
        if delivered.count[together].any():
            opportunities[history.stays.group[together[0]]] += len(together) * (len(together) - 1) // 2
            differences += _differences(delivered, together)
    rows = np.array([end_of_stay(history, difference.stay) for difference in differences], np.int64)
    groups = np.array([history.stays.group[difference.stay] for difference in differences], np.int64)

    def describe(position: int) -> Violation:
        return _describe_difference(history, delivered, differences[position])

    return over_groups(history, promises, "D8", opportunities, Violations(rows, groups, describe))


def _differences(delivered: Delivered, together: list[int]) -> list[_Difference]:
    """Compare each process with the largest camp that agrees, instead of all pairs."""
    camps: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for stay in together:
        camps[delivered.fingerprint(stay)].append(stay)
    if len(camps) == 1:
        return []
    # Of two camps of the same size take the one with more messages: a loss is likelier than an invention.
    largest = max(camps, key=lambda mark: (len(camps[mark]), mark[0], -camps[mark][0]))
    return [_Difference(stay, camps[largest][0]) for mark, camp in camps.items() if mark != largest for stay in camp]


def _describe_difference(history: History, delivered: Delivered, difference: _Difference) -> Violation:
    """Names the earliest message that only one of the two delivered, and the views."""
    only = [
        (int(history.rows.time[row]), int(row), has, lacks)
        for has, lacks in ((difference.reference, difference.stay), (difference.stay, difference.reference))
        for row in delivered.rows_without(has, lacks)
    ]
    _, row, has, lacks = min(only)
    stays = history.stays
    holder, lacking = history.process_name(stays.process[has]), history.process_name(stays.process[lacks])
    path = view_and_next(history, has)
    elsewhere = delivered_elsewhere(history, int(stays.process[lacks]), row)
    onward = f"both went to view {path[1]}" if len(path) > 1 else "the run ended quiet"
    sentence = f"{holder} delivered {history.located(row)} in view {path[0]}, but {lacking} {elsewhere}; then {onward}"
    places = (history.index(row), history.index(end_of_stay(history, lacks)))
    return Violation(sentence, (holder, lacking), (history.message_at(row),), places, path)


def delivered_elsewhere(history: History, process: int, row: int) -> str:
    """What the process did with the message that another process delivered at that row."""
    first, deliveries = history.first, history.deliveries
    message = deliveries.message[np.searchsorted(deliveries.row, row)]
    own = first.row[(first.process == process) & (first.message == message)]
    if not len(own):
        return "did not deliver it"
    view = history.views[history.rows.view[own[0]]]
    return f"delivered it in view {view} instead (index {history.index(own[0])})"
