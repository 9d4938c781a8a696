"""InterGroup processes on a network in virtual time, for benchmarks with up to a thousand receivers.

It runs the real cores and carries frames without encoding them. It keeps no trace: the simulator writes a row for each
frame at each receiver, which would be millions. The same seed gives the same run.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from antiphon.core.effects import Deliver, Effect, Frame, InstallView, Scope, Transmit
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP: Final = GroupId("g")
MS: Final = 1_000_000
_START: Final = 1_000 * MS
"""The clock at the start: a stamp of 0 is before everything."""


class Seen(NamedTuple):
    """A frame that was transmitted, or that arrived."""

    at: int
    kind: str
    sender: ProcessId


class InterGroupNetwork:
    """Senders s1 to sn in a configured view, and receivers r1 to rn in group timestamp order, which join."""

    def __init__(
        self,
        senders: int,
        receivers: int,
        *,
        seed: int,
        settings: InterGroupSettings,
        latency_ms: tuple[int, int] = (1, 3),
        loss: float = 0.0,
        joining_ms: float = 1_000,
    ) -> None:
        """`joining_ms`: the receivers join at random times within this time."""
        self._chance = random.Random(f"network {seed}")
        self._seed, self._settings, self._loss = seed, settings, loss
        self._latency = latency_ms[0] * MS, latency_ms[1] * MS
        self.senders = [ProcessId(f"s{number:02d}") for number in range(1, senders + 1)]
        self.receivers = [ProcessId(f"r{number:04d}") for number in range(1, receivers + 1)]
        self._view = first_view(GROUP, frozenset(self.senders))
        self.now = _START
        self._order = count()
        self._events: list[tuple[int, int, ProcessId, Frame | Callable[[], None] | None]] = []
        self._armed: dict[ProcessId, int] = {}
        self._handed: dict[ProcessId, int] = defaultdict(int)
        self._loaded: set[ProcessId] = set()
        self._side: dict[ProcessId, int] = {}
        """By process, its side of a partition."""
        self.live: dict[ProcessId, InterGroupProcess] = {}
        self.transmitted: list[Seen] = []
        self.arrived: list[Seen] = []
        """The frames that arrived at the first sender, the holder whose load is measured."""
        self.delivered: dict[ProcessId, list[int]] = defaultdict(list)
        """By process, the times of its deliveries."""
        self.views: dict[ProcessId, list[tuple[int, View]]] = defaultdict(list)
        for sender in self.senders:
            self._start(sender, sends=True)
        for receiver in self.receivers:
            self.at(self._chance.random() * joining_ms, lambda each=receiver: self._join(each))  # type: ignore[misc]

    def _start(self, process: ProcessId, *, sends: bool) -> None:
        plan = InterGroupPlan(self._view, "total", None, present=sends, sends=sends)
        draw = random.Random(f"{process} {self._seed}").random
        self.live[process] = InterGroupProcess(process, {GROUP: plan}, self._settings, draw)
        self._settle(process)

    def _join(self, process: ProcessId) -> None:
        self._start(process, sends=False)
        self.live[process].join(GROUP, self.now)
        self._settle(process)

    # What happens

    def at(self, ms: float, action: Callable[[], None]) -> None:
        """Do this in some milliseconds."""
        heappush(self._events, (self.now + int(ms * MS), next(self._order), ProcessId(""), action))

    def load(self, processes: Iterable[ProcessId], every_ms: float) -> None:
        """From now on, each of these sends a message in each interval, at a phase of its own."""
        for process in processes:
            self._loaded.add(process)
            self.at(self._chance.random() * every_ms, lambda each=process: self._send(each, every_ms))  # type: ignore[misc]

    def _send(self, process: ProcessId, every_ms: float) -> None:
        if process in self.live and process in self._loaded:
            self.live[process].send(GROUP, b"load", self.now)
            self._settle(process)
            self.at(every_ms, lambda: self._send(process, every_ms))

    def unload(self, process: ProcessId) -> None:
        """Its application sends no more."""
        self._loaded.discard(process)

    def crash(self, process: ProcessId) -> None:
        del self.live[process]

    def promote(self, process: ProcessId) -> None:
        self.live[process].promote(GROUP, self.now)
        self._settle(process)

    def demote(self, process: ProcessId) -> None:
        self.live[process].demote(GROUP, self.now)
        self._settle(process)

    def part(self, *sides: Iterable[ProcessId]) -> None:
        """Nothing passes between these sides; without sides, everything passes again."""
        self._side = {process: number for number, side in enumerate(sides) for process in side}

    def state(self, process: ProcessId) -> State:
        return self.live[process].standing(GROUP).state

    def all_receive(self) -> bool:
        """True if every receiver has joined."""
        return all(each in self.live and self.state(each) is State.RECEIVER for each in self.receivers)

    # Time

    def run(self, ms: float) -> None:
        end, events, live, armed = self.now + int(ms * MS), self._events, self.live, self._armed
        holder = self.senders[0]
        while events and events[0][0] <= end:
            self.now, _, process, what = heappop(events)
            if callable(what):
                what()
                continue
            core = live.get(process)
            if core is None:
                continue
            if what is not None:
                if process == holder:
                    self.arrived.append(Seen(self.now, what.kind, what.sender))
                core.receive(what, self.now)
            elif armed.get(process) == self.now:
                del armed[process]
                core.tick(self.now)
            else:
                continue
            self._settle(process)
        self.now = end

    def _settle(self, process: ProcessId) -> None:
        core = self.live[process]
        while effects := core.drain(self.now):
            handed = self._handed[process]
            for effect in effects:
                self._carry_out(process, effect)
            if self._handed[process] == handed:
                break
            core.consumed(GROUP, self._handed[process], self.now)
        deadline = core.deadline
        if deadline is not None and self._armed.get(process) != deadline:
            self._armed[process] = deadline
            heappush(self._events, (deadline, next(self._order), process, None))

    def _carry_out(self, process: ProcessId, effect: Effect) -> None:
        if isinstance(effect, Transmit):
            self.transmitted.append(Seen(self.now, effect.frame.kind, process))
            self._transmit(process, effect)
        elif isinstance(effect, Deliver):
            self._handed[process] += 1
            self.delivered[process].append(self.now)
        elif isinstance(effect, InstallView):
            self.views[process].append((self.now, effect.view))

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        draw, (low, high) = self._chance.random, self._latency
        to, side = effect.to, self._side.get(sender)
        for process in self.live if to is Scope.GROUP else (to,):
            assert isinstance(process, str)
            parted = self._side and self._side.get(process) != side
            if process != sender and not parted and not (self._loss and draw() < self._loss):
                arrives = self.now + low + int(draw() * (high - low))
                heappush(self._events, (arrives, next(self._order), process, effect.frame))
