"""A member process of a local run on multicast sockets, with one address for each group (InterGroup).

It uses the same driver as all members. The application takes deliveries as they arrive, unless it is stalled, and
reports that to the core, which acknowledges them. The application has no state to transfer.
"""

import logging
import random
from collections import deque
from pathlib import Path
from typing import Any, Final

from antiphon.core.contract import is_framing, is_joining
from antiphon.core.effects import (
    Blocked,
    ClockAhead,
    Deliver,
    Frame,
    InstallView,
    Left,
    Missing,
    Reset,
    Unavailable,
    Unblocked,
)
from antiphon.drive.drive import Shown
from antiphon.node.player import Player
from antiphon.protocols.assembly import core_builder, listened_to
from antiphon.scenario.model import Scenario, Workload, typical
from antiphon.scenario.topology import paths_between
from antiphon.sim.network import REORDER_LATENCIES
from antiphon.sockets.driver import Driver
from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.multicast import LinkFaults, MulticastMesh
from antiphon.types import GroupId, ProcessId, ViewId

_LOG: Final = logging.getLogger("antiphon")


class MulticastPlayer(Player):
    """The process; events of its driver are recorded in their order."""

    def __init__(self, scenario: Scenario, process: ProcessId, journal: Path, host: str) -> None:
        super().__init__(scenario, process, journal)
        chance = random.Random(f"{scenario.seed}/{process}/cores")
        core = core_builder(scenario, chance)(process)
        assert is_joining(core), "its processes join and leave without an agreement"
        self._core = core
        self._framing = core if is_framing(core) else None
        self._mesh = MulticastMesh(process, (host, 0), _link_faults(scenario, process))
        self._untaken: deque[Deliver | InstallView | Left] = deque()
        self._stalled = False
        self._views: dict[GroupId, ViewId] = {}
        self._leaving: set[GroupId] = set()  # groups being left, until the application reads that
        self._returning: set[GroupId] = set()  # of these, the groups to which it returns then
        self._driver = Driver(
            process,
            self._core,
            self._mesh,
            self,
            recorder=self._recorder,
            clock=self._clock,
            journal=self._recorder.write,
            multicast=self._mesh.multicast,
        )

    # Orders of the supervisor

    async def _open(self) -> Address:
        await self._driver.open()
        return self._mesh.address

    async def _meet(self, order: dict[str, Any]) -> None:
        """A process that is in a group from the start listens before any frame leaves."""
        addresses = [tuple(address) for address in order["addresses"]]
        groups = {GroupId(name): tuple(address) for name, address in order["groups"].items()}
        self._mesh.meet(dict(zip(order["peers"], addresses, strict=True)), groups)
        for group in listened_to(self._scenario, self._process):
            self._mesh.listen(group)

    def _begin(self) -> None:
        self._driver.begin()

    def _do(self, what: str, order: dict[str, Any]) -> None:
        if what == "stall":
            self._stalled = order["begins"]
            self._take()
        elif what == "forbid":
            self._mesh.forbid(frozenset(order["names"]))
        else:
            self._move(what, GroupId(order["group"]))
        self._driver.stir()

    def _move(self, what: str, group: GroupId) -> None:
        if what == "leave":
            self._leaving.add(group)
            self._core.leave(group, self._clock())
            self._mesh.unlisten(group)
        elif group in self._leaving:
            self._returning.add(group)
        else:
            assert what == "join", what
            self._join(group)

    def _join(self, group: GroupId) -> None:
        now = self._clock()
        self._recorder.moved("join", group, now)
        self._mesh.listen(group)
        self._core.join(group, now)

    async def _end(self) -> None:
        await self._driver.stop()
        held = {group: self._core.unstable(group) for group in self._groups}
        self._recorder.stopped(self._clock(), held, {}, {"leaving": sorted(self._leaving)})

    # Calls of the driver

    def show(self, effect: Shown, now: int) -> None:
        """The next effect in the order. Flow control concerns only the core.

        The application requests every message that is reported as missing.
        """
        if isinstance(effect, Missing):
            if self._framing is not None and not effect.gone:
                self._framing.request(effect, now)
        elif isinstance(effect, Unavailable | Reset | ClockAhead):
            _LOG.warning("%s in %s: %s", self._process, effect.group, _sentence(effect))
        elif not isinstance(effect, Blocked | Unblocked):
            assert isinstance(effect, Deliver | InstallView | Left), effect
            self._untaken.append(effect)
            self._take()

    def met(self, peer: ProcessId) -> None:
        """Does nothing: all peers are known from the start."""

    def collect(self) -> None:
        """Does nothing: the core already has what was sent."""

    def turned(self) -> None:
        """Does nothing: the core keeps messages that cannot be sent yet."""

    # The application

    def _take(self) -> None:
        while self._untaken and not self._stalled:
            effect = self._untaken.popleft()
            if isinstance(effect, Deliver):
                self._deliver(effect.frame)
            elif isinstance(effect, InstallView):
                self._enter(effect)
            else:
                self._leave_behind(effect)

    def _deliver(self, frame: Frame) -> None:
        now = self._clock()
        self._driver.reader.consume(frame, now, now)
        self._deliveries += len(frame.payloads)

    def _enter(self, effect: InstallView) -> None:
        self._viewed_at = self._clock()
        self._views[effect.view.group] = effect.view.id
        self._driver.reader.enter(effect, self._viewed_at, self._viewed_at)

    def _leave_behind(self, effect: Left) -> None:
        group = effect.group
        self._leaving.remove(group)
        self._views.pop(group, None)
        self._driver.reader.leave(effect, self._clock())
        if group in self._returning:
            self._returning.remove(group)
            self._join(group)

    async def _request(self, workload: Workload, payload: bytes) -> None:
        group, now = GroupId(workload.group), self._clock()
        self._requested_at = now
        label = self._driver.labels.take(group)
        self._recorder.requested(group, (payload,), now)
        if self._framing is not None:
            self._framing.send(group, payload, now, label, f"{workload.name}/{label}".encode())
        else:
            self._core.send(group, payload, now, label)
        self._driver.hurry(now)

    def _status(self) -> dict[str, Any]:
        return {
            "left": self._left,
            "requested_at": self._requested_at,
            "viewed_at": self._viewed_at,
            "deliveries": self._deliveries,
            "unread": 0 if self._stalled else len(self._untaken),
            "retains": self._core.unfinished or any(map(self._core.unstable, self._groups)),
            "moving": sorted(self._leaving),
            "views": self._views,
        }


def _sentence(notice: Unavailable | Reset | ClockAhead) -> str:
    if isinstance(notice, Unavailable):
        return f"{notice.source} does not answer; it is asked again when it is heard"
    if isinstance(notice, Reset):
        return f"it could not follow the group ({notice.reason}) and begins again; messages may be missing"
    return f"the clock of {notice.process} is {notice.ahead_us / 1e6:.0f} s ahead"


def _link_faults(scenario: Scenario, process: ProcessId) -> LinkFaults:
    """The faults of the scenario's network on datagrams to a process, except delays."""
    network, paths = scenario.network, paths_between(scenario)
    lost_on_path = {name: paths[name, process].loss for name in scenario.processes if (name, process) in paths}
    return LinkFaults(
        random.Random(f"{scenario.seed}/{process}/network"),
        {
            ProcessId(name): 1 - (1 - network.loss) * (1 - lost_on_path.get(name, 0.0))
            for name in scenario.processes
            if name != process
        },
        network.duplicate,
        network.reorder,
        REORDER_LATENCIES * typical(network.latency) / 1e9,
    )
