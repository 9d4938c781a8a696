"""L2, L3 and F3: what must have been delivered by the end of a quiet run (properties.md 5 and 6)."""

import numpy as np

from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.findings import Broken, over_groups
from antiphon.properties.history import Deliveries, History
from antiphon.properties.promises import Promises
from antiphon.properties.quiet import cannot_tell, receivers, sent_in_last_view, who_is_stable
from antiphon.properties.sets import Delivered
from antiphon.properties.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_multicast(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """L2: sent in the last view by a member of S, delivered in that view by all members of S in it."""
    if not history.world.quiet:
        return cannot_tell(history, promises, "L2")
    opportunities = np.zeros(len(history.groups), np.int64)
    missing, lacking = [_NONE], [_NONE]
    stable = who_is_stable(history, promises, "L2")
    for stay, messages in sent_in_last_view(history, stable):
        for process, where in receivers(history, stable, stay):
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
        return cannot_tell(history, promises, "L3")
    sends, first, sender = history.sends, history.first, history.messages.sender
    stable = who_is_stable(history, promises, "L3")
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


def check_no_loss_by_pressure(history: History, promises: Promises) -> list[Verdict]:
    """F3: what a sender that flow control once blocked sent, or was asked to send, is delivered all the same.

    By itself and by the members of its component that share its last view, in any view, if they were members of the one
    it was sent in. A sender that crashed owes nothing, and one that was removed shares no last view with the others.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "F3")
    stable = who_is_stable(history, promises, "F3")
    blocked = _ever_blocked(history, stable)
    sends, first, total = history.sends, history.first, len(history.messages.number)
    asked = sends.where(blocked[sends.process, sends.group])
    message, owing = _owed(history, stable, asked)
    had = np.isin(owing * total + message, first.process * total + first.message)
    lost, losers = message[~had], owing[~had]
    forgotten = _never_sent(history, blocked)

    def tell(position: int) -> Violation:
        if position >= len(lost):
            return _tell_forgotten(history, forgotten[position - len(lost)])
        return _tell_dropped(history, int(lost[position]), int(losers[position]))

    opportunities = np.bincount(history.messages.group[message], minlength=len(history.groups))
    for _, group, count in forgotten:
        opportunities[group] += count
    rows = np.concatenate([history.logs.end[losers] - 1, np.array([row for row, _, _ in forgotten], np.int64)])
    groups = np.concatenate([history.messages.group[lost], np.array([group for _, group, _ in forgotten], np.int64)])
    return over_groups(history, promises, "F3", opportunities, Broken(rows, groups, tell))


def _ever_blocked(history: History, stable: BoolArray) -> BoolArray:
    """By process and group: stable, and flow control made it wait there at least once."""
    blocked, rows = np.zeros_like(stable), history.of_kind("block")
    rows = rows[history.rows.group[rows] >= 0]
    blocked[history.rows.process[rows], history.rows.group[rows]] = True
    return blocked & stable


def _owed(history: History, stable: BoolArray, asked: Deliveries) -> tuple[IntArray, IntArray]:
    """The messages of blocked senders, each with everybody who owes its delivery."""
    stays, component = history.stays, history.world.component
    last = {
        (process, group): stay
        for stay, (process, group) in enumerate(zip(stays.process.tolist(), stays.group.tolist(), strict=True))
        if stays.following[stay] < 0
    }
    messages, owing = [_NONE], [_NONE]
    stay = history.stay_at(asked.row)
    for sent_in in np.unique(stay).tolist():
        sender, group = int(stays.process[sent_in]), int(stays.group[sent_in])
        view = stays.view[last[sender, group]]
        sent = asked.message[stay == sent_in]
        for member in stays.members[sent_in]:
            along = component[member] == component[sender] and stable[member, group]
            own = last.get((member, group), -1)
            if member == sender or (along and own >= 0 and stays.view[own] == view):
                messages.append(sent)
                owing.append(np.full(len(sent), member, np.int64))
    return np.concatenate(messages), np.concatenate(owing)


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


def _tell_dropped(history: History, message: int, process: int) -> Violation:
    sender, name = history.messages.sender[message], history.message_name(message)
    who, source, index = (
        history.process_name(process),
        history.process_name(sender),
        history.index(history.messages.send_row[message]),
    )
    last = history.index(history.logs.end[process] - 1)
    sentence = (
        f"{source}, which flow control had made wait in that group, sent {name} (index {index}), and "
        f"{'it' if who == source else who} had not delivered it when the run ended quiet"
    )
    return Violation(sentence, (source, who), (name,), (index, last))
