"""Cores joined by channels that a test moves frame by frame: every schedule can be written down."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from antiphon.core.effects import Confirmed, Deliver, Effect, Frame, InstallView, Transmit
from antiphon.protocols.newtop.as_printed import printed
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, ConfirmedFrame, Flow, RefuteFrame, SuspectFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP = GroupId("g")
SLOW_NS = 1_000_000
"""A silence timeout for tests in which no null may leave by itself."""

OMEGA_NS = 400_000_000
"""A suspicion timeout for tests of membership."""
NEVER_NS = 1 << 60
"""A silence timeout for tests without nulls."""

_Kind = TypeVar("_Kind")


class Cluster:
    """Newtop processes, of one group unless told otherwise; nothing moves unless the test says so."""

    def __init__(
        self,
        *names: str,
        groups: Mapping[str, Sequence[str]] | None = None,
        literal: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        members = groups or {GROUP: names}
        views = {GroupId(group): first_view(GroupId(group), _ids(each)) for group, each in members.items()}
        chosen = NewtopSettings(**{"tracing": True, **settings})
        self.now = 0
        self.members = {group: view.members for group, view in views.items()}
        everybody = sorted({name for view in views.values() for name in view.members})
        self.cores = {
            name: NewtopProcess(
                name, {group: view for group, view in views.items() if name in view.members}, chosen, printed(literal)
            )
            for name in everybody
        }
        self.channels: dict[tuple[str, str], deque[Frame]] = defaultdict(deque)
        self.delivered: dict[str, list[bytes]] = {name: [] for name in everybody}
        self.transmitted: dict[str, list[BlockFrame]] = {name: [] for name in everybody}
        """Numbered frames."""
        self.control: dict[str, list[Frame]] = {name: [] for name in everybody}
        self.effects: dict[str, list[Effect]] = {name: [] for name in everybody}
        self.history: list[tuple[str, Effect]] = []
        """Every effect of all processes, in the order in which they were carried out."""
        self.views: dict[str, list[View]] = {name: [] for name in everybody}
        self.stalled: set[str] = set()
        """Processes with stalled applications."""
        self.crashed: set[str] = set()
        self.cuts: set[tuple[str, str]] = set()
        self._offered: dict[str, deque[GroupId]] = {name: deque() for name in everybody}
        self._labels: dict[tuple[str, str], int] = defaultdict(int)
        self._taken: dict[tuple[str, GroupId], int] = defaultdict(int)
        for name in everybody:
            self.settle(name)

    def add(self, name: str) -> None:
        """Add a process with its core."""
        for notebook in (self.delivered, self.transmitted, self.control, self.effects, self.views):
            notebook[name] = []
        self._offered[name] = deque()
        self.settle(name)

    def core(self, name: str) -> NewtopProcess:
        return self.cores[ProcessId(name)]

    def send(self, name: str, *payloads: bytes, group: str = GROUP) -> None:
        """All in one turn of the application's loop."""
        for payload in payloads:
            self.core(name).send(GroupId(group), payload, self.now, self._labels[name, group])
            self._labels[name, group] += 1
        self.settle(name)

    def move(self, sender: str, receiver: str, frames: int = 1) -> None:
        """Deliver this many frames of one channel, each followed by a drain."""
        for _ in range(frames):
            self.feed(sender, receiver)
            self.settle(receiver)

    def feed(self, sender: str, receiver: str) -> None:
        """Let a frame arrive without a drain: one of a batch."""
        frame = self.channels[sender, receiver].popleft()
        if receiver not in self.crashed:
            self.core(receiver).receive(frame, self.now)

    def move_all(self) -> None:
        """Deliver frames until none is under way; bounded, because nulls must not answer nulls forever."""
        for _ in range(10_000):
            waiting = [pair for pair, frames in self.channels.items() if frames]
            if not waiting:
                return
            for sender, receiver in waiting:
                self.move(sender, receiver)
        raise AssertionError("frames never stop")

    def wait(self, duration_ns: int) -> None:
        """Advance time at all processes, then fire the due timers."""
        self.now += duration_ns
        for name in self.cores:
            if name not in self.crashed:
                self.tick(name)

    def tick(self, name: str) -> None:
        """One process notices the time."""
        self.core(name).tick(self.now)
        self.settle(name)

    def finish(self, rounds: int = 8, pause_ns: int = 200_000_000) -> None:
        """Deliver all frames and fire all timers, often enough for all activity to end."""
        for _ in range(rounds):
            self.move_all()
            self.wait(pause_ns)
        self.move_all()

    def rest(self) -> None:
        """Let everything move until no frame is in transit and no timer is set; bounded, because traffic must end."""
        for _ in range(200):
            self.finish(rounds=2)
            if all(core.deadline is None for core in self.cores.values()):
                return
        raise AssertionError("timers never stop")

    def in_view(self, name: str, group: str = GROUP) -> tuple[ProcessId, ...]:
        """The members of the current view of a process."""
        return next(view.members for view in reversed(self.views[name]) if view.group == group)

    def suspect(self, name: str, *others: str) -> None:
        """A process suspects others, right or wrong."""
        for other in others:
            self.core(name).suspect(ProcessId(other), self.now)
        self.settle(name)

    def found(self, name: str, kind: type[_Kind]) -> list[_Kind]:
        """The effects of one kind at a process so far."""
        return [effect for effect in self.effects[name] if isinstance(effect, kind)]

    def detections(self, name: str, group: str = GROUP) -> list[tuple[tuple[str, int], ...]]:
        """The detections that a process confirmed in a group, in order."""
        return [effect.failed for effect in self.found(name, Confirmed) if effect.group == group]

    def story(self, name: str, group: str = GROUP) -> list[bytes | str]:
        """The events of a group at the application: payloads, and the members of each view as one string."""
        seen: list[bytes | str] = []
        for effect in self.effects[name]:
            if isinstance(effect, Deliver) and effect.frame.group == group:
                seen += effect.frame.payloads
            elif isinstance(effect, InstallView) and effect.view.group == group:
                seen.append(" ".join(effect.view.members))
        return seen

    def views_of(self, name: str, group: str = GROUP) -> list[str]:
        """The members of each view of a group, in order, each as one string."""
        return [entry for entry in self.story(name, group) if isinstance(entry, str)]

    def move_between(self, *names: str) -> None:
        """Let frames arrive among these alone until none is under way."""
        for _ in range(10_000):
            waiting = [pair for pair, frames in self.channels.items() if frames and {*pair} <= {*names}]
            if not waiting:
                return
            for sender, receiver in waiting:
                self.move(sender, receiver)
        raise AssertionError("frames never stop")

    def move_one_way(self, sender: str, *receivers: str) -> None:
        """Let all frames in transit from one process to the others arrive."""
        for receiver in receivers:
            self.move(sender, receiver, len(self.channels[sender, receiver]))

    def crash(self, name: str) -> None:
        """Crash a process; its frames in transit still arrive unless the test drops them."""
        self.crashed.add(name)
        self.cut([name], [other for other in self.cores if other != name])

    def cut(self, side: Sequence[str], other: Sequence[str]) -> None:
        """Cut the sides apart for new frames; frames in transit still arrive unless the test drops them."""
        self.cuts |= {(a, b) for a in side for b in other} | {(b, a) for a in side for b in other}

    def drop(self, sender: str, receiver: str) -> None:
        """Drop the frames in transit on one channel, and all later ones."""
        self.channels[sender, receiver].clear()
        self.cuts.add((sender, receiver))

    def settle(self, name: str) -> None:
        while effects := self.core(name).drain(self.now):
            self.effects[name] += effects
            self.history += [(name, effect) for effect in effects]
            for effect in effects:
                self._carry_out(name, effect)
            self.take(name)

    def take(self, name: str) -> None:
        """The application consumes its deliveries, unless it is stalled."""
        while self._offered[name] and name not in self.stalled:
            group = self._offered[name].popleft()
            self._taken[name, group] += 1
            self.core(name).consumed(group, self._taken[name, group], self.now)

    def wake(self, name: str) -> None:
        """A stalled application consumes all deliveries so far, and continues."""
        self.stalled.discard(name)
        self.take(name)
        self.settle(name)

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Transmit(frame=frame, to=to):
                if isinstance(frame, BlockFrame):
                    self.transmitted[name].append(frame)
                else:
                    self.control[name].append(frame)
                for other in self.in_view(name, frame.group) if not isinstance(to, str) else (ProcessId(to),):
                    if other != name and (name, other) not in self.cuts:
                        self.channels[name, other].append(frame)
            case Deliver(frame=frame):
                self.delivered[name] += frame.payloads
                self._offered[name].append(frame.group)
            case InstallView(view=view):
                self.views[name].append(view)
                self.core(name).viewed(view, self.now)


class Lone:
    """One core of a group; the test plays all its peers, frame by frame, by hand."""

    def __init__(self, me: str, *others: str, **settings: Any) -> None:
        chosen = {"tracing": True, "suspect_after_ns": OMEGA_NS, "silence_timeout_ns": NEVER_NS, **settings}
        self.me = ProcessId(me)
        self.now = 0
        view = first_view(GROUP, _ids([me, *others]))
        self.core = NewtopProcess(self.me, {GROUP: view}, NewtopSettings(**chosen))
        self.effects: list[Effect] = []
        """Every effect so far."""
        self._looked = 0
        self.settle()

    @property
    def group(self) -> NewtopGroup:
        return self.core._groups[GROUP]

    @property
    def suspicions(self) -> dict[ProcessId, int]:
        return self.group.agreement.suspicions

    @property
    def view(self) -> View:
        return self.found(InstallView)[-1].view

    def feed(self, *frames: Frame) -> None:
        """Frames arrive, each followed by a drain."""
        for frame in frames:
            self.core.receive(frame, self.now)
            self.settle()

    def send(self, *payloads: bytes) -> None:
        """One frame each."""
        for payload in payloads:
            self.core.send(GROUP, payload, self.now)
            self.settle()

    def suspect(self, *processes: str) -> None:
        for process in processes:
            self.core.suspect(ProcessId(process), self.now)
        self.settle()

    def wait(self, duration_ns: int) -> None:
        """Advance time; everything due happens at its time."""
        until = self.now + duration_ns
        for _ in range(1000):
            deadline = self.core.deadline
            if deadline is None or deadline > until:
                self.now = until
                return
            self.now = max(self.now, deadline)
            self.core.tick(self.now)
            self.settle()
        raise AssertionError("timers never stop")

    def settle(self) -> None:
        """Drain the core; its application consumes all deliveries at once."""
        while effects := self.core.drain(self.now):
            self.effects += effects
            self.core.consumed(GROUP, len(self.found(Deliver)), self.now)

    def found(self, kind: type[_Kind]) -> list[_Kind]:
        """The effects of one kind so far."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def frames(self, kind: type[_Kind]) -> list[_Kind]:
        """The frames of one kind that it transmitted so far."""
        return [effect.frame for effect in self.found(Transmit) if isinstance(effect.frame, kind)]

    def news(self) -> list[Effect]:
        """The effects since this was last asked."""
        begin, self._looked = self._looked, len(self.effects)
        return self.effects[begin:]

    def delivered(self) -> list[bytes]:
        return [payload for effect in self.found(Deliver) for payload in effect.frame.payloads]


def data(sender: str, block: int, previous: int | None = None, payload: bytes = b"x", **fields: Any) -> BlockFrame:
    """A data frame as a peer would send it; by default the one after `block - 1`, with nothing complete."""
    before = block - 1 if previous is None else previous
    fields = {"complete_block": 0, "payloads": (payload,), **fields}
    return BlockFrame(GROUP, ProcessId(sender), block, before, **fields)


def null(sender: str, block: int, previous: int | None = None, **fields: Any) -> BlockFrame:
    return data(sender, block, previous, **{"payloads": (), **fields})


def alive(sender: str, block: int = 0, complete: int = 0, flow: Flow | None = None, **flags: Any) -> AliveFrame:
    return AliveFrame(GROUP, ProcessId(sender), block, complete, flow, **flags)


def accuse(sender: str, suspect: str, last: int) -> SuspectFrame:
    return SuspectFrame(GROUP, ProcessId(sender), 0, ProcessId(suspect), last)


def refute(sender: str, suspect: str, last: int, *messages: BlockFrame) -> RefuteFrame:
    return RefuteFrame(GROUP, ProcessId(sender), 0, ProcessId(suspect), last, messages)


def confirm(sender: str, **failed: int) -> ConfirmedFrame:
    return ConfirmedFrame(
        GROUP, ProcessId(sender), 0, tuple(sorted((ProcessId(each), last) for each, last in failed.items()))
    )


def _ids(names: Sequence[str]) -> frozenset[ProcessId]:
    return frozenset(map(ProcessId, names))
