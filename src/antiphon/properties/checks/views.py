"""M1 to M4 and M9 to M11: each view row by itself, and with the one before it (docs/spec/properties.md 2)."""

import re
from collections import defaultdict
from functools import partial
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Accusation, Membership
from antiphon.properties.verdicts.findings import Found, as_violations, over_groups
from antiphon.properties.verdicts.phrases import about, counted, installed, names, view_of
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.types import split_process_id

# -------------------------------------------------------------------------------- M1


def check_self_inclusion(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M1: a process that installs a view is a member of it."""
    asked = [stay for stay in membership.stays_promising("M1") if not promises.roles.receiving[stay]]
    found: list[Found] = [
        (membership.row[stay], membership.group[stay], partial(_describe_outside, history, membership, stay))
        for stay in asked
        if membership.process[stay] not in membership.members[stay]
    ]
    return over_groups(history, promises, "M1", counted(history, membership, asked), as_violations(found))


def _describe_outside(history: History, membership: Membership, stay: int) -> Violation:
    members = names(history, membership.members[stay])
    sentence = f"{installed(history, membership, stay)} but is not a member of it: its members are {members}"
    return about(history, membership, sentence, [stay])


# -------------------------------------------------------------------------------- M2


def check_growing_ids(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M2: the ids of the views that a process installs in a group grow, over all its incarnations.

    Exception: a later incarnation that enters a formed group, or that only receives. It has forgotten how often the
    group was formed, and the members that take it in may never have known. R2 judges whether the view is new.
    """
    before: dict[tuple[str, int], int] = {}
    compared, found = [], list[Found]()
    for stay in membership.stays_promising("M2"):  # in the order of name, incarnation and row
        key = split_process_id(history.processes[membership.process[stay]])[0], membership.group[stay]
        earlier = before.get(key)
        before[key] = stay
        forgotten = earlier is not None and membership.process[earlier] != membership.process[stay]
        if earlier is not None and not (forgotten and (membership.formed[stay] or promises.roles.receiving[stay])):
            compared.append(stay)
            # View codes are in the order of the ids.
            if membership.view[stay] <= membership.view[earlier]:
                describe = partial(_describe_not_growing, history, membership, earlier, stay)
                found.append((membership.row[stay], membership.group[stay], describe))
    return over_groups(history, promises, "M2", counted(history, membership, compared), as_violations(found))


def _describe_not_growing(history: History, membership: Membership, earlier: int, stay: int) -> Violation:
    index, view = history.index(membership.row[earlier]), view_of(history, membership, earlier)
    sentence = (
        f"{installed(history, membership, stay)} after view {view} (index {index}), but the id of the later view "
        f"is not larger"
    )
    return about(history, membership, sentence, [earlier, stay])


# -------------------------------------------------------------------------------- M3


def check_first_view(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M3: the first view that a process installs in a group is the configured one, or the first of a formed group.

    A formed group is allowed if the process had asked to join, or if no member came from another view. W4 judges that
    nothing is sent, delivered or called stable before the first view.
    """
    configured, calls = _configured(history), Calls(history)
    founded = _founded(membership)
    asked, found, seen = list[int](), list[Found](), set[tuple[int, int]]()
    for stay in membership.stays_promising("M3"):
        place = membership.process[stay], membership.group[stay]
        returns = place in seen and not membership.formed[stay]
        seen.add(place)
        if membership.preceding[stay] >= 0 or returns or not (membership.formed[stay] or place in configured):
            continue
        asked.append(stay)
        if membership.formed[stay]:
            new = (membership.group[stay], membership.view[stay]) in founded
            if not new and not calls.explain(stay, membership.process[stay]):
                found.append((*_at(membership, stay), partial(_describe_uncalled, history, membership, stay)))
        elif configured[place] != {history.process_name(member) for member in membership.members[stay]}:
            describe = partial(_describe_not_configured, history, membership, stay, configured[place])
            found.append((*_at(membership, stay), describe))
    return over_groups(history, promises, "M3", counted(history, membership, asked), as_violations(found))


def _at(membership: Membership, stay: int) -> tuple[int, int]:
    """The row and group under which a violation by that `view` row is counted."""
    return membership.row[stay], membership.group[stay]


def _founded(membership: Membership) -> set[tuple[int, int]]:
    """The first views of formed groups, by group and view, that no process entered from an earlier view."""
    formed = [stay for stay, begins in enumerate(membership.formed) if begins]
    return {
        key
        for key, stays in membership.sharing(formed).items()
        if all(membership.preceding[stay] < 0 for stay in stays)
    }


class Calls:
    """Which process asked to be in a group, and when: by a `join` row, or by a `form` event of the scenario."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._times: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._left: dict[tuple[int, int], list[int]] = defaultdict(list)
        """The rows of the leaves."""
        rows = history.rows
        for row in history.of_kind("join", "promote").tolist():
            self._times[int(rows.group[row]), int(rows.process[row])].append(int(rows.time[row]))
        for row in history.of_kind("leave").tolist():
            self._left[int(rows.group[row]), int(rows.process[row])].append(row)
        stays = history.stays
        self._entered: dict[tuple[int, int], int] = {
            (view, process): row
            for view, process, row in zip(stays.view.tolist(), stays.process.tolist(), stays.row.tolist(), strict=True)
        }
        """By view and process, the row in which it installed the view."""
        self._read_formations({group: code for code, group in enumerate(history.groups)})

    def _read_formations(self, code_of: dict[str, int]) -> None:
        history = self._history
        for row in history.of_kind("fault").tolist():
            detail = history.details.get(row, {})
            if detail.get("kind") == "form" and detail.get("group") in code_of:
                members = detail.get("members")
                named = {detail.get("process"), *(members if isinstance(members, list) else ())}
                for code, who in enumerate(history.processes):
                    if who in named or split_process_id(who)[0] in named:
                        self._times[code_of[detail["group"]], code].append(int(history.rows.time[row]))

    def explain(self, stay: int, other: int) -> bool:
        """True if, by the time of the view of the stay, the other had asked to be in the group and not left since.

        If the other was in that view earlier, it may have left it again by now: its own time counts.
        """
        stays, times = self._history.stays, self._history.rows.time
        now, place = int(times[stays.row[stay]]), (int(stays.group[stay]), other)
        left = [row for row in self._left.get(place, ()) if times[row] <= now]
        entered = self._entered.get((int(stays.view[stay]), other))
        if entered is not None and times[entered] <= now:
            now = int(times[entered])
            left = [row for row in left if row < entered]  # it may leave at the same time, but later
        since = max((int(times[row]) for row in left), default=0)
        return any(since <= time <= now for time in self._times.get(place, ()))


def _configured(history: History) -> dict[tuple[int, int], frozenset[str]]:
    """By process and group, the members that its `start` row names; no entry for a group that was joined later."""
    code_of = {group: code for code, group in enumerate(history.groups)}
    found = {}
    for row in history.of_kind("start").tolist():
        for group, entry in history.details[row].get("groups", {}).items():
            members = entry.get("members")
            if group in code_of and isinstance(members, list):
                found[int(history.rows.process[row]), code_of[group]] = frozenset(map(str, members))
    return found


def _describe_uncalled(history: History, membership: Membership, stay: int) -> Violation:
    group = history.groups[membership.group[stay]]
    sentence = f"{installed(history, membership, stay)} as its first in {group}, which it had not asked to join"
    return about(history, membership, sentence, [stay])


def _describe_not_configured(
    history: History, membership: Membership, stay: int, configured: frozenset[str]
) -> Violation:
    group, members = history.groups[membership.group[stay]], names(history, membership.members[stay])
    sentence = (
        f"{installed(history, membership, stay)} as its first in {group}, with members {members}, "
        f"but the group was configured with {', '.join(sorted(configured)) or 'nobody'}"
    )
    return about(history, membership, sentence, [stay])


# -------------------------------------------------------------------------------- M4


def check_one_membership(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M4: one view id means one membership; in the first view of a formed group also one partition into classes."""
    again, found = [], list[Found]()
    for stays in membership.sharing(membership.stays_promising("M4")).values():
        first = min(stays, key=lambda stay: (membership.time[stay], stay))
        again += stays[1:]
        for stay in stays:
            if membership.members[stay] != membership.members[first]:
                describe = partial(_describe_two_memberships, history, membership, first, stay)
                found.append((membership.row[stay], membership.group[stay], describe))
            elif _division(history, stay) != _division(history, first):
                found.append(
                    (*_at(membership, stay), partial(_describe_two_divisions, history, membership, first, stay))
                )
    return over_groups(history, promises, "M4", counted(history, membership, again), as_violations(found))


def _describe_two_memberships(history: History, membership: Membership, first: int, stay: int) -> Violation:
    who, members = history.process_name(membership.process[first]), names(history, membership.members[first])
    sentence = (
        f"{installed(history, membership, stay)} with members {names(history, membership.members[stay])}, but {who} "
        f"had installed a view with that id (index {history.index(membership.row[first])}) with {members}"
    )
    return about(history, membership, sentence, [first, stay])


def _division(history: History, stay: int) -> frozenset[frozenset[int]]:
    return frozenset(map(frozenset, history.stays.classes[stay]))


def _describe_two_divisions(history: History, membership: Membership, first: int, stay: int) -> Violation:
    parts = [
        " | ".join(sorted(names(history, together) for together in history.stays.classes[at])) or "none"
        for at in (stay, first)
    ]
    who = history.process_name(membership.process[first])
    sentence = (
        f"{installed(history, membership, stay)} with classes {parts[0]}, but {who} had installed a view with that id "
        f"(index {history.index(membership.row[first])}) with {parts[1]}"
    )
    return about(history, membership, sentence, [first, stay])


# -------------------------------------------------------------------------------- M9

_EPOCH: Final = re.compile(r"([0-9]{4,})\.[0-9]{6,}\.")


def check_shrinking(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M9: within an epoch, a view has fewer members than the one before it, and no new ones.

    An epoch begins with the first view of a formed group, and its number is larger than that of the epoch before.
    """
    asked, found = list[tuple[int, int]](), list[Found]()
    for before, stay in membership.passages("M9"):
        epochs = [_epoch(view_of(history, membership, each)) for each in (before, stay)]
        if epochs[0] == epochs[1] or membership.formed[stay]:
            asked.append((before, stay))
            shrinks = membership.members[stay] < membership.members[before]
            if epochs[1] <= epochs[0] if membership.formed[stay] else not shrinks:
                how = _describe_old_epoch if membership.formed[stay] else _describe_not_shrinking
                found.append((*_at(membership, stay), partial(how, history, membership, before, stay)))
    opportunities = counted(history, membership, (stay for _, stay in asked))
    return over_groups(history, promises, "M9", opportunities, as_violations(found))


def _epoch(view: str) -> str:
    """The part of the id that formation, join and merge count up; ids without it belong to one epoch."""
    match = _EPOCH.match(view)
    return match[1] if match else ""


def _describe_old_epoch(history: History, membership: Membership, before: int, stay: int) -> Violation:
    sentence = (
        f"{installed(history, membership, stay)} after view {view_of(history, membership, before)}, as the first of a "
        f"formed group, but its epoch is not a later one"
    )
    return about(history, membership, sentence, [before, stay])


def _describe_not_shrinking(history: History, membership: Membership, before: int, stay: int) -> Violation:
    new = membership.members[stay] - membership.members[before]
    why = f"{names(history, new)} was not in it" if new else "nobody was removed"
    sentence = f"{installed(history, membership, stay)} after view {view_of(history, membership, before)}, but {why}"
    return about(history, membership, sentence, [before, stay])


# -------------------------------------------------------------------------------- M10


def check_reasons(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M10: a process missing from a view was suspected by a member or had left; a new member had asked to join.

    A new member may also come from another view of that group to merge (docs/spec/newtop.md 11.2 rule 3). "Before" is
    judged by `time`, and an equal time suffices. For a process that goes over to the same formed group, it is judged by
    its own log, because the log tells what it finds out only once its application is there. In InterGroup, a process
    may also have been added too late for the next view (`_Reasons._came_too_late`).
    """
    passages = [passage for passage in membership.passages("M10") if not _begins_again(promises, membership, passage)]
    reasons = _Reasons(history, promises, membership) if passages else None
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for before, stay in passages:
        group, old, new = membership.group[stay], membership.members[before], membership.members[stay]
        opportunities[group] += len(old ^ new)
        for other in sorted(old ^ new):
            if reasons is not None and not reasons.explains(stay, other, gone=other in old):
                describe = partial(_describe_capricious, history, membership, stay, other, gone=other in old)
                found.append((membership.row[stay], group, describe))
    return over_groups(history, promises, "M10", opportunities, as_violations(found))


def _begins_again(promises: Promises, membership: Membership, passage: tuple[int, int]) -> bool:
    """True if a process that only receives goes to a view of its own, or comes from one (InterGroup)."""
    return any(
        promises.roles.receiving[stay] and membership.process[stay] in membership.members[stay] for stay in passage
    )


class _Reasons:
    """Reasons why a process may be missing from a view, or new in it."""

    def __init__(self, history: History, promises: Promises, membership: Membership) -> None:
        self._membership = membership
        self._adopts = promises.of_family(lambda promised: promised.onlookers)
        """By process: it adopts the suspicions of all others, also of those that are excluded with the suspect."""
        self._senders = membership.sharing(
            [stay for stay in range(len(membership.view)) if not promises.roles.receiving[stay]]
        )
        self._calls = Calls(history)
        self._stays: dict[tuple[int, int], list[int]] = defaultdict(list)
        for stay, place in enumerate(zip(membership.group, membership.process, strict=True)):
            self._stays[place].append(stay)
        self._entered = {
            (membership.view[stay], process): membership.row[stay] for stay, process in enumerate(membership.process)
        }
        self._accusers: dict[tuple[int, int], list[Accusation]] = defaultdict(list)
        for suspicion in membership.suspicions:
            self._accusers[suspicion.group, suspicion.peer].append(suspicion)
        self._agreed: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        """By (group, process, peer): when it told how the messages of the peer end in an epoch."""
        for confirmed in membership.confirmations:
            self._agreed[confirmed.group, confirmed.process, confirmed.peer].append(confirmed.time)
        self._left: dict[tuple[int, int], int] = {}
        for row in history.of_kind("leave", "demote").tolist():
            key = int(history.rows.group[row]), int(history.rows.process[row])
            self._left[key] = min(int(history.rows.time[row]), self._left.get(key, int(history.rows.time[row])))

    def explains(self, stay: int, other: int, *, gone: bool) -> bool:
        """True if there was a reason by the time of the view of the stay."""
        group, now = self._membership.group[stay], self._membership.time[stay]
        if not gone:
            return self._merges(stay, other) or self._calls.explain(stay, other)
        if self._left.get((group, other), now + 1) <= now:
            return True
        members, anyone = self._membership.members[stay], self._adopts[self._membership.process[stay]]
        return any(
            (anyone or suspicion.process in members) and (suspicion.time <= now or self._traced_late(stay, suspicion))
            for suspicion in self._accusers.get((group, other), ())
        ) or (anyone and self._came_too_late(stay, other))

    def _came_too_late(self, stay: int, other: int) -> bool:
        """True if the senders of the view had agreed on it before any of them showed a view with the other.

        Only a receiver had delivered the message that adds the other, so nobody had proposed it. What the receiver
        claims makes that message one of the last of the epoch (docs/spec/intergroup.md 7.6).
        """
        membership = self._membership
        late = list[bool]()
        for each in self._senders[membership.group[stay], membership.view[stay]]:
            first, process = each, membership.process[each]
            while membership.preceding[first] >= 0 and other in membership.members[membership.preceding[first]]:
                first = membership.preceding[first]
            if first != each:
                agreed = self._agreed.get((membership.group[stay], process, other), ())
                before = [time for time in agreed if time <= membership.time[each]]
                was_added = membership.root[first] != first
                late.append(was_added and bool(before) and before[-1] <= membership.time[first])
        return bool(late) and all(late)

    def _traced_late(self, stay: int, suspicion: Accusation) -> bool:
        """True if its author went over to the same formed group, and its application was not there before."""
        entered = self._entered.get((self._membership.view[stay], suspicion.process), -1)
        return self._membership.formed[stay] and suspicion.row < entered

    def _merges(self, stay: int, other: int) -> bool:
        """True if the stay begins a formation, and the other had been in another view of that group before."""
        membership = self._membership
        return membership.formed[stay] and any(
            membership.time[each] <= membership.time[stay] and membership.view[each] != membership.view[stay]
            for each in self._stays.get((membership.group[stay], other), ())
        )


def _describe_capricious(history: History, membership: Membership, stay: int, other: int, *, gone: bool) -> Violation:
    who = history.process_name(other)
    why = f"without {who}, although no member of it had suspected {who} and {who} had not left"
    if not gone:
        why = f"with {who} as a new member, although {who} had not asked to join"
    sentence = f"{installed(history, membership, stay)} {why}"
    return about(history, membership, sentence, [stay], [other])


# -------------------------------------------------------------------------------- M11


def check_primary_chain(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M11: the views that call themselves primary form one chain.

    Each except the first follows a primary view at all its installers, which have thus installed both. None has two
    primary successors. The first view of a formed group is primary exactly if it holds a majority of a primary view
    from which some members come, or if all members come from no view (`types.formed_view`).
    """
    primary = membership.sharing(
        [stay for stay in membership.stays_promising("M11") if _is_primary(history, membership, stay)]
    )
    opportunities, found = _check_formed(history, membership)
    taken: dict[tuple[int, int], int] = {}
    for (group, _), stays in sorted(primary.items()):
        if any(membership.formed[stay] for stay in stays):
            continue  # some of its members may never have gone over, and be a majority elsewhere
        first = min(stays, key=lambda stay: (membership.time[stay], stay))
        opportunities[group] += membership.preceding[first] >= 0
        for stay in stays:
            before = membership.preceding[stay]
            view = membership.view[before] if before >= 0 else -1
            other = taken.setdefault((group, view), stay)
            if membership.view[other] != membership.view[stay]:
                describe = partial(_describe_two_primaries, history, membership, other, stay)
                found.append((membership.row[stay], group, describe))
            elif before >= 0 and (group, view) not in primary:
                found.append(
                    (membership.row[stay], group, partial(_describe_revived, history, membership, before, stay))
                )
    return over_groups(history, promises, "M11", opportunities, as_violations(found))


def _claims(history: History, membership: Membership, stays: list[int]) -> tuple[list[bool], bool]:
    """For each class that comes from a view, whether it takes that view's primacy over; and if an origin is unknown."""
    origin = {membership.process[stay]: stay for stay in stays}
    claims, unknown = list[bool](), False
    for together in history.stays.classes[stays[0]]:
        came = next((origin[member] for member in together if member in origin), -1)
        before = membership.preceding[came] if came >= 0 else -1
        unknown |= came < 0
        if before >= 0:
            majority = 2 * len(together) > len(membership.members[before])
            claims.append(_is_primary(history, membership, before) and majority)
    return claims, unknown


def _check_formed(history: History, membership: Membership) -> tuple[IntArray, list[Found]]:
    """Judges whether the first views of formed groups rightly call themselves primary or not."""
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    formed = [stay for stay in membership.stays_promising("M11") if membership.formed[stay]]
    for stays in membership.sharing(formed).values():
        claims, unknown = _claims(history, membership, stays)
        if unknown and not any(claims):
            continue  # no row tells the origin of members that never installed it
        opportunities[membership.group[stays[0]]] += 1
        for stay in stays:
            if _is_primary(history, membership, stay) != (any(claims) or not claims):
                found.append((*_at(membership, stay), partial(_describe_claim, history, membership, stay)))
    return opportunities, found


def _is_primary(history: History, membership: Membership, stay: int) -> bool:
    return history.details.get(membership.row[stay], {}).get("primary") is True


def _describe_claim(history: History, membership: Membership, stay: int) -> Violation:
    holds = "holds no" if _is_primary(history, membership, stay) else "holds a"
    calls = "calls itself primary" if _is_primary(history, membership, stay) else "does not call itself primary"
    sentence = (
        f"{installed(history, membership, stay)}, the first of a formed group, which {calls}, but it {holds} majority "
        f"of a primary view from which its members come"
    )
    return about(history, membership, sentence, [stay])


def _describe_two_primaries(history: History, membership: Membership, other: int, stay: int) -> Violation:
    before = membership.preceding[stay]
    after = f"after view {view_of(history, membership, before)}" if before >= 0 else "as their first"
    sentence = (
        f"{installed(history, membership, stay)} and {installed(history, membership, other)}, both {after}, "
        f"but both views call themselves primary"
    )
    return about(history, membership, sentence, [stay, other])


def _describe_revived(history: History, membership: Membership, before: int, stay: int) -> Violation:
    sentence = (
        f"{installed(history, membership, stay)}, which calls itself primary, after view "
        f"{view_of(history, membership, before)}, which does not"
    )
    return about(history, membership, sentence, [before, stay])
