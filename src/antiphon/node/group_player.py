"""A member process of a local run whose members agree on views: it plays a scenario through `Member`, on TCP or UDP."""

import asyncio
import random
from pathlib import Path
from typing import Any, Final

from antiphon.api.events import Message, Reset
from antiphon.api.group import Group
from antiphon.api.process import LocalProcess
from antiphon.core.contract import is_changing
from antiphon.node.player import Player
from antiphon.protocols.assembly import core_builder, facts_of, outside_of
from antiphon.scenario.model import Scenario, Workload
from antiphon.scenario.placement import groups_of
from antiphon.sim.states import State
from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.sockets.transports.udp import UdpMesh
from antiphon.types import GroupId, ProcessId

_DATAGRAM_BYTES: Final = 32_000
"""On this machine no datagram is too large for the network."""


class GroupPlayer(Player):
    """The process, and an application that keeps a state."""

    def __init__(self, scenario: Scenario, process: ProcessId, journal: Path, host: str) -> None:
        super().__init__(scenario, process, journal)
        unordered = facts_of(scenario).unordered
        self._states = {
            GroupId(each.name): State(each.state_bytes, ordered=each.name not in unordered)
            for each in groups_of(scenario, process)
        }
        self._going = asyncio.Event()
        self._going.set()
        self._moving: dict[GroupId, str] = {}  # by group: joining, forming or leaving it
        self._mesh = _mesh(scenario, process, host)
        core = core_builder(scenario, random.Random(scenario.seed))(process)
        assert is_changing(core), "a group player needs a family that forms groups"
        outside = outside_of(scenario, process)
        self._formed = {group.name for group in scenario.group if group.formed}
        self._member = LocalProcess(
            process,
            core,
            self._mesh,
            self._recorder,
            configured={group: state.whole for group, state in self._states.items() if group not in outside},
            clock=self._clock,
        )

    # Orders of the supervisor

    async def _open(self) -> Address:
        await self._member.open()
        return self._mesh.address

    async def _meet(self, order: dict[str, Any]) -> None:
        self._mesh.meet([tuple(address) for address in order["addresses"]])
        while order["wait"] and not {*order["peers"]} <= {*self._member.peers}:
            await asyncio.sleep(0.005)

    def _begin(self) -> None:
        self._work(self._read())
        for group, state in self._states.items():
            if group in self._formed:
                self._member.expect(group, state.whole)
        self._member.begin()

    def _do(self, what: str, order: dict[str, Any]) -> None:
        if what == "stall":
            (self._going.clear if order["begins"] else self._going.set)()
        elif what == "forbid":
            self._mesh.forbid(frozenset(order["names"]))
        elif what == "suspect":
            self._member.suspect(order["process"])
        else:
            self._move(what, GroupId(order["group"]), tuple(order.get("others", ())))

    def _move(self, what: str, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        snapshot = self._states[group].whole
        if what == "merge":
            self._member.look_for(group, others)
            return
        self._moving[group] = what
        if what == "join":
            self._work(self._moved(group, self._member.join(group, snapshot=snapshot, contacts=others)))
        elif what == "form":
            self._work(self._moved(group, self._member.form(group, others, snapshot=snapshot)))
        else:
            assert what == "leave", what
            self._work(self._moved(group, self._member.group(group).leave()))

    async def _moved(self, group: GroupId, work: Any) -> None:
        await work
        self._moving.pop(group, None)

    def _finish(self) -> None:
        self._member.driver.finish()
        core = self._member.core
        held = {group: core.unstable(group) for group in self._groups}
        leaving = sorted(group for group, what in self._moving.items() if what == "leave")
        moving = {"joining": sorted(self._moving.keys() - leaving), "leaving": leaving}
        self._recorder.stopped(self._clock(), held, {}, moving)

    async def _close(self) -> None:
        await self._mesh.close()

    # The application

    async def _read(self) -> None:
        async for group, event in self._member.read_together():
            await self._going.wait()
            if isinstance(event, Message):
                self._deliveries += 1
                self._states[GroupId(group.name)].add(b"%b %b" % (event.sender.encode(), event.payload))
            elif isinstance(event, Reset):
                self._states[GroupId(group.name)].replace(event.states)
            else:
                self._viewed_at = self._clock()

    async def _request(self, workload: Workload, payload: bytes) -> None:
        group = self._member.find(workload.group)
        if group is not None and not group.leaving and (group.health.members or group.name in self._moving):
            while group.view is None and group.health.members:  # it started late: the first view is still to be read
                await asyncio.sleep(0.001)
            self._requested_at = self._clock()
            await group.send(payload)

    def _status(self) -> dict[str, Any]:
        core = self._member.core
        groups: list[Group] = [group for each in self._states if (group := self._member.find(str(each))) is not None]
        return {
            "left": self._left,
            "requested_at": self._requested_at,
            "viewed_at": self._viewed_at,
            "deliveries": self._deliveries,
            "unread": sum(group.health.unread for group in groups) * self._going.is_set(),
            "retains": any(core.retains(each) or core.waiting(each) for each in self._states),
            "moving": sorted(self._moving),
            "views": {group.name: group.view.id for group in groups if group.view is not None},
        }


def _mesh(scenario: Scenario, process: ProcessId, host: str) -> TcpMesh | UdpMesh:
    if scenario.network.transport == "stream":
        return TcpMesh(process, (host, 0))
    return UdpMesh(process, (host, 0), datagram_bytes=_DATAGRAM_BYTES)
