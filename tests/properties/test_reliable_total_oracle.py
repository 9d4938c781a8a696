"""O7 against its definition: all orders of the messages are tried, and one must be kept without a gap."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Mid, Trace, verdicts

MEMBERS = ["p1", "p2", "p3"]
GROUPS: dict[str, Sequence[str]] = {"a": MEMBERS, "b": MEMBERS[:2]}
TRACES = 240


def wild_trace(seed: int) -> pa.Table:
    """Few messages, delivered in order with gaps or in any order, in views that some enter early and some late."""
    rng = random.Random(seed)
    trace = Trace(GROUPS, protocol="classic", service="total").begin()
    ordered = rng.random() < 0.6
    sent = [trace.send(rng.choice(GROUPS[group]), group) for group in GROUPS for _ in range(rng.randint(1, 5))]
    for process in MEMBERS:
        mids = [mid for mid in sent if process in GROUPS[mid.group] and rng.random() < 0.8]
        if not ordered:
            rng.shuffle(mids)
        for mid in mids:
            if rng.random() < 0.1 and trace.views[process, mid.group] == "v0":
                trace.view(process, mid.group, "v1", GROUPS[mid.group])
            clock = {"clock": 7} if rng.random() < 0.02 else {}
            trace.deliver(process, mid, **clock)
            if rng.random() < 0.03:
                trace.deliver(process, Mid(mid.group, mid.sender, 99, 0))
        if rng.random() < 0.1:
            trace.crash(process)
    return trace.end(quiet=False)


class Naive:
    """One group, or several as one: which process delivered which sent message in which view."""

    def __init__(self, events: pa.Table, *groups: str) -> None:
        rows = sorted(events.to_pylist(), key=lambda row: (row["process"], row["index"]))
        crashed = {row["process"] for row in rows if row["kind"] == "crash"}
        sent = {mid(row) for row in rows if row["kind"] == "send"}
        self.logs: dict[str, list[tuple[str, Any]]] = {member: [] for member in MEMBERS}
        self.clock: dict[Any, int] = {}
        self.proper = True
        for row in rows:
            known = mid(row) in sent or row["sender"] in crashed
            seen = [each for _, each in self.logs.get(row["process"], ())]
            if row["kind"] == "deliver" and row["group"] in groups and known and mid(row) not in seen:
                self.logs[row["process"]].append((row["view"], mid(row)))
                self.proper &= self.clock.setdefault(mid(row), row["clock"]) == row["clock"]
        self.messages = sorted({each for log in self.logs.values() for _, each in log})

    def keeps(self, order: Sequence[Any]) -> bool:
        """O6."""
        return all(
            order.index(one) < order.index(other)
            for log in self.logs.values()
            for (_, one), (_, other) in pairwise(log)
        )

    def acyclic(self) -> bool:
        """True if some order is kept: remove messages that no process has behind another, until none is left."""
        left = {*self.messages}
        while left:
            logs = [[each for _, each in log if each in left] for log in self.logs.values()]
            first = [each for each in left if all(each not in log[1:] for log in logs)]
            if not first:
                return False
            left -= {*first}
        return True

    def gaps(self, order: Sequence[Any]) -> set[tuple[str, str, Any]]:
        """O7: which process left out which message, in which view."""
        return {
            (process, view, message)
            for process, log in self.logs.items()
            for view, later in log
            for message in self.anybodys(view)
            if order.index(message) < order.index(later) and (view, message) not in log
        }

    def anybodys(self, view: str) -> set[Any]:
        return {message for log in self.logs.values() for here, message in log if here == view}

    def orders(self) -> Iterable[Sequence[Any]]:
        return filter(self.keeps, permutations(self.messages))

    def stamped(self) -> Sequence[Any] | None:
        """The order by stamp, if it is one."""
        order = sorted(self.messages, key=lambda each: (self.clock[each], each[1], each[2]))
        return order if self.proper and self.keeps(order) else None


def mid(row: dict[str, Any]) -> Any:
    return row["group"], row["sender"], row["number"]


@pytest.mark.parametrize("block", range(4))
def test_the_checker_agrees_with_the_definition(block: int) -> None:
    for seed in range(block * TRACES // 4, (block + 1) * TRACES // 4):
        events = wild_trace(seed)
        found = verdicts(events, "O7")
        both = Naive(events, *GROUPS)
        ordered = both.acyclic()
        assert ordered or found["O7", "a"].violations + found["O7", "b"].violations > 0, seed
        for group in GROUPS:
            naive, told = Naive(events, group), found["O7", group]
            orders = list(naive.orders())
            assert told.opportunities == opportunities(events, group), (seed, group)
            if not orders:
                assert told.violations > 0, (seed, group)
            if not ordered:
                continue
            assert bool(told.violations) == all(naive.gaps(order) for order in orders), (seed, group)
            stamped = naive.stamped()
            if stamped is not None and both.stamped() is not None:
                assert told.violations == len(naive.gaps(stamped)), (seed, group)


def opportunities(events: pa.Table, group: str) -> int:
    """First deliveries in a view that are not the first of their process there."""
    rows = [row for row in events.to_pylist() if row["kind"] == "deliver" and row["group"] == group]
    rows.sort(key=lambda row: row["index"])
    first = {(row["process"], mid(row)): (row["process"], row["view"]) for row in reversed(rows)}
    places = Counter(first.values())
    return sum(count - 1 for count in places.values())


def test_wild_traces_are_of_every_sort() -> None:
    naive = [Naive(wild_trace(seed), "a") for seed in range(100)]
    assert sum(not any(run.orders()) for run in naive) > 5
    assert sum(any(run.orders()) and run.stamped() is None for run in naive) > 5
    certified = [run for run in naive if run.stamped() is not None]
    assert sum(bool(run.gaps(run.stamped() or ())) for run in certified) > 20
    assert sum(not run.gaps(run.stamped() or ()) for run in certified) > 5
