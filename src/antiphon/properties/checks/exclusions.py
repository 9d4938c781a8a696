"""L1, L4 and L5: at a quiet end, departed processes are out of the views, and connected members agree on their view.

`departures.py` says which processes have departed, and for which members.
"""

from collections import defaultdict
from functools import partial

import numpy as np

from antiphon.properties.checks.sender_groups import wrong_senders
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.departures import Departures
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.quiet_end import last_stays, receivers, sent_in_last_view, stable_members
from antiphon.properties.tables.restless import is_restless
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.tables.suspectors import LATE
from antiphon.properties.verdicts.findings import Found, Violations, as_violations, not_quiet, over_groups
from antiphon.properties.verdicts.phrases import about, counted, installed, names
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


# -------------------------------------------------------------------------------- L1


def check_precision(
    history: History, promises: Promises, membership: Membership, departures: Departures
) -> list[Verdict]:
    """L1: at a quiet end, the last views of a stable component S lie within S and are equal for all their members.

    Where views do not merge, an excluded member stays out: the last views need not equal S, but they partition it.
    Where they do (`merge_every`), all members of S in the group that know of each other, directly or through others,
    are in one view, unless frames are so slow that members keep excluding each other. A process that asked to join is
    in the group by then, if one of its contacts was a member of S. Where processes change between sending and only
    receiving, the last views list exactly those that want to send (`sender_groups.py`).
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L1")
    stable = stable_members(history, promises, "L1")
    last = {place: stay for place, stay in last_stays(history).items() if stable[place]}
    judged = [stay for place, stay in last.items() if membership.shared[stay] and membership.settled[place[0]]]
    opportunities = counted(history, membership, judged)
    roles = promises.of_family(lambda promised: promised.onlookers)
    changing = [stay for stay in judged if roles[membership.process[stay]]]
    found = wrong_senders(history, promises, membership, departures, changing)
    judged = [stay for stay in judged if not promises.roles.receiving[stay]]
    last = {place: stay for place, stay in last.items() if not promises.roles.receiving[stay]}
    found += _not_of_one_mind(history, membership, judged, last)
    found += _not_merged(history, membership, last)
    found += _never_joined(history, promises, membership, departures, stable)
    found += _outsiders(history, membership, departures, stable)
    return over_groups(history, promises, "L1", opportunities, as_violations(found))


def _not_of_one_mind(
    history: History, membership: Membership, judged: list[int], last: dict[tuple[int, int], int]
) -> list[Found]:
    """Members of a last view that are in the same component, but have another last view themselves."""
    component = history.world.component
    classes: dict[tuple[int, int, int, frozenset[int]], list[int]] = defaultdict(list)
    for stay in judged:
        where = int(component[membership.process[stay]]), membership.group[stay]
        classes[*where, membership.view[stay], membership.members[stay]].append(stay)
    found = list[Found]()
    for (here, group, _, members), stays in classes.items():
        others = sorted(members - {membership.process[stay] for stay in stays})
        if others and is_restless(history, membership, group, members):
            continue
        for other in others:
            elsewhere = last.get((other, group), -1)
            if elsewhere >= 0 and component[other] == here:
                describe = partial(_describe_not_of_one_mind, history, membership, stays[0], elsewhere)
                found.append((int(history.logs.end[membership.process[stays[0]]]) - 1, group, describe))
    return found


def _outsiders(history: History, membership: Membership, departures: Departures, stable: BoolArray) -> list[Found]:
    """Last views that hold processes outside the component."""
    found = list[Found]()
    outside: dict[int, list[int]] = defaultdict(list)
    for loss in departures.losses(stable):
        if loss.departed in membership.members[loss.stay]:
            outside[loss.stay].append(loss.departed)
    for stay, others in outside.items():
        describe = partial(_describe_outsiders, history, membership, stay, others)
        found.append((int(history.logs.end[membership.process[stay]]) - 1, membership.group[stay], describe))
    return found


def _not_merged(history: History, membership: Membership, last: dict[tuple[int, int], int]) -> list[Found]:
    """The processes whose last view lacks a member of the group that they could have found."""
    merging: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for (process, group), stay in last.items():
        if membership.suspectors.merge[process] and membership.settled[process] and membership.shared[stay]:
            merging[int(history.world.component[process]), group][process] = stay
    found = list[Found]()
    for (_, group), stays in merging.items():
        circles = _acquainted(history, membership, group, stays) if len(stays) > 1 else []
        for circle in circles:
            apart = [process for process in sorted(circle) if circle - membership.members[stays[process]]]
            if apart and is_restless(history, membership, group, circle):
                continue
            for process in apart:
                missing = circle - membership.members[stays[process]]
                describe = partial(_describe_not_merged, history, membership, stays[process], missing)
                found.append((int(history.logs.end[process]) - 1, group, describe))
    return found


def _acquainted(history: History, membership: Membership, group: int, stays: dict[int, int]) -> list[frozenset[int]]:
    """Partition these processes by acquaintance: configured together, once in one view, or connected through others."""
    known = _known(history, membership, group, stays)
    circles = list[frozenset[int]]()
    for process in sorted(stays):
        circle = frozenset(known[process] & stays.keys()) | {process}
        apart = [each for each in circles if not each & circle]
        circles = [*apart, circle.union(*(each for each in circles if each & circle))]
    return circles


def _known(history: History, membership: Membership, group: int, stays: dict[int, int]) -> dict[int, set[int]]:
    """The processes that each process knows from its configuration or from a view."""
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    known: dict[int, set[int]] = {process: set() for process in stays}
    for row in history.of_kind("start").tolist():
        process, entry = int(history.rows.process[row]), history.details[row]["groups"].get(history.groups[group], {})
        if process in stays and isinstance(entry.get("members"), list):
            known[process] |= {code_of[who] for who in map(str, entry["members"]) if who in code_of}
    for stay, process in enumerate(membership.process):
        if membership.group[stay] == group and process in stays:
            known[process] |= membership.members[stay]
    return known


def _never_joined(
    history: History, promises: Promises, membership: Membership, departures: Departures, stable: BoolArray
) -> list[Found]:
    """Processes of a stable component that asked to join through a member of the group, but are in no view of it."""
    rows, component, found = history.rows, history.world.component, list[Found]()
    cuts = promises.of_family(lambda promised: promised.cuts)
    roles = promises.of_family(lambda promised: promised.onlookers)
    pending = {(int(rows.process[row]), int(rows.group[row])): row for row in history.of_kind("join").tolist()}
    for (process, group), row in pending.items():
        waits = cuts[process] and group >= 0 and history.away[process, group] and not history.left[process, group]
        if not waits or component[process] < 0 or not membership.settled[process]:
            continue
        if roles[process] and not departures.has_senders(process, group):
            continue
        contacts = history.details.get(row, {}).get("contacts")
        members = [
            other
            for other in np.flatnonzero(stable[:, group] & (component == component[process])).tolist()
            if not isinstance(contacts, list) or history.process_name(other) in contacts
        ]
        if members:
            describe = partial(_describe_never_joined, history, row, members[0])
            found.append((int(history.logs.end[process]) - 1, group, describe))
    return found


def _describe_not_merged(history: History, membership: Membership, stay: int, missing: frozenset[int]) -> Violation:
    sentence = (
        f"{installed(history, membership, stay)} as its last view, without {names(history, missing)}, which was in the "
        f"group too and connected with it until the quiet end, although the group looks for lost members"
    )
    return about(history, membership, sentence, [stay], sorted(missing))


def _describe_never_joined(history: History, row: int, member: int) -> Violation:
    who, other = history.process_name(history.rows.process[row]), history.process_name(member)
    group, index = history.groups[history.rows.group[row]], history.index(row)
    sentence = (
        f"{who} asked to join {group} (index {index}) but was in no view of it when the run ended quiet, although "
        f"{other}, a member, was connected with it"
    )
    return Violation(sentence, (who, other), (), (index,))


def _describe_not_of_one_mind(history: History, membership: Membership, stay: int, elsewhere: int) -> Violation:
    other = history.process_name(membership.process[elsewhere])
    sentence = (
        f"{installed(history, membership, stay)} with {other} as its last view, but "
        f"{installed(history, membership, elsewhere)} as its last, although both were connected until the quiet end"
    )
    return about(history, membership, sentence, [stay, elsewhere])


def _describe_outsiders(history: History, membership: Membership, stay: int, others: list[int]) -> Violation:
    left = any(history.left[other, membership.group[stay]] for other in others)
    sentence = (
        f"{installed(history, membership, stay)} as its last view, and when the run ended quiet "
        f"{names(history, others)} was still in it, {'crashed, left' if left else 'crashed'} or cut off for good"
    )
    return about(history, membership, sentence, [stay], others)


# -------------------------------------------------------------------------------- L5


def check_exclusion(
    history: History, promises: Promises, membership: Membership, departures: Departures, stability: StabilityReports
) -> list[Verdict]:
    """L5: a departed process is out of the views of a stable component by a quiet end, and not late.

    Late means: later than `LATE` times the settling time after the last fault before that view. The longest transit
    time of a message is added, which matters on busy links and hosts. Lateness is judged only if the group has an idle
    probe, because otherwise nothing need have happened before.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L5")
    faults = np.sort(history.rows.time[history.of_kind("fault", "crash", "leave")])
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for loss in departures.losses(stable_members(history, promises, "L5")):
        process, group = membership.process[loss.stay], membership.group[loss.stay]
        opportunities[group] += 1
        if loss.departed in membership.members[loss.stay]:
            describe = partial(_describe_outsiders, history, membership, loss.stay, [loss.departed])
            found.append((int(history.logs.end[process]) - 1, group, describe))
            continue
        without = loss.stay
        while loss.departed not in membership.members[membership.preceding[without]]:
            without = membership.preceding[without]
        before = faults[: np.searchsorted(faults, membership.time[without], side="right")]
        took = membership.time[without] - int(before.max(initial=0))
        allowed = LATE * (int(membership.suspectors.settling[process]) + stability.arrivals.slowest_ns)
        if membership.suspectors.probe[process] and took > allowed:
            describe = partial(_describe_late, history, membership, without, loss.departed, (took, allowed))
            found.append((membership.row[without], group, describe))
    return over_groups(history, promises, "L5", opportunities, as_violations(found))


def _describe_late(history: History, membership: Membership, stay: int, other: int, time: tuple[int, int]) -> Violation:
    took, allowed = time
    sentence = (
        f"{installed(history, membership, stay)} without {history.process_name(other)}, which is gone, "
        f"{took / 1e9:.3f} s after the last fault before it; at most {allowed / 1e9:.3f} s are allowed"
    )
    return about(history, membership, sentence, [stay], [other])


# -------------------------------------------------------------------------------- L4


def check_termination(
    history: History, promises: Promises, membership: Membership, departures: Departures
) -> list[Verdict]:
    """L4: at a quiet end, all members of a view delivered what a stable member sent in it, or the sender left it.

    Members of another component, and members that crashed before the send, are judged if they should be out of the
    view by then. The log of a member that crashed later is only the beginning of what it did.
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "L4")
    stable, total = stable_members(history, promises, "L4"), len(history.messages.number)
    asked, owing = [_NONE], [_NONE]
    for stay, sent in sent_in_last_view(history, stable):
        owed = {member: sent for member, _ in receivers(history, stable, stay)}
        owed |= _owed_by_lost(history, membership, departures, stay, sent)
        for member, messages in owed.items():
            asked.append(messages)
            owing.append(np.full(len(messages), member, np.int64))
    message, process = np.concatenate(asked), np.concatenate(owing)
    had = np.isin(process * total + message, history.first.process * total + history.first.message)
    lost, losers = message[~had], process[~had]

    def describe(position: int) -> Violation:
        return _describe_open(history, int(lost[position]), int(losers[position]))

    groups = history.messages.group
    opportunities = np.bincount(groups[message], minlength=len(history.groups))
    rows = history.logs.end[history.messages.sender[lost]] - 1
    return over_groups(history, promises, "L4", opportunities, Violations(rows, groups[lost], describe))


def _owed_by_lost(
    history: History, membership: Membership, departures: Departures, stay: int, sent: IntArray
) -> dict[int, IntArray]:
    """Of the messages sent in a last view, those that each departed member can no longer deliver."""
    process, time = membership.process[stay], history.rows.time
    settling, end = int(membership.suspectors.settling[process]), int(time.max())
    if not settling or not membership.settled[process]:
        return {}
    at = time[history.messages.send_row[sent]]
    owed = {}
    for member in membership.members[stay]:
        if member != process and departures.has_departed(process, membership.group[stay], member):
            since = departures.since(membership.group[stay], member)
            owed[member] = sent[(at > since) & (at <= end - settling)]
    return owed


def _describe_open(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = history.process_name(process), history.process_name(sender), history.message_name(message)
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    sentence = (
        f"{source} sent {name} (index {index}) in view {view}, which it never left, but {who}, a member of it, "
        f"had not delivered it when the run ended quiet"
    )
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))
