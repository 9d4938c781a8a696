"""L1, L4 and L5: by a quiet end those who are gone are out of view, and those who go on are of one mind.

Gone, for a member of a stable component, is who crashed, who left the group, and who is outside the component; but
where the world says that a process takes nothing to the end, who is outside and up may only be waiting for it, and is
not counted. That a member finds this out needs its failure detector on, and a group that speaks: by its idle probe, or
because somebody who has both in view sends. It is asked once the settling time has passed since (`suspectors.py`).
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np

from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.checks.views import about, installed, names
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.frames import slowest_frame_ns
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.quiet import cannot_tell, last_stays, receivers, sent_in_last_view, who_is_stable
from antiphon.properties.tables.suspectors import LATE
from antiphon.properties.verdicts.findings import Broken, Found, gathered, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Loss:
    """A member of a stable component, in its last view, and somebody of its views who is gone for it."""

    stay: int
    gone: int


class Gone:
    """Who is gone, for whom."""

    def __init__(self, history: History, membership: Membership) -> None:
        self._history, self._membership = history, membership
        self._end = int(history.rows.time.max(initial=0))
        self._somebody_takes_nothing = _lasting_stall(history)
        self._last = last_stays(history)

    def is_gone(self, process: int, group: int, other: int) -> bool:
        """Whether the other crashed, left, or is cut off for good from that member of a stable component."""
        component, crashed = self._history.world.component, self._history.logs.crashed
        if crashed[other] or self._history.left[other, group]:
            return True
        return bool(component[other] != component[process]) and not self._somebody_takes_nothing

    def losses(self, stable: BoolArray) -> list[_Loss]:
        """Each member of a stable component with each who should be out of its view by the end."""
        membership, found = self._membership, list[_Loss]()
        for (process, group), stay in self._last.items():
            if not stable[process, group] or not self._asks(process) or not membership.shared[stay]:
                continue
            first, others = stay, membership.members[stay]
            while membership.preceding[first] >= 0:
                first = membership.preceding[first]
                others |= membership.members[first]
            found += [
                _Loss(stay, other)
                for other in sorted(others - {process})
                if self.is_gone(process, group, other) and self._noticed(process, group, other)
            ]
        return found

    def _asks(self, process: int) -> bool:
        return bool(self._membership.suspectors.after[process] and self._membership.settled[process])

    def _noticed(self, process: int, group: int, other: int) -> bool:
        """The group spoke after the other was gone, long enough before the end."""
        suspectors, membership, history = self._membership.suspectors, self._membership, self._history
        if suspectors.probe[process]:
            return True
        since = self.since(group, other)
        sends, time, component = history.sends, history.rows.time, history.world.component
        in_time = (time[sends.row] >= since) & (time[sends.row] <= self._end - suspectors.settling[process])
        heard = in_time & (sends.group == group) & (component[sends.process] == component[process])
        stays = np.unique(history.stay_at(sends.row[heard])).tolist()
        return any({process, other} <= membership.members[stay] for stay in stays)

    def since(self, group: int, other: int) -> int:
        """When somebody who is gone went: it crashed, left, or something broke for the last time."""
        history, membership = self._history, self._membership
        if history.logs.crashed[other]:
            return int(history.rows.time[history.logs.end[other] - 1])
        stay = self._last.get((other, group), -1)
        if history.left[other, group] and stay >= 0 and history.stays.leave[stay] < NEVER:
            return int(history.rows.time[history.stays.leave[stay]])
        return membership.last_fault


def _lasting_stall(history: History) -> bool:
    """Whether some application stopped taking messages and never went on."""
    stalled: dict[object, int] = defaultdict(int)
    for row in history.of_kind("fault").tolist():
        detail = history.details.get(row, {})
        if detail.get("kind") == "stall":
            stalled[detail.get("process")] += 1 if detail.get("begins", True) else -1
    return any(count > 0 for count in stalled.values())


# -------------------------------------------------------------------------------- L1


def check_precision(history: History, promises: Promises, membership: Membership, gone: Gone) -> list[Verdict]:
    """L1: at a quiet end, members of a stable component S have last views within S, equal for all who are in them.

    Where views do not merge, who was excluded stays out: the last views need not be S, but they divide it into classes.
    Where they do (`merge_every`), all of S who are in the group and know of each other, be it through others, are in
    one; unless frames are so slow that members go on excluding each other. Who asked to join is in the group by then,
    if a member of S was, whom it asked.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L1")
    stable = who_is_stable(history, promises, "L1")
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    last = last_stays(history)
    classes: dict[tuple[int, int, int, frozenset[int]], list[int]] = defaultdict(list)
    for (process, group), stay in last.items():
        if stable[process, group] and membership.shared[stay] and membership.settled[process]:
            opportunities[group] += 1
            component = int(history.world.component[process])
            classes[component, group, membership.view[stay], membership.members[stay]].append(stay)
    for (component, group, _, members), stays in classes.items():
        here = {membership.process[stay] for stay in stays}
        for other in sorted(members - here):
            elsewhere = last.get((other, group), -1)
            if elsewhere >= 0 and stable[other, group] and history.world.component[other] == component:
                tell = partial(_tell_not_of_one_mind, history, membership, stays[0], elsewhere)
                found.append((int(history.logs.end[membership.process[stays[0]]]) - 1, group, tell))
    found += _not_merged(history, membership, {place: stay for place, stay in last.items() if stable[place]})
    found += _never_joined(history, promises, membership, stable)
    outside: dict[int, list[int]] = defaultdict(list)
    for loss in gone.losses(stable):
        if loss.gone in membership.members[loss.stay]:
            outside[loss.stay].append(loss.gone)
    for stay, others in outside.items():
        tell = partial(_tell_outsiders, history, membership, stay, others)
        found.append((int(history.logs.end[membership.process[stay]]) - 1, membership.group[stay], tell))
    return over_groups(history, promises, "L1", opportunities, gathered(found))


def _not_merged(history: History, membership: Membership, last: dict[tuple[int, int], int]) -> list[Found]:
    """Those whose last view lacks somebody in the group whom they could have found."""
    merging: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for (process, group), stay in last.items():
        if membership.suspectors.merge[process] and membership.settled[process] and membership.shared[stay]:
            merging[int(history.world.component[process]), group][process] = stay
    found = list[Found]()
    for (_, group), stays in merging.items():
        circles = _acquainted(history, membership, group, stays) if len(stays) > 1 else []
        for circle in circles:
            apart = [process for process in sorted(circle) if circle - membership.members[stays[process]]]
            if apart and _restless(history, membership, group, circle):
                continue
            for process in apart:
                missing = circle - membership.members[stays[process]]
                tell = partial(_tell_not_merged, history, membership, stays[process], missing)
                found.append((int(history.logs.end[process]) - 1, group, tell))
    return found


def _restless(history: History, membership: Membership, group: int, circle: frozenset[int]) -> bool:
    """One of these excluded another so late that they need not be together again, for frames came too late."""
    end, suspectors = int(history.rows.time.max(initial=0)), membership.suspectors
    parted = any(
        membership.group[stay] == group
        and membership.process[stay] in circle
        and membership.time[stay] > end - suspectors.settling[membership.process[stay]]
        and not membership.formed[stay]
        and membership.preceding[stay] >= 0
        and circle & (membership.members[membership.preceding[stay]] - membership.members[stay])
        for stay in range(len(membership.process))
    )
    return parted and slowest_frame_ns(history, membership.last_fault) > suspectors.bearable_ns


def _acquainted(history: History, membership: Membership, group: int, stays: dict[int, int]) -> list[frozenset[int]]:
    """These processes by who knows of whom: configured with it, or once in view with it, or through others."""
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    known: dict[int, set[int]] = {process: set() for process in stays}
    for row in history.of_kind("start").tolist():
        process, entry = int(history.rows.process[row]), history.details[row]["groups"].get(history.groups[group], {})
        if process in stays and isinstance(entry.get("members"), list):
            known[process] |= {code_of[who] for who in map(str, entry["members"]) if who in code_of}
    for stay, process in enumerate(membership.process):
        if membership.group[stay] == group and process in stays:
            known[process] |= membership.members[stay]
    circles = list[frozenset[int]]()
    for process in sorted(stays):
        circle = frozenset(known[process] & stays.keys()) | {process}
        apart = [each for each in circles if not each & circle]
        circles = [*apart, circle.union(*(each for each in circles if each & circle))]
    return circles


def _never_joined(history: History, promises: Promises, membership: Membership, stable: BoolArray) -> list[Found]:
    """Those of a stable component who asked to join a group of which somebody there, whom they asked, is a member."""
    rows, component, found = history.rows, history.world.component, list[Found]()
    cuts = promises.of_family(lambda promised: promised.cuts)
    pending = {(int(rows.process[row]), int(rows.group[row])): row for row in history.of_kind("join").tolist()}
    for (process, group), row in pending.items():
        waits = cuts[process] and group >= 0 and history.away[process, group] and not history.left[process, group]
        if not waits or component[process] < 0 or not membership.settled[process]:
            continue
        contacts = history.details.get(row, {}).get("contacts")
        members = [
            other
            for other in np.flatnonzero(stable[:, group] & (component == component[process])).tolist()
            if not isinstance(contacts, list) or history.process_name(other) in contacts
        ]
        if members:
            tell = partial(_tell_never_joined, history, row, members[0])
            found.append((int(history.logs.end[process]) - 1, group, tell))
    return found


def _tell_not_merged(history: History, membership: Membership, stay: int, missing: frozenset[int]) -> Violation:
    sentence = (
        f"{installed(history, membership, stay)} as its last view, without {names(history, missing)}, which was in the "
        f"group too and connected with it to the quiet end, in a group that looks for those it has lost"
    )
    return about(history, membership, sentence, [stay], sorted(missing))


def _tell_never_joined(history: History, row: int, member: int) -> Violation:
    who, other = history.process_name(history.rows.process[row]), history.process_name(member)
    group, index = history.groups[history.rows.group[row]], history.index(row)
    sentence = (
        f"{who} asked to join {group} (index {index}) and was in no view of it when the run ended quiet, although "
        f"{other}, a member, was connected with it"
    )
    return Violation(sentence, (who, other), (), (index,))


def _tell_not_of_one_mind(history: History, membership: Membership, stay: int, elsewhere: int) -> Violation:
    other = history.process_name(membership.process[elsewhere])
    sentence = (
        f"{installed(history, membership, stay)} with {other} as its last view, and "
        f"{installed(history, membership, elsewhere)} as its last, although both were connected to the quiet end"
    )
    return about(history, membership, sentence, [stay, elsewhere])


def _tell_outsiders(history: History, membership: Membership, stay: int, others: list[int]) -> Violation:
    left = any(history.left[other, membership.group[stay]] for other in others)
    sentence = (
        f"{installed(history, membership, stay)} as its last view, and when the run ended quiet "
        f"{names(history, others)} was still in it, {'crashed, left' if left else 'crashed'} or cut off for good"
    )
    return about(history, membership, sentence, [stay], others)


# -------------------------------------------------------------------------------- L5


def check_exclusion(
    history: History, promises: Promises, membership: Membership, gone: Gone, prefixes: Prefixes
) -> list[Verdict]:
    """L5: who is gone for a member of a stable component is out of its view by a quiet end, and not late.

    Late is later than `LATE` times the settling time after the last fault before that view, where frames take no time
    to speak of; on lines and hosts that are busy the longest that a message was under way counts with it. Asked where
    the group has an idle probe, for otherwise nothing need have happened before.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L5")
    faults = np.sort(history.rows.time[history.of_kind("fault", "crash", "leave")])
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for loss in gone.losses(who_is_stable(history, promises, "L5")):
        process, group = membership.process[loss.stay], membership.group[loss.stay]
        opportunities[group] += 1
        if loss.gone in membership.members[loss.stay]:
            tell = partial(_tell_outsiders, history, membership, loss.stay, [loss.gone])
            found.append((int(history.logs.end[process]) - 1, group, tell))
            continue
        without = loss.stay
        while loss.gone not in membership.members[membership.preceding[without]]:
            without = membership.preceding[without]
        before = faults[: np.searchsorted(faults, membership.time[without], side="right")]
        took = membership.time[without] - int(before.max(initial=0))
        allowed = LATE * (int(membership.suspectors.settling[process]) + prefixes.arrivals.slowest_ns)
        if membership.suspectors.probe[process] and took > allowed:
            tell = partial(_tell_late, history, membership, without, loss.gone, (took, allowed))
            found.append((membership.row[without], group, tell))
    return over_groups(history, promises, "L5", opportunities, gathered(found))


def _tell_late(history: History, membership: Membership, stay: int, other: int, time: tuple[int, int]) -> Violation:
    took, allowed = time
    sentence = (
        f"{installed(history, membership, stay)} without {history.process_name(other)}, which is gone, "
        f"{took / 1e9:.3f} s after the last fault before, where {allowed / 1e9:.3f} s are allowed"
    )
    return about(history, membership, sentence, [stay], [other])


# -------------------------------------------------------------------------------- L4


def check_termination(history: History, promises: Promises, membership: Membership, gone: Gone) -> list[Verdict]:
    """L4: at a quiet end, what a member of a stable component sent all of that view delivered, or it left that view.

    Members of another component, and those who crashed before it was sent, are asked where they should be out of view
    by then; the log of one that crashed later is only the beginning of what it did.
    """
    if not history.world.quiet:
        return cannot_tell(history, promises, "L4")
    stable, total = who_is_stable(history, promises, "L4"), len(history.messages.number)
    asked, owing = [_NONE], [_NONE]
    for stay, sent in sent_in_last_view(history, stable):
        owed = {member: sent for member, _ in receivers(history, stable, stay)}
        owed |= _owed_by_lost(history, membership, gone, stay, sent)
        for member, messages in owed.items():
            asked.append(messages)
            owing.append(np.full(len(messages), member, np.int64))
    message, process = np.concatenate(asked), np.concatenate(owing)
    had = np.isin(process * total + message, history.first.process * total + history.first.message)
    lost, losers = message[~had], process[~had]

    def tell(position: int) -> Violation:
        return _tell_open(history, int(lost[position]), int(losers[position]))

    groups = history.messages.group
    opportunities = np.bincount(groups[message], minlength=len(history.groups))
    rows = history.logs.end[history.messages.sender[lost]] - 1
    return over_groups(history, promises, "L4", opportunities, Broken(rows, groups[lost], tell))


def _owed_by_lost(
    history: History, membership: Membership, gone: Gone, stay: int, sent: IntArray
) -> dict[int, IntArray]:
    """Of what was sent in a last view, what each member who is gone can no longer deliver."""
    process, time = membership.process[stay], history.rows.time
    settling, end = int(membership.suspectors.settling[process]), int(time.max())
    if not settling or not membership.settled[process]:
        return {}
    at = time[history.messages.send_row[sent]]
    owed = {}
    for member in membership.members[stay]:
        if member != process and gone.is_gone(process, membership.group[stay], member):
            since = gone.since(membership.group[stay], member)
            owed[member] = sent[(at > since) & (at <= end - settling)]
    return owed


def _tell_open(history: History, message: int, process: int) -> Violation:
    sender, send_row = history.messages.sender[message], history.messages.send_row[message]
    who, source, name = history.process_name(process), history.process_name(sender), history.message_name(message)
    view, index = history.views[history.rows.view[send_row]], history.index(send_row)
    sentence = (
        f"{source} sent {name} (index {index}) in view {view}, which it never left, and {who}, a member of it, "
        f"had not delivered it when the run ended quiet"
    )
    last = history.index(history.logs.end[process] - 1)
    return Violation(sentence, (source, who), (name,), (index, last), (view,))
