"""What a quiet end lets one ask, and of whom: members of a stable component, and what they sent last (properties.md 6).

"Eventually" is "before the quiet end", asked of the members of a stable component only. A run without a quiet end says
nothing, and its verdicts say why.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.codes import parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.verdicts.findings import nothing_asked
from antiphon.properties.verdicts.verdict import Verdict

_NONE = np.zeros(0, np.int64)


def cannot_tell(history: History, promises: Promises, property_id: str) -> list[Verdict]:
    """No opportunities, and why."""
    return nothing_asked(history, promises, property_id, note=f"not judged: {history.world.reason}")


def who_is_stable(history: History, promises: Promises, property_id: str) -> BoolArray:
    """By process and group: in a stable component, still in the group, and promising the property.

    Where changes of views are cuts, who left and asked to join is not in it before it has a view again.
    """
    in_component = (history.world.component >= 0)[:, None]
    away = history.away & promises.of_family(lambda promised: promised.cuts)[:, None]
    stable: BoolArray = promises.pairs(property_id) & in_component & ~history.left & ~away
    return stable


def who_sends(history: History, promises: Promises, stable: BoolArray) -> BoolArray:
    """By process and group: whose messages those are owed who are stable.

    Where each chooses for itself what it gets, that of everybody who is there, whatever it chose.
    """
    mixed = promises.of_family(lambda promised: promised.onlookers)[:, None]
    there = (history.world.component >= 0)[:, None] & ~history.left & ~history.away
    sends: BoolArray = stable | (mixed & there)
    return sends


def owed_to_onlookers(
    history: History, promises: Promises, sending: BoolArray, taking: BoolArray
) -> tuple[IntArray, IntArray]:
    """What was sent to those who only receive after they got to their last view, with each of them.

    By process and group: of whom, and to whom; who is in another component than the sender is not asked.
    """
    sends, stays, component = history.sends, history.stays, history.world.component
    messages, processes = [_NONE], [_NONE]
    for stay in np.flatnonzero(stays.final & (promises.onlooking & taking)[stays.process, stays.group]).tolist():
        process, group, since = int(stays.process[stay]), stays.group[stay], history.rows.time[stays.row[stay]]
        heard = sending[:, group] & (component == component[process])
        heard &= np.isin(np.arange(len(component)), stays.members[stay])
        sent = sends.message[heard[sends.process] & (sends.group == group) & (history.rows.time[sends.row] > since)]
        messages.append(sent)
        processes.append(np.full(len(sent), process, np.int64))
    return np.concatenate(messages), np.concatenate(processes)


def unheard_senders(
    history: History, promises: Promises, sending: BoolArray, opportunities: IntArray
) -> list[tuple[int, int, int]]:
    """(last row, group, sender) of who promises L2 and only receives, and has at last no view with that sender.

    Asked are senders that it wants to hear, in its own component. Adds, by group, how many there were to hear.
    """
    stays, component, found = history.stays, history.world.component, list[tuple[int, int, int]]()
    last = last_stays(history)
    here = promises.onlooking & promises.pairs("L2") & (component >= 0)[:, None] & ~history.left
    for process, group in np.argwhere(here).tolist():
        stay = last.get((process, group), -1)
        heard = stays.members[stay] if stay >= 0 and stays.leave[stay] == NEVER else ()
        there = np.flatnonzero(sending[:, group] & ~promises.onlooking[:, group] & (component == component[process]))
        for sender in promises.wanted(process, group, there.tolist()):
            opportunities[group] += 1
            if sender not in heard:
                found.append((int(history.logs.end[process]) - 1, group, sender))
    return found


def counts_at_stop(history: History, name: str) -> list[tuple[int, int, int]]:
    """(row, group, count) of what `stop` rows count by group under that name, where it is not 0."""
    code_of = {group: code for code, group in enumerate(history.groups)}
    found = []
    for row in history.of_kind("stop").tolist():
        counts = history.details[row].get(name, {})
        for group, count in counts.items() if isinstance(counts, dict) else ():
            if isinstance(count, int) and count > 0 and group in code_of:
                found.append((row, code_of[group], count))
    return found


def last_stays(history: History) -> dict[tuple[int, int], int]:
    """By process and group: its stay in its last view there."""
    stays = history.stays
    last = np.flatnonzero(stays.final)
    places = zip(stays.process[last].tolist(), stays.group[last].tolist(), strict=True)
    return dict(zip(places, last.tolist(), strict=True))


def sent_in_last_view(history: History, sending: BoolArray) -> list[tuple[int, IntArray]]:
    """What these members sent in their last views; those of one view and component together, with a stay in it."""
    sends, stays, component = history.sends, history.stays, history.world.component
    stay = history.stay_at(sends.row)
    asked = sending[sends.process, sends.group] & stays.final[stay]
    shared: dict[tuple[int, int, int, tuple[int, ...]], list[int]] = defaultdict(list)
    for last in np.unique(stay[asked]).tolist():
        place = int(stays.group[last]), int(stays.view[last]), int(component[stays.process[last]])
        shared[*place, stays.members[last]].append(last)
    return [(together[0], sends.message[asked & np.isin(stay, together)]) for together in shared.values()]


def receivers(history: History, stable: BoolArray, stay: int) -> list[tuple[int, int]]:
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


def addressed(history: History, sending: BoolArray, taking: BoolArray, audience: Audience) -> tuple[IntArray, IntArray]:
    """What the chosen senders sent, with each of the chosen receivers that it was addressed to, to the end.

    Both are by process and group; who is in another component than the sender is not asked.
    """
    sends, stays, component = history.sends, history.stays, history.world.component
    asked = sends.where(sending[sends.process, sends.group])
    stay = history.stay_at(asked.row)
    messages, processes = [_NONE], [_NONE]
    for place, at in parts(stay):
        group, sender, sent = stays.group[place], stays.process[place], asked.message[at]
        for member in sorted(audience.to_the_end[place]):
            if taking[member, group] and component[member] == component[sender]:
                messages.append(sent)
                processes.append(np.full(len(sent), member, np.int64))
    return np.concatenate(messages), np.concatenate(processes)
