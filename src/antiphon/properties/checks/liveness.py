"""L2, L3 and F3: what must have been delivered by the end of a quiet run (docs/spec/properties.md 5 and 6)."""

from collections.abc import Callable

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import NEVER, Deliveries, History
from antiphon.properties.tables.quiet_end import (
    addressed,
    counts_at_stop,
    last_stays,
    missing_senders,
    owed_to_receivers,
    receivers,
    sent_in_last_view,
    stable_members,
    stable_senders,
)
from antiphon.properties.verdicts.findings import Violations, not_quiet, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_multicast(history: History, promises: Promises, delivered: Delivered, audience: Audience) -> list[Verdict]:
    """L2: what a stable member sent is delivered by all stable members to which it was addressed until the end.

    In families whose view changes are cuts: what it sent in its last view, delivered in that view. In the others:
    whatever it sent, delivered in any view (the validity of the Notes). A receive-only process owes what was sent after
    it entered its last view, and must have a view with every sender that it chose. A send-only process cannot promise
    L3, so messages that it never sent are reported here.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L2")
    stable, cuts = stable_members(history, promises, "L2"), promises.of_family(lambda promised: promised.cuts)[:, None]
    opportunities = np.zeros(len(history.groups), np.int64)
    sending = stable_senders(history, promises, stable)
    owing = stable & cuts
    lost, losers = _missing_in_last_views(history, promises, sending & cuts, owing, delivered, opportunities)
    in_views = len(lost)
    if not cuts.all():
        more = _missing_anywhere(history, promises, stable & ~cuts, audience, opportunities)
        lost, losers = np.concatenate([lost, more[0]]), np.concatenate([losers, more[1]])
    if promises.roles.receiving.any():
        message, process = owed_to_receivers(history, promises, sending, stable)
        opportunities += np.bincount(history.messages.group[message], minlength=len(history.groups))
        missing = _undelivered(history, message, process)
        lost, losers = np.concatenate([lost, message[missing]]), np.concatenate([losers, process[missing]])
    forgotten = _never_sent(history, stable & promises.sends_only)
    apart = missing_senders(history, promises, sending, opportunities)

    def describe(position: int) -> Violation:
        if position >= len(lost) + len(forgotten):
            return _describe_apart(history, apart[position - len(lost) - len(forgotten)])
        if position >= len(lost):
            return _describe_forgotten(history, forgotten[position - len(lost)])
        tell_one = _describe_lost if position < in_views else _describe_missing
        return tell_one(history, int(lost[position]), int(losers[position]))

    broken = _with_forgotten(history, opportunities, lost, losers, forgotten, describe)
    rows = np.concatenate([broken.rows, np.array([row for row, _, _ in apart], np.int64)])
    groups = np.concatenate([broken.groups, np.array([group for _, group, _ in apart], np.int64)])
    return over_groups(history, promises, "L2", opportunities, Violations(rows, groups, describe))


def _missing_in_last_views(
    history: History,
    promises: Promises,
    sending: BoolArray,
    stable: BoolArray,
    delivered: Delivered,
    opportunities: IntArray,
) -> tuple[IntArray, IntArray]:
    """What was sent in a last view, with the stable members of that view that did not deliver it there.

    A member whose service does not wait for the order of the group may have delivered it before it installed the view.
    """
    hurries = promises.hurries
    missing, lacking = [_NONE], [_NONE]
    for stay, messages in sent_in_last_view(history, sending):
        for process, where in receivers(history, stable, stay):
            opportunities[history.stays.group[stay]] += len(messages)
            there = delivered.messages(where) if where >= 0 else _NONE
            absent = messages[~np.isin(messages, there)]
            if len(absent) and hurries[process, history.stays.group[stay]]:
                absent = absent[_undelivered(history, absent, np.full(len(absent), process, np.int64))]
            missing.append(absent)
            lacking.append(np.full(len(absent), process, np.int64))
    return np.concatenate(missing), np.concatenate(lacking)


def _missing_anywhere(
    history: History, promises: Promises, stable: BoolArray, audience: Audience, opportunities: IntArray
) -> tuple[IntArray, IntArray]:
    """What a stable member sent, with the processes that were addressed until the end but never delivered it."""
    message, process = addressed(history, stable, stable & promises.delivers, audience)
    opportunities += np.bincount(history.messages.group[message], minlength=len(history.groups))
    missing = _undelivered(history, message, process)
    return message[missing], process[missing]


def _undelivered(history: History, message: IntArray, process: IntArray) -> BoolArray:
    """Which of these messages that process never delivered."""
    total, first = len(history.messages.number), history.first
    return ~np.isin(process * total + message, first.process * total + first.message)


def check_self_delivery(history: History, promises: Promises) -> list[Verdict]:
    """L3: a stable member delivers what it sent. A message that it was given but never sent counts as not delivered.

    This holds for all epochs. What it sent before an abrupt (not graceful) leave may be lost.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L3")
    sends, first, sender = history.sends, history.first, history.messages.sender
    stable = stable_members(history, promises, "L3")
    asked = sends.where(stable[sends.process, sends.group] & ~_abandoned(history, sends.row))
    own = first.message[first.process == sender[first.message]]
    lost = asked.message[~np.isin(asked.message, own)]
    forgotten = _never_sent(history, stable)

    def describe(position: int) -> Violation:
        if position >= len(lost):
            return _describe_forgotten(history, forgotten[position - len(lost)])
        message = int(lost[position])
        who, name = history.process_name(sender[message]), history.message_name(message)
        index = history.index(history.messages.send_row[message])
        sentence = f"{who} sent {name} (index {index}) but had not delivered it itself when the run ended quiet"
        return Violation(sentence, (who,), (name,), (index,))

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    broken = _with_forgotten(history, opportunities, lost, sender[lost], forgotten, describe)
    return over_groups(history, promises, "L3", opportunities, broken)


def _abandoned(history: History, rows: IntArray) -> BoolArray:
    """Which rows lie in a period of membership that ended with an abrupt (not graceful) leave."""
    stays = history.stays
    rude = [history.details.get(row, {}).get("graceful") is False for row in stays.leave.tolist()]
    abandoned = np.append(np.array(rude, np.bool_), False)
    for stay in reversed(range(len(rude))):  # a stay comes before the one that follows it
        if stays.following[stay] >= 0:
            abandoned[stay] = abandoned[stays.following[stay]]
    return abandoned[history.stay_at(rows)]


def check_no_loss_by_pressure(history: History, promises: Promises) -> list[Verdict]:
    """F3: if flow control ever blocked a sender, what it sent or was given to send is delivered nevertheless.

    It is delivered by the sender itself, and by the members of its component that share its last view, in any view.
    These must have been members of the view it was sent in, and have gone over to every later formation together with
    the sender. They must not have begun again since (InterGroup). A crashed sender owes nothing, and a removed one
    shares no last view with the others.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "F3")
    stable = stable_members(history, promises, "F3")
    blocked = _ever_blocked(history, stable)
    sends = history.sends
    asked = sends.where(blocked[sends.process, sends.group] & ~_abandoned(history, sends.row))
    message, owing = _owed(history, stable, asked)
    missing = _undelivered(history, message, owing)
    lost, losers = message[missing], owing[missing]
    forgotten = _never_sent(history, blocked)

    def describe(position: int) -> Violation:
        if position >= len(lost):
            return _describe_forgotten(history, forgotten[position - len(lost)])
        return _describe_dropped(history, int(lost[position]), int(losers[position]))

    opportunities = np.bincount(history.messages.group[message], minlength=len(history.groups))
    broken = _with_forgotten(history, opportunities, lost, losers, forgotten, describe)
    return over_groups(history, promises, "F3", opportunities, broken)


def _ever_blocked(history: History, stable: BoolArray) -> BoolArray:
    """By process and group: a stable member that flow control blocked at least once."""
    blocked, rows = np.zeros_like(stable), history.of_kind("block")
    rows = rows[history.rows.group[rows] >= 0]
    blocked[history.rows.process[rows], history.rows.group[rows]] = True
    return blocked & stable


def _owed(history: History, stable: BoolArray, asked: Deliveries) -> tuple[IntArray, IntArray]:
    """The messages of blocked senders, each with every process that owes its delivery."""
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
            along &= member in companions and not _has_begun_again(history, member, sent_in)
            if member == sender or (along and own >= 0 and stays.view[own] == view):
                messages.append(sent)
                owing.append(np.full(len(sent), member, np.int64))
    return np.concatenate(messages), np.concatenate(owing)


def _has_begun_again(history: History, member: int, sent_in: int) -> bool:
    """True if the member has begun again after it was in the view of that stay, and so gave up what was sent there."""
    stays = history.stays
    own = (stays.process == member) & (stays.group == stays.group[sent_in])
    there = stays.row[own & (stays.view == stays.view[sent_in])]
    return bool((stays.row[own & stays.alone] > there.min(initial=NEVER)).any())


def _companions(history: History, stay: int) -> frozenset[int]:
    """Members of the view of a stay that went over to all later formations with its process; none if it left."""
    stays = history.stays
    companions = frozenset(stays.members[stay])
    while stays.following[stay] >= 0:
        stay = int(stays.following[stay])
        if stays.formed[stay]:
            companions &= frozenset(stays.transitional[stay] or ())
    return companions if stays.final[stay] else frozenset()


_Forgotten = tuple[int, int, int]
"""Stop row, group, and number of requests that were never sent."""


def _with_forgotten(
    history: History,
    opportunities: IntArray,
    lost: IntArray,
    losers: IntArray,
    forgotten: list[_Forgotten],
    describe: Callable[[int], Violation],
) -> Violations:
    """Undelivered messages, then requests that were never sent; each of these is an opportunity too."""
    for _, group, count in forgotten:
        opportunities[group] += count
    rows = np.concatenate([history.logs.end[losers] - 1, np.array([row for row, _, _ in forgotten], np.int64)])
    groups = np.concatenate([history.messages.group[lost], np.array([group for _, group, _ in forgotten], np.int64)])
    return Violations(rows, groups, describe)


def _never_sent(history: History, stable: BoolArray) -> list[_Forgotten]:
    """The requests that stable members never sent, according to their `stop` rows."""
    waiting = counts_at_stop(history, "waiting")
    return [entry for entry in waiting if stable[history.rows.process[entry[0]], entry[1]]]


def _describe_forgotten(history: History, forgotten: _Forgotten) -> Violation:
    row, group, count = forgotten
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} stopped (index {index}) without having sent {count} message{'s' if count != 1 else ''} that its "
        f"application gave it for {history.groups[group]}, although the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))


def _describe_apart(history: History, apart: tuple[int, int, int]) -> Violation:
    row, group, sender = apart
    who, source, index = (
        history.process_name(history.rows.process[row]),
        history.process_name(sender),
        history.index(row),
    )
    sentence = f"{who} chose {source} as a source in {history.groups[group]}, but had no view with it when it stopped"
    return Violation(f"{sentence} (index {index}), although the run ended quiet", (who, source), (), (index,))


def _describe_lost(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = (
        history.process_name(process),
        history.process_name(sender),
        history.message_name(message),
    )
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    sentence = (
        f"{source} sent {name} (index {index}) in its last view {view}, but {who}, a member of that view, "
        f"had not delivered it there when the run ended quiet"
    )
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))


def _describe_missing(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = history.process_name(process), history.process_name(sender), history.message_name(message)
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    other = f"{who}, to which it sent from then on until the end,"
    if who == source:
        other = "itself, a member until the end,"
    sentence = (
        f"{source} sent {name} (index {index}) in view {view}, but {other} "
        f"had not delivered it when the run ended quiet"
    )
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))


def _describe_dropped(history: History, message: int, process: int) -> Violation:
    sender, name = history.messages.sender[message], history.message_name(message)
    who, source, index = (
        history.process_name(process),
        history.process_name(sender),
        history.index(history.messages.send_row[message]),
    )
    last = history.index(history.logs.end[process] - 1)
    sentence = (
        f"{source}, which flow control had blocked in that group, sent {name} (index {index}), but "
        f"{'it' if who == source else who} had not delivered it when the run ended quiet"
    )
    return Violation(sentence, (source, who), (name,), (index, last))
