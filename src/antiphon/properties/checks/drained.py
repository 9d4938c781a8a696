"""L6, L7, L8: at a quiet end all is stable, no sender is blocked, and buffers are empty (docs/spec/properties.md 6)."""

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.codes import coded, distinct, firsts
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.departures import Departures
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet_end import (
    addressed,
    counts_at_stop,
    last_stays,
    owed_to_receivers,
    receivers,
    sent_in_last_view,
    stable_members,
    stable_senders,
)
from antiphon.properties.tables.spans import Spans
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.verdicts.findings import Violations, not_quiet, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


def check_stable_at_last(
    history: History, promises: Promises, stability: StabilityReports, audience: Audience
) -> list[Verdict]:
    """L6: what a stable member sent in its last view is known to be stable by all stable members of that view.

    In families whose view changes are not cuts: whatever a stable member sent, it knows to be stable. If members learn
    about the stability of all messages, so do all stable members to which it was addressed until the end. A
    receive-only process that holds messages is judged as in L2.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L6")
    stable, cuts = stable_members(history, promises, "L6"), promises.of_family(lambda promised: promised.cuts)[:, None]
    messages = history.messages
    sending = stable_senders(history, promises, stable)
    asked = [_asked_in_last_views(history, sending & cuts, stable & cuts)]
    if promises.roles.receiving.any():
        asked.append(owed_to_receivers(history, promises, sending, stable & promises.frees("everything")))
    if not cuts.all():
        asked.append(_asked_of_senders(history, promises, stable & ~cuts, audience))
    message, process = (np.concatenate(columns) for columns in zip(*asked, strict=True))
    end = history.logs.end[process]
    mark = stability.stable.at(process, messages.group[message], messages.sender[message], end)
    lost = np.flatnonzero(mark < messages.number[message])

    def describe(position: int) -> Violation:
        return _describe_unstable(history, int(message[lost[position]]), int(process[lost[position]]))

    opportunities = np.bincount(messages.group[message], minlength=len(history.groups))
    broken = Violations(end[lost] - 1, messages.group[message[lost]], describe)
    return over_groups(history, promises, "L6", opportunities, broken)


def _asked_in_last_views(history: History, sending: BoolArray, stable: BoolArray) -> tuple[IntArray, IntArray]:
    """What was sent in last views, with the stable members of each view."""
    asked, askers = [_NONE], [_NONE]
    for stay, sent in sent_in_last_view(history, sending):
        for member, _ in receivers(history, stable, stay):
            asked.append(sent)
            askers.append(np.full(len(sent), member, np.int64))
    return np.concatenate(asked), np.concatenate(askers)


def _asked_of_senders(
    history: History, promises: Promises, stable: BoolArray, audience: Audience
) -> tuple[IntArray, IntArray]:
    """What stable members sent, each with its sender and with all others that can learn about its stability."""
    sends, all_know = history.sends, stable & promises.learns_all[:, None]
    own = sends.where(stable[sends.process, sends.group])
    message, process = addressed(history, all_know, all_know, audience)
    others = process != history.messages.sender[message]
    return np.concatenate([own.message, message[others]]), np.concatenate([own.process, process[others]])


def check_unblocked(history: History, promises: Promises) -> list[Verdict]:
    """L7: no stable member is still blocked. A process that left the group is not blocked there.

    docs/spec/properties.md also asks that no block in the quiet phase exceeds its bound. This is not judged, because no
    such bound is configured yet.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L7")
    rows, blocks = history.rows, history.of_kind("block", "unblock", "leave")
    blocks = blocks[rows.group[blocks] >= 0]
    blocks = blocks[stable_members(history, promises, "L7")[rows.process[blocks], rows.group[blocks]]]
    pair = rows.process[blocks] * len(history.groups) + rows.group[blocks]
    order = np.argsort(pair, kind="stable")
    last = blocks[order][np.diff(pair[order], append=-1) != 0]
    stuck = np.sort(last[rows.kind[last] == KIND["block"]])

    def describe(position: int) -> Violation:
        return _describe_stuck(history, int(stuck[position]))

    counted = blocks[rows.kind[blocks] == KIND["block"]]
    opportunities = np.bincount(rows.group[counted], minlength=len(history.groups))
    return over_groups(history, promises, "L7", opportunities, Violations(stuck, rows.group[stuck], describe))


def check_buffers_empty(
    history: History, promises: Promises, stability: StabilityReports, spans: Spans, departures: Departures
) -> list[Verdict]:
    """L8: a stable member has freed every application message that it holds until stability.

    Which messages these are depends on the family: all that it sent or received, or only those that it sent. Excused
    are messages of a removed sender that it never delivered (they were dropped at the cut), messages of a predecessor
    of its formation, and messages sent before it left (they went with the group). A process that only receives frees
    nothing while its component has no sender. A family that does not free everything by `discard` rows must also hold
    nothing at its `stop`.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L8")
    rows, stable = history.rows, stable_members(history, promises, "L8") & history.in_part[:, None]
    for place in np.argwhere(stable & promises.roles.receives_last).tolist():
        stable[tuple(place)] = departures.has_senders(*place)
    at = history.of_kind("send", "receive")
    at = at[(rows.number[at] >= 0) & (rows.group[at] >= 0) & (rows.sender[at] >= 0)]
    at = at[stable[rows.process[at], rows.group[at]] & ~_not_held(history, promises, at)]
    to_free = at[~promises.frees("nothing")[rows.process[at], rows.group[at]]]
    process, group, sender = rows.process[to_free], rows.group[to_free], rows.sender[to_free]
    mark = stability.freed.at(process, group, sender, history.logs.end[process])
    kept = _first_copies(history, to_free[rows.number[to_free] > mark])
    kept = kept[~_cut_away(history, kept)]
    kept = kept[~_dropped(history, spans, kept)]
    held = _held(history, stable & ~promises.frees("everything"))

    def describe(position: int) -> Violation:
        if position < len(kept):
            return _describe_kept(history, int(kept[position]))
        return _describe_held(history, *held[position - len(kept)])

    opportunities = np.bincount(rows.group[_first_copies(history, at)], minlength=len(history.groups))
    ends = np.concatenate([history.logs.end[rows.process[kept]] - 1, np.array([row for row, _, _ in held], np.int64)])
    groups = np.concatenate([rows.group[kept], np.array([group for _, group, _ in held], np.int64)])
    return over_groups(history, promises, "L8", opportunities, Violations(ends, groups, describe))


def _not_held(history: History, promises: Promises, at: IntArray) -> BoolArray:
    """Which rows receive a message that their family does not keep."""
    own = promises.frees("own")
    received: BoolArray = history.rows.kind[at] == KIND["receive"]
    return received & own[history.rows.process[at], history.rows.group[at]]


def _held(history: History, stable: BoolArray) -> list[tuple[int, int, int]]:
    """(stop row, group, count) of the messages that stable members still held when they stopped."""
    return [
        (row, group, count)
        for row, group, count in counts_at_stop(history, "held")
        if stable[history.rows.process[row], group]
    ]


def _first_copies(history: History, at: IntArray) -> IntArray:
    """Of rows with a message, the first one for each message at each process."""
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
    """Which rows hold a message that was sent before the formation in which their process ends."""
    rows, last = history.rows, last_stays(history)
    places = zip(rows.process[kept].tolist(), rows.group[kept].tolist(), strict=True)
    stay = np.array([last.get(place, -1) for place in places], np.int64)
    dropped: BoolArray = rows.number[kept] < spans.floor(stay, rows.sender[kept])
    return dropped


def _describe_unstable(history: History, message: int, process: int) -> Violation:
    who, source = history.process_name(process), history.process_name(history.messages.sender[message])
    name, send_row = history.message_name(message), history.messages.send_row[message]
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    if who == source:
        knower = "but"
    elif history.stays.final[history.stay_at(np.array([send_row]))[0]]:
        knower = f"in its last view {view}, but {who}, a member of that view,"
    else:
        knower = f"in view {view}, but {who}, to which it sent from then on until the end,"
    sentence = f"{source} sent {name} (index {index}) {knower} did not know it to be stable when the run ended quiet"
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))


def _describe_stuck(history: History, row: int) -> Violation:
    who, group, index = (
        history.process_name(history.rows.process[row]),
        history.groups[history.rows.group[row]],
        history.index(row),
    )
    peer = history.columns.texts("peer", np.array([row]))[0].as_py()
    waiting = f", waiting for {peer}," if peer else ""
    sentence = f"{who} was blocked in {group} (index {index}){waiting} and still blocked when the run ended quiet"
    return Violation(sentence, (who,), (), (index,))


def _describe_kept(history: History, row: int) -> Violation:
    who, name, index = history.process_name(history.rows.process[row]), history.message_at(row), history.index(row)
    did = "sent" if history.rows.kind[row] == KIND["send"] else "received"
    sentence = f"{who} {did} {name} (index {index}) but had not freed it when the run ended quiet"
    return Violation(sentence, (who,), (name,), (index,))


def _describe_held(history: History, row: int, group: int, count: int) -> Violation:
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} stopped (index {index}) while it still held {count} message{'s' if count != 1 else ''} of "
        f"{history.groups[group]}, although the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))
