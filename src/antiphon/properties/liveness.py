"""L2 and L3: what must have arrived by the end of a quiet run (properties.md 6).

"Eventually" is "before the quiet end", asked of the members of a stable component only. A run without a quiet
end says nothing, and its verdicts say why.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.findings import NOTHING, Broken, over_groups
from antiphon.properties.history import History
from antiphon.properties.promises import Promises
from antiphon.properties.sets import Delivered
from antiphon.properties.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_multicast(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """L2: sent in the last view by a member of S, delivered in that view by all members of S in it."""
    if not history.world.quiet:
        return _cannot_tell(history, promises, "L2")
    opportunities = np.zeros(len(history.groups), np.int64)
    missing, lacking = [_NONE], [_NONE]
    stable = _stable(history, promises, "L2")
    for stay, messages in _sent_in_last_view(history, stable):
        for process, where in _receivers(history, stable, stay):
            opportunities[history.stays.group[stay]] += len(messages)
            there = delivered.messages(where) if where >= 0 else _NONE
            absent = messages[~np.isin(messages, there)]
            missing.append(absent)
            lacking.append(np.full(len(absent), process, np.int64))
    lost, losers = np.concatenate(missing), np.concatenate(lacking)

    def tell(position: int) -> Violation:
        return _tell_lost(history, int(lost[position]), int(losers[position]))

    broken = Broken(history.logs.end[losers] - 1, history.messages.group[lost], tell)
    return over_groups(history, promises, "L2", opportunities, broken)


def check_self_delivery(history: History, promises: Promises) -> list[Verdict]:
    """L3: a member of S delivers what it sent; what it was asked to send and never sent it has not delivered either."""
    if not history.world.quiet:
        return _cannot_tell(history, promises, "L3")
    sends, first, sender = history.sends, history.first, history.messages.sender
    stable = _stable(history, promises, "L3")
    asked = sends.where(stable[sends.process, sends.group])
    own = first.message[first.process == sender[first.message]]
    lost = asked.message[~np.isin(asked.message, own)]
    forgotten = _never_sent(history, stable)

    def tell(position: int) -> Violation:
        if position >= len(lost):
            return _tell_forgotten(history, forgotten[position - len(lost)])
        message = int(lost[position])
        who, name = history.process_name(sender[message]), history.message_name(message)
        index = history.index(history.messages.send_row[message])
        sentence = f"{who} sent {name} (index {index}) and had not delivered it itself when the run ended quiet"
        return Violation(sentence, (who,), (name,), (index,))

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    for _, group, count in forgotten:
        opportunities[group] += count
    stops = np.array([row for row, _, _ in forgotten], np.int64)
    rows = np.concatenate([history.logs.end[sender[lost]] - 1, stops])
    groups = np.concatenate([history.messages.group[lost], np.array([group for _, group, _ in forgotten], np.int64)])
    return over_groups(history, promises, "L3", opportunities, Broken(rows, groups, tell))


def _never_sent(history: History, stable: BoolArray) -> list[tuple[int, int, int]]:
    """(stop row, group, count) of requests that no frame ever took, as the `stop` rows of members of S tell."""
    code_of = {group: code for code, group in enumerate(history.groups)}
    found = []
    for row in history.of_kind("stop").tolist():
        waiting = history.details[row].get("waiting", {})
        for group, count in waiting.items() if isinstance(waiting, dict) else ():
            code = code_of.get(group, -1)
            if isinstance(count, int) and count > 0 and code >= 0 and stable[history.rows.process[row], code]:
                found.append((row, code, count))
    return found


def _tell_forgotten(history: History, forgotten: tuple[int, int, int]) -> Violation:
    row, group, count = forgotten
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} stopped (index {index}) while {count} message{'s' if count != 1 else ''} that its application had "
        f"asked to send in {history.groups[group]} had never left, although the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))


def _cannot_tell(history: History, promises: Promises, property_id: str) -> list[Verdict]:
    opportunities = np.zeros(len(history.groups), np.int64)
    note = f"not judged: {history.world.reason}"
    return over_groups(history, promises, property_id, opportunities, NOTHING, note=note)


def _stable(history: History, promises: Promises, property_id: str) -> BoolArray:
    """By process and group: in a stable component, still in the group, and promising the property."""
    in_component = (history.world.component >= 0)[:, None]
    stable: BoolArray = promises.pairs(property_id) & in_component & ~history.left
    return stable


def _sent_in_last_view(history: History, stable: BoolArray) -> list[tuple[int, IntArray]]:
    """What stable members sent in their last views; those of one view and component together, with a stay in it."""
    sends, stays, component = history.sends, history.stays, history.world.component
    stay = history.stay_at(sends.row)
    asked = stable[sends.process, sends.group] & (stays.following[stay] < 0)
    shared: dict[tuple[int, int, int, tuple[int, ...]], list[int]] = defaultdict(list)
    for last in np.unique(stay[asked]).tolist():
        place = int(stays.group[last]), int(stays.view[last]), int(component[stays.process[last]])
        shared[*place, stays.members[last]].append(last)
    return [(together[0], sends.message[asked & np.isin(stay, together)]) for together in shared.values()]


def _receivers(history: History, stable: BoolArray, stay: int) -> list[tuple[int, int]]:
    """The members of that view in the senders' component, each with its own stay in it (-1: none)."""
    stays, component = history.stays, history.world.component
    group, sender = stays.group[stay], stays.process[stay]
    same = np.flatnonzero((stays.group == group) & (stays.view == stays.view[stay]))
    own = dict(zip(stays.process[same].tolist(), same.tolist(), strict=True))
    return [
        (member, own.get(member, -1))
        for member in stays.members[stay]
        if stable[member, group] and component[member] == component[sender]
    ]


def _tell_lost(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = (
        history.process_name(process),
        history.process_name(sender),
        history.message_name(message),
    )
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    sentence = (
        f"{source} sent {name} (index {index}) in its last view {view}, and {who}, a member of that view, "
        f"had not delivered it there when the run ended quiet"
    )
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))
