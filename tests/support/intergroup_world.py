"""InterGroup processes that change between sender and receiver, on a network with every fault."""

import random
from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from antiphon.core.effects import Deliver, Effect, Frame, InstallView, Left, Reset, Scope, Transmit
from antiphon.protocols.intergroup.membership.states import Standing
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings, Service
from antiphon.types import GroupId, ProcessId, View, ViewId, first_view, process_id, split_process_id
from antiphon.wire.codec import decode, encode

GROUP = GroupId("g")
MS = 1_000_000
SUSPECT_MS = 200


class Got(NamedTuple):
    """A message as its receiver delivered it."""

    sender: ProcessId
    seq: int
    stamp: int
    epoch: ViewId
    payload: bytes


class World:
    """Some senders in a configured view, some receivers, and others that come later."""

    def __init__(
        self,
        senders: int,
        receivers: Iterable[str] = (),
        *,
        seed: int = 1,
        loss: float = 0.0,
        duplicate: float = 0.0,
        latency: tuple[int, int] = (1, 5),
        services: dict[str, Service] | None = None,
        skew: dict[str, int] | None = None,
        rules: Rules = ADOPTED,
        idle_ms: int | None = None,
        coded: bool = False,
    ) -> None:
        """`coded`: every frame travels as bytes."""
        self.random = random.Random(seed)
        self._seed, self._rules, self._coded = seed, rules, coded
        self._loss, self._duplicate, self._latency = loss, duplicate, latency
        self.senders = [ProcessId(f"s{number}") for number in range(1, senders + 1)]
        self._view = first_view(GROUP, frozenset(self.senders))
        self._services = services or {}
        self._skew = skew or {}
        self._settings = InterGroupSettings(
            keep_alive_ns=(10 * MS, 30 * MS),
            suspect_after_ns=SUSPECT_MS * MS,
            report_every_ns=10 * MS,
            hold_ns=5 * SUSPECT_MS * MS,
            distance=lambda _: latency[1] * MS,
            tracing=True,
            idle_ns=None if idle_ms is None else idle_ms * MS,
        )
        self.now = 0
        self._order = count()
        self._events: list[tuple[int, int, ProcessId, Frame | None]] = []
        self._armed: dict[ProcessId, int] = {}
        self.cores: dict[ProcessId, InterGroupProcess] = {}
        self.crashed: set[ProcessId] = set()
        self.cut: set[tuple[str, str]] = set()
        """Directed pairs of names between which nothing arrives."""
        self.log: dict[ProcessId, list[Got | View | Reset | Left]] = defaultdict(list)
        self.sent: dict[ProcessId, list[bytes]] = defaultdict(list)
        self.numbers: dict[ProcessId, list[int]] = defaultdict(list)
        """By sender, the numbers of its application messages on its stream."""
        self.causes: dict[bytes, dict[ProcessId, int]] = {}
        """By message, the last number of each sender that its sender had delivered when it left."""
        self._delivered: dict[ProcessId, dict[ProcessId, int]] = defaultdict(dict)
        self.group = GROUP
        self.kinds: dict[str, int] = defaultdict(int)
        self.requests: list[Frame] = []
        """The frames that were addressed to one process."""
        self._handed: dict[ProcessId, int] = defaultdict(int)
        self._incarnations: dict[str, int] = defaultdict(int)
        for sender in self.senders:
            self._start(sender, sends=True, present=True)
        for name in receivers:
            self._start(ProcessId(name), sends=False, present=True)

    # Processes

    def _start(self, process: ProcessId, *, sends: bool, present: bool) -> None:
        service = self._services.get(split_process_id(process)[0], "total")
        plan = InterGroupPlan(self._view, service, self._view.members, present=present, sends=sends)
        draw = random.Random(f"{self._seed}/{process}").random
        self.cores[process] = InterGroupProcess(process, {GROUP: plan}, self._settings, draw, self._rules)
        self._settle(process)

    def come(self, name: str, *, sends: bool) -> ProcessId:
        """A process starts, for the first time or again."""
        incarnation = self._incarnations[name]
        process = process_id(name, incarnation)
        if process in self.cores:
            self._incarnations[name] += 1
            process = process_id(name, self._incarnations[name])
        self._start(process, sends=sends, present=False)
        self.cores[process].join(GROUP, self.clock(process))
        self._settle(process)
        return process

    def live(self) -> list[ProcessId]:
        return [process for process in self.cores if process not in self.crashed]

    def standing(self, process: str) -> Standing:
        return self.cores[ProcessId(process)].standing(GROUP)

    def clock(self, process: ProcessId) -> int:
        return self.now + self._skew.get(split_process_id(process)[0], 0) * MS

    def send(self, process: str) -> bytes:
        at = ProcessId(process)
        payload = f"{at}:{len(self.sent[at])}".encode()
        self.cores[at].send(GROUP, payload, self.clock(at), len(self.sent[at]))
        self.sent[at].append(payload)
        self._settle(at)
        return payload

    def promote(self, process: str) -> None:
        self.cores[ProcessId(process)].promote(GROUP, self.clock(ProcessId(process)))
        self._settle(ProcessId(process))

    def demote(self, process: str) -> None:
        self.cores[ProcessId(process)].demote(GROUP, self.clock(ProcessId(process)))
        self._settle(ProcessId(process))

    def suspect(self, process: str, suspect: str) -> None:
        self.cores[ProcessId(process)].suspect(ProcessId(suspect), self.clock(ProcessId(process)))
        self._settle(ProcessId(process))

    def hand(self, process: str, *frames: Frame) -> None:
        """Frames arrive at a process at once, from anywhere."""
        at = ProcessId(process)
        for frame in frames:
            self.cores[at].receive(frame, self.clock(at))
        self._settle(at)

    def leave(self, process: str) -> None:
        self.cores[ProcessId(process)].leave(GROUP, self.clock(ProcessId(process)))
        self._settle(ProcessId(process))

    def crash(self, process: str) -> None:
        self.crashed.add(ProcessId(process))

    def split(self, *sides: Iterable[str]) -> None:
        side_of = {name: place for place, side in enumerate(sides) for name in side}
        self.cut |= {(a, b) for a in side_of for b in side_of if side_of[a] != side_of[b]}

    def heal(self) -> None:
        self.cut.clear()

    # Time

    def run(self, ms: float) -> None:
        end = self.now + int(ms * MS)
        while self._events and self._events[0][0] <= end:
            self.now, _, name, frame = heappop(self._events)
            if name in self.crashed:
                continue
            core, clock = self.cores[name], self.clock(name)
            if frame is not None:
                core.receive(frame, clock)
            elif self._armed.get(name) == self.now:
                del self._armed[name]
                core.tick(clock)
            else:
                continue
            self._settle(name)
        self.now = end

    def _settle(self, name: ProcessId) -> None:
        core = self.cores[name]
        while effects := core.drain(self.clock(name)):
            for effect in effects:
                self._carry_out(name, effect)
            if self._handed[name]:
                core.consumed(GROUP, self._handed[name], self.clock(name))
        deadline = core.deadline
        if deadline is None:
            self._armed.pop(name, None)
            return
        when = deadline - self._skew.get(split_process_id(name)[0], 0) * MS
        assert when > self.now, f"{name} wants to be woken in the past: {self.standing(name).state}"
        if self._armed.get(name) != when:
            self._armed[name] = when
            heappush(self._events, (when, next(self._order), name, None))

    def _carry_out(self, name: ProcessId, effect: Effect) -> None:
        if isinstance(effect, Transmit):
            self._transmit(name, effect)
        elif isinstance(effect, Deliver):
            self._handed[name] += 1
            frame = effect.frame
            got = Got(frame.sender, frame.serial or 0, frame.clock, frame.epoch, frame.payloads[0])  # type: ignore[attr-defined]
            self.log[name].append(got)
            self._delivered[name][got.sender] = got.seq
        elif isinstance(effect, InstallView):
            self.log[name].append(effect.view)
        elif isinstance(effect, Reset | Left):
            self.log[name].append(effect)

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        self.kinds[effect.frame.kind] += 1
        if self._coded:
            effect = effect._replace(frame=decode(encode(effect.frame)))
        if effect.frame.payloads and effect.frame.kind == "data":
            self.numbers[sender].append(effect.frame.serial or 0)
            self.causes[effect.frame.payloads[0]] = dict(self._delivered[sender])
        others = [name for name in self.cores if name != sender] if effect.to is Scope.GROUP else [effect.to]
        if effect.to is not Scope.GROUP:
            self.requests.append(effect.frame)
        source = split_process_id(sender)[0]
        for other in others:
            assert isinstance(other, str)
            if other not in self.cores or (source, split_process_id(ProcessId(other))[0]) in self.cut:
                continue
            draw = self.random.random
            for _ in range((draw() >= self._loss) + (draw() < self._duplicate)):
                late = self.random.randint(20, 300) if draw() < self._loss / 20 else 0
                arrives = self.now + self.random.randint(*self._latency) * MS + late * MS + self.random.randint(0, 999)
                heappush(self._events, (arrives, next(self._order), ProcessId(other), effect.frame))

    # What happened

    def got(self, process: str) -> list[bytes]:
        return [each.payload for each in self.log[ProcessId(process)] if isinstance(each, Got)]

    def views(self, process: str) -> list[View]:
        return [each for each in self.log[ProcessId(process)] if isinstance(each, View)]

    def members(self, process: str) -> tuple[ProcessId, ...]:
        return self.views(process)[-1].members
