"""What is owed at a quiet end: by members of stable components, for what they sent last (docs/spec/properties.md 6).

"Eventually" means "before the quiet end", and is judged only for the members of a stable component. A run without a
quiet end proves nothing, and its verdicts say why.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.codes import parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.one_way import OneWayLinks
from antiphon.types import split_process_id

_NONE = np.zeros(0, np.int64)


def stable_members(history: History, promises: Promises, property_id: str) -> BoolArray:
    """By process and group: in a stable component, still in the group, and promising the property.

    In families whose view changes are cuts, a process that left and asked to join again counts once it has a view.
    """
    in_component = (history.world.component >= 0)[:, None]
    away = history.away & promises.of_family(lambda promised: promised.cuts)[:, None]
    stable: BoolArray = promises.pairs(property_id) & in_component & ~history.left & ~away
    return stable


def stable_senders(history: History, promises: Promises, stable: BoolArray) -> BoolArray:
    """By process and group: the processes whose messages are owed to the stable members.

    In families where each process chooses its own service, these are all present processes, whatever they chose.
    """
    mixed = promises.of_family(lambda promised: promised.onlookers)[:, None]
    there = (history.world.component >= 0)[:, None] & ~history.left & ~history.away
    sends: BoolArray = stable | (mixed & there)
    return sends


def owed_to_receivers(
    history: History, promises: Promises, sending: BoolArray, taking: BoolArray
) -> tuple[IntArray, IntArray]:
    """What was sent to receive-only processes after they entered their last view, with each such process.

    `sending` and `taking` are by process and group. Only pairs within one component count.
    """
    sends, stays, component = history.sends, history.stays, history.world.component
    messages, processes = [_NONE], [_NONE]
    for stay in np.flatnonzero(stays.final & promises.roles.receiving & taking[stays.process, stays.group]).tolist():
        process, group, since = int(stays.process[stay]), stays.group[stay], history.rows.time[stays.row[stay]]
        heard = sending[:, group] & (component == component[process])
        heard &= np.isin(np.arange(len(component)), stays.members[stay])
        sent = sends.message[heard[sends.process] & (sends.group == group) & (history.rows.time[sends.row] > since)]
        messages.append(sent)
        processes.append(np.full(len(sent), process, np.int64))
    return np.concatenate(messages), np.concatenate(processes)


def missing_senders(
    history: History, promises: Promises, sending: BoolArray, opportunities: IntArray
) -> list[tuple[int, int, int]]:
    """(last row, group, sender) of receive-only processes that promise L2 but end without a view with that sender.

    Only senders that it chose, in its own component, count. Adds their number to `opportunities`, by group.
    """
    stays, component, found = history.stays, history.world.component, list[tuple[int, int, int]]()
    last, one_way = last_stays(history), OneWayLinks(history)
    here = promises.roles.receives_last & promises.pairs("L2") & (component >= 0)[:, None] & ~history.left
    here &= ~_never_asked(history)
    for process, group in np.argwhere(here).tolist():
        stay = last.get((process, group), -1)
        heard = stays.members[stay] if stay >= 0 and stays.leave[stay] == NEVER else ()
        if one_way.hears_outsider(process, frozenset(heard)):
            continue  # it follows a sender of another component
        there = np.flatnonzero(
            sending[:, group] & ~promises.roles.receives_last[:, group] & (component == component[process])
        )
        for sender in promises.chosen_senders(process, group, there.tolist()):
            opportunities[group] += 1
            if sender not in heard:
                found.append((int(history.logs.end[process]) - 1, group, sender))
    return found


def _never_asked(history: History) -> BoolArray:
    """By process and group: a later incarnation that has not joined the group again."""
    later = np.array([split_process_id(who)[1] > 0 for who in history.processes], np.bool_)
    return later[:, None] & ~history.asked


def counts_at_stop(history: History, name: str) -> list[tuple[int, int, int]]:
    """(row, group, count) of what `stop` rows count by group under that name, if it is not 0."""
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
    """What these members sent in their last views; grouped by view and component, with one stay each."""
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
    """What the chosen senders sent, with each chosen receiver to which it was addressed until the end.

    `sending` and `taking` are by process and group. Only pairs within one component count.
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
