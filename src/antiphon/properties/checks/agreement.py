"""D13 agreement: at a quiet end, members that stay together have delivered the same messages (Notes).

This is the agreement of the lecture notes' definition of reliable multicast (docs/spec/properties.md 3): a sender may
crash half-way, and the processes that received its message must pass it on. It is judged for the members of a stable
component, in whatever views they deliver: it is D8 for families in which a view change is not a cut. It does
not apply to private views, which no two processes share.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet_end import last_stays, stable_members
from antiphon.properties.verdicts.findings import Violations, not_quiet, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)
_Companions = dict[int, tuple[int, ...]]
"""For each stay of a stable member: the stable members of its component that are with it both there and at the end."""


def check_agreement(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D13: if a stable member delivers a message, so do all stable members that were with it then and at the end."""
    if not history.world.quiet or not promises.groups("D13").any():
        return not_quiet(history, promises, "D13")
    total, messages = len(history.messages.number), history.messages
    companions = _companions(history, stable_members(history, promises, "D13"))
    message, process = _owed(history, companions, delivered)
    had = np.isin(process * total + message, history.first.process * total + history.first.message)
    lost, losers = message[~had], process[~had]

    def describe(position: int) -> Violation:
        return _describe(history, companions, int(lost[position]), int(losers[position]))

    opportunities = np.bincount(messages.group[message], minlength=len(history.groups))
    broken = Violations(history.logs.end[losers] - 1, messages.group[lost], describe)
    return over_groups(history, promises, "D13", opportunities, broken)


def _owed(history: History, companions: _Companions, delivered: Delivered) -> tuple[IntArray, IntArray]:
    """Each message that a stable member delivered, with every process that owes its delivery; each pair once."""
    camps: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for stay, others in companions.items():
        camps[others].append(stay)
    total, pairs = len(history.messages.number), [_NONE]
    for others, stays in camps.items():
        messages = np.unique(np.concatenate([delivered.messages(stay) for stay in stays]))
        # A message that no process sent is reported by D1 alone.
        messages = messages[history.messages.known[messages]]
        pairs.append((np.array(others, np.int64)[:, None] * total + messages).ravel())
    process, message = np.divmod(np.unique(np.concatenate(pairs)), max(total, 1))
    return message, process


def _companions(history: History, stable: BoolArray) -> _Companions:
    stays, component = history.stays, history.world.component
    last, found = last_stays(history), {}
    for stay, (process, group) in enumerate(zip(stays.process.tolist(), stays.group.tolist(), strict=True)):
        if stable[process, group] and not stays.private[stay]:
            both = {*stays.members[stay]}.intersection(stays.members[last[process, group]])
            others = sorted(each for each in both if stable[each, group] and component[each] == component[process])
            if len(others) > 1:
                found[stay] = tuple(others)
    return found


def _describe(history: History, companions: _Companions, message: int, process: int) -> Violation:
    """Names the earliest delivery by a process that was with it."""
    first, rows = history.first, history.rows
    at = first.row[first.message == message]
    with_it = [process in companions.get(stay, ()) for stay in history.stay_at(at).tolist()]
    at = at[with_it]
    row = int(at[np.lexsort((at, rows.time[at]))[0]])
    who, holder = history.process_name(process), history.process_name(rows.process[row])
    sender = history.messages.sender[message]
    gone = f" of {history.process_name(sender)}, which crashed," if history.logs.crashed[sender] else ""
    last = history.index(history.logs.end[process] - 1)
    sentence = (
        f"{holder} delivered {history.located(row)}{gone} but {who} had not delivered it when the run ended quiet"
    )
    return Violation(sentence, (holder, who), (history.message_name(message),), (history.index(row), last))
