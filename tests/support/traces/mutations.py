"""Faults seeded into good traces, as properties.md 9 lists them: each must be caught under its own identifier.

A mutation takes the table of one well-formed run and gives one that is still well formed (`index` is renumbered) but
wrong in one place, or None where the trace offers no such place. `MUTATIONS` work on any trace of a total order
service, `GROUP_MUTATIONS` on one with overlapping groups, `CAUSAL_MUTATIONS` on one of a causal service.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.trace.typed import TYPED, with_typed

T = TypeVar("T")
Row = dict[str, Any]
Place = tuple[int, int]
"""Positions of two deliveries of one process in the sorted rows, the earlier first."""

_KEPT: Final = ("process", "incarnation", "index", "time")
"""Columns that belong to the place of a delivery, not to the message."""


class Log:
    """The rows of a run that matter here, sorted by process, incarnation and index."""

    def __init__(self, events: pa.Table) -> None:
        order = [("process", "ascending"), ("incarnation", "ascending"), ("index", "ascending")]
        self.table = events.sort_by(order)
        names = ["process", "incarnation", "kind", "group", "sender", "sender_incarnation", "number", "view"]
        self.rows: list[Row] = self.table.select(names).to_pylist()
        self.last: dict[Any, Row] = {process_of(row): row for row in self.rows}
        self.send_at = {mid(row): at for at, row in enumerate(self.rows) if row["kind"] == "send"}
        self.delivered_at: dict[tuple[Any, Any], int] = {}
        self.deliverers: dict[Any, set[Any]] = {}
        self.last_number: dict[Any, int] = {}
        for at in self.deliveries():
            row = self.rows[at]
            self.delivered_at.setdefault((process_of(row), mid(row)), at)
            self.deliverers.setdefault(mid(row), set()).add(process_of(row))
            stream = process_of(row), mid(row)[:3]
            self.last_number[stream] = max(row["number"], self.last_number.get(stream, 0))

    def deliveries(self) -> Iterable[int]:
        return (at for at, row in enumerate(self.rows) if row["kind"] == "deliver")

    def crashed(self, process: Any) -> bool:
        return bool(self.last[process]["kind"] == "crash")

    def neighbours(self, *, of_one_sender: bool) -> Iterable[Place]:
        """Deliveries next to each other, or next to each other in their stream; no send, view or discard is between."""
        before: dict[Any, int] = {}
        for at, row in enumerate(self.rows):
            if row["kind"] in ("start", "send", "view", "discard"):
                before.clear()
            elif row["kind"] == "deliver":
                key = process_of(row), mid(row)[:3] if of_one_sender else None
                if key in before:
                    yield before[key], at
                before[key] = at

    def shared_with_the_living(self, place: Place) -> bool:
        """Neither this process nor some other that delivered both, each in the same view, ever crashes."""
        here = process_of(self.rows[place[0]])
        both = set.intersection(*(self._in_same_view(at) for at in place)) - {here}
        return not self.crashed(here) and any(not self.crashed(other) for other in both)

    def _in_same_view(self, at: int) -> set[Any]:
        row = self.rows[at]
        return {
            other
            for other in self.deliverers[mid(row)]
            if self.rows[self.delivered_at[other, mid(row)]]["view"] == row["view"]
        }

    def followed_by_its_sender(self, at: int) -> bool:
        """The process delivers a later message of the same sender in that group."""
        row = self.rows[at]
        return self.last_number[process_of(row), mid(row)[:3]] > int(row["number"])

    def followed_by_an_effect(self, at: int, *, in_one_group: bool = False) -> bool:
        """Before its next view the process delivers a message whose sender had delivered this one before."""
        process, then = process_of(self.rows[at]), at + 1
        while then < len(self.rows) and self.rows[then]["kind"] != "view" and process_of(self.rows[then]) == process:
            fits = not in_one_group or self.rows[then]["group"] == self.rows[at]["group"]
            if fits and self.rows[then]["kind"] == "deliver" and self.directly_causes((at, then)):
                return True
            then += 1
        return False

    def seen_by_others(self, place: Place) -> bool:
        """Some other process delivered both messages, so that their order is not a private matter."""
        both = set.intersection(*(self.deliverers[mid(self.rows[at])] for at in place))
        return len(both) > 1

    def directly_causes(self, place: Place) -> bool:
        """The sender of the second delivered the first before it sent the second, and is not the reader."""
        cause, effect = (mid(self.rows[at]) for at in place)
        sender, send_at = effect[1:3], self.send_at.get(effect)
        delivered_at = self.delivered_at.get((sender, cause))
        if send_at is None or delivered_at is None or sender == process_of(self.rows[place[0]]):
            return False
        return delivered_at < send_at


def mid(row: Row) -> tuple[str, str, int, int]:
    """The name of the message of a row: group, sender, its incarnation, number."""
    return row["group"], row["sender"], row["sender_incarnation"], row["number"]


def process_of(row: Row) -> tuple[str, int]:
    return row["process"], row["incarnation"]


Mutate = Callable[[Log, random.Random], pa.Table | None]


@dataclass(frozen=True)
class Mutation:
    """One seeded fault, and the properties that the checkers must raise."""

    name: str
    apply: Mutate
    one_of: tuple[frozenset[str], ...]
    """One identifier of each set must be raised."""
    also: frozenset[str] = frozenset()
    """Identifiers that may be raised too, since the same edit breaks them."""

    def __call__(self, events: pa.Table, rng: random.Random) -> pa.Table | None:
        return self.apply(Log(events), rng)

    def is_caught(self, violated: set[str]) -> bool:
        """True if all required properties were raised, and no property that the edit does not explain."""
        explained = self.also.union(*self.one_of)
        return all(violated & wanted for wanted in self.one_of) and violated <= explained


def swap_one_sender(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, log.neighbours(of_one_sender=True))


def _swap_two_senders(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, of_two_senders(log))


def swap_cause_and_effect(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, filter(log.directly_causes, of_two_senders(log)))


def swap_in_one_group(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, filter(log.shared_with_the_living, of_two_senders(log, one_group=True)))


def swap_in_two_groups(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, filter(log.shared_with_the_living, of_two_senders(log, one_group=False)))


def drop_in_the_middle(log: Log, rng: random.Random) -> pa.Table | None:
    return drop(log, rng, filter(log.followed_by_its_sender, _droppable(log, last=False)))


def _drop_the_last(log: Log, rng: random.Random) -> pa.Table | None:
    # Before a later message of the same sender, in the next view, it would not be the last of anything.
    return drop(log, rng, (at for at in _droppable(log, last=True) if not log.followed_by_its_sender(at)))


def _drop_a_cause(log: Log, rng: random.Random) -> pa.Table | None:
    causes = filter(log.followed_by_an_effect, log.deliveries())
    return drop(log, rng, (at for at in causes if not log.followed_by_its_sender(at)))


def drop_before_crash(log: Log, rng: random.Random) -> pa.Table | None:
    ends = _last_in_view(log)
    at = choice(rng, (at for at in log.deliveries() if at in ends and log.crashed(process_of(log.rows[at]))))
    return None if at is None or not _is_final(log, at) else drop(log, rng, [at])


def deliver_twice(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, log.deliveries())
    return None if at is None else insert(log.table, at, log.table.slice(at, 1))


def deliver_forged(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, (at for at in log.deliveries() if not log.crashed(mid(log.rows[at])[1:3])))
    if at is None:
        return None
    numbers = [row["number"] for row in log.rows if row["kind"] == "send"]
    forged = with_column(log.table.slice(at, 1), "number", [max(numbers) + 1])
    return insert(log.table, at, forged)


def flip_digest(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, (at for at in log.deliveries() if mid(log.rows[at]) in log.send_at))
    if at is None:
        return None
    digests = log.table["digest"].to_pylist()
    digests[at] ^= 1 << rng.randrange(63)
    return with_column(log.table, "digest", digests)


def of_two_senders(log: Log, *, one_group: bool | None = None) -> Iterable[Place]:
    """Neighbours of two senders, in one group, in two, or in any."""
    for place in log.neighbours(of_one_sender=False):
        first, second = (mid(log.rows[at]) for at in place)
        if first[1:3] != second[1:3] and one_group in (None, first[0] == second[0]):
            yield place


def swap(log: Log, rng: random.Random, places: Iterable[Place]) -> pa.Table | None:
    place = choice(rng, filter(log.seen_by_others, places))
    if place is None:
        return None
    order = np.arange(len(log.rows))
    order[[place[0], place[1]]] = order[[place[1], place[0]]]
    swapped = log.table.take(pa.array(order))
    for name in _KEPT:
        swapped = with_column(swapped, name, log.table[name].combine_chunks())
    views = swapped["view"].to_pylist()
    for at in place:
        # The view of a delivery is that of its place, in the group of the message now delivered there.
        views[at] = _view_in_force(log, at, swapped["group"][at].as_py())
    return with_column(swapped, "view", views)


def _view_in_force(log: Log, at: int, group: str) -> str:
    process = process_of(log.rows[at])
    for row in reversed(log.rows[:at]):
        if row["kind"] == "view" and row["group"] == group and process_of(row) == process:
            return str(row["view"])
    raise AssertionError(f"no view of {group} before row {at}")


def _droppable(log: Log, *, last: bool) -> Iterable[int]:
    """Deliveries, the last of their view or not, of a message that another of the same company also has."""
    ends = _last_in_view(log)
    for at in log.deliveries():
        if (at in ends) == last and not log.crashed(process_of(log.rows[at])) and _shared_with_the_living(log, at):
            yield at


def drop(log: Log, rng: random.Random, places: Iterable[int]) -> pa.Table | None:
    at = choice(rng, places)
    if at is None:
        return None
    keep = np.ones(len(log.rows), np.bool_)
    keep[at] = False
    return renumbered(log.table.filter(pa.array(keep)))


def _last_in_view(log: Log) -> set[int]:
    """The last delivery of each process in each view of each group."""
    last = {}
    for at in log.deliveries():
        row = log.rows[at]
        last[process_of(row), row["group"], row["view"]] = at
    return set(last.values())


def _is_final(log: Log, at: int) -> bool:
    """Nothing that counts follows in that log."""
    process = process_of(log.rows[at])
    after = (row for row in log.rows[at + 1 :] if process_of(row) == process)
    return all(row["kind"] not in ("send", "deliver", "view", "discard") for row in after)


def _shared_with_the_living(log: Log, at: int) -> bool:
    """Another process that does not crash delivered it too, in the same view."""
    row = log.rows[at]
    others = log.deliverers[mid(row)] - {process_of(row)}
    return any(
        not log.crashed(other) and log.rows[log.delivered_at[other, mid(row)]]["view"] == row["view"]
        for other in others
    )


def choice(rng: random.Random, places: Iterable[T]) -> T | None:
    found = list(places)
    return rng.choice(found) if found else None


def insert(table: pa.Table, at: int, row: pa.Table) -> pa.Table:
    """The row after the one at that position."""
    return renumbered(pa.concat_tables([table.slice(0, at + 1), row, table.slice(at + 1)]))


def renumbered(table: pa.Table) -> pa.Table:
    """`index` counts again from 0 in each log; the rows are already in order."""
    keys = list(zip(table["process"].to_pylist(), table["incarnation"].to_pylist(), strict=True))
    begins = {key: at for at, key in reversed(list(enumerate(keys)))}
    index: npt.NDArray[np.int64] = np.arange(len(keys)) - np.array([begins[key] for key in keys])
    return with_column(table, "index", index)


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    changed = table.set_column(at, field, pa.array(values, field.type))
    # The typed columns repeat what `detail` says.
    return with_typed(changed.drop_columns(TYPED)) if name == "detail" else changed


def ids(*names: str) -> frozenset[str]:
    return frozenset(names)


_OF_A_LOSS: Final = ids("D9", "S4", "F3", "L2", "L3", "L4")
"""Properties that a missing delivery may break too."""

MUTATIONS: Final = (
    Mutation(
        "swap two deliveries of one sender",
        swap_one_sender,
        (ids("O1"), ids("O2"), ids("O6"), ids("O8")),
        ids("O3", "O5", "O5x"),
    ),
    Mutation(
        "swap two deliveries of two senders",
        _swap_two_senders,
        (ids("O6"), ids("O8")),
        ids("O1", "O3", "O5", "O5x"),
    ),
    Mutation(
        "swap two deliveries of two senders in a shared view",
        swap_in_one_group,
        (ids("O5"), ids("O6"), ids("O8")),
        ids("O3"),
    ),
    Mutation(
        "swap cause and effect",
        swap_cause_and_effect,
        (ids("O3", "O1"), ids("O6"), ids("O8")),
        ids("O5", "O5x"),
    ),
    Mutation("drop a delivery in the middle", drop_in_the_middle, (ids("D8"), ids("O2")), _OF_A_LOSS | ids("O4")),
    Mutation("drop the last delivery of a view", _drop_the_last, (ids("D8"),), _OF_A_LOSS | ids("O4")),
    Mutation("drop a cause", _drop_a_cause, (ids("O4"),), _OF_A_LOSS | ids("D8")),
    Mutation("drop the last delivery before a crash", drop_before_crash, ()),
    Mutation("deliver twice", deliver_twice, (ids("D2"),)),
    Mutation("deliver an unsent message", deliver_forged, (ids("D1"),), ids("D8")),
    Mutation("flip a bit of a digest", flip_digest, (ids("D1"),)),
)
"""The faults of docs/spec/properties.md 9 that the checkers of today must catch."""

GROUP_MUTATIONS: Final = (
    Mutation(
        "swap two deliveries of two senders in shared views of two groups",
        swap_in_two_groups,
        (ids("O5x"), ids("O6"), ids("O8")),
        ids("O3"),
    ),
)
"""Those that need overlapping groups, which not every trace has."""

CAUSAL_MUTATIONS: Final = (
    Mutation("swap two deliveries of one sender", swap_one_sender, (ids("O1"), ids("O2"), ids("O3"))),
    Mutation("swap cause and effect", swap_cause_and_effect, (ids("O3"),)),
    Mutation("drop a delivery in the middle", drop_in_the_middle, (ids("D8"), ids("O2")), _OF_A_LOSS | ids("O4")),
    Mutation("drop the last delivery of a view", _drop_the_last, (ids("D8"),), _OF_A_LOSS | ids("O4")),
    Mutation("drop a cause", _drop_a_cause, (ids("O4"),), _OF_A_LOSS | ids("D8")),
    Mutation("drop the last delivery before a crash", drop_before_crash, ()),
)
"""Those that speak of causal order too; two concurrent messages may be delivered either way round."""
