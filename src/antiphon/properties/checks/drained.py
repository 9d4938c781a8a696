"""L6, L7, L8: at a quiet end nothing is unstable, nobody waits, and the buffers are empty (properties.md 6)."""

import numpy as np

from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.codes import coded, distinct, firsts
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet import (
    addressed,
    cannot_tell,
    counts_at_stop,
    last_stays,
    owed_to_onlookers,
    receivers,
    sent_in_last_view,
    who_is_stable,
    who_sends,
)
from antiphon.properties.tables.spans import Spans
from antiphon.properties.verdicts.findings import Broken, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_stable_at_last(history: History, promises: Promises, prefixes: Prefixes, audience: Audience) -> list[Verdict]:
    """L6: sent in the last view by a member of S, known stable by all members of S in that view.

    Where views do not cut: whatever it sent, known stable by itself; and where members find out about everybody's
    messages, by all members of S to whom it was addressed to the end. Who only receives, and holds messages: as in L2.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L6")
    stable, cuts = who_is_stable(history, promises, "L6"), promises.of_family(lambda promised: promised.cuts)[:, None]
    messages = history.messages
    sending = who_sends(history, promises, stable)
    asked = [_asked_in_last_views(history, sending & cuts, stable & cuts)]
    if promises.onlooking.any():
        asked.append(owed_to_onlookers(history, promises, sending, stable & promises.frees("everything")))
    if not cuts.all():
        asked.append(_asked_of_senders(history, promises, stable & ~cuts, audience))
    message, process = (np.concatenate(columns) for columns in zip(*asked, strict=True))
    end = history.logs.end[process]
    mark = prefixes.stable.at(process, messages.group[message], messages.sender[message], end)
    lost = np.flatnonzero(mark < messages.number[message])

    def tell(position: int) -> Violation:
        return _tell_unstable(history, int(message[lost[position]]), int(process[lost[position]]))

    opportunities = np.bincount(messages.group[message], minlength=len(history.groups))
    broken = Broken(end[lost] - 1, messages.group[message[lost]], tell)
    return over_groups(history, promises, "L6", opportunities, broken)


def _asked_in_last_views(history: History, sending: BoolArray, stable: BoolArray) -> tuple[IntArray, IntArray]:
    """What was sent in last views, with the stable members of each."""
    asked, askers = [_NONE], [_NONE]
    for stay, sent in sent_in_last_view(history, sending):
        for member, _ in receivers(history, stable, stay):
            asked.append(sent)
            askers.append(np.full(len(sent), member, np.int64))
    return np.concatenate(asked), np.concatenate(askers)


def _asked_of_senders(
    history: History, promises: Promises, stable: BoolArray, audience: Audience
) -> tuple[IntArray, IntArray]:
    """What stable members sent, each with its sender, and with all others who can find out about it."""
    sends, all_know = history.sends, stable & promises.learns_all[:, None]
    own = sends.where(stable[sends.process, sends.group])
    message, process = addressed(history, all_know, all_know, audience)
    others = process != history.messages.sender[message]
    return np.concatenate([own.message, message[others]]), np.concatenate([own.process, process[others]])


def check_unblocked(history: History, promises: Promises) -> list[Verdict]:
    """L7: nobody in S is still blocked; who left the group is not, there.

    The other half of properties.md, that no block in the quiet phase lasted over its bound, is not judged: no bound on
    the length of a block is configured yet.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L7")
    rows, blocks = history.rows, history.of_kind("block", "unblock", "leave")
    blocks = blocks[rows.group[blocks] >= 0]
    blocks = blocks[who_is_stable(history, promises, "L7")[rows.process[blocks], rows.group[blocks]]]
    pair = rows.process[blocks] * len(history.groups) + rows.group[blocks]
    order = np.argsort(pair, kind="stable")
    last = blocks[order][np.diff(pair[order], append=-1) != 0]
    stuck = np.sort(last[rows.kind[last] == KIND["block"]])

    def tell(position: int) -> Violation:
        return _tell_stuck(history, int(stuck[position]))

    counted = blocks[rows.kind[blocks] == KIND["block"]]
    opportunities = np.bincount(rows.group[counted], minlength=len(history.groups))
    return over_groups(history, promises, "L7", opportunities, Broken(stuck, rows.group[stuck], tell))


def check_buffers_empty(history: History, promises: Promises, prefixes: Prefixes, spans: Spans) -> list[Verdict]:
    """L8: a member of S has freed every application message that it holds until it is stable.

    Which those are depends on the family: all that it sent or received, or what it sent. Excused is what it never
    delivered of a sender that its last view no longer has: that went at the cut; and what was sent in a predecessor of
    the formation that it is in, or before it left: that went with the group. A family that does not free all by
    `discard` rows must moreover hold nothing at its `stop`.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L8")
    rows, stable = history.rows, who_is_stable(history, promises, "L8") & history.own[:, None]
    at = history.of_kind("send", "receive")
    at = at[(rows.number[at] >= 0) & (rows.group[at] >= 0) & (rows.sender[at] >= 0)]
    at = at[stable[rows.process[at], rows.group[at]] & ~_not_held(history, promises, at)]
    to_free = at[~promises.frees("nothing")[rows.process[at], rows.group[at]]]
    process, group, sender = rows.process[to_free], rows.group[to_free], rows.sender[to_free]
    mark = prefixes.freed.at(process, group, sender, history.logs.end[process])
    kept = _first_copies(history, to_free[rows.number[to_free] > mark])
    kept = kept[~_cut_away(history, kept)]
    kept = kept[~_dropped(history, spans, kept)]
    held = _held(history, stable & ~promises.frees("everything"))

    def tell(position: int) -> Violation:
        if position < len(kept):
            return _tell_kept(history, int(kept[position]))
        return _tell_held(history, *held[position - len(kept)])

    opportunities = np.bincount(rows.group[_first_copies(history, at)], minlength=len(history.groups))
    ends = np.concatenate([history.logs.end[rows.process[kept]] - 1, np.array([row for row, _, _ in held], np.int64)])
    groups = np.concatenate([rows.group[kept], np.array([group for _, group, _ in held], np.int64)])
    return over_groups(history, promises, "L8", opportunities, Broken(ends, groups, tell))


def _not_held(history: History, promises: Promises, at: IntArray) -> BoolArray:
    """Which rows receive something that their family does not keep."""
    own = promises.frees("own")
    received: BoolArray = history.rows.kind[at] == KIND["receive"]
    return received & own[history.rows.process[at], history.rows.group[at]]


def _held(history: History, stable: BoolArray) -> list[tuple[int, int, int]]:
    """(stop row, group, count) of messages that the cores of members of S still held when they stopped."""
    return [
        (row, group, count)
        for row, group, count in counts_at_stop(history, "held")
        if stable[history.rows.process[row], group]
    ]


def _first_copies(history: History, at: IntArray) -> IntArray:
    """Of rows with a message, the first of each message at each process."""
    rows = history.rows
    _, stream = coded(_key(history, rows.process[at], rows.group[at], rows.sender[at]))
    numbers, number = coded(rows.number[at])
    return at[np.sort(firsts(stream * max(len(numbers), 1) + number))]


def _key(history: History, process: IntArray, group: IntArray, sender: IntArray) -> IntArray:
    return (process * len(history.groups) + group) * len(history.processes) + sender


def _cut_away(history: History, kept: IntArray) -> BoolArray:
    """Which rows hold a message of a removed sender that their process never delivered."""
    if not len(kept):
        return np.zeros(0, np.bool_)
    rows, first, stays = history.rows, history.first, history.stays
    present = [
        (process * len(history.groups) + group) * len(history.processes) + member
        for process, group, final, members in zip(
            stays.process.tolist(), stays.group.tolist(), stays.final.tolist(), stays.members, strict=True
        )
        if final
        for member in members
    ]
    key = _key(history, rows.process[kept], rows.group[kept], rows.sender[kept])
    gone = ~np.isin(key, np.array(present, np.int64))
    numbers = distinct(rows.number)
    delivered = _key(history, first.process, first.group, rows.sender[first.row]) * len(numbers)
    delivered += np.searchsorted(numbers, rows.number[first.row])
    here = key * len(numbers) + np.searchsorted(numbers, rows.number[kept])
    cut: BoolArray = gone & ~np.isin(here, delivered)
    return cut


def _dropped(history: History, spans: Spans, kept: IntArray) -> BoolArray:
    """Which rows hold a message that was sent before the formation in which their process is at last."""
    rows, last = history.rows, last_stays(history)
    places = zip(rows.process[kept].tolist(), rows.group[kept].tolist(), strict=True)
    stay = np.array([last.get(place, -1) for place in places], np.int64)
    dropped: BoolArray = rows.number[kept] < spans.floor(stay, rows.sender[kept])
    return dropped


def _tell_unstable(history: History, message: int, process: int) -> Violation:
    who, source = history.process_name(process), history.process_name(history.messages.sender[message])
    name, send_row = history.message_name(message), history.messages.send_row[message]
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    if who == source:
        knower = "and"
    elif history.stays.final[history.stay_at(np.array([send_row]))[0]]:
        knower = f"in its last view {view}, and {who}, a member of that view,"
    else:
        knower = f"in view {view}, and {who}, to whom it sent from then on to the end,"
    sentence = f"{source} sent {name} (index {index}) {knower} did not know it to be stable when the run ended quiet"
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))


def _tell_stuck(history: History, row: int) -> Violation:
    who, group, index = (
        history.process_name(history.rows.process[row]),
        history.groups[history.rows.group[row]],
        history.index(row),
    )
    peer = history.columns.texts("peer", np.array([row]))[0].as_py()
    waiting = f", waiting for {peer}," if peer else ""
    sentence = f"{who} was blocked in {group} (index {index}){waiting} and not released when the run ended quiet"
    return Violation(sentence, (who,), (), (index,))


def _tell_kept(history: History, row: int) -> Violation:
    who, name, index = history.process_name(history.rows.process[row]), history.message_at(row), history.index(row)
    did = "sent" if history.rows.kind[row] == KIND["send"] else "received"
    sentence = f"{who} {did} {name} (index {index}) and had not freed it when the run ended quiet"
    return Violation(sentence, (who,), (name,), (index,))


def _tell_held(history: History, row: int, group: int, count: int) -> Violation:
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} stopped (index {index}) while it still held {count} message{'s' if count != 1 else ''} of "
        f"{history.groups[group]}, although the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))
