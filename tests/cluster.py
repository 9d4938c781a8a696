"""Cores joined by channels that a test moves frame by frame: every schedule can be written down."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.core.effects import Deliver, Effect, Frame, InstallView, Transmit
from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.newtop.literal import printed
from antiphon.core.newtop.process import NewtopProcess
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP = GroupId("g")
SLOW_NS = 1_000_000
"""A silence timeout for tests in which no null may leave by itself."""


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
        """Every effect of everybody, in the order in which they were carried out."""
        self.views: dict[str, list[View]] = {name: [] for name in everybody}
        self.stalled: set[str] = set()
        """Whose applications take nothing."""
        self._offered: dict[str, deque[GroupId]] = {name: deque() for name in everybody}
        self._labels: dict[tuple[str, str], int] = defaultdict(int)
        self._taken: dict[tuple[str, GroupId], int] = defaultdict(int)
        for name in everybody:
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
        """Let so many frames of one channel arrive, each followed by a drain."""
        for _ in range(frames):
            self.feed(sender, receiver)
            self.settle(receiver)

    def feed(self, sender: str, receiver: str) -> None:
        """Let a frame arrive without a drain: one of a batch."""
        self.core(receiver).receive(self.channels[sender, receiver].popleft(), self.now)

    def move_all(self) -> None:
        """Let frames arrive until none is under way; bounded, for nulls must not answer nulls for ever."""
        for _ in range(10_000):
            waiting = [pair for pair, frames in self.channels.items() if frames]
            if not waiting:
                return
            for sender, receiver in waiting:
                self.move(sender, receiver)
        raise AssertionError("frames never stop")

    def wait(self, duration_ns: int) -> None:
        """Let time pass at everyone, then whatever is due happen."""
        self.now += duration_ns
        for name in self.cores:
            self.tick(name)

    def tick(self, name: str) -> None:
        """One process notices the time."""
        self.core(name).tick(self.now)
        self.settle(name)

    def finish(self, rounds: int = 8, pause_ns: int = 200_000_000) -> None:
        """Let everything move and every timer ring, often enough for whatever is under way to end."""
        for _ in range(rounds):
            self.move_all()
            self.wait(pause_ns)
        self.move_all()

    def rest(self) -> None:
        """Let everything move until nothing is under way and no timer is set; bounded, for peace must come."""
        for _ in range(200):
            self.finish(rounds=2)
            if all(core.deadline is None for core in self.cores.values()):
                return
        raise AssertionError("timers never stop")

    def settle(self, name: str) -> None:
        while effects := self.core(name).drain(self.now):
            self.effects[name] += effects
            self.history += [(name, effect) for effect in effects]
            for effect in effects:
                self._carry_out(name, effect)
            self.take(name)

    def take(self, name: str) -> None:
        """The application takes what it was offered, unless it is stalled."""
        while self._offered[name] and name not in self.stalled:
            group = self._offered[name].popleft()
            self._taken[name, group] += 1
            self.core(name).consumed(group, self._taken[name, group], self.now)

    def wake(self, name: str) -> None:
        """A stalled application takes all that has been offered meanwhile, and goes on."""
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
                for other in self.members[frame.group] if not isinstance(to, str) else (ProcessId(to),):
                    if other != name:
                        self.channels[name, other].append(frame)
            case Deliver(frame=frame):
                self.delivered[name] += frame.payloads
                self._offered[name].append(frame.group)
            case InstallView(view=view):
                self.views[name].append(view)


def _ids(names: Sequence[str]) -> frozenset[ProcessId]:
    return frozenset(map(ProcessId, names))
