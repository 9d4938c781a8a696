"""D13 agreement: at a quiet end, what one member that stays has delivered, all that stay with it have (Notes).

The agreement of the lecture notes' definition of reliable multicast (docs/spec/properties.md 3): a sender may
crash half-way and those whom its message reached must bring it to the others. Asked of members of a stable component,
in whatever views they deliver; it is D8 without views that cut. Of private views, in which nobody is with another, it
has nothing to say.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet import cannot_tell, last_stays, who_is_stable
from antiphon.properties.tables.sets import Delivered
from antiphon.properties.verdicts.findings import Broken, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)
_Companions = dict[int, tuple[int, ...]]
"""For each stay of a stable member, the stable members of its component that are with it there and at the end."""


def check_agreement(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D13: delivered by one member of S, delivered by all members of S that were with it then and are at the end."""
    if not history.world.quiet or not promises.groups("D13").any():
        return cannot_tell(history, promises, "D13")
    total, messages = len(history.messages.number), history.messages
    companions = _companions(history, who_is_stable(history, promises, "D13"))
    message, process = _owed(history, companions, delivered)
    had = np.isin(process * total + message, history.first.process * total + history.first.message)
    lost, losers = message[~had], process[~had]

    def tell(position: int) -> Violation:
        return _tell(history, companions, int(lost[position]), int(losers[position]))

    opportunities = np.bincount(messages.group[message], minlength=len(history.groups))
    broken = Broken(history.logs.end[losers] - 1, messages.group[lost], tell)
    return over_groups(history, promises, "D13", opportunities, broken)


def _owed(history: History, companions: _Companions, delivered: Delivered) -> tuple[IntArray, IntArray]:
    """Each message that a stable member delivered, with everybody who owes its delivery; each pair once."""
    camps: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for stay, others in companions.items():
        camps[others].append(stay)
    total, pairs = len(history.messages.number), [_NONE]
    for others, stays in camps.items():
        messages = np.unique(np.concatenate([delivered.messages(stay) for stay in stays]))
        # Of what nobody sent, D1 speaks alone.
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


def _tell(history: History, companions: _Companions, message: int, process: int) -> Violation:
    """The earliest delivery by somebody who was with it."""
    first, rows = history.first, history.rows
    at = first.row[first.message == message]
    with_it = [process in companions.get(stay, ()) for stay in history.stay_at(at).tolist()]
    at = at[with_it]
    row = int(at[np.lexsort((at, rows.time[at]))[0]])
    who, holder = history.process_name(process), history.process_name(rows.process[row])
    sender = history.messages.sender[message]
    gone = f" of {history.process_name(sender)}, which crashed," if history.logs.crashed[sender] else ""
    last = history.index(history.logs.end[process] - 1)
    sentence = f"{holder} delivered {history.told(row)}{gone} and {who} had not when the run ended quiet"
    return Violation(sentence, (holder, who), (history.message_name(message),), (history.index(row), last))
