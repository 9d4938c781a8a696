"""L9 and L10: where nothing breaks nobody is excluded, and nobody who lives keeps silent for long (properties.md 6)."""

from functools import partial
from typing import Final

import numpy as np

from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.checks.views import about, counted, installed, names, view_of
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.following import Followers, Loss
from antiphon.properties.tables.frames import slowest_frame_ns
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.verdicts.findings import Broken, Found, gathered, nothing_asked, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.types import split_process_id

# -------------------------------------------------------------------------------- L9


def check_no_false_exclusion(
    history: History, promises: Promises, membership: Membership, prefixes: Prefixes
) -> list[Verdict]:
    """L9: a run in which nothing breaks and nobody comes or goes has one view of each group.

    Nothing breaks: there is no `fault` and no `crash` row, and no message or frame took longer than half the time of
    suspicion. Of those who only receive, it is asked what was in their own way (`following.py`): once they have begun,
    they lose nobody.
    """
    members = [
        stay
        for stay in membership.asked("L9")
        if not promises.onlooking[membership.process[stay], membership.group[stay]]
    ]
    note = _why_not(history, membership, prefixes, members)
    judged = [] if note else members
    followers = Followers(history, promises, membership)
    found = [*_of_members(history, membership, judged), *_of_followers(history, membership, followers)]
    first = [stay for stay in judged if membership.preceding[stay] < 0]
    opportunities = counted(history, membership, [*first, *followers.beginnings()])
    return over_groups(history, promises, "L9", opportunities, gathered(found), note=note)


def _why_not(history: History, membership: Membership, prefixes: Prefixes, stays: list[int]) -> str | None:
    if not stays:
        return None
    if len(history.of_kind("fault", "crash", "join", "leave")):
        return "not judged: something broke"
    second = any(membership.preceding[stay] >= 0 for stay in stays)
    if second and max(prefixes.arrivals.slowest_ns, slowest_frame_ns(history)) > membership.suspectors.bearable_ns:
        return "not judged: messages took longer than half the time of suspicion"
    return None


def _of_members(history: History, membership: Membership, stays: list[int]) -> list[Found]:
    return [
        (membership.row[stay], membership.group[stay], partial(_tell_needless, history, membership, stay))
        for stay in stays
        if membership.preceding[stay] >= 0
    ]


def _of_followers(history: History, membership: Membership, followers: Followers) -> list[Found]:
    found: list[Found] = []
    for loss in followers.losses():
        why = followers.needless(loss)
        if why is not None:
            tell = partial(_tell_anew, history, membership, loss, why)
            found.append((membership.row[loss.stay], membership.group[loss.stay], tell))
    return found


def _tell_needless(history: History, membership: Membership, stay: int) -> Violation:
    before = view_of(history, membership, membership.preceding[stay])
    sentence = f"{installed(history, membership, stay)} after view {before}, in a run in which nothing broke"
    return about(history, membership, sentence, [stay])


def _tell_anew(history: History, membership: Membership, loss: Loss, why: str) -> Violation:
    """It begins anew."""
    before = view_of(history, membership, membership.preceding[loss.stay])
    sentence = (
        f"{installed(history, membership, loss.stay)} after view {before}, without {names(history, loss.lost)}, though "
        f"{why}"
    )
    return about(history, membership, sentence, [loss.stay], loss.lost)


# -------------------------------------------------------------------------------- L10

_HINDERS: Final = frozenset({"pause", "stall", "slow", "skew"})
"""Faults of a process that keep it from speaking in time."""


def check_silence(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """L10: a member of a view with others transmits something at least every so often.

    Where groups have an idle probe: within twice its time and that of the time-silence, and one time of suspicion.
    Where members speak by the clock: within twice the longer of their periods. Who was paused, slowed or stopped from
    consuming is not asked.
    """
    bound = _bounds(membership)
    bound[_hindered(history) | ~history.own] = 0
    asked = membership.asked("L10", private=True)
    stays = [stay for stay in asked if bound[membership.process[stay]] and _has_company(history, membership, stay)]
    if not stays:
        return nothing_asked(history, promises, "L10")
    cuts = promises.of_family(lambda promised: promised.cuts)
    begins, ends, groups = _intervals(history, membership, cuts, stays)
    took = history.rows.time[ends] - history.rows.time[begins]
    process = history.rows.process[begins]
    silent = np.flatnonzero(took > bound[process])

    def tell(position: int) -> Violation:
        at = silent[position]
        who, group = history.process_name(process[at]), history.groups[groups[at]]
        places = (history.index(begins[at]), history.index(ends[at]))
        sentence = (
            f"{who} transmitted nothing in {group} for {took[at] / 1e9:.3f} s (from index {places[0]} to index "
            f"{places[1]}), where {bound[process[at]] / 1e9:.3f} s are allowed"
        )
        return Violation(sentence, (who, who), (), places)

    opportunities = np.bincount(groups, minlength=len(history.groups))
    return over_groups(history, promises, "L10", opportunities, Broken(ends[silent], groups[silent], tell))


def _has_company(history: History, membership: Membership, stay: int) -> bool:
    """The process sends to others in that view, or receives from them; it has not left the group."""
    process, group, stays = membership.process[stay], membership.group[stay], history.stays
    others = {*stays.receivers[stay], *stays.senders[stay]} - {process}
    return bool(others) and not history.left[process, group]


def _bounds(membership: Membership) -> IntArray:
    """By process how long it may keep silent; 0 where nothing is said about it."""
    suspectors = membership.suspectors
    probed = 2 * (suspectors.probe + suspectors.silence) + suspectors.after
    by_probe = np.where((suspectors.after > 0) & (suspectors.probe > 0), probed, 0)
    return np.where(suspectors.keep_alive > 0, 2 * suspectors.keep_alive, by_probe)


def _hindered(history: History) -> BoolArray:
    named = {
        str(detail.get("process"))
        for detail in (history.details.get(row, {}) for row in history.of_kind("fault").tolist())
        if detail.get("kind") in _HINDERS
    }
    return np.array([who in named or split_process_id(who)[0] in named for who in history.processes], np.bool_)


def _intervals(
    history: History, membership: Membership, cuts: BoolArray, stays: list[int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Times between neighbouring `transmit` rows of these stays, and at both ends of them. With the group.

    One stay after the other in the same group is one time. Where changes of views are cuts, who left is heard of again
    only in its next view.
    """
    rows, chosen = history.rows, np.zeros(len(history.stays.row) + 1, np.bool_)
    chosen[stays] = True
    at = history.of_kind("transmit", "join")
    at = at[rows.group[at] >= 0]
    at = at[chosen[np.where(cuts[rows.process[at]], history.membership_at(at), history.stay_at(at))]]
    begins = [membership.row[stay] for stay in stays if not chosen[membership.preceding[stay]]]
    over = _ends(history, cuts, [stay for stay in stays if not chosen[membership.following[stay]]])
    left = history.of_kind("leave")
    left = left[rows.group[left] >= 0]
    row = np.concatenate([at, np.array(begins, np.int64), over[0], left])
    group = np.concatenate([rows.group[row[: len(at) + len(begins)]], over[1], rows.group[left]])
    last = np.arange(len(row)) >= len(at) + len(begins)
    order = np.lexsort((row, group, rows.process[row]))
    row, group, last = row[order], group[order], last[order]
    same = (np.diff(group) == 0) & (np.diff(rows.process[row]) == 0) & ~last[:-1]
    return row[:-1][same], row[1:][same], group[:-1][same]


def _ends(history: History, cuts: BoolArray, stays: list[int]) -> tuple[IntArray, IntArray]:
    """The rows at which these stays are over, and their groups."""
    process, following = history.stays.process[stays], history.stays.following[stays]
    last = np.where(following >= 0, history.stays.row[following], history.logs.end[process] - 1)
    over = np.where(cuts[process], np.minimum(history.over[stays], last), last)
    return over, history.stays.group[stays]
