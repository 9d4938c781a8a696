"""Bugs to plant in the control hierarchy, each a rule that is left out, and a seed of a random run that shows it.

`python -m tests.planted.hierarchy [runs]` searches again, after a change of the draws.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from antiphon.protocols.intergroup.as_printed_hierarchy import LeastOfThoseKnown
from antiphon.protocols.intergroup.hierarchy import groups as groups_module
from antiphon.protocols.intergroup.hierarchy import process as process_module
from antiphon.protocols.intergroup.hierarchy import states as states_module
from antiphon.protocols.intergroup.hierarchy.groups import CoordinatorGroup, JoinedGroup, OwnGroup
from antiphon.protocols.intergroup.hierarchy.peers import Peers
from antiphon.protocols.intergroup.hierarchy.process import ControlProcess
from antiphon.protocols.intergroup.hierarchy.records import (
    EpochSlots,
    Slots,
    StabilityRecord,
    SystemAck,
    bitmap,
    merged,
)
from antiphon.protocols.intergroup.hierarchy.rules import HierarchyRules
from antiphon.protocols.intergroup.hierarchy.states import TABLE, Input, State
from antiphon.types import ProcessId
from tools.lab.hierarchy_load import EPOCH, GROUP
from tools.lab.hierarchy_runs import Variant, violations

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Bug:
    """A rule left out."""

    name: str
    property: str
    """What a run with it violates (`tools/lab/hierarchy_runs.py`)."""
    seed: int
    variant: Variant = field(default_factory=Variant)
    plant: Callable[[Patch], None] = lambda _patch: None


class AnyEpoch(SystemAck):
    """Leaves out that the epoch of a record must be ours (T2)."""

    def accept(self, record: StabilityRecord, required: Slots, own_ack: int) -> bool:
        return super().accept(record._replace(epoch=self._epoch), required, own_ack)


class Ranks(EpochSlots):
    """J17 left out: the bit of a sender is its rank in the view, which changes."""

    def __init__(self, members: Any) -> None:
        super().__init__(members)
        self._view = {*members}

    def add(self, member: ProcessId) -> None:
        self._view.add(member)

    def slot(self, member: ProcessId) -> int | None:
        ranks = sorted(self._view)
        return ranks.index(member) if member in self._view else None

    def required(self, members: Any) -> Slots:
        self._view = {*members}
        return (1 << len(self._view)) - 1


class Unmoved(Peers[Any]):
    """3.9 left out: nobody is forgotten."""

    def expire(self, now: int, timeout: int) -> list[ProcessId]:
        return []


def _greatest(patch: Patch) -> None:
    """4.5: the greatest acknowledgment instead of the least."""

    def most(records: Any) -> tuple[StabilityRecord, ...]:
        found: dict[Any, StabilityRecord] = {}
        for each in records:
            known = found.get(each[:2], each)
            found[each[:2]] = each._replace(ack=max(each.ack, known.ack), senders=bitmap(each.slots | known.slots))
        return tuple(found.values())

    for module in (groups_module, process_module):
        patch.setattr(module, "merged", most)


def _no_far_ttl(patch: Patch) -> None:
    """H8: CCons do not reach as far as the children are."""
    patch.setattr(OwnGroup, "far_ttl", lambda _self, _now: 1)


def _without(*steps: tuple[State, Input]) -> Callable[[Patch], None]:
    """Changes of the state that are left out."""

    def plant(patch: Patch) -> None:
        patch.setattr(states_module, "TABLE", {key: step for key, step in TABLE.items() if key not in steps})

    return plant


def _deaf_to_losses(patch: Patch) -> None:
    """2.6.3: a child does not notice that its coordinator is silent."""
    patch.setattr(JoinedGroup, "is_lost", lambda _self, _now, _timeout: False)


def _one_table(patch: Patch) -> None:
    """H7: one table for the children and for the group that was joined."""
    join = ControlProcess._join

    def joined(self: ControlProcess, now: int) -> None:
        join(self, now)
        assert self.joined is not None
        self.joined.siblings = self.own.children  # type: ignore[assignment]

    patch.setitem(ControlProcess._ACTIONS, states_module.Action.JOIN, joined)


def _no_limit(patch: Patch) -> None:
    """2.5: a coordinator never steps down."""
    patch.setattr(ControlProcess, "_review_coordinator", lambda _self, _now: None)


def _counts_one(patch: Patch) -> None:
    """H6, 2.2.3: the number of coordinators that a child hears of is one."""
    patch.setattr(CoordinatorGroup, "number", property(lambda _self: 1))


BUGS: Final = (
    Bug("least_of_those_known", "early", 0, Variant(system=LeastOfThoseKnown)),
    Bug("any_epoch", "early", 3, Variant(system=AnyEpoch)),
    Bug("ranks", "early", 207, Variant(slots=Ranks)),
    Bug("greatest", "early", 0, plant=_greatest),
    Bug("nobody_forgotten", "ghost", 0, Variant(HierarchyRules(peers=Unmoved))),
    Bug("no_far_ttl", "orphan", 7, plant=_no_far_ttl),
    Bug("one_table", "orphan", 0, plant=_one_table),
    Bug("abandoned_stays", "orphan", 59, plant=_without((State.CHILD, Input.ABANDONED))),
    Bug("search_fails", "orphan", 4, plant=_without((State.MOVING, Input.NOT_FOUND))),
    Bug("deaf_to_losses", "orphan", 0, plant=_deaf_to_losses),
    Bug("never_steps_down", "coordinators", 6, plant=_no_limit),
    Bug("one_coordinator", "coordinators", 2, plant=_counts_one),
)


def one_leaves_and_one_moves(slots: type[EpochSlots]) -> bool:
    """A written schedule: a, b, c and d send; b leaves; c moves to another coordinator, which d has not reached yet.

    True if a takes something for stable that d has not acknowledged.
    """
    a, b, c, d = members = [ProcessId(name) for name in "abcd"]
    before, after = slots(members), slots(members)
    after.required([a, c, d])  # b has left

    def record(of: EpochSlots, member: ProcessId, ack: int) -> StabilityRecord:
        slot = of.slot(member)
        assert slot is not None
        return StabilityRecord(GROUP, EPOCH, ack, bitmap(1 << slot))

    old_coordinator = merged([record(before, c, 4)])
    new_coordinator = merged([record(after, a, 9), record(after, c, 9)])
    system, acks = SystemAck(GROUP, EPOCH, 0), {a: 9, b: 9, c: 9, d: 3}
    for each in merged([*old_coordinator, *new_coordinator]):
        system.accept(each, after.required([a, c, d]), acks[a])
    return system.stable > acks[d]


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        yield


def search(bug: Bug, runs: int) -> int | None:
    """The first seed whose run shows the bug."""
    for seed in range(runs):
        with planted(bug):
            try:
                found = violations(seed, bug.variant)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
        if bug.property in found:
            return seed
    return None


if __name__ == "__main__":
    for each in BUGS:
        seed_found = search(each, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
        sys.stdout.write(f"{each.name}: {seed_found}\n")
