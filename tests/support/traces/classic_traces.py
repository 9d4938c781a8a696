"""Good runs of the lecture notes' multicasts, by a reference that sees everything.

One or two groups, each with an order of its own; sometimes a sender outside; some runs lose a member, with its
last messages that no other process has. Each process installs views at its own time; views cut nothing off.
"""

import random
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from tests.support.traces.handmade import Mid, Trace

SERVICES = ("reliable", "fifo", "causal", "total")


@cache
def good_classic_trace(seed: int, service: str) -> pa.Table:
    """A run of the reference: right by construction."""
    return _Classic(random.Random(f"{service} {seed}"), service).run()


class _Classic:
    def __init__(self, rng: random.Random, service: str) -> None:
        self._rng, self._service = rng, service
        members = [f"p{number}" for number in range(1, rng.randint(4, 6))]
        groups: dict[str, Sequence[str]] = {"orders": members}
        if rng.random() < 0.4:
            groups["audit"] = members[1:]
        outside = {"orders": ["x"]} if rng.random() < 0.5 else {}
        self._trace = Trace(groups, protocol="classic", service=service, outside=outside).begin()
        self._live = list(members)
        self._delivered: dict[str, list[Mid]] = {member: [] for member in members}
        self._past: dict[Mid, frozenset[Mid]] = {}
        self._sequence: dict[str, list[Mid]] = {group: [] for group in groups}
        """The committed messages of the total order, with their places."""
        self._lost: set[Mid] = set()
        self._views_due: list[tuple[str, str, list[str]]] = []
        self._crash_at = rng.randint(10, 50) if rng.random() < 0.5 else None

    def run(self) -> pa.Table:
        for step in range(self._rng.randint(40, 90)):
            if step == self._crash_at:
                self._crash(self._rng.choice(self._live))
            if self._rng.random() < 0.3:
                self._send(self._rng.choice([*self._live, *self._trace.outside.get("orders", ())]))
            elif self._views_due and self._rng.random() < 0.2:
                self._install(self._views_due.pop(self._rng.randrange(len(self._views_due))))
            else:
                self._deliver(self._rng.choice(self._live))
            if self._rng.random() < 0.3:
                self._commit()
        self._drain()
        return self._trace.end(settled=False)

    def _send(self, process: str) -> None:
        group = self._rng.choice(self._trace.groups_of(process))
        mid = self._trace.send(process, group)
        own = [other for other in self._delivered.get(process, ()) if other.group == group]
        sent = [other for other in self._past if (other.group, other.sender) == (group, process)]
        self._past[mid] = frozenset([*own, *sent]).union(*(self._past[other] for other in (*own, *sent)))
        if self._service != "total" and process in self._delivered:
            self._take(process, mid)

    def _commit(self) -> None:
        """Phase two of some message: now it has a place in the order of its group."""
        committed = {mid for mids in self._sequence.values() for mid in mids}
        pending = [mid for mid in self._past if mid not in committed and mid not in self._lost]
        if self._service == "total" and pending:
            mid = self._rng.choice(pending)
            self._sequence[mid.group].append(mid)

    def _ready(self, process: str) -> list[Mid]:
        """The messages that the process may deliver next in this service."""
        have, groups = {*self._delivered[process]}, self._trace.groups_of(process)
        open_to = [mid for mid in self._past if mid.group in groups and mid not in have and mid not in self._lost]
        if self._service == "total":
            nexts = [[mid for mid in self._sequence[group] if mid not in have][:1] for group in groups]
            return [mid for first in nexts for mid in first]
        if self._service == "causal":
            return [mid for mid in open_to if self._past[mid] <= have]
        if self._service == "fifo":
            return [
                mid for mid in open_to if mid.number == 0 or mid._replace(number=mid.number - 1)[:3] in _names(have)
            ]
        return open_to

    def _deliver(self, process: str) -> bool:
        ready = self._ready(process)
        if ready:
            self._take(process, self._rng.choice(ready))
        return bool(ready)

    def _take(self, process: str, mid: Mid) -> None:
        if (process, mid) not in self._trace.had:
            self._trace.receive(process, mid)
        stamp = {}
        if self._service == "total":
            place = self._sequence[mid.group].index(mid)
            stamp = {"clock": place // 3, "orderer": f"p{place % 3 + 1}"}
        self._trace.deliver(process, mid, **stamp)
        self._delivered[process].append(mid)

    def _crash(self, victim: str) -> None:
        self._live.remove(victim)
        self._trace.crash(victim)
        committed = {mid for mids in self._sequence.values() for mid in mids}
        spread = committed.union(*(self._delivered[process] for process in self._live))
        for group in self._trace.groups_of(victim):
            own = [mid for mid in self._past if (mid.group, mid.sender) == (group, victim)]
            known = [at for at, mid in enumerate(own) if mid in spread]
            if self._rng.random() < 0.7:
                self._lost.update(own[max(known, default=-1) + 1 :])
            left = [member for member in self._trace.groups[group] if member != victim]
            installers = [*left, *self._trace.outside.get(group, ())]
            self._views_due += [(process, group, left) for process in installers]

    def _install(self, due: tuple[str, str, list[str]]) -> None:
        process, group, members = due
        self._trace.view(process, group, "v1", members)

    def _drain(self) -> None:
        while self._views_due:
            self._install(self._views_due.pop())
        behind = list(self._live)
        while behind:
            self._commit()
            process = self._rng.choice(behind)
            committed = {mid for mids in self._sequence.values() for mid in mids}
            waiting = self._service == "total" and len(committed | self._lost) < len(self._past)
            if not self._deliver(process) and not waiting:
                behind.remove(process)


def _names(mids: set[Mid]) -> set[tuple[str, str, int]]:
    return {mid[:3] for mid in mids}
