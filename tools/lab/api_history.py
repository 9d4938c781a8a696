"""The events of applications in one run of the API, and checks of writes and primary views.

Judged from outside, from what applications read, and from when processes ended (docs/spec/newtop.md 15):

- `lost write`: a member of a later primary view does not have a write that was acknowledged in an earlier one. A write
  counts unless every process that held it has crashed or left. With `total` it counts only if the process that
  acknowledged it is in the next primary view.
- `two primaries`: the same, but the later primary view was there already when the write was acknowledged; or two views
  have one number; or a primary view has no process of the one before it.
- `not together`, `not primary`, `diverged`: the end of a run, see `Ending`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from antiphon.types import ProcessId, split_process_id


class Stay(NamedTuple):
    """One process in the group, from its join until it crashes or leaves."""

    process: ProcessId
    earlier: int
    """How often the process had joined before."""


class Acknowledged(NamedTuple):
    """An application has delivered its own write while its view was primary."""

    at_s: float
    write: int
    stay: Stay
    number: int
    view: str


class Entry(NamedTuple):
    """An application has read that its view is primary."""

    at_s: float
    stay: Stay
    number: int
    view: str
    members: frozenset[ProcessId]
    state: frozenset[int]


class Violation(NamedTuple):
    """The kind of violation, and a sentence that shows it."""

    kind: str
    witness: str


class Ending(NamedTuple):
    """The quiet end of a run: everything healed, everything resumed, and a long time has passed."""

    views: dict[Stay, frozenset[ProcessId]]
    """By process that is in the group, the members of its view."""
    primary: dict[Stay, bool]
    states: dict[Stay, frozenset[int]]
    waiting: tuple[ProcessId, ...]
    """Processes whose `join` has not returned."""
    names: frozenset[str]
    """All names in the run."""


@dataclass
class History:
    """Of one run, in the order in which it happened."""

    safe: bool
    """True if the service is `Total(safe=True)`."""
    acknowledged: list[Acknowledged] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    views: list[tuple[float, frozenset[ProcessId]]] = field(default_factory=list)
    """Every view that an application has read, and when."""
    holders: dict[int, set[Stay]] = field(default_factory=dict)
    """By write, every stay whose state has had it."""
    begun: dict[Stay, float] = field(default_factory=dict)
    ended: dict[Stay, float] = field(default_factory=dict)
    """When a process crashed, or had left."""
    passed_on: list[tuple[float, ProcessId]] = field(default_factory=list)
    """Processes whose `leave` returned True, and when."""
    heard: set[tuple[ProcessId, ProcessId]] = field(default_factory=set)
    """A process, and another one that it has read to have left."""

    def held(self, stay: Stay, writes: Iterable[int]) -> None:
        """The state of that application has these writes."""
        for write in writes:
            self.holders.setdefault(write, set()).add(stay)

    def all_stays_ended(self, entries: list[Entry], at_s: float) -> bool:
        """True if all stays in these primary views had ended. A process that returns has a new state."""
        return all(
            self.ended.get(stay, at_s + 1) <= at_s
            for stay, begun_s in self.begun.items()
            for entry in entries
            if stay.process in entry.members and begun_s <= entry.at_s
        )


@dataclass
class Judgement:
    """The findings of one run."""

    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(history: History, ending: Ending) -> Judgement:
    """All checks."""
    found = Judgement()
    found.counts["acknowledged writes"] = len(history.acknowledged)
    lineages = _lineages(history, found.counts)
    found.counts["primary views"] = len({entry.view for entry in history.entries})
    for lineage in lineages:
        _judge_chain(lineage, found)
        _judge_writes(history, lineage, found)
    _judge_end(history, lineages, ending, found)
    return found


def _lineages(history: History, counts: Counter[str]) -> list[list[Entry]]:
    """Entries by lineage. A new lineage begins, with what it follows, where a number is used again.

    This is permitted only if all members of the views with this number, and later ones, have ended: none knows it.
    """
    lineages: list[list[Entry]] = [[]]
    for entry in history.entries:
        known = [lineage for lineage in lineages if any(each.view == entry.view for each in lineage)]
        if not known:
            forgotten = [each for each in lineages[-1] if each.number >= entry.number]
            if forgotten and history.all_stays_ended(forgotten, entry.at_s):
                counts["numbers used again"] += 1
                over = history.all_stays_ended(lineages[-1], entry.at_s)
                lineages.append([] if over else [each for each in lineages[-1] if each not in forgotten])
        (known or lineages)[-1].append(entry)
    return lineages


def _judge_chain(lineage: list[Entry], found: Judgement) -> None:
    first = {entry.number: entry for entry in reversed(lineage)}
    for entry in lineage:
        other = first[entry.number]
        if other.view != entry.view:
            found.violations.append(Violation("two primaries", f"{_shown(other)}; {_shown(entry)}"))
    for number, following in pairwise(sorted(first)):
        # If a number is missing between them, a view was formed that no application has read to be primary.
        if following == number + 1 and not first[number].members & first[following].members:
            witness = f"no process of {_shown(first[number])} is in {_shown(first[following])}"
            found.violations.append(Violation("two primaries", witness))


def _judge_writes(history: History, lineage: list[Entry], found: Judgement) -> None:
    views, exempted = {entry.view for entry in lineage}, set()
    for each in history.acknowledged:
        later = [entry for entry in lineage if entry.number > each.number]
        if each.view not in views or not _counts(history, each, later):
            continue
        missing = [entry for entry in later if each.write not in entry.state]
        kept = [entry for entry in missing if _is_held(history, each.write, entry.at_s)]
        if kept:
            entry = kept[0]
            kind = "two primaries" if entry.at_s < each.at_s else "lost write"
            witness = f"write {each.write}, acknowledged at {each.at_s:.6f} s by {each.stay.process} in primary view "
            holders = ", ".join(sorted({stay.process for stay in history.holders[each.write]}))
            found.violations.append(
                Violation(kind, f"{witness}{each.number}, held by {holders}, is missing in {_shown(entry)}")
            )
        elif missing:
            exempted.add(each.write)
    found.counts["writes without a holder"] += len(exempted)


def _counts(history: History, each: Acknowledged, later: list[Entry]) -> bool:
    """True if the write must be in later primary views."""
    if history.safe or not later:
        return True
    following = min(entry.number for entry in later)
    return any(entry.number == following and entry.stay == each.stay for entry in later)


def _is_held(history: History, write: int, at_s: float) -> bool:
    """True if a process that has held the write has not ended."""
    return any(history.ended.get(stay, at_s + 1) > at_s for stay in history.holders[write])


def _judge_end(history: History, lineages: list[list[Entry]], ending: Ending, found: Judgement) -> None:
    together = frozenset(stay.process for stay in ending.views)
    if not together:
        found.counts["ends without a group"] += 1
        return
    apart = [f"{stay.process} sees {_names(view)}" for stay, view in ending.views.items() if view != together]
    apart += [f"{process} still waits" for process in ending.waiting]
    if apart:
        found.violations.append(Violation("not together", f"{'; '.join(apart)}, at the end"))
        return
    due = bool(lineages[-1]) and primary_is_due(history, lineages[-1], together, ending.names)
    found.counts["ends with primary due"] += due
    found.counts["ends with primary"] += all(ending.primary.values())
    without = [stay.process for stay, primary in ending.primary.items() if not primary]
    if without and (due or len(without) < len(ending.primary)):
        found.violations.append(Violation("not primary", f"{_names(without)} of the last view {_names(together)}"))
    if len({*ending.states.values()}) > 1 and not without:
        found.violations.append(Violation("diverged", f"members of {_names(together)} have different writes"))


def primary_is_due(
    history: History, lineage: list[Entry], members: frozenset[ProcessId], names: frozenset[str]
) -> bool:
    """Must the last view be primary? If it has enough voters of the last primary view, and of each view since.

    Enough is rule 4 of docs/spec/newtop.md 15. An attempt is one of the views since. A view that shares no process with
    the last one does not count: no member of the last view attempted it. A process that has been in the group since the
    last primary view has kept the state. Others may have it again, but this cannot be seen from outside.
    """
    last = max(lineage, key=lambda entry: entry.number)
    since_s = min(entry.at_s for entry in lineage if entry.number == last.number)
    views = {view: at_s for at_s, view in reversed(history.views) if at_s >= since_s and view & members}
    known = [each for each in history.entries if each.stay.process in members and each.number >= last.number]
    views |= {each.members: each.at_s for each in known if each.view != last.view}  # of a lineage that is over
    kept = members & _stayed(history, since_s)
    return all(
        _enough(view - left or view, members, names, kept)
        for view, at_s in (*views.items(), (last.members, since_s))
        for left in _possibly_left(history, at_s, members)
    )


def _stayed(history: History, since_s: float) -> frozenset[ProcessId]:
    """Processes that have been in the group since then: their state is not gone."""
    return frozenset(
        stay.process for stay, begun_s in history.begun.items() if begun_s <= since_s and stay not in history.ended
    )


def _possibly_left(
    history: History, since_s: float, members: frozenset[ProcessId]
) -> tuple[frozenset[ProcessId], frozenset[ProcessId]]:
    """The most and the fewest processes that may have passed their votes on: all that left, and those heard of."""
    left = frozenset(process for at_s, process in history.passed_on if at_s >= since_s)
    return left, frozenset(process for process in left if any((each, process) in history.heard for each in members))


def _enough(
    voters: frozenset[ProcessId], members: frozenset[ProcessId], names: frozenset[str], kept: frozenset[ProcessId]
) -> bool:
    """`kept`: the members that have kept the state."""
    same = voters & members
    present = {split_process_id(member)[0] for member in members}
    restarted = [voter for voter in voters - same if split_process_id(voter)[0] in present]
    if not same:
        return False
    if same & kept and (2 * len(same) > len(voters) or (2 * len(same) == len(voters) and restarted)):
        return True
    return len(same) + len(restarted) == len(voters) and names <= present


def _shown(entry: Entry) -> str:
    return (
        f"primary view {entry.number} ({entry.view}: {_names(entry.members)}), "
        f"read by {entry.stay.process} at {entry.at_s:.6f} s"
    )


def _names(processes: Iterable[ProcessId]) -> str:
    return "{" + ", ".join(sorted(processes)) + "}"
