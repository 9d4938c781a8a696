"""L9 and L10: failure detection raises no false alarm, and live members are not silent (docs/spec/properties.md 6)."""

from functools import partial
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.frames import slowest_frame_ns
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.receive_only import Loss, ReceiveOnly
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.verdicts.findings import (
    Found,
    Violations,
    as_violations,
    no_opportunity,
    not_quiet,
    over_groups,
)
from antiphon.properties.verdicts.phrases import about, counted, installed, names, view_of
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.types import split_process_id

# -------------------------------------------------------------------------------- L9


def check_no_false_exclusion(
    history: History, promises: Promises, membership: Membership, stability: StabilityReports
) -> list[Verdict]:
    """L9: if nothing fails and no process joins or leaves, each group has exactly one view.

    Nothing fails means: there is no `fault` and no `crash` row, and no message or frame took longer than half the
    suspicion timeout. A receive-only process is judged by what was in its own way (`receive_only.py`): once it has
    begun, it loses no sender.
    """
    members = [stay for stay in membership.stays_promising("L9") if not promises.roles.receiving[stay]]
    note = _why_not(history, membership, stability, members)
    judged = [] if note else members
    receivers_only = ReceiveOnly(history, promises, membership)
    found = [*_of_members(history, membership, judged), *_of_receivers(history, membership, receivers_only)]
    first = [stay for stay in judged if membership.preceding[stay] < 0]
    opportunities = counted(history, membership, [*first, *receivers_only.beginnings()])
    return over_groups(history, promises, "L9", opportunities, as_violations(found), note=note)


def _why_not(history: History, membership: Membership, stability: StabilityReports, stays: list[int]) -> str | None:
    if not stays:
        return None
    if len(history.of_kind("fault", "crash", "join", "leave")):
        return "not judged: the run has faults or membership changes"
    second = any(membership.preceding[stay] >= 0 for stay in stays)
    if second and max(stability.arrivals.slowest_ns, slowest_frame_ns(history)) > membership.suspectors.bearable_ns:
        return "not judged: messages took longer than half the suspicion timeout"
    return None


def _of_members(history: History, membership: Membership, stays: list[int]) -> list[Found]:
    return [
        (membership.row[stay], membership.group[stay], partial(_describe_needless, history, membership, stay))
        for stay in stays
        if membership.preceding[stay] >= 0
    ]


def _of_receivers(history: History, membership: Membership, receivers_only: ReceiveOnly) -> list[Found]:
    found: list[Found] = []
    for loss in receivers_only.losses():
        why = receivers_only.needless(loss)
        if why is not None:
            describe = partial(_describe_anew, history, membership, loss, why)
            found.append((membership.row[loss.stay], membership.group[loss.stay], describe))
    return found


def _describe_needless(history: History, membership: Membership, stay: int) -> Violation:
    before = view_of(history, membership, membership.preceding[stay])
    sentence = f"{installed(history, membership, stay)} after view {before}, although nothing failed in the run"
    return about(history, membership, sentence, [stay])


def _describe_anew(history: History, membership: Membership, loss: Loss, why: str) -> Violation:
    """The receiver started again."""
    before = view_of(history, membership, membership.preceding[loss.stay])
    sentence = (
        f"{installed(history, membership, loss.stay)} after view {before}, without {names(history, loss.lost)}, "
        f"although {why}"
    )
    return about(history, membership, sentence, [loss.stay], loss.lost)


# -------------------------------------------------------------------------------- L10

_HINDERS: Final = frozenset({"pause", "stall", "slow", "skew"})
"""Faults that keep a process from transmitting in time."""


def check_silence(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """L10: a member of a view with other members transmits something within a bound.

    It has no peers any more once it has confirmed that all other members have failed, or has told them that it leaves.
    Its application may learn of the view, or of the leave, much later: it may wait for a state of another group (E-84).

    The bound with an idle probe: twice the sum of probe period and time-silence, plus one suspicion timeout. The bound
    for members that transmit periodically: twice the longer of their periods. A process that was paused, slowed, or
    stalled by its application is not judged. Without rows about such faults, nothing is judged.
    """
    if history.world.is_open:
        return not_quiet(history, promises, "L10")
    bound, periodic = _bounds(
        membership, np.isin(np.arange(len(history.processes)), history.stays.process[promises.roles.receiving])
    )
    bound[_hindered(history) | ~history.in_part] = 0
    asked = membership.stays_promising("L10", private=True)
    stays = [stay for stay in asked if bound[membership.process[stay]] and _has_company(history, membership, stay)]
    if not stays:
        return no_opportunity(history, promises, "L10")
    cuts = promises.of_family(lambda promised: promised.cuts)
    begins, ends, groups = _intervals(history, membership, cuts, periodic, stays)
    took = history.rows.time[ends] - history.rows.time[begins]
    process = history.rows.process[begins]
    silent = np.flatnonzero(took > bound[process])

    def describe(position: int) -> Violation:
        at = silent[position]
        who, group = history.process_name(process[at]), history.groups[groups[at]]
        places = (history.index(begins[at]), history.index(ends[at]))
        sentence = (
            f"{who} transmitted nothing in {group} for {took[at] / 1e9:.3f} s (from index {places[0]} to index "
            f"{places[1]}); at most {bound[process[at]] / 1e9:.3f} s are allowed"
        )
        return Violation(sentence, (who, who), (), places)

    opportunities = np.bincount(groups, minlength=len(history.groups))
    return over_groups(history, promises, "L10", opportunities, Violations(ends[silent], groups[silent], describe))


def _has_company(history: History, membership: Membership, stay: int) -> bool:
    """True if the process sends to others in that view, or receives from them, and has not left the group."""
    process, group, stays = membership.process[stay], membership.group[stay], history.stays
    others = {*stays.receivers[stay], *stays.senders[stay]} - {process}
    return bool(others) and not history.left[process, group]


def _bounds(membership: Membership, onlooking: BoolArray) -> tuple[IntArray, BoolArray]:
    """For each process how long it may be silent, 0 if there is no bound; and whether it transmits periodically.

    Onlookers take turns to report.
    """
    suspectors = membership.suspectors
    probed = 2 * (suspectors.probe + suspectors.silence) + suspectors.after
    by_probe = np.where((suspectors.after > 0) & (suspectors.probe > 0), probed, 0)
    # A process that joins asks every half timeout.
    turns = np.maximum(suspectors.keep_alive, suspectors.report) + suspectors.after // 2
    period = np.where(onlooking, turns, suspectors.keep_alive)
    return np.where(period > 0, 2 * period, by_probe), period > 0


def _hindered(history: History) -> BoolArray:
    named = {
        str(detail.get("process"))
        for detail in (history.details.get(row, {}) for row in history.of_kind("fault").tolist())
        if detail.get("kind") in _HINDERS
    }
    return np.array([who in named or split_process_id(who)[0] in named for who in history.processes], np.bool_)


def _intervals(
    history: History, membership: Membership, cuts: BoolArray, periodic: BoolArray, stays: list[int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Intervals between neighbouring `transmit` rows of these stays, including both ends of a stay, with the group.

    Consecutive stays in one group form one interval, unless the process was alone between them. In families whose view
    changes are cuts, a process that left is judged again only from its next view on. A process that does not transmit
    periodically tells its peers that it leaves, so the time from that frame to its `leave` row does not count.
    """
    rows, chosen = history.rows, np.zeros(len(history.stays.row) + 1, np.bool_)
    chosen[stays] = True
    alone = _alone(history, membership)
    at = history.of_kind("transmit", "join")
    at = at[rows.group[at] >= 0]
    stay = np.where(cuts[rows.process[at]], history.membership_at(at), history.stay_at(at))
    at = at[chosen[stay] & (at < alone[stay])]
    goes_on = chosen & (alone == NEVER)
    begins = [membership.row[stay] for stay in stays if not goes_on[membership.preceding[stay]]]
    closing = [stay for stay in stays if not (goes_on[stay] and chosen[membership.following[stay]])]
    over = _ends(history, cuts, closing)
    left = history.of_kind("leave")
    left = left[rows.group[left] >= 0]
    row = np.concatenate([at, np.array(begins, np.int64), np.minimum(over[0], alone[closing]), left])
    group = np.concatenate([rows.group[row[: len(at) + len(begins)]], over[1], rows.group[left]])
    last = np.arange(len(row)) >= len(at) + len(begins)
    order = np.lexsort((row, group, rows.process[row]))
    row, group, last = row[order], group[order], last[order]
    gone = (rows.kind[row] == KIND["leave"]) & ~periodic[rows.process[row]]
    same = (np.diff(group) == 0) & (np.diff(rows.process[row]) == 0) & ~last[:-1] & ~gone[1:]
    return row[:-1][same], row[1:][same], group[:-1][same]


def _alone(history: History, membership: Membership) -> IntArray:
    """For each stay the row from which on all other members are confirmed to have failed; NEVER if there is none."""
    found = np.full(len(history.stays.row) + 1, NEVER, np.int64)
    others: dict[int, set[int]] = {}
    for each in membership.confirmations:
        stay = int(history.stays.at[each.row])
        if stay < 0:
            continue
        remaining = others.setdefault(stay, {*membership.members[stay]} - {each.process})
        remaining.discard(each.peer)
        if not remaining:
            found[stay] = min(found[stay], each.row)
    return found


def _ends(history: History, cuts: BoolArray, stays: list[int]) -> tuple[IntArray, IntArray]:
    """The rows at which these stays end, and their groups."""
    process, following = history.stays.process[stays], history.stays.following[stays]
    last = np.where(following >= 0, history.stays.row[following], history.logs.end[process] - 1)
    over = np.where(cuts[process], np.minimum(history.over[stays], last), last)
    return over, history.stays.group[stays]
