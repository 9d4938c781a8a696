"""The checkers of order within scopes against naive ones, on random traces with changing views, overlapping groups."""

import random
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from tests.properties.test_oracle import Naive
from tests.support.traces.handmade import Mid, Trace, verdicts

MEMBERS = ["p1", "p2", "p3", "p4"]
GROUPS: dict[str, Sequence[str]] = {"a": MEMBERS[:3], "b": MEMBERS, "c": [MEMBERS[0], MEMBERS[3]]}
TRACES = 160


class Wild:
    """Members install views that come, go and come back, leave, and deliver what was sent, mostly in order."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.trace = Trace(GROUPS, service=rng.choice(["total", "total", "causal-fast"]))
        self.sent: list[Mid] = []
        self.at: dict[tuple[str, str], int] = {}
        self.done: dict[str, set[Mid]] = {process: set() for process in MEMBERS}
        self.left: set[tuple[str, str]] = set()
        self.views = {group: [self._members(group) for _ in range(rng.choice([1, 1, 2, 4]))] for group in GROUPS}

    def _members(self, group: str) -> list[str]:
        return [member for member in GROUPS[group] if self.rng.random() < 0.8] or [GROUPS[group][0]]

    def run(self) -> pa.Table:
        for process in MEMBERS:
            self.trace.start(process)
            for group in self.trace.groups_of(process):
                if self.rng.random() < 0.9:
                    self._install(process, group)
        for _ in range(self.rng.randint(20, 70)):
            self._step(self.rng.choice(MEMBERS))
        return self.trace.end(quiet=self.rng.random() < 0.8)

    def _step(self, process: str) -> None:
        group, dice = self.rng.choice(self.trace.groups_of(process)), self.rng.random()
        if dice < 0.06 or (process, group) not in self.at:
            self._install(process, group)
        elif dice < 0.07:
            self.left.add((process, group))
            self.trace.row(process, "leave", group=group)
        elif dice < 0.09:
            self.trace.row(process, "confirm", group=group, peer=self.rng.choice(MEMBERS))
        elif dice < 0.32 and (process, group) not in self.left:
            self.sent.append(self.trace.send(process, group))
        else:
            self._deliver(process)

    def _install(self, process: str, group: str) -> None:
        at = self.at.get((process, group), -1) + 1
        if at < len(self.views[group]):
            self.at[process, group] = at
            self.left.discard((process, group))
            self.trace.view(process, group, f"v{at}", self.views[group][at])

    def _deliver(self, process: str) -> None:
        here = [group for group in self.trace.groups_of(process) if (process, group) in self.at]
        ready = [mid for mid in self.sent if mid.group in here and mid not in self.done[process]]
        if ready:
            mid = ready[0] if self.rng.random() < 0.8 else self.rng.choice(ready)
            self.done[process].add(mid)
            self.trace.deliver(process, mid)
            if self.rng.random() < 0.1:  # as if it had never come
                self.done[process].update(ready[:1])


class Scoped(Naive):
    """Scopes as docs/spec/properties.md 4 words them: lists of views, walked back."""

    def __init__(self, events: pa.Table) -> None:
        super().__init__(events)
        order = [("process", "ascending"), ("index", "ascending")]
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for row in events.sort_by(order).to_pylist():
            self.rows.setdefault(row["process"], []).append(row)
        self.quiet = '"quiet": true' in self.rows["world"][-1]["detail"]
        self.fast = any(row["service"] == "causal-fast" for rows in self.rows.values() for row in rows)

    def deliveries(self, process: str) -> Iterable[tuple[int, Any]]:
        """First deliveries with their place in the log."""
        seen = set()
        for at, row in enumerate(self.rows.get(process, ())):
            if row["kind"] == "deliver" and as_key(row) not in seen:
                seen.add(as_key(row))
                yield at, as_key(row)

    def run_of_views(self, process: str, group: str, sender: str, at: int) -> list[int]:
        """Places of the views of the group, back from a moment, that all have the sender; none if it has left."""
        found: list[int] = []
        for place in range(at, -1, -1):
            row = self.rows[process][place]
            if row["group"] != group or row["kind"] not in ("view", "leave"):
                continue
            if row["kind"] == "leave" or sender not in row["members"]:
                break
            found.insert(0, place)
        return found

    def first_view(self, process: str, group: str) -> int | None:
        rows = self.rows[process]
        return next((at for at, row in enumerate(rows) if row["kind"] == "view" and row["group"] == group), None)

    def entered(self, process: str, group: str, view: str) -> int | None:
        rows = enumerate(self.rows[process])
        return next((at for at, row in rows if (row["kind"], row["group"], row["view"]) == ("view", group, view)), None)

    def first_number(self, process: str, place: int, sender: str) -> int | None:
        """What the sender had sent when it entered the view installed at that place."""
        row = self.rows[process][place]
        entered = self.entered(sender, row["group"], row["view"])
        if entered is None:
            return None
        sends = [each for each in self.rows[sender][:entered] if each["kind"] == "send"]
        return len([each for each in sends if each["group"] == row["group"]])

    def gaps(self, group: str) -> tuple[int, int]:
        """O2: violations and opportunities."""
        owed = missing = 0
        for process in MEMBERS:
            log = list(self.deliveries(process))
            for at, (place, sender, number) in log:
                views = self.run_of_views(process, place, sender, at)
                if place != group or number == 0 or not views:
                    continue
                due_from = self.first_number(process, views[0], sender)
                lower = [n for t, (g, s, n) in log if views[0] < t < at and (g, s) == (place, sender)]
                if any(n < number for n in lower) or (due_from is not None and number - 1 >= due_from):
                    owed += 1
                    missing += not any(t < at and mid == (place, sender, number - 1) for t, mid in log)
        return missing, owed

    def losses(self) -> set[tuple[str, Any]]:
        """O4: who never delivered which cause of something it delivered."""
        return {
            (process, cause)
            for process in MEMBERS
            for at, effect in self.deliveries(process)
            for cause in self.sent
            if all(cause != mid for _, mid in self.deliveries(process))
            and self.causes(cause, effect)
            and self.owes(process, cause, effect, at)
        }

    def owes(self, process: str, cause: Any, effect: Any, at: int) -> bool:
        group, sender, number = cause
        views = self.run_of_views(process, group, sender, at)
        if not views or self.excused(process, cause, effect, at):
            return False
        due_from = self.first_number(process, views[0], sender)
        if due_from is None or number < due_from:
            return False
        view = next(row["view"] for row in self.rows[sender] if row["kind"] == "send" and as_key(row) == cause)
        since = self.entered(process, group, view)
        beside = self.run_of_views(process, effect[0], effect[1], at)
        if not beside:
            return False
        return since is None or since > at or beside[0] <= since or beside[0] == self.first_view(process, effect[0])

    def excused(self, process: str, cause: Any, effect: Any, at: int) -> bool:
        confirmed = any(
            (row["kind"], row["group"], row["peer"]) == ("confirm", cause[0], cause[1])
            for row in self.rows[process][:at]
        )
        return self.fast and confirmed and cause[0] != effect[0]

    def shared(self, process: str) -> dict[Any, Any]:
        """For each message that a process delivered, the view and the next one, if it went on."""
        rows, found = self.rows[process], {}
        for at, mid in self.deliveries(process):
            views = [row["view"] for row in rows if row["kind"] == "view" and row["group"] == mid[0]]
            here = rows[at]["view"]
            following = [*views[views.index(here) + 1 :], None][0]
            members = next(
                row["members"]
                for row in rows
                if row["kind"] == "view" and row["view"] == here and row["group"] == mid[0]
            )
            left = any(row["kind"] == "leave" and row["group"] == mid[0] for row in rows)
            if following is not None or (self.quiet and process in members and not left):
                found[mid] = here, following
        return found

    def disputes(self, *, across: bool) -> set[Any]:
        """O5 and O5x: pairs of processes that disagree, for O5 by group and view."""
        found = set()
        for one, other in combinations(MEMBERS, 2):
            mine, yours = self.shared(one), self.shared(other)
            common = [mid for mid in mine if mid in yours and mine[mid] == yours[mid]]
            places = list(yours)
            for first, second in combinations(common, 2):
                apart = first[0] != second[0]
                if apart == across and places.index(first) > places.index(second):
                    found.add((one, other) if across else (one, other, first[0], mine[first]))
        return found

    def cyclic_with_causes(self) -> bool:
        """O8: deliveries and causes together put some message before itself."""
        before = {mid: {other for other in self.sent if self.causes(mid, other)} for mid in self.sent}
        for log in map(self.delivered, self.logs):
            for first, second in combinations(log, 2):
                before[first].add(second)
        for middle, later in before.items():
            for reached in before.values():
                if middle in reached:
                    reached.update(later)
        return any(mid in later for mid, later in before.items())


@cache
def wild(seed: int) -> tuple[pa.Table, Scoped]:
    events = Wild(seed).run()
    return events, Scoped(events)


def as_key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["sender"], row["number"]


@pytest.mark.parametrize("block", range(4))
def test_checkers_agree_with_naive_ones(block: int) -> None:
    for seed in range(block * TRACES // 4, (block + 1) * TRACES // 4):
        events, naive = wild(seed)
        found = verdicts(events)
        for group in GROUPS:
            if ("O2", group) in found:
                told = found["O2", group]
                assert (told.violations, told.opportunities) == naive.gaps(group), (seed, group)
        assert found["O4", None].violations == len(naive.losses()), seed
        if naive.fast:
            assert found["O6", None].outcome == "not promised", seed
            continue
        disputes = naive.disputes(across=False)
        for group in GROUPS:
            if ("O5", group) in found:
                assert found["O5", group].violations == sum(place[2] == group for place in disputes), (seed, group)
        assert found["O5x", None].violations == len(naive.disputes(across=True)), seed
        assert bool(found["O8", None].violations) == naive.cyclic_with_causes(), seed


def test_wild_traces_are_of_every_sort() -> None:
    runs = [wild(seed)[1] for seed in range(TRACES)]
    assert sum(bool(sum(run.gaps(group)[0] for group in GROUPS)) for run in runs) > 30
    assert sum(bool(run.losses()) for run in runs) > 30
    assert sum(bool(run.disputes(across=False)) for run in runs) > 20
    assert sum(bool(run.disputes(across=True)) for run in runs) > 10
    assert sum(run.cyclic_with_causes() and not run.cyclic_order() for run in runs) > 3
