"""A member process of a local run over TCP whose groups are static: a core, its driver, an application without a state.

It can play any family whose cores need only streams (`Sockets(player="streams")`).
"""

import asyncio
import random
from collections import deque
from pathlib import Path
from typing import Any

from antiphon.core.effects import Deliver, InstallView
from antiphon.drive.drive import Shown
from antiphon.node.player import Player
from antiphon.protocols.assembly import core_builder
from antiphon.scenario.model import Scenario, Workload
from antiphon.sockets.driver import Driver
from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import GroupId, ProcessId, ViewId


class StreamPlayer(Player):
    """The process; events of its driver are recorded in their order."""

    def __init__(self, scenario: Scenario, process: ProcessId, journal: Path, host: str) -> None:
        super().__init__(scenario, process, journal)
        self._core = core_builder(scenario, random.Random(f"{scenario.seed}/{process}/cores"))(process)
        self._mesh = TcpMesh(process, (host, 0))
        self._untaken: deque[Deliver | InstallView] = deque()
        self._stalled = False
        self._views: dict[GroupId, ViewId] = {}
        self._driver = Driver(
            process,
            self._core,
            self._mesh,
            self,
            recorder=self._recorder,
            clock=self._clock,
            journal=self._recorder.write,
        )

    # Orders of the supervisor

    async def _open(self) -> Address:
        await self._driver.open()
        return self._mesh.address

    async def _meet(self, order: dict[str, Any]) -> None:
        self._mesh.meet([tuple(address) for address in order["addresses"]])
        while order["wait"] and not {*order["peers"]} <= {*self._mesh.peers}:
            await asyncio.sleep(0.005)

    def _begin(self) -> None:
        self._driver.begin()

    def _do(self, what: str, order: dict[str, Any]) -> None:
        assert what == "stall", f"{self._scenario.protocol} cannot play {what!r}"
        self._stalled = order["begins"]
        self._take()
        self._driver.stir()

    def _finish(self) -> None:
        self._driver.finish()
        self._recorder.stopped(self._clock(), {group: self._core.unstable(group) for group in self._groups}, {}, {})

    async def _close(self) -> None:
        await self._mesh.close()

    # Calls of the driver

    def show(self, effect: Shown, now: int) -> None:  # noqa: ARG002 - recorded when the application takes it
        """The next effect in the order."""
        assert isinstance(effect, Deliver | InstallView), f"effect {effect} is not supported"
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
            effect, now = self._untaken.popleft(), self._clock()
            if isinstance(effect, InstallView):
                self._viewed_at = now
                self._views[effect.view.group] = effect.view.id
                self._driver.reader.enter(effect, now, now)
            else:
                self._driver.reader.consume(effect.frame, now, now)
                self._deliveries += len(effect.frame.payloads)

    async def _request(self, workload: Workload, payload: bytes) -> None:
        group, now = GroupId(workload.group), self._clock()
        self._requested_at = now
        label = self._driver.labels.take(group)
        self._recorder.requested(group, (payload,), now)
        self._core.send(group, payload, now, label)
        self._driver.hurry(now)

    def _status(self) -> dict[str, Any]:
        return {
            "left": self._left,
            "requested_at": self._requested_at,
            "viewed_at": self._viewed_at,
            "deliveries": self._deliveries,
            "unread": 0 if self._stalled else len(self._untaken),
            "retains": any(map(self._core.unstable, self._groups)),
            "moving": [],
            "views": self._views,
        }
