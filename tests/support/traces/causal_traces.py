"""Good runs of the causal services by a reference that keeps the past of every message as a plain set.

Three groups overlap; members deliver in any order that cause allows. Some runs lose one member, some two at once, and
then messages that only the second had delivered are lost with the first: messages that depend on them wait for a view
without their sender (docs/spec/errata-newtop.md E-31).
"""

import random
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from tests.support.traces.handmade import Mid, Trace

SERVICES = ("causal-slow", "causal-fast", "causal-relative", "causal-vector")


@cache
def good_causal_trace(seed: int) -> pa.Table:
    """A run of the reference: right by construction."""
    return _Causal(random.Random(seed)).run()


class _Causal:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        members = [f"p{number}" for number in range(1, rng.randint(5, 6))]
        groups: dict[str, Sequence[str]] = {"a": members[:3], "b": members[1:], "c": [*members[:2], members[-1]]}
        self._trace = Trace(groups, service=rng.choice(SERVICES)).begin()
        self._live = list(members)
        self._past: dict[Mid, frozenset[Mid]] = {}
        self._seen: dict[str, frozenset[Mid]] = dict.fromkeys(members, frozenset())
        self._delivered: dict[str, set[Mid]] = {member: set() for member in members}
        self._lost: set[Mid] = set()
        self._crash_at = rng.randint(20, 60) if rng.random() < 0.7 else None

    def run(self) -> pa.Table:
        for step in range(self._rng.randint(60, 100)):
            if step == self._crash_at:
                self._crash()
            process = self._rng.choice(self._live)
            if self._rng.random() < 0.25:
                self._send(process)
            else:
                self._deliver(process, self._ready(process, self._lost))
        self._flush(self._lost)
        return self._trace.end()

    def _send(self, process: str) -> None:
        mid = self._trace.send(process, self._rng.choice(self._trace.groups_of(process)))
        self._past[mid] = self._seen[process]
        self._deliver(process, [mid])

    def _ready(self, process: str, skipped: set[Mid]) -> list[Mid]:
        """The messages that the process may deliver next; skipped messages are not waited for."""
        groups, have = self._trace.groups_of(process), self._delivered[process] | skipped
        return [
            mid
            for mid, past in self._past.items()
            if mid.group in groups
            and mid not in have
            and all(cause in have or cause.group not in groups for cause in past)
        ]

    def _deliver(self, process: str, ready: list[Mid]) -> None:
        if ready:
            mid = self._rng.choice(ready)
            self._trace.deliver(process, mid)
            self._delivered[process].add(mid)
            self._seen[process] |= self._past[mid] | {mid}

    def _flush(self, skipped: set[Mid], held: frozenset[Mid] = frozenset()) -> None:
        """All processes deliver all deliverable messages, except those held back."""
        behind = list(self._live)
        while behind:
            process = self._rng.choice(behind)
            ready = [mid for mid in self._ready(process, skipped) if mid not in held]
            self._deliver(process, ready)
            if not ready:
                behind.remove(process)

    def _crash(self) -> None:
        first, second = self._rng.sample(self._live, 2)
        self._send(first)
        while ready := self._ready(second, set()):
            self._deliver(second, ready)
        for _ in range(3):
            self._send(second)
        both = self._rng.random() < 0.7 and self._can_go(first, second)
        victims = [first, second] if both else [first]
        for process in victims:
            self._live.remove(process)
            self._trace.crash(process)
        self._lost = self._unseen(first)
        late = frozenset(mid for mid, past in self._past.items() if past & self._lost)
        self._flush(self._lost, late)
        for process in victims:
            self._exclude(process)
            self._flush(self._lost)

    def _can_go(self, first: str, second: str) -> bool:
        """No other process has delivered a message that depends on one that would be lost with the first."""
        others = [process for process in self._live if process not in (first, second)]
        lost = self._unseen(first, second)
        return not any(self._seen[process] & lost for process in others)

    def _unseen(self, first: str, *besides: str) -> set[Mid]:
        """The messages that the victim sent after its last message that a survivor has delivered."""
        own = [mid for mid in self._past if mid.sender == first]
        survivors = [process for process in self._live if process not in (first, *besides)]
        known = [at for at, mid in enumerate(own) if any(mid in self._delivered[process] for process in survivors)]
        return set(own[max(known, default=-1) + 1 :])

    def _exclude(self, process: str) -> None:
        for group in self._trace.groups_of(process):
            for member in self._live:
                if member in self._trace.groups[group]:
                    view, members = self._trace.views[member, group], self._trace.memberships[member, group]
                    left = [name for name in members if name != process]
                    self._trace.exclude(member, f"v{int(view[1:]) + 1}", left, group)
