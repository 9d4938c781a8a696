"""Faults of membership seeded into good traces with changes of views (properties.md 9): each raises its own identifier.

Like `mutations.py`: a mutation gives a table that is still well formed, or None where the trace offers no place for it.
"""

import random
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from tests.support.traces.mutations import (
    Log,
    Mutation,
    choice,
    drop,
    ids,
    mid,
    process_of,
    renumbered,
    with_column,
)


def name(process: tuple[str, int]) -> str:
    """As views name it."""
    return f"{process[0]}#{process[1]}" if process[1] else process[0]


class Stay:
    """The rows from one `view` row of a process in a group up to its next one there."""

    def __init__(self, log: Log, at: int, members: list[str]) -> None:
        self.log, self.at, self.members = log, at, frozenset(members)
        self.row = log.rows[at]
        self.process, self.group, self.view = process_of(self.row), self.row["group"], self.row["view"]
        self.next: Stay | None = None
        self.before: Stay | None = None

    @property
    def me(self) -> str:
        return name(self.process)

    def rows(self, *kinds: str) -> list[int]:
        """Its rows of these kinds in its group."""
        end = self.next.at if self.next else len(self.log.rows)
        return [
            at
            for at in range(self.at + 1, end)
            if self.log.rows[at]["kind"] in kinds
            and self.log.rows[at]["group"] == self.group
            and process_of(self.log.rows[at]) == self.process
        ]


def stays(log: Log) -> list[Stay]:
    members, found = log.table["members"].to_pylist(), list[Stay]()
    last: dict[Any, Stay] = {}
    for at, row in enumerate(log.rows):
        if row["kind"] == "view":
            stay = Stay(log, at, members[at])
            stay.before = last.get((stay.process, stay.group))
            if stay.before:
                stay.before.next = stay
            last[stay.process, stay.group] = stay
            found.append(stay)
    return found


def together(log: Log) -> Iterable[tuple[Stay, list[Stay]]]:
    """Stays whose process goes on to another view, with those of other processes that do the same."""
    moving = [stay for stay in stays(log) if stay.next]
    for stay in moving:
        others = [
            other
            for other in moving
            if other is not stay
            and (other.group, other.view) == (stay.group, stay.view)
            and other.next
            and stay.next
            and other.next.view == stay.next.view
        ]
        if others:
            yield stay, others


def _shared(log: Log) -> Iterable[tuple[Stay, list[int]]]:
    """Such stays, with those of their deliveries that one of the others made there too."""
    for stay, others in together(log):
        common = {mid(log.rows[at]) for other in others for at in other.rows("deliver")}
        yield stay, [at for at in stay.rows("deliver") if mid(log.rows[at]) in common]


def drop_in_the_middle(log: Log, rng: random.Random) -> pa.Table | None:
    """Another message of the same sender follows in the same view."""
    return drop(
        log,
        rng,
        (
            at
            for _, shared in _shared(log)
            for place, at in enumerate(shared)
            if any(mid(log.rows[later])[:3] == mid(log.rows[at])[:3] for later in shared[place + 1 :])
        ),
    )


def drop_the_last(log: Log, rng: random.Random) -> pa.Table | None:
    """Nothing of that sender in that group follows in the whole log."""
    return drop(
        log, rng, (shared[-1] for _, shared in _shared(log) if shared and not log.followed_by_its_sender(shared[-1]))
    )


def move_across(log: Log, rng: random.Random) -> pa.Table | None:
    """The last delivery in a view, of a sender that stays, comes directly after the next view."""
    places = [
        (shared[-1], stay.next)
        for stay, shared in _shared(log)
        if stay.next
        and shared
        and shared[-1] == stay.rows("deliver")[-1]
        and name(mid(log.rows[shared[-1]])[1:3]) in stay.next.members
        and not any(
            log.rows[at]["kind"] in ("send", "deliver", "discard") for at in range(shared[-1] + 1, stay.next.at)
        )
    ]
    place = choice(rng, places)
    if place is None:
        return None
    at, view = place
    order = [row for row in range(len(log.rows)) if row != at]
    order.insert(order.index(view.at) + 1, at)
    times = log.table["time"].to_pylist()
    times[at] = times[view.at]
    views = log.table["view"].to_pylist()
    views[at] = view.view
    moved = with_column(with_column(log.table, "time", times), "view", views)
    return renumbered(moved.take(pa.array(order)))


def exclude_unsuspected(log: Log, rng: random.Random) -> pa.Table | None:
    """All suspicions of a removed process vanish from the logs of the processes that remove it."""
    places = [
        (stay, sorted(stay.before.members - stay.members))
        for stay in stays(log)
        if stay.before and stay.before.members - stay.members
    ]
    place = choice(rng, places)
    if place is None:
        return None
    stay, gone = place
    peers = log.table["peer"].to_pylist()
    keep = [
        not (
            row["kind"] == "suspect"
            and row["group"] == stay.group
            and peers[at] == gone[0]
            and name(process_of(row)) in stay.members
        )
        for at, row in enumerate(log.rows)
    ]
    return renumbered(log.table.filter(pa.array(keep)))


def with_members(log: Log, stay: Stay, members: Iterable[str]) -> pa.Table:
    lists = log.table["members"].to_pylist()
    lists[stay.at] = sorted(members)
    return with_column(log.table, "members", lists)


def remove_self(log: Log, rng: random.Random) -> pa.Table | None:
    """In its last view, in which it delivers none of its own messages."""
    places = [
        stay
        for stay in stays(log)
        if stay.before
        and not stay.next
        and not any(mid(log.rows[at])[1:3] == stay.process for at in stay.rows("deliver"))
    ]
    stay = choice(rng, places)
    return None if stay is None else with_members(log, stay, stay.members - {stay.me})


def another_membership(log: Log, rng: random.Random) -> pa.Table | None:
    """One of the processes that share a view says that it had another member, which was in the view before."""
    places = [
        (stay, sorted(stay.before.members - stay.members))
        for stay in stays(log)
        if stay.before and len(stay.before.members - stay.members) > 1 and _shares(log, stay)
    ]
    place = choice(rng, places)
    if place is None:
        return None
    stay, gone = place
    return with_members(log, stay, stay.members | {gone[0]})


def _shares(log: Log, stay: Stay) -> bool:
    return any(other.at != stay.at and (other.group, other.view) == (stay.group, stay.view) for other in stays(log))


def with_view(log: Log, stay: Stay, view: str) -> pa.Table:
    """The view of a stay has another id, at its process alone."""
    views, previous = log.table["view"].to_pylist(), log.table["previous"].to_pylist()
    end = stay.next.at if stay.next else len(log.rows)
    for at in range(stay.at, end):
        if process_of(log.rows[at]) == stay.process and log.rows[at]["group"] == stay.group and views[at] == stay.view:
            views[at] = view
    if stay.next:
        previous[stay.next.at] = view
    return with_column(with_column(log.table, "view", views), "previous", previous)


def repeat_an_id(log: Log, rng: random.Random) -> pa.Table | None:
    stay = choice(rng, (stay for stay in stays(log) if stay.before))
    return None if stay is None or stay.before is None else with_view(log, stay, stay.before.view)


def another_successor(log: Log, rng: random.Random) -> pa.Table | None:
    """One of the processes that go on together gives its next view another id: two successors with the same members."""
    stay = choice(rng, (stay.next for stay, _ in together(log) if stay.next))
    return None if stay is None else with_view(log, stay, f"{stay.view}x")


_OF_A_LOSS: Final = ids("D9", "O4", "S4", "F3", "L2", "L3", "L4")
_OF_A_VIEW: Final = ids("M4", "M5", "M6e", "M7", "M8", "M11", "L1", "L2", "L4", "L5", "L6")
"""Properties that another view, or other members, at one process alone may break too."""

MEMBERSHIP_MUTATIONS: Final = (
    Mutation("drop a delivery in the middle", drop_in_the_middle, (ids("D8"), ids("O2")), _OF_A_LOSS | ids("O4")),
    Mutation("drop the last delivery", drop_the_last, (ids("D8"),), _OF_A_LOSS | ids("O4")),
    Mutation(
        "move a delivery across a view change",
        move_across,
        (ids("D8"), ids("D5w")),
        ids("D5", "D6", "D9", "O3", "O4", "O5x", "O6", "O8", "S2"),
    ),
    Mutation("exclude a member that no process suspected", exclude_unsuspected, (ids("M10"),), ids("M5")),
    Mutation("remove self from members", remove_self, (ids("M1"),), _OF_A_VIEW | ids("M6", "M10", "D8", "S1")),
    Mutation(
        "one id with two memberships",
        another_membership,
        (ids("M4"),),
        _OF_A_VIEW | ids("M6", "D4", "D7", "D10", "O2", "O4", "S1", "L8"),
    ),
    Mutation(
        "repeat a view id",
        repeat_an_id,
        (ids("M2"),),
        _OF_A_VIEW | ids("M6", "D5", "D6", "D8", "D5w", "D9", "F3", "O5"),
    ),
)
"""The faults of docs/spec/properties.md 9 that concern membership."""

CLOSED_MUTATIONS: Final = (
    Mutation(
        "two overlapping successors of one view",
        another_successor,
        (ids("M6"),),
        _OF_A_VIEW | ids("D5", "D6", "F3"),
    ),
)
"""Those that only closed views must not survive."""
