"""Cores of the acknowledgment protocols on channels with given latencies, in virtual time: a small, fast simulator.

Streams are FIFO; acknowledgments travel as the test says: late, twice, or not at all. Nothing is random unless the
test draws it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

from antiphon.core.effects import Channel, Deliver, Effect, Frame, InstallView, Scope, Stable, Transmit
from antiphon.protocols.acks.as_printed import printed
from antiphon.protocols.acks.frames import AckFrame, MessageFrame, VectorAckFrame
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.process import AcksProcess
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings, Role
from antiphon.types import GroupId, ProcessId, View

GROUP = GroupId("g")
UNIT = 1_000_000
"""One time unit of the papers' examples, in nanoseconds."""
NEVER_NS = 1 << 60
"""A period for tests in which nothing may leave by itself."""

Pair = tuple[str, str]
_ACTION, _ARRIVAL, _TIMER = range(3)  # the order of events at the same time


class AcksCluster:
    """Processes of one group; by default each is sender and receiver, and present."""

    def __init__(
        self,
        *names: str,
        roles: Mapping[str, Role] | None = None,
        sources: Mapping[str, Iterable[str]] | None = None,
        absent: Iterable[str] = (),
        latency: int = UNIT,
        messages: Mapping[Any, int] | None = None,
        acks: Mapping[Any, int] | None = None,
        first_sends: Mapping[Any, int] | None = None,
        first_acks: Mapping[Any, int] | None = None,
        skews: Mapping[str, int] | None = None,
        literal: tuple[str, ...] = (),
        kind: str = "timestamp",
        **settings: Any,
    ) -> None:
        chosen: Mapping[str, Role] = roles or dict.fromkeys(names, "both")
        self.now = 0
        self.names = [*chosen]
        self.skews = dict(skews or {})
        """How far each clock is ahead of the world's."""
        self.latency = latency
        self.message_latency = dict(messages or {})
        self.ack_latency = dict(acks or {})
        self.datagram: Callable[[str, str], Iterable[int]] = self._one_datagram
        """How long each copy of an acknowledgment travels; none: it is lost."""
        self.held: set[Pair] = set()
        """Streams on which nothing arrives for the time being."""
        plan = AcksGroupPlan(
            {ProcessId(name): role for name, role in chosen.items()},
            frozenset(ProcessId(name) for name in chosen if name not in {*absent}),
            {ProcessId(name): tuple(map(ProcessId, of)) for name, of in (sources or {}).items()},
        )
        common = {"acks": kind, "tracing": True, "send_every_ns": UNIT, "ack_every_ns": UNIT, **settings}
        rules = printed(literal)
        self.cores = {
            name: AcksProcess(
                ProcessId(name),
                {GROUP: plan},
                AcksSettings(
                    first_send_ns=(first_sends or {}).get(name, 0),
                    first_ack_ns=(first_acks or {}).get(name, 0),
                    **common,
                ),
                rules,
            )
            for name in chosen
        }
        self.delivered: dict[str, list[tuple[str, int]]] = {name: [] for name in chosen}
        """At each process, senders and labels, in order."""
        self.delivered_at: dict[tuple[str, str, int], int] = {}
        """Time by receiver, sender and label."""
        self.sent_at: dict[tuple[str, int], int] = {}
        self.stable_at: dict[tuple[str, str, int], int] = {}
        """Time by observer, sender and label."""
        self.acked: dict[str, list[AckFrame | VectorAckFrame]] = {name: [] for name in chosen}
        self.spoken: dict[str, list[MessageFrame]] = {name: [] for name in chosen}
        self.views: dict[str, list[View]] = {name: [] for name in chosen}
        self.watch: Callable[[str, Effect], None] = _nothing
        """Told of every effect when it is carried out."""
        self.crashed: set[str] = set()
        self._labels: dict[str, int] = defaultdict(int)
        self._known: dict[Pair, int] = {}
        self._parked: dict[Pair, list[Frame]] = defaultdict(list)
        self._last_arrival: dict[Pair, int] = defaultdict(int)
        self._cut_off: dict[Pair, int] = {}  # arrivals later than this are lost with their sender
        self._armed: dict[str, int | None] = dict.fromkeys(chosen)
        self._heap: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._tickets = 0
        for name in chosen:
            self.settle(name)

    # Actions of a test

    def group(self, name: str) -> AcksGroup:
        return self.cores[name]._groups[GROUP]

    def send(self, name: str, count: int = 1) -> None:
        """The application sends, in one turn."""
        for _ in range(count):
            self.cores[name].send(GROUP, b"x", self.clock(name), self._labels[name])
            self._labels[name] += 1
        self.settle(name)

    def join(self, name: str) -> None:
        self.cores[name].join(GROUP, self.clock(name))
        self.settle(name)

    def leave(self, name: str) -> None:
        self.cores[name].leave(GROUP, self.clock(name))
        self.settle(name)

    def crash(self, name: str, cut_off: Mapping[str, int] | None = None) -> None:
        """Crash a process; frames of its streams that would arrive after the given time are lost."""
        self.crashed.add(name)
        for other in self.names:
            self._cut_off[name, other] = (cut_off or {}).get(other, self.now)
            self._parked.pop((name, other), None)

    def lose(self, name: str) -> None:
        """All others are told."""
        for other in self.names:
            if other not in self.crashed:
                self.cores[other].lost(ProcessId(name), self.clock(other))
                self.settle(other)

    def release(self, sender: str, receiver: str) -> None:
        """A stream that was held flows on."""
        self.held.discard((sender, receiver))
        for frame in self._parked.pop((sender, receiver), ()):
            self._arrive(sender, receiver, frame)

    def at(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do something later, before all other events of that time."""
        self._at(time, _ACTION, action, *arguments)

    def run(self, until: int) -> None:
        """Let time pass."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, _, action, arguments = heappop(heap)
            action(*arguments)
        self.now = until

    # Observations

    def clock(self, name: str) -> int:
        """The reading of a process's own clock."""
        return self.now + self.skews.get(name, 0)

    def unstable(self, name: str) -> int:
        return self.cores[name].unstable(GROUP)

    def stable_after(self, name: str, label: int = 0) -> int:
        """How long a message of a process was unstable for its sender."""
        return self.stable_at[name, name, label] - self.sent_at[name, label]

    def buffered(self, name: str) -> list[int]:
        """The stamps of what a process keeps."""
        return [stamp for stamp, _ in self.group(name)._unstable._own]

    # How it works

    def settle(self, name: str) -> None:
        core, now = self.cores[name], self.clock(name)
        for effect in core.drain(now):
            self._carry_out(name, effect)
        deadline = core.deadline
        if deadline is not None and deadline != self._armed[name]:
            self._armed[name] = deadline
            self._at(self.now + deadline - now, _TIMER, self._tick, name, deadline)

    def _tick(self, name: str, deadline: int) -> None:
        if self._armed[name] == deadline and name not in self.crashed:
            self._armed[name] = None
            core, now = self.cores[name], self.clock(name)
            core.tick(now)
            self.settle(name)
            assert core.deadline is None or core.deadline > now

    def _carry_out(self, name: str, effect: Effect) -> None:
        if isinstance(effect, Transmit):
            self._transmit(name, effect)
        elif isinstance(effect, Deliver):
            frame = effect.frame
            self.delivered[name].append((frame.sender, frame.label))
            self.delivered_at[name, frame.sender, frame.label] = self.now
        elif isinstance(effect, Stable):
            for sender, label in effect.upto:
                for number in range(self._known.get((name, sender), -1) + 1, label + 1):
                    self.stable_at[name, sender, number] = self.now
                self._known[name, sender] = label
        elif isinstance(effect, InstallView):
            self.views[name].append(effect.view)
        self.watch(name, effect)

    def _transmit(self, name: str, effect: Transmit) -> None:
        frame = effect.frame
        if isinstance(frame, MessageFrame):
            self.spoken[name].append(frame)
            if frame.payloads:
                self.sent_at[name, frame.label] = self.now
        elif isinstance(frame, AckFrame | VectorAckFrame):
            self.acked[name].append(frame)
        for receiver in self._receivers(name, effect):
            if effect.channel is Channel.DATAGRAM:
                for delay in self.datagram(name, receiver):
                    self._at(self.now + delay, _ARRIVAL, self._arrive, name, receiver, frame)
            else:
                self._stream(name, receiver, frame)

    def _stream(self, sender: str, receiver: str, frame: Frame) -> None:
        pair = sender, receiver
        arrival = self.now + self.message_latency.get(pair, self.latency)
        self._last_arrival[pair] = arrival = max(arrival, self._last_arrival[pair])
        self._at(arrival, _ARRIVAL, self._arrive, sender, receiver, frame)

    def _receivers(self, name: str, effect: Transmit) -> Iterable[str]:
        if not isinstance(effect.to, Scope):
            return (effect.to,)
        view = self.views[name][-1]
        assert view.receivers is not None
        assert view.senders is not None
        if effect.to is Scope.VIEW:
            return [member for member in view.members if member != name]
        return view.receivers if effect.to is Scope.RECEIVERS else view.senders

    def _one_datagram(self, sender: str, receiver: str) -> Iterable[int]:
        return (self.ack_latency.get((sender, receiver), self.latency),)

    def _arrive(self, sender: str, receiver: str, frame: Frame) -> None:
        if self.now > self._cut_off.get((sender, receiver), self.now) or receiver in self.crashed:
            return
        if (sender, receiver) in self.held and not isinstance(frame, AckFrame | VectorAckFrame):
            self._parked[sender, receiver].append(frame)
            return
        self.cores[receiver].receive(frame, self.clock(receiver))
        self.settle(receiver)

    def _at(self, time: int, rank: int, action: Callable[..., None], *arguments: Any) -> None:
        self._tickets += 1
        heappush(self._heap, (time, rank, self._tickets, action, arguments))


def _nothing(name: str, effect: Effect) -> None:
    """The default watcher."""
