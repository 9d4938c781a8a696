"""InterGroup processes on a network that loses, repeats and reorders: a minimal one, for tests of the core.

Tests of senders that change use `tests/support/intergroup_world.py`.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from antiphon.core.effects import (
    ClockAhead,
    Deliver,
    Discard,
    Effect,
    Frame,
    Gauge,
    InstallView,
    Missing,
    Reset,
    Scope,
    Transmit,
    Unavailable,
)
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings, Service
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP = GroupId("g")
MS = 1_000_000


@dataclass(frozen=True)
class LinkFaults:
    loss: float = 0.0
    duplicate: float = 0.0
    latency: tuple[int, int] = (5 * MS, 5 * MS)


class Cluster:
    """One group: senders s1 … sn, and receivers of any service."""

    def __init__(
        self,
        senders: int,
        receivers: Mapping[str, Service] | None = None,
        *,
        link_faults: LinkFaults = LinkFaults(),  # noqa: B008
        settings: InterGroupSettings | None = None,
        seed: int = 1,
        services: Mapping[str, Service] | None = None,
        absent: frozenset[str] = frozenset(),
        skew: Mapping[str, int] | None = None,
    ) -> None:
        self.random, self._link_faults = random.Random(seed), link_faults
        names = [ProcessId(f"s{number}") for number in range(1, senders + 1)]
        view = first_view(GROUP, frozenset(names))
        settings = replace(settings or InterGroupSettings(), tracing=True, distance=lambda _: link_faults.latency[1])
        plans: dict[ProcessId, InterGroupPlan] = {
            name: InterGroupPlan(view, (services or {}).get(name, "total"), sends=True) for name in names
        }
        for name, service in (receivers or {}).items():
            plans[ProcessId(name)] = InterGroupPlan(view, service, present=name not in absent)
        self.cores = {
            name: InterGroupProcess(name, {GROUP: plan}, settings, random.Random(f"{seed}/{name}").random)
            for name, plan in plans.items()
        }
        self._skew = skew or {}
        self.now = 0
        self._order = count()
        self._events: list[tuple[int, int, ProcessId, Frame | None]] = []
        self._armed: dict[ProcessId, int] = {}
        self.cut: set[ProcessId] = set()
        """Processes that are cut off in both directions."""
        self.cut_links: set[tuple[ProcessId, ProcessId]] = set()
        """Directed links on which nothing arrives."""
        self.delivered: dict[ProcessId, list[tuple[ProcessId, bytes]]] = defaultdict(list)
        self.views: dict[ProcessId, list[View]] = defaultdict(list)
        self.discarded: dict[ProcessId, dict[ProcessId, int]] = defaultdict(dict)
        self.said: dict[str, int] = defaultdict(int)
        self.transmitted: list[tuple[int, Frame]] = []
        """The frames transmitted, each with its time."""
        self.took: list[int] = []
        self.stalled: set[ProcessId] = set()
        """Processes with applications that consume nothing."""
        self.missed: dict[ProcessId, list[Missing]] = defaultdict(list)
        self.gauges: dict[ProcessId, list[Gauge]] = defaultdict(list)
        self.notices: dict[str, list[ClockAhead | Reset | Unavailable]] = defaultdict(list)
        self.wants = True
        """True if applications request missing messages."""
        self._handed: dict[ProcessId, int] = defaultdict(int)
        self._sent_at: dict[bytes, int] = {}
        self._labels: dict[ProcessId, int] = defaultdict(int)
        for name in self.cores:
            self._settle(name)

    def clock(self, process: ProcessId) -> int:
        return self.now + self._skew.get(process, 0)

    def send(self, sender: str, name: str = "") -> bytes:
        process = ProcessId(sender)
        payload = f"{process}:{self._labels[process]}".encode()
        self.cores[process].send(GROUP, payload, self.clock(process), self._labels[process], name.encode())
        self._labels[process] += 1
        self._sent_at[payload] = self.now
        self._settle(process)
        return payload

    def ask(self, name: str, effect: Missing) -> None:
        self.cores[ProcessId(name)].request(effect, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def hand(self, name: str, frame: Frame) -> None:
        self.cores[ProcessId(name)].receive(frame, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def join(self, name: str) -> None:
        self.cores[ProcessId(name)].join(GROUP, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def leave(self, name: str) -> None:
        self.cores[ProcessId(name)].leave(GROUP, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def promote(self, name: str) -> None:
        self.cores[ProcessId(name)].promote(GROUP, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def demote(self, name: str) -> None:
        self.cores[ProcessId(name)].demote(GROUP, self.clock(ProcessId(name)))
        self._settle(ProcessId(name))

    def members(self, name: str) -> list[tuple[ProcessId, ...]]:
        """The members of each view that the process has installed."""
        return [view.members for view in self.views[ProcessId(name)]]

    def run(self, ms: float) -> None:
        end = self.now + int(ms * MS)
        while self._events and self._events[0][0] <= end:
            self.now, _, name, frame = heappop(self._events)
            core, clock = self.cores[name], self.clock(name)
            if frame is not None:
                if name in self.cut or frame.sender in self.cut or (frame.sender, name) in self.cut_links:
                    continue
                core.receive(frame, clock)
            elif self._armed.get(name) == self.now:
                del self._armed[name]
                core.tick(clock)
            else:
                continue
            self._settle(name)
        self.now = end

    def run_until(self, happened: Callable[[], bool], within_ms: int = 10_000) -> None:
        """Run, millisecond by millisecond, until that is so."""
        end = self.now + within_ms * MS
        while not happened():
            assert self.now < end, f"it has not happened within {within_ms:,} ms"
            self.run(1)

    def payloads(self, name: str) -> list[bytes]:
        return [payload for _, payload in self.delivered[ProcessId(name)]]

    def resume(self, name: str) -> None:
        self.stalled.discard(ProcessId(name))
        self._take(ProcessId(name))
        self._settle(ProcessId(name))

    def _take(self, name: ProcessId) -> None:
        if name not in self.stalled and self._handed[name]:
            self.cores[name].consumed(GROUP, self._handed[name], self.clock(name))

    def _settle(self, name: ProcessId) -> None:
        core = self.cores[name]
        while effects := core.drain(self.clock(name)):
            self._carry_out(name, effects)
            self._take(name)
        self._arm(name)

    def _carry_out(self, name: ProcessId, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                self._transmit(name, effect)
            elif isinstance(effect, Deliver):
                self._handed[name] += 1
                for payload in effect.frame.payloads:
                    self.delivered[name].append((effect.frame.sender, payload))
                    if payload in self._sent_at:
                        self.took.append(self.now - self._sent_at[payload])
            elif isinstance(effect, Missing):
                self.missed[name].append(effect)
                if self.wants and not effect.gone:
                    self.cores[name].request(effect, self.clock(name))
            elif isinstance(effect, Gauge):
                self.gauges[name].append(effect)
            elif isinstance(effect, ClockAhead | Reset | Unavailable):
                self.notices[name].append(effect)
            elif isinstance(effect, InstallView):
                self.views[name].append(effect.view)
            elif isinstance(effect, Discard):
                self.discarded[name].update(effect.upto)

    def _arm(self, name: ProcessId) -> None:
        deadline = self.cores[name].deadline
        if deadline is not None:
            when = deadline - self._skew.get(name, 0)
            assert when > self.now, f"{name} wants to be woken in the past"
            if self._armed.get(name) != when:
                self._armed[name] = when
                heappush(self._events, (when, next(self._order), name, None))
        else:
            self._armed.pop(name, None)

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        self.said[effect.frame.kind] += 1
        self.transmitted.append((self.now, effect.frame))
        others = [name for name in self.cores if name != sender] if effect.to is Scope.GROUP else [effect.to]
        for other in others:
            assert isinstance(other, str)
            if other not in self.cores:
                continue  # a test has made up a process
            faults, draw = self._link_faults, self.random.random
            copies = (draw() >= faults.loss) + (draw() < faults.duplicate)
            for _ in range(copies):
                arrives = self.now + self.random.randint(*faults.latency)
                heappush(self._events, (arrives, next(self._order), ProcessId(other), effect.frame))
