"""L2, L3 and F3: what must have been delivered by the end of a quiet run (docs/spec/properties.md 5 and 6)."""

from collections.abc import Callable

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.quiet import (
    addressed,
    cannot_tell,
    counts_at_stop,
    last_stays,
    owed_to_onlookers,
    receivers,
    sent_in_last_view,
    unheard_senders,
    who_is_stable,
    who_sends,
)
from antiphon.properties.tables.sets import Delivered
from antiphon.properties.verdicts.findings import Broken, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_multicast(history: History, promises: Promises, delivered: Delivered, audience: Audience) -> list[Verdict]:
    """L2: what a member of S sent is delivered by all members of S to whom it was addressed to the end.

    Where views cut: what it sent in its last view, in that view. Where they do not: whatever it sent, in any view
    (the validity of the Notes). Who only receives owes what was sent after it got to its last view, and must have one
    with every sender that it wants to hear. A process that only sends cannot promise L3, so that what it never sent is
    told here.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L2")
    stable, cuts = who_is_stable(history, promises, "L2"), promises.of_family(lambda promised: promised.cuts)[:, None]
    opportunities = np.zeros(len(history.groups), np.int64)
    sending = who_sends(history, promises, stable)
    lost, losers = _missing_in_last_views(history, sending & cuts, stable & cuts, delivered, opportunities)
    in_views = len(lost)
    if not cuts.all():
        more = _missing_anywhere(history, promises, stable & ~cuts, audience, opportunities)
        lost, losers = np.concatenate([lost, more[0]]), np.concatenate([losers, more[1]])
    if promises.onlooking.any():
        message, process = owed_to_onlookers(history, promises, sending, stable)
        opportunities += np.bincount(history.messages.group[message], minlength=len(history.groups))
        missing = _undelivered(history, message, process)
        lost, losers = np.concatenate([lost, message[missing]]), np.concatenate([losers, process[missing]])
    forgotten = _never_sent(history, stable & promises.sends_only)
    apart = unheard_senders(history, promises, sending, opportunities)

    def tell(position: int) -> Violation:
        if position >= len(lost) + len(forgotten):
            return _tell_apart(history, apart[position - len(lost) - len(forgotten)])
        if position >= len(lost):
            return _tell_forgotten(history, forgotten[position - len(lost)])
        tell_one = _tell_lost if position < in_views else _tell_missing
        return tell_one(history, int(lost[position]), int(losers[position]))

    broken = _with_forgotten(history, opportunities, lost, losers, forgotten, tell)
    rows = np.concatenate([broken.rows, np.array([row for row, _, _ in apart], np.int64)])
    groups = np.concatenate([broken.groups, np.array([group for _, group, _ in apart], np.int64)])
    return over_groups(history, promises, "L2", opportunities, Broken(rows, groups, tell))


def _missing_in_last_views(
    history: History, sending: BoolArray, stable: BoolArray, delivered: Delivered, opportunities: IntArray
) -> tuple[IntArray, IntArray]:
    """What was sent in a last view, with the stable members of that view who did not deliver it there."""
    missing, lacking = [_NONE], [_NONE]
    for stay, messages in sent_in_last_view(history, sending):
        for process, where in receivers(history, stable, stay):
            opportunities[history.stays.group[stay]] += len(messages)
            there = delivered.messages(where) if where >= 0 else _NONE
            absent = messages[~np.isin(messages, there)]
            missing.append(absent)
            lacking.append(np.full(len(absent), process, np.int64))
    return np.concatenate(missing), np.concatenate(lacking)


def _missing_anywhere(
    history: History, promises: Promises, stable: BoolArray, audience: Audience, opportunities: IntArray
) -> tuple[IntArray, IntArray]:
    """What a stable member sent, with those of its audience, to the end, who never delivered it."""
    message, process = addressed(history, stable, stable & promises.delivers, audience)
    opportunities += np.bincount(history.messages.group[message], minlength=len(history.groups))
    missing = _undelivered(history, message, process)
    return message[missing], process[missing]


def _undelivered(history: History, message: IntArray, process: IntArray) -> BoolArray:
    """Which of these messages that process never delivered."""
    total, first = len(history.messages.number), history.first
    return ~np.isin(process * total + message, first.process * total + first.message)


def check_self_delivery(history: History, promises: Promises) -> list[Verdict]:
    """L3: a member of S delivers what it sent; what it was asked to send and never sent it has not delivered either.

    In whatever epoch it was sent. What it sent before it left the group otherwise than gracefully may be lost.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L3")
    sends, first, sender = history.sends, history.first, history.messages.sender
    stable = who_is_stable(history, promises, "L3")
    asked = sends.where(stable[sends.process, sends.group] & ~_abandoned(history, sends.row))
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
    broken = _with_forgotten(history, opportunities, lost, sender[lost], forgotten, tell)
    return over_groups(history, promises, "L3", opportunities, broken)


def _abandoned(history: History, rows: IntArray) -> BoolArray:
    """Which rows lie in a time in a group that ended with a leave that was not graceful."""
    stays = history.stays
    rude = [history.details.get(row, {}).get("graceful") is False for row in stays.leave.tolist()]
    abandoned = np.append(np.array(rude, np.bool_), False)
    for stay in reversed(range(len(rude))):  # what follows a stay stands behind it
        if stays.following[stay] >= 0:
            abandoned[stay] = abandoned[stays.following[stay]]
    return abandoned[history.stay_at(rows)]


def check_no_loss_by_pressure(history: History, promises: Promises) -> list[Verdict]:
    """F3: what a sender that flow control once blocked sent, or was asked to send, is delivered all the same.

    By itself and by the members of its component that share its last view, in any view, if they were members of the one
    it was sent in and went over to every group that was formed since together with the sender. A sender that crashed
    owes nothing, and one that was removed shares no last view with the others.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "F3")
    stable = who_is_stable(history, promises, "F3")
    blocked = _ever_blocked(history, stable)
    sends = history.sends
    asked = sends.where(blocked[sends.process, sends.group] & ~_abandoned(history, sends.row))
    message, owing = _owed(history, stable, asked)
    missing = _undelivered(history, message, owing)
    lost, losers = message[missing], owing[missing]
    forgotten = _never_sent(history, blocked)

    def tell(position: int) -> Violation:
        if position >= len(lost):
            return _tell_forgotten(history, forgotten[position - len(lost)])
        return _tell_dropped(history, int(lost[position]), int(losers[position]))

    opportunities = np.bincount(history.messages.group[message], minlength=len(history.groups))
    broken = _with_forgotten(history, opportunities, lost, losers, forgotten, tell)
    return over_groups(history, promises, "F3", opportunities, broken)


def _ever_blocked(history: History, stable: BoolArray) -> BoolArray:
    """By process and group: stable, and flow control made it wait there at least once."""
    blocked, rows = np.zeros_like(stable), history.of_kind("block")
    rows = rows[history.rows.group[rows] >= 0]
    blocked[history.rows.process[rows], history.rows.group[rows]] = True
    return blocked & stable


def _owed(history: History, stable: BoolArray, asked: Deliveries) -> tuple[IntArray, IntArray]:
    """The messages of blocked senders, each with everybody who owes its delivery."""
    stays, component = history.stays, history.world.component
    last = last_stays(history)
    messages, owing = [_NONE], [_NONE]
    stay = history.stay_at(asked.row)
    for sent_in in np.unique(stay).tolist():
        sender, group = int(stays.process[sent_in]), int(stays.group[sent_in])
        view = stays.view[last[sender, group]]
        sent, companions = asked.message[stay == sent_in], _companions(history, sent_in)
        for member in stays.members[sent_in]:
            along = component[member] == component[sender] and stable[member, group]
            own = last.get((member, group), -1)
            along &= member in companions
            if member == sender or (along and own >= 0 and stays.view[own] == view):
                messages.append(sent)
                owing.append(np.full(len(sent), member, np.int64))
    return np.concatenate(messages), np.concatenate(owing)


def _companions(history: History, stay: int) -> frozenset[int]:
    """Members of the view of a stay who went over with its process to all that was formed later; none if it left."""
    stays = history.stays
    companions = frozenset(stays.members[stay])
    while stays.following[stay] >= 0:
        stay = int(stays.following[stay])
        if stays.formed[stay]:
            companions &= frozenset(stays.transitional[stay] or ())
    return companions if stays.final[stay] else frozenset()


_Forgotten = tuple[int, int, int]
"""Stop row, group and count of requests that no frame ever took."""


def _with_forgotten(
    history: History,
    opportunities: IntArray,
    lost: IntArray,
    losers: IntArray,
    forgotten: list[_Forgotten],
    tell: Callable[[int], Violation],
) -> Broken:
    """Messages that somebody lacks, then requests that never left, each of which was an opportunity too."""
    for _, group, count in forgotten:
        opportunities[group] += count
    rows = np.concatenate([history.logs.end[losers] - 1, np.array([row for row, _, _ in forgotten], np.int64)])
    groups = np.concatenate([history.messages.group[lost], np.array([group for _, group, _ in forgotten], np.int64)])
    return Broken(rows, groups, tell)


def _never_sent(history: History, stable: BoolArray) -> list[_Forgotten]:
    """As the `stop` rows of members of S tell."""
    waiting = counts_at_stop(history, "waiting")
    return [told for told in waiting if stable[history.rows.process[told[0]], told[1]]]


def _tell_forgotten(history: History, forgotten: _Forgotten) -> Violation:
    row, group, count = forgotten
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} stopped (index {index}) while {count} message{'s' if count != 1 else ''} that its application had "
        f"asked to send in {history.groups[group]} had never left, although the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))


def _tell_apart(history: History, apart: tuple[int, int, int]) -> Violation:
    row, group, sender = apart
    who, source, index = (
        history.process_name(history.rows.process[row]),
        history.process_name(sender),
        history.index(row),
    )
    sentence = f"{who} wants to hear {source} in {history.groups[group]}, and had no view with it when it stopped"
    return Violation(f"{sentence} (index {index}), although the run ended quiet", (who, source), (), (index,))


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


def _tell_missing(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = history.process_name(process), history.process_name(sender), history.message_name(message)
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    other = "itself, a member to the end," if who == source else f"{who}, to whom it sent from then on to the end,"
    sentence = (
        f"{source} sent {name} (index {index}) in view {view}, and {other} "
        f"had not delivered it when the run ended quiet"
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
