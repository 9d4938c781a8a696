"""What a quiet end lets one ask, and of whom: members of a stable component, and what they sent last (properties.md 6).

"Eventually" is "before the quiet end", asked of the members of a stable component only. A run without a quiet end says
nothing, and its verdicts say why.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.findings import NOTHING, over_groups
from antiphon.properties.history import History
from antiphon.properties.promises import Promises
from antiphon.properties.verdict import Verdict


def cannot_tell(history: History, promises: Promises, property_id: str) -> list[Verdict]:
    """No opportunities, and why."""
    opportunities = np.zeros(len(history.groups), np.int64)
    note = f"not judged: {history.world.reason}"
    return over_groups(history, promises, property_id, opportunities, NOTHING, note=note)


def who_is_stable(history: History, promises: Promises, property_id: str) -> BoolArray:
    """By process and group: in a stable component, still in the group, and promising the property."""
    in_component = (history.world.component >= 0)[:, None]
    stable: BoolArray = promises.pairs(property_id) & in_component & ~history.left
    return stable


def sent_in_last_view(history: History, stable: BoolArray) -> list[tuple[int, IntArray]]:
    """What stable members sent in their last views; those of one view and component together, with a stay in it."""
    sends, stays, component = history.sends, history.stays, history.world.component
    stay = history.stay_at(sends.row)
    asked = stable[sends.process, sends.group] & (stays.following[stay] < 0)
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
