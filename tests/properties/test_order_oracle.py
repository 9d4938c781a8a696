"""The checkers of order within scopes against naive ones, on random traces with changing views, overlapping groups."""

import random
from collections.abc import Sequence
from functools import cache

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Mid, Trace, verdicts
from tests.support.traces.scoped_oracle import MEMBERS, Scoped

GROUPS: dict[str, Sequence[str]] = {"a": MEMBERS[:3], "b": MEMBERS, "c": [MEMBERS[0], MEMBERS[3]]}
TRACES = 160


class Wild:
    """Members install random views, leave, and deliver sent messages, mostly in order."""

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
            if self.rng.random() < 0.1:  # as if the message had never arrived
                self.done[process].update(ready[:1])


@cache
def wild(seed: int) -> tuple[pa.Table, Scoped]:
    events = Wild(seed).run()
    return events, Scoped(events)


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
