"""W1 to W7: whether the trace can be judged at all (docs/spec/properties.md 1).

Checked before anything else. A trace that fails W is a fault of the harness that wrote it. It neither passes nor fails
a protocol, so no other verdict is given.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from antiphon.properties.tables.columns import KIND, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.verdicts.verdict import Outcome, Verdict, Violation

_Flaws = tuple[IntArray, Callable[[int], str]]
"""The rows that violate a rule, and a function that gives the sentence for one of them."""


def check(history: History) -> Verdict:
    """One verdict over all rows. The example is from the lowest rule violated, because others often follow from it."""
    count, example = 0, None
    for rule, flaws in _RULES.items():
        rows, describe = flaws(history)
        rows = rows[history.in_part[history.rows.process[rows]]]
        count += len(rows)
        if len(rows) and example is None:
            example = _violation(history, rule, rows, describe)
    outcome: Outcome = "harness error" if example else "pass"
    judged = int(np.count_nonzero(history.in_part[history.rows.process]))
    return Verdict(history.run, "W", None, outcome, judged, count, example)


def _violation(history: History, rule: str, rows: IntArray, describe: Callable[[int], str]) -> Violation:
    row = int(rows[np.lexsort((rows, history.rows.process[rows], history.rows.time[rows]))[0]])
    who = history.process_name(history.rows.process[row])
    return Violation(
        f"{rule}: {describe(row)}", processes=(who,), indexes=(history.index(row),), seen=history.seen(row)
    )


def _index_without_gaps(history: History) -> _Flaws:
    """W1: indexes have no gaps and no duplicates, also in the world's own rows."""
    rows, begin = history.rows, history.logs.begin
    first = begin[rows.process] == np.arange(len(rows.index))
    expected = np.where(first, 0, np.roll(rows.index, 1) + 1)

    def describe(row: int) -> str:
        who, index = history.process_name(rows.process[row]), history.index(row)
        if index == expected[row] - 1:
            return f"{who} has two rows with index {index}"
        return f"{who} has a row with index {index} where index {expected[row]} should follow"

    return np.flatnonzero(rows.index != expected), describe


def _nothing_after_crash(history: History) -> _Flaws:
    """W2: an incarnation ends with its crash or stop, and begins once."""
    rows, logs = history.rows, history.logs
    ends, starts = history.of_kind("crash", "stop"), history.of_kind("start")
    early = ends[ends < logs.end[rows.process[ends]] - 1]
    again = starts[1:][rows.process[starts[1:]] == rows.process[starts[:-1]]]

    def describe(row: int) -> str:
        who, index = history.process_name(rows.process[row]), history.index(row)
        if rows.kind[row] == KIND["crash"]:
            return f"{who} crashed at index {index}, yet its log goes on in the same incarnation"
        if rows.kind[row] == KIND["stop"]:
            return f"{who} stopped at index {index}, yet its log goes on in the same incarnation"
        return f"{who} starts a second time at index {index} in the same incarnation"

    return np.concatenate([early, again]), describe


def _sent_once_in_sequence(history: History) -> _Flaws:
    """W3: the k-th send of a process in a group has number k and its own name, and no message is sent twice."""
    sends, messages, rows = history.sends, history.messages, history.rows
    foreign = messages.sender[sends.message] != sends.process
    order = np.lexsort((sends.row, messages.stream[sends.message]))
    stream = messages.stream[sends.message][order]
    expected = np.empty(len(order), np.int64)
    expected[order] = np.arange(len(order)) - np.searchsorted(stream, stream)
    flawed = foreign | (rows.number[sends.row] != expected)

    def describe(row: int) -> str:
        who = history.process_name(rows.process[row])
        if rows.sender[row] != rows.process[row]:
            return f"{who} sends {history.located(row)} in the name of another process"
        place = expected[np.searchsorted(sends.row, row)]
        return f"{who} sends {history.located(row)} as its message {place} in that group, counted from 0"

    return sends.row[flawed], describe


def _view_in_force(history: History) -> _Flaws:
    """W4: send, deliver and stable rows carry the view that their process installed last in that group."""
    rows, stays = history.rows, history.stays
    at = history.of_kind("send", "deliver", "stable")
    stay = history.stay_at(at)
    in_force = np.append(stays.view, -1)[stay]  # the appended -1 is for rows before any view

    def describe(row: int) -> str:
        who, index, named = (
            history.process_name(rows.process[row]),
            history.index(row),
            _view(history, rows.view[row]),
        )
        current = in_force[np.searchsorted(at, row)]
        if current < 0:
            return f"{who} names {named} at index {index} before it installed any view of that group"
        return f"{who} names {named} at index {index} while it is in {_view(history, current)}"

    return at[(rows.view[at] != in_force) | (stay < 0)], describe


def _previous_view(history: History) -> _Flaws:
    """W5: `previous` is the view that this process installed before in that group; null for its first view.

    It is also null for the first view after it left the group and came back: that formed view has no predecessor.
    """
    rows, stays = history.rows, history.stays
    before = np.append(stays.view, -1)[stays.preceding]
    before[stays.formed & (np.append(stays.leave, NEVER)[stays.preceding] < NEVER)] = -1

    def describe(row: int) -> str:
        who, index = history.process_name(rows.process[row]), history.index(row)
        named = _view(history, rows.previous[row])
        current = _view(history, before[np.searchsorted(stays.row, row)])
        return f"{who} installs a view at index {index} that replaces {named}, but it was in {current}"

    return stays.row[rows.previous[stays.row] != before], describe


def _block_alternates(history: History) -> _Flaws:
    """W6: block and unblock alternate in each group of a process, block first; a leave ends both."""
    rows = history.rows
    at = history.of_kind("block", "unblock", "leave")
    order = np.lexsort((at, rows.group[at], rows.process[at]))
    ordered = at[order]
    pair = rows.process[ordered] * (len(history.groups) + 1) + rows.group[ordered]
    first = np.diff(pair, prepend=-2) != 0
    first |= np.roll(rows.kind[ordered], 1) == KIND["leave"]
    before = np.where(first, KIND["unblock"], np.roll(rows.kind[ordered], 1))

    def describe(row: int) -> str:
        who, index = history.process_name(rows.process[row]), history.index(row)
        what = "blocked while blocked" if rows.kind[row] == KIND["block"] else "unblocked without being blocked"
        return f"{who} is {what} at index {index}"

    return np.sort(ordered[(rows.kind[ordered] == before) & (rows.kind[ordered] != KIND["leave"])]), describe


def _log_is_closed(history: History) -> _Flaws:
    """W7: every member of a view has a log that ends with `stop`, or with a `crash` written by the world."""
    rows, logs, stays = history.rows, history.logs, history.stays
    open_ended = logs.member & ~logs.stopped & ~logs.crashed
    lost = {member for members in set(stays.members) for member in members if logs.begin[member] == logs.end[member]}
    unlogged = {
        int(stays.row[stay]): min(lost.intersection(members))
        for stay, members in enumerate(stays.members)
        if lost.intersection(members)
    }

    def describe(row: int) -> str:
        who, index = history.process_name(rows.process[row]), history.index(row)
        if row in unlogged:
            missing = history.process_name(unlogged[row])
            return f"{who} installs a view with {missing} at index {index}, but the trace has no log of {missing}"
        return f"the log of {who} ends at index {index} with neither stop nor crash"

    return np.concatenate([logs.end[open_ended] - 1, np.array([*unlogged], np.int64)]), describe


def _view(history: History, view: int | np.int64) -> str:
    return f"view {history.views[view]}" if view >= 0 else "no view"


_RULES: Final[dict[str, Callable[[History], _Flaws]]] = {
    "W1": _index_without_gaps,
    "W2": _nothing_after_crash,
    "W3": _sent_once_in_sequence,
    "W4": _view_in_force,
    "W5": _previous_view,
    "W6": _block_alternates,
    "W7": _log_is_closed,
}
