"""A member process of a local run on multicast sockets, with one address for each group (InterGroup).

It uses the same driver as all members. The application takes deliveries as they arrive, unless it is stalled, and
reports that to the core, which acknowledges them. The application has no state to transfer.
"""

import logging
import random
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from antiphon.core.contract import is_framing, is_promoting
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
from antiphon.protocols.assembly import core_builder, listened_to, outside_of
from antiphon.scenario.model import Scenario, Workload, typical
from antiphon.scenario.topology import paths_between
from antiphon.sim.network import REORDER_LATENCIES
from antiphon.sockets.driver import Driver
from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.multicast import LinkFaults, MulticastMesh
from antiphon.types import GroupId, ProcessId, ViewId, split_process_id

_LOG: Final = logging.getLogger("antiphon")


class _Presence:
    """The groups of one process that it is not in, or is about to leave or join again."""

    def __init__(self, outside: Iterable[GroupId]) -> None:
        self.outside = {*outside}
        """Groups that it is not in, or leaves: its application sends nothing there."""
        self.leaving: set[GroupId] = set()
        """Groups being left, until the application reads that."""
        self._returning: set[GroupId] = set()
        """Of these, the groups to which it returns then."""

    def leave(self, group: GroupId) -> None:
        self.outside.add(group)
        self.leaving.add(group)

    def join(self, group: GroupId) -> bool:
        """False if the process is still leaving the group: it joins when it is out."""
        if group in self.leaving:
            self._returning.add(group)
            return False
        self.outside.discard(group)
        return True

    def left(self, group: GroupId) -> bool:
        """The process is out; True if it joins again now."""
        self.leaving.remove(group)
        returns = group in self._returning
        self._returning.discard(group)
        return returns


class MulticastPlayer(Player):
    """The process; events of its driver are recorded in their order."""

    def __init__(self, scenario: Scenario, process: ProcessId, journal: Path, host: str) -> None:
        super().__init__(scenario, process, journal)
        chance = random.Random(f"{scenario.seed}/{process}/cores")
        core = core_builder(scenario, chance)(process)
        assert is_promoting(core), "its processes join, leave, and change between sending and only receiving"
        self._core = core
        self._framing = core if is_framing(core) else None
        self._mesh = MulticastMesh(process, (host, 0), _link_faults(scenario, process))
        self._untaken: deque[Deliver | InstallView | Left] = deque()
        self._stalled = False
        self._views: dict[GroupId, ViewId] = {}
        self._presence = _Presence(outside_of(scenario, process))
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
        """A process that is in a group from the start listens before any frame leaves.

        Later it is told of each process that starts again; then there are no groups.
        """
        addresses = [tuple(address) for address in order["addresses"]]
        groups = {GroupId(name): tuple(address) for name, address in order["groups"].items()}
        self._mesh.meet(dict(zip(order["peers"], addresses, strict=True)), groups)
        for group in listened_to(self._scenario, self._process) if groups else ():
            self._mesh.listen(group)

    def _begin(self) -> None:
        self._driver.begin()

    def _do(self, what: str, order: dict[str, Any]) -> None:
        if what == "stall":
            self._stalled = order["begins"]
            self._take()
        elif what == "forbid":
            self._mesh.forbid(frozenset(order["names"]))
        elif what == "suspect":
            self._core.suspect(order["process"], self._clock())
        else:
            self._move(what, GroupId(order["group"]))
        self._driver.stir()

    def _move(self, what: str, group: GroupId) -> None:
        now = self._clock()
        if what == "promote":
            self._core.promote(group, now)
        elif what == "demote":
            self._core.demote(group, now)
        elif what == "leave":
            self._presence.leave(group)
            self._core.leave(group, now)
        else:
            assert what == "join", what
            self._join(group)

    def _join(self, group: GroupId) -> None:
        if self._presence.join(group):
            now = self._clock()
            self._recorder.moved("join", group, now)
            self._mesh.listen(group)
            self._core.join(group, now)

    def _finish(self) -> None:
        self._driver.finish()
        held = {group: self._core.unstable(group) for group in self._groups}
        self._recorder.stopped(self._clock(), held, {}, {"leaving": sorted(self._presence.leaving)})

    async def _close(self) -> None:
        await self._mesh.close()

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
            if isinstance(effect, InstallView) and effect.view.group not in self._views:
                self._enter(effect)  # as in the simulator: `Reader.joins_at_once`
                return
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
        """The process is out only now: a sender leaves in order, and until then others need its keep-alives."""
        group = effect.group
        self._views.pop(group, None)
        self._mesh.unlisten(group)
        self._driver.reader.leave(effect, self._clock())
        if self._presence.left(group):
            self._join(group)

    async def _request(self, workload: Workload, payload: bytes) -> None:
        group, now = GroupId(workload.group), self._clock()
        if group in self._presence.outside:
            return
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
            "moving": sorted(self._presence.leaving),
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
    network, paths, own = scenario.network, paths_between(scenario), split_process_id(process)[0]
    lost_on_path = {name: paths[name, own].loss for name in scenario.processes if (name, own) in paths}
    return LinkFaults(
        random.Random(f"{scenario.seed}/{process}/network"),
        {
            name: 1 - (1 - network.loss) * (1 - lost_on_path.get(name, 0.0))
            for name in scenario.processes
            if name != own
        },
        network.duplicate,
        network.reorder,
        REORDER_LATENCIES * typical(network.latency) / 1e9,
    )
