"""Random traces without any order, and naive checkers that compare every pair."""

import random
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa

from tests.support.traces.handmade import Mid, Trace

Event = tuple[str, Any, str]
"""Kind, mid, process."""


def wild_trace(rng: random.Random, **settings: Any) -> pa.Table:
    """Members of two groups deliver random messages: out of order, twice, never, sometimes before they are sent."""
    members = ["p1", "p2", "p3", "p4"]
    trace = Trace({"a": members[:3], "b": members[1:], "c": [members[0], members[3]]}, **settings).begin()
    sent: list[Mid] = []
    for _ in range(rng.randint(10, 50)):
        process = rng.choice(members)
        group = rng.choice(trace.groups_of(process))
        readable = [mid for mid in sent if mid.group in trace.groups_of(process)]
        if rng.random() < 0.3:
            sent.append(trace.send(process, group))
        elif rng.random() < 0.03:
            sender = rng.choice(trace.groups[group])
            trace.deliver(process, Mid(group, sender, trace.numbers.get((group, sender), 0), 0))
        elif readable:
            trace.deliver(process, rng.choice(readable))
    return trace.end()


class Naive:
    """Happened-before as reachability, order as pairs."""

    def __init__(self, events: pa.Table) -> None:
        rows = [row for row in events.to_pylist() if row["kind"] in ("send", "deliver")]
        self.logs: dict[str, list[Event]] = {}
        for row in sorted(rows, key=lambda row: (row["process"], row["index"])):
            event = (row["kind"], (row["group"], row["sender"], row["number"]), row["process"])
            log = self.logs.setdefault(row["process"], [])
            if event not in log:
                log.append(event)
        self.sent = {
            mid: (kind, mid, process) for log in self.logs.values() for kind, mid, process in log if kind == "send"
        }
        self.after: dict[Event, set[Event]] = {event: set() for log in self.logs.values() for event in log}
        for log in self.logs.values():
            for before, then in pairwise(log):
                self.after[before].add(then)
        for event in self.after:
            if event[0] == "deliver" and event[1] in self.sent:
                self.after[self.sent[event[1]]].add(event)
        self.later = {event: self._reachable(event) for event in self.after}

    def _reachable(self, event: Event) -> set[Event]:
        found: set[Event] = set()
        left = [event]
        while left:
            for then in self.after[left.pop()] - found:
                found.add(then)
                left.append(then)
        return found

    def delivered(self, process: str) -> list[Any]:
        return [mid for kind, mid, _ in self.logs.get(process, ()) if kind == "deliver" and mid in self.sent]

    def circular(self) -> bool:
        return any(event in later for event, later in self.later.items())

    def causes(self, cause: Any, effect: Any) -> bool:
        return self.sent[effect] in self.later[self.sent[cause]]

    def late(self) -> int:
        """O3: deliveries that follow one of their consequences."""
        return sum(
            any(self.causes(mid, before) for before in log[:at])
            for log in map(self.delivered, self.logs)
            for at, mid in enumerate(log)
        )

    def dependent(self) -> int:
        """Opportunities of O3."""
        return sum(
            any(self.causes(other, mid) and other[1] != mid[1] for other in log)
            for log in map(self.delivered, self.logs)
            for mid in log
        )

    def cyclic_order(self) -> bool:
        """O6: some message is before itself."""
        before = {mid: set[Any]() for mid in self.sent}
        for log in map(self.delivered, self.logs):
            for first, second in combinations(log, 2):
                before[first].add(second)
        for middle, later in before.items():
            for reached in before.values():
                if middle in reached:
                    reached.update(later)
        return any(mid in later for mid, later in before.items())
