"""L1 where processes change between sending and only receiving: at a settled end, views list the senders (InterGroup).

In each stable component, the last view of every process in the group's order has exactly the processes that want to
send. If none wants to, the last sender stays: without it, no process could join (docs/spec/intergroup.md 7.4). A
process that only receives and hears no sender keeps its last view; one that hears a sender outside its component in one
direction may follow that sender.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.departures import Departures
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.restless import is_restless
from antiphon.properties.verdicts.findings import Found
from antiphon.properties.verdicts.phrases import about, installed, names
from antiphon.properties.verdicts.verdict import Violation


def wrong_senders(
    history: History, promises: Promises, membership: Membership, departures: Departures, stays: Iterable[int]
) -> list[Found]:
    """The last views, among these, that do not list the senders of their component."""
    component, found = history.world.component, list[Found]()
    present = (~history.away | history.asked) & ~history.left & ~history.logs.crashed[:, None]
    wishing = promises.roles.wishing & present
    for stay in stays:
        process, group, members = membership.process[stay], membership.group[stay], membership.members[stay]
        here = frozenset(np.flatnonzero(wishing[:, group] & (component == component[process])).tolist())
        if departures.follows_outside(stay, wanted=bool(here)):
            continue
        right = members == here if here else len(members) < 2 and all(component[member] >= 0 for member in members)
        if not right and not is_restless(history, membership, group, members | here):
            describe = partial(_describe, history, membership, stay, here)
            found.append((int(history.logs.end[process]) - 1, group, describe))
    return found


def _describe(history: History, membership: Membership, stay: int, wishing: frozenset[int]) -> Violation:
    members = membership.members[stay]
    wanted = f"{names(history, wishing)} wanted to send" if wishing else "no process wanted to send"
    sentence = (
        f"{installed(history, membership, stay)} as its last view, with {names(history, members) or 'nobody'} in it, "
        f"although {wanted} and all were connected until the quiet end"
    )
    return about(history, membership, sentence, [stay], sorted(members ^ wishing))
