"""M5, M6e, M7, M8 and L1 against brute force: the definitions of properties.md, applied to random small traces."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise, permutations

from tests.support.traces.handmade import Trace, verdict

PROCESSES = ("p1", "p2", "p3", "p4")


@dataclass
class Run:
    """A random run, and a record of its events."""

    trace: Trace
    views: dict[str, list[str]] = field(default_factory=dict)
    transitional: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    members: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    suspected: set[frozenset[str]] = field(default_factory=set)
    components: list[list[str]] = field(default_factory=list)

    def together(self, one: str, other: str) -> bool:
        return any({one, other} <= set(component) for component in self.components)

    def stable(self) -> list[str]:
        return [process for process in PROCESSES if self.together(process, process)]

    def last(self, process: str) -> tuple[str, frozenset[str]]:
        view = self.views[process][-1]
        return view, self.members[process, view]

    def passages(self) -> Iterable[tuple[str, str, str]]:
        for process, views in self.views.items():
            for before, after in pairwise(views):
                yield process, before, after


def random_run(seed: int) -> Run:
    rng = random.Random(seed)
    run = Run(Trace({"orders": PROCESSES}).begin())
    run.trace.fault("partition")
    memberships = {f"v{number}": rng.sample(PROCESSES, rng.randint(1, 4)) for number in range(1, 4)}
    for process in PROCESSES:
        run.views[process] = ["v0"]
        run.members[process, "v0"] = frozenset(PROCESSES)
        for view in sorted(rng.sample([*memberships], rng.choice((0, 1, 1, 2, 3)))):
            members = [*memberships[view]] if rng.random() < 0.9 else rng.sample(PROCESSES, 2)
            along = [member for member in members if rng.random() < 0.8]
            run.trace.view(process, "orders", view, members, transitional=along)
            run.views[process].append(view)
            run.members[process, view] = frozenset(members)
            run.transitional[process, view] = frozenset(along)
        for peer in PROCESSES:
            if peer != process and rng.random() < 0.2:
                run.trace.suspect(process, peer)
                run.suspected.add(frozenset((process, peer)))
        if rng.random() < 0.15:
            run.trace.crash(process)
    left = [process for process in PROCESSES if process not in run.trace.closed]
    while left:
        chosen = [left.pop(), *(left.pop() for _ in range(rng.randint(0, len(left))))]
        if rng.random() < 0.9:
            run.components.append(chosen)
    return run


def m5(run: Run) -> int:
    count = 0
    for one, other in combinations(PROCESSES, 2):
        if frozenset((one, other)) not in run.suspected:
            short, long = sorted((run.views[one], run.views[other]), key=len)
            equal_at_last = not run.together(one, other) or short == long
            count += long[: len(short)] != short or not equal_at_last
    return count


def m6e(run: Run) -> int:
    """Pairs of different last views that overlap; without a probe, as here, only pairs of one component count."""
    found = set()
    for component, processes in enumerate(run.components):
        for one, other in combinations(processes, 2):
            if run.last(one) != run.last(other) and run.last(one)[1] & run.last(other)[1]:
                found.add((component, frozenset((run.last(one), run.last(other)))))
    return len(found)


def m7(run: Run) -> set[tuple[str, str]]:
    """(q, V): q enters V from another view than a process whose previous view includes q."""
    return {
        (other, after)
        for process, before, after in run.passages()
        for other in PROCESSES
        if other in run.members[process, before] & run.members[process, after]
        and after in run.views[other]
        and run.views[other][run.views[other].index(after) - 1] != before
    }


def m8(run: Run) -> int:
    count = 0
    for process, before, after in run.passages():
        named, both = run.transitional[process, after], run.members[process, before] & run.members[process, after]
        came = {
            other
            for other, earlier, later in run.passages()
            if (earlier, later) == (before, after) and other in run.members[process, after]
        }
        installers = {other for other in PROCESSES if after in run.views[other]}
        count += not named <= both or named & installers != came
    return count


def l1(run: Run) -> set[frozenset[str]]:
    """Pairs of one component in which one has the other in its last view, but the other has a different last view."""
    return {
        frozenset((one, other))
        for one, other in permutations(run.stable(), 2)
        if run.together(one, other) and other in run.last(one)[1] and run.last(other) != run.last(one)
    }


def test_brute_force_agrees() -> None:
    seen = dict.fromkeys(("M5", "M6e", "M7", "M8", "L1"), 0)
    for seed in range(60):
        run = random_run(seed)
        events = run.trace.end(components=run.components, settled=False)
        expected = {"M5": m5(run), "M6e": m6e(run), "M7": len(m7(run)) > 0, "M8": m8(run), "L1": len(l1(run)) > 0}
        for name, count in expected.items():
            violations = verdict(events, name, "orders").violations
            # Of M7 and L1 the checker tells one for each pair of origins, or each class: few, and none if none.
            found = violations > 0 if name in ("M7", "L1") else violations
            assert found == count, (seed, name)
            seen[name] += bool(count)
    assert all(12 < count < 148 for count in seen.values()), seen
