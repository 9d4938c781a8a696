"""Cores joined by channels that a test moves frame by frame: every schedule can be written down."""

from collections import defaultdict, deque

from antiphon.core.effects import Deliver, InstallView, Transmit
from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.newtop.process import NewtopProcess
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP = GroupId("g")
SLOW_NS = 1_000_000
"""A silence timeout for tests in which no null may leave by itself."""


class Cluster:
    """Newtop processes of one group; nothing moves unless the test says so."""

    def __init__(self, *names: str, silence_timeout_ns: int = 0, packing: bool = True) -> None:
        view = first_view(GROUP, frozenset(map(ProcessId, names)))
        settings = NewtopSettings(silence_timeout_ns=silence_timeout_ns, packing=packing, tracing=True)
        self.now = 0
        self.cores = {name: NewtopProcess(name, {GROUP: view}, settings) for name in view.members}
        self.channels: dict[tuple[str, str], deque[BlockFrame]] = defaultdict(deque)
        self.delivered: dict[str, list[bytes]] = {name: [] for name in names}
        self.transmitted: dict[str, list[BlockFrame]] = {name: [] for name in names}
        self.views: dict[str, list[View]] = {name: [] for name in names}
        for name in names:
            self.settle(name)

    def core(self, name: str) -> NewtopProcess:
        return self.cores[ProcessId(name)]

    def send(self, name: str, *payloads: bytes) -> None:
        for payload in payloads:
            self.core(name).send(GROUP, payload, self.now)
        self.settle(name)

    def move(self, sender: str, receiver: str, frames: int = 1) -> None:
        """Let so many frames of one channel arrive, each followed by a drain."""
        for _ in range(frames):
            self.core(receiver).receive(self.channels[sender, receiver].popleft(), self.now)
            self.settle(receiver)

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
        for name, core in self.cores.items():
            core.tick(self.now)
            self.settle(name)

    def settle(self, name: str) -> None:
        for effect in self.core(name).drain(self.now):
            match effect:
                case Transmit(frame=BlockFrame() as frame):
                    self.transmitted[name].append(frame)
                    for other in self.cores:
                        if other != name:
                            self.channels[name, other].append(frame)
                case Deliver(frame=frame):
                    self.delivered[name] += frame.payloads
                case InstallView(view=view):
                    self.views[name].append(view)
