"""M5 to M8: the view sequences of several processes fit together (docs/spec/properties.md 2 and 7.4)."""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from itertools import combinations

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.quiet_end import stable_members
from antiphon.properties.tables.restless import is_restless
from antiphon.properties.verdicts.findings import Found, as_violations, not_quiet, over_groups
from antiphon.properties.verdicts.phrases import about, counted, installed, names, view_of
from antiphon.properties.verdicts.verdict import Verdict, Violation

# -------------------------------------------------------------------------------- M5

_Sequence = tuple[int, ...]
"""The views that a process installed in a group, in order."""


def check_same_history(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M5: if two processes began in one view and never suspected each other, one has a prefix of the other's views.

    If only one of them began in that view because it joined, both are judged from that view on. At a quiet end the
    sequences are equal, if both are in one stable component and in the group.
    """
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for (group, _), paths in _paths(membership).items():
        processes = {process for path in paths.values() for process in path}
        since = {process: stay for path in paths.values() for process, (stay, _) in path.items()}
        opportunities[group] += _pairs(len(processes)) - _suspicions_among(membership, since)
        for (one, left), (other, right) in combinations(sorted(paths.items()), 2):
            split = one[: len(other)] != other[: len(one)]
            for first, second in _unexplained(history, membership, left, right, split=split):
                stays = left[first], right[second]
                describe = partial(_describe_apart, history, membership, stays, split=split)
                # Counted where the later of the two installed its last view.
                found.append((max(membership.row[last] for _, last in stays), group, describe))
    return over_groups(history, promises, "M5", opportunities, as_violations(found))


_Path = dict[int, tuple[int, int]]
"""Processes with the same views, each with its first and last stay in them."""


def _paths(membership: Membership) -> dict[tuple[int, int], dict[_Sequence, _Path]]:
    """By group and view in which a process began: which processes installed which views in turn from there on."""
    asked = membership.stays_promising("M5")
    begins = {(membership.group[stay], membership.view[stay]) for stay in asked if membership.preceding[stay] < 0}
    found: dict[tuple[int, int], dict[_Sequence, _Path]] = defaultdict(lambda: defaultdict(dict))
    for last in asked:
        if membership.following[last] >= 0:
            continue
        chain = [last]
        while membership.preceding[chain[-1]] >= 0:
            chain.append(membership.preceding[chain[-1]])
        chain.reverse()
        views, process = tuple(membership.view[stay] for stay in chain), membership.process[last]
        seen = set[int]()
        for place, stay in enumerate(chain):
            begun = (membership.group[stay], membership.view[stay]) in begins and membership.view[stay] not in seen
            seen.add(membership.view[stay])  # M2 reports an id that occurs twice
            if begun and process in membership.members[stay]:
                found[membership.group[stay], membership.view[stay]][views[place:]][process] = stay, last
    return found


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _suspicions_among(membership: Membership, since: dict[int, int]) -> int:
    """The number of pairs in which one suspected the other since its stay."""
    group = membership.group[next(iter(since.values()))]
    return len(
        {
            frozenset((process, peer))
            for (where, process, peer), row in membership.suspected.items()
            if where == group
            and process != peer
            and process in since
            and peer in since
            and row > membership.row[since[process]]
        }
    )


def _unexplained(
    history: History, membership: Membership, left: _Path, right: _Path, *, split: bool
) -> Iterable[tuple[int, int]]:
    """Pairs with different views that never suspected each other: forked, or one behind at the quiet end."""
    component, settled = history.world.component, membership.settled
    for one, (mine, my_last) in left.items():
        for other, (yours, your_last) in right.items():
            together = component[one] >= 0 and component[one] == component[other] and settled[one] and settled[other]
            together &= membership.stays_in(my_last) and membership.stays_in(your_last)
            if (split or together) and not membership.apart(mine, yours):
                yield one, other


_Log = tuple[int, int]
"""The first and the last stay of a process."""


def _describe_apart(history: History, membership: Membership, stays: tuple[_Log, _Log], *, split: bool) -> Violation:
    (_, one), (_, other) = stays
    if split:
        (one, other), how = _fork(membership, stays), "where their views begin to differ"
    else:
        how = "and when the run ended quiet one was behind the other"
    sentence = (
        f"{installed(history, membership, one)} and {installed(history, membership, other)}, {how}, "
        f"although neither ever suspected the other"
    )
    return about(history, membership, sentence, [one, other])


def _fork(membership: Membership, stays: tuple[_Log, _Log]) -> tuple[int, int]:
    """The first stays of two processes in which their views differ."""
    logs = []
    for first, last in stays:
        log = [last]
        while log[-1] != first:
            log.append(membership.preceding[log[-1]])
        logs.append(log[::-1])
    for pair in zip(*logs, strict=False):
        if membership.view[pair[0]] != membership.view[pair[1]]:
            return pair[0], pair[1]
    raise AssertionError("different view sequences differ somewhere")


# -------------------------------------------------------------------------------- M6


def check_disjoint_successors(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M6: two different successors of one view have no common member with the same signature.

    A signature says which members its process has excluded (docs/spec/newtop.md 9.7). A process that skips a view,
    because it has excluded more members meanwhile, appears in the skipped view with another signature than its own.
    This is unavoidable. It is also unavoidable that a formed group lists a process that never goes over, so only
    views within one epoch are judged.
    """
    successors: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for before, stay in membership.passages("M6"):
        if membership.formed[stay]:
            continue
        successors[membership.group[stay], membership.view[before]].setdefault(membership.view[stay], stay)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for (group, _), views in successors.items():
        opportunities[group] += _pairs(len(views))
        for one, other in _overlapping(membership, views.values()):
            if _signature(history, membership, one) != _signature(history, membership, other):
                continue
            later = max(one, other, key=lambda stay: (membership.time[stay], stay))
            found.append((membership.row[later], group, partial(_describe_overlap, history, membership, one, other)))
    return over_groups(history, promises, "M6", opportunities, as_violations(found))


def _signature(history: History, membership: Membership, stay: int) -> object:
    return history.details.get(membership.row[stay], {}).get("signature")


def _overlapping(membership: Membership, stays: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs of stays whose views have a common member; disjoint views are never compared."""
    by_member: dict[int, list[int]] = defaultdict(list)
    for stay in stays:
        for member in membership.members[stay]:
            by_member[member].append(stay)
    pairs = {pair for sharing in by_member.values() for pair in combinations(sorted(sharing), 2)}
    return sorted(pairs)


def _describe_overlap(history: History, membership: Membership, one: int, other: int) -> Violation:
    common = membership.members[one] & membership.members[other]
    before = view_of(history, membership, membership.preceding[one])
    sentence = (
        f"{installed(history, membership, one)} and {installed(history, membership, other)}, both after view "
        f"{before}, but {names(history, common)} is in both views"
    )
    return about(history, membership, sentence, [one, other])


# -------------------------------------------------------------------------------- M6e


def check_disjoint_at_last(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M6e: at a quiet end, the last views of processes in stable components are equal or disjoint.

    For two different components this is judged only if both look for lost members while they are idle. Otherwise one
    may not have noticed the loss yet. It is not judged if members exclude each other until the end (`restless.py`).
    """
    if not history.world.quiet:
        return not_quiet(history, promises, "M6e")
    stable, component = stable_members(history, promises, "M6e").tolist(), history.world.component
    probes = membership.suspectors.probe
    last: dict[int, list[int]] = defaultdict(list)
    for stay in membership.stays_promising("M6e"):
        if promises.roles.receiving[stay]:
            continue
        process, group = membership.process[stay], membership.group[stay]
        if membership.final[stay] and stable[process][group] and membership.settled[process]:
            last[group].append(stay)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for group, stays in last.items():
        opportunities[group] += _pairs(len(stays))
        # One for each different view of a component; views are different if their id or their members differ.
        different = {
            (membership.view[stay], membership.members[stay], int(component[membership.process[stay]])): stay
            for stay in reversed(stays)
        }
        for one, other in _overlapping(membership, different.values()):
            first, second = membership.process[one], membership.process[other]
            same = membership.view[one] == membership.view[other]
            same &= membership.members[one] == membership.members[other]
            comparable = component[first] == component[second] or (probes[first] and probes[second])
            both = membership.members[one] | membership.members[other]
            if not same and comparable and not is_restless(history, membership, group, both):
                describe = partial(_describe_overlap_at_last, history, membership, one, other)
                found.append((int(history.logs.end[second]) - 1, group, describe))
    return over_groups(history, promises, "M6e", opportunities, as_violations(found))


def _describe_overlap_at_last(history: History, membership: Membership, one: int, other: int) -> Violation:
    common = membership.members[one] & membership.members[other]
    sentence = (
        f"{installed(history, membership, one)} and {installed(history, membership, other)}, each as its last view in "
        f"a run that ended quiet, but {names(history, common)} is in both views"
    )
    return about(history, membership, sentence, [one, other])


# -------------------------------------------------------------------------------- M7


def check_successors_agree(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M7: if a process goes from V' to V, each member of both views that installs V comes from V' too.

    In the first view of a formed group, a member may also come from another formation or from no view.
    """
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    asked = [stay for stay in membership.stays_promising("M7") if _is_sender(promises, membership, stay)]
    for (group, _), stays in membership.sharing(asked).items():
        origins: dict[int, list[int]] = defaultdict(list)
        for stay in stays:
            before = membership.preceding[stay]
            origins[membership.view[before] if before >= 0 else -1].append(stay)
        for origin, came in origins.items():
            if origin >= 0:
                opportunities[group] += len(came) * (len(stays) - 1)
                others = [stay for where, there in origins.items() if where != origin for stay in there]
                found += _strays(history, membership, came, others)
    return over_groups(history, promises, "M7", opportunities, as_violations(found))


def _is_sender(promises: Promises, membership: Membership, stay: int) -> bool:
    """False if the process only receives in the view, or came to it as a process that only receives (InterGroup)."""
    before = membership.preceding[stay]
    return not promises.roles.receiving[stay] and not (before >= 0 and promises.roles.receiving[before])


def _strays(history: History, membership: Membership, came: list[int], others: list[int]) -> Iterable[Found]:
    """The processes that installed the same view from elsewhere, although they are members of both views."""
    if not others:
        return
    both: dict[int, int] = {}
    for stay in came:
        for member in membership.members[stay] & membership.members[membership.preceding[stay]]:
            both.setdefault(member, stay)
    for stay in others:
        if membership.process[stay] in both and not _came_elsewhere(membership, came[0], stay):
            describe = partial(_describe_stray, history, membership, both[membership.process[stay]], stay)
            yield membership.row[stay], membership.group[stay], describe


def _came_elsewhere(membership: Membership, came: int, stay: int) -> bool:
    """True if the stay begins a formation, and its process comes from another formation than the others, or none.

    Where members are added in order, a process that went elsewhere is first excluded, and merged later (M26).
    """
    if not membership.formed[stay] or membership.roles[membership.process[stay]]:
        return False
    origin = membership.preceding[stay]
    roots = [membership.root[each] for each in (membership.preceding[came], origin)] if origin >= 0 else []
    return not roots or membership.view[roots[0]] != membership.view[roots[1]]


def _describe_stray(history: History, membership: Membership, came: int, stay: int) -> Violation:
    before = membership.preceding[stay]
    origin = f"view {view_of(history, membership, before)}" if before >= 0 else "no view"
    shared = view_of(history, membership, membership.preceding[came])
    sentence = (
        f"{installed(history, membership, came)} after view {shared}, which includes "
        f"{history.process_name(membership.process[stay])}, but "
        f"{installed(history, membership, stay)} after {origin}"
    )
    return about(history, membership, sentence, [came, stay])


# -------------------------------------------------------------------------------- M8


def check_transitional(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """M8: the transitional set holds only members of both views, and all installers that came from the same view.

    A row without such a set is not judged. In the first view of a formed group the set is the process's own class, or
    empty if it comes from no view. Processes that only receive, or did so before, are not judged and not counted.
    """
    asked = [stay for stay in membership.stays_promising("M8") if _is_sender(promises, membership, stay)]
    with_set = [
        (membership.preceding[stay], stay)
        for stay in asked
        if membership.preceding[stay] >= 0 and history.stays.transitional[stay] is not None
    ]
    formed = [stay for stay in asked if membership.formed[stay]]
    veterans = _veterans(promises, membership)
    found: list[Found] = [
        (membership.row[stay], membership.group[stay], partial(_describe_class, history, membership, stay))
        for stay in formed
        if not _is_own_class(history, membership, stay, veterans[membership.group[stay], membership.view[stay]])
    ]
    found += _wrong_sets(history, membership, with_set, asked)
    asked = [stay for _, stay in with_set] + [stay for stay in formed if membership.preceding[stay] < 0]
    opportunities = counted(history, membership, asked)
    return over_groups(history, promises, "M8", opportunities, as_violations(found))


def _veterans(promises: Promises, membership: Membership) -> dict[tuple[int, int], set[int]]:
    """By group and view: the processes that installed it, except those that only received before."""
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for stay, before in enumerate(membership.preceding):
        if before < 0 or not promises.roles.receiving[before]:
            found[membership.group[stay], membership.view[stay]].add(membership.process[stay])
    return found


def _wrong_sets(
    history: History, membership: Membership, with_set: list[tuple[int, int]], asked: list[int]
) -> list[Found]:
    """Transitional sets with processes that are not in both views, or that came from another view."""
    installers = _installers(membership, asked) if with_set else {}
    found: list[Found] = []
    for before, stay in with_set:
        named = frozenset(history.stays.transitional[stay] or ())
        strangers = named - (membership.members[before] & membership.members[stay])
        installed_by, came = installers[membership.group[stay], membership.view[stay]]
        # M1 or M4 report a process that installs a view without being in it, or under the same id.
        wrong = (named & installed_by.keys()) ^ (came[membership.view[before]] & membership.members[stay])
        if strangers or wrong:
            other = installed_by[min(wrong)] if wrong and not strangers else -1
            describe = partial(_describe_transitional, history, membership, stay, strangers, other)
            found.append((membership.row[stay], membership.group[stay], describe))
    return found


def _is_own_class(history: History, membership: Membership, stay: int, veterans: set[int]) -> bool:
    """True if the classes partition the members, and the transitional set is its own class, or empty without a view.

    A member that only received before is in the class, but in no view that the others come from. Whether a member did
    so is not known if it never installed the view. So only the `veterans` must be in the set.
    """
    classes, me = history.stays.classes[stay], membership.process[stay]
    divided = sorted(member for together in classes for member in together) == sorted(membership.members[stay])
    own = next((frozenset(together) for together in classes if me in together), frozenset[int]())
    if membership.preceding[stay] < 0:
        return divided and own == {me} and not history.stays.transitional[stay]
    along = frozenset(history.stays.transitional[stay] or ())
    if not membership.roles[me]:
        return divided and own == along
    return divided and along <= own and not (own - along) & veterans


def _describe_class(history: History, membership: Membership, stay: int) -> Violation:
    classes = " | ".join(names(history, together) for together in history.stays.classes[stay])
    along = names(history, history.stays.transitional[stay] or ())
    before = membership.preceding[stay]
    origin = f"view {view_of(history, membership, before)}" if before >= 0 else "no view"
    sentence = (
        f"{installed(history, membership, stay)} after {origin} with classes {classes} and transitional set {along}: "
        f"the set must be its own class, and the classes must partition the members"
    )
    return about(history, membership, sentence, [stay])


def _installers(
    membership: Membership, asked: list[int]
) -> dict[tuple[int, int], tuple[dict[int, int], dict[int, set[int]]]]:
    """By group and view: its installers with their stays, and which of them came from which view."""
    found: dict[tuple[int, int], tuple[dict[int, int], dict[int, set[int]]]] = {}
    for stay in asked:
        key = membership.group[stay], membership.view[stay]
        installed_by, came = found.setdefault(key, ({}, defaultdict(set)))
        installed_by[membership.process[stay]] = stay
        before = membership.preceding[stay]
        came[membership.view[before] if before >= 0 else -1].add(membership.process[stay])
    return found


def _describe_transitional(
    history: History, membership: Membership, stay: int, strangers: frozenset[int], other: int
) -> Violation:
    before = membership.preceding[stay]
    views = f"view {view_of(history, membership, before)}", f"view {view_of(history, membership, stay)}"
    start = f"{installed(history, membership, stay)} after {views[0]} and calls"
    if strangers:
        who = names(history, strangers)
        sentence = f"{start} {who} transitional, which is not a member of both views"
        return about(history, membership, sentence, [stay], sorted(strangers))
    who, named = history.process_name(membership.process[other]), history.stays.transitional[stay] or ()
    if membership.process[other] in named:
        origin = membership.preceding[other]
        came = f"view {view_of(history, membership, origin)}" if origin >= 0 else "no view"
        sentence = (
            f"{start} {who} transitional, which came to it from {came} (index {_index(history, membership, other)})"
        )
    else:
        sentence = (
            f"{start} {who} not transitional, which came from there too (index {_index(history, membership, other)})"
        )
    return about(history, membership, sentence, [stay, other])


def _index(history: History, membership: Membership, stay: int) -> int:
    return history.index(membership.row[stay])
