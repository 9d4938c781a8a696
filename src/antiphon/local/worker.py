"""One member process of a local run: plays its part of a scenario on real sockets, and keeps its trace.

Started by the supervisor, told what to do by lines of JSON on its standard input, it answers by such lines. Rows of its
trace are written before anything that they tell of leaves the process: whoever is killed leaves a whole trace.
"""

import asyncio
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from antiphon.core.newtop.process import NewtopProcess
from antiphon.local.lines import orders, tell
from antiphon.runtime.events import Message, Reset
from antiphon.runtime.group import Group
from antiphon.runtime.member import Member
from antiphon.runtime.transports.tcp import TcpMesh
from antiphon.runtime.transports.udp import UdpMesh
from antiphon.scenario.model import Scenario, Workload
from antiphon.scenario.read import parse_scenario
from antiphon.sim.cores import core_builder, groups_of, outside_of, recorder_of, start_detail
from antiphon.sim.states import State
from antiphon.types import GroupId, ProcessId, split_process_id

_STATUS_S: Final = 0.05
_DATAGRAM_BYTES: Final = 32_000
"""On this machine nothing is cut on the way."""


class Worker:
    """The process, its application, and its ear for the supervisor."""

    def __init__(self, scenario: Scenario, process: ProcessId, rows: Path) -> None:
        self._scenario = scenario
        self._process = process
        self._name = split_process_id(process)[0]
        self._recorder = recorder_of(scenario, process)
        self._rows = os.open(rows, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._epoch = time.monotonic_ns()
        self._states = {GroupId(each.name): State(each.state_bytes) for each in groups_of(scenario, process)}
        self._going = asyncio.Event()
        self._going.set()
        self._left = sum(workload.messages for workload in self._workloads)
        self._requested_at = 0
        self._viewed_at = 0
        self._deliveries = 0
        self._moving: dict[GroupId, str] = {}  # by group: joining, forming or leaving it
        self._tasks: set[asyncio.Task[None]] = set()
        self._mesh = _mesh(scenario, process)
        core = cast("NewtopProcess", core_builder(scenario, random.Random(scenario.seed))(process))
        outside = outside_of(scenario, process)
        self._formed = {group.name for group in scenario.group if group.formed}
        self._member = Member.of(
            process,
            core,
            self._mesh,
            self._recorder,
            configured={group: state.whole for group, state in self._states.items() if group not in outside},
            clock=self._clock,
            journal=self._journal,
        )

    @property
    def _workloads(self) -> list[Workload]:
        return [workload for workload in self._scenario.workload if self._name in workload.senders]

    def _clock(self) -> int:
        return time.monotonic_ns() - self._epoch

    def _journal(self) -> None:
        """What has happened is on record before anybody can hear of it."""
        if self._recorder.rows:
            packed = msgspec.msgpack.encode(self._recorder.rows)
            os.write(self._rows, len(packed).to_bytes(4) + packed)
            self._recorder.rows.clear()

    # What the supervisor says

    async def run(self) -> None:
        """Until it says stop."""
        await self._member.open()
        tell({"address": self._mesh.address})
        async for order in orders():
            if order["do"] == "stop":
                break
            await self._obey(order)
        await self._stop()

    async def _obey(self, order: dict[str, Any]) -> None:
        what = order.pop("do")
        if what == "meet":
            self._mesh.meet([tuple(address) for address in order["addresses"]])
            while not {*order["peers"]} <= {*self._member.peers}:
                await asyncio.sleep(0.005)
            tell({"done": what})
        elif what == "set_clock":
            self._epoch = order["epoch"]
            self._recorder.note("start", self._clock(), start_detail(self._scenario, self._process))
            tell({"done": what})
        elif what == "go":
            self._go()
        elif what == "stall":
            (self._going.clear if order["begins"] else self._going.set)()
        elif what == "forbid":
            self._mesh.forbid(frozenset(order["names"]))
        elif what == "suspect":
            self._member.suspect(order["process"])
        else:
            self._move(what, GroupId(order["group"]), tuple(order.get("others", ())))

    def _go(self) -> None:
        self._begin(self._read())
        self._begin(self._report())
        for group, state in self._states.items():
            if group in self._formed:
                self._member.expect(group, state.whole)
        self._member.begin()
        for workload in self._workloads:
            self._begin(self._send(workload))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            traceback.print_exception(fault)
            sys.stderr.flush()
            os._exit(1)  # the supervisor tells of it; nothing here is worth going on for

    def _move(self, what: str, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        snapshot = self._states[group].whole
        if what == "merge":
            self._member.look_for(group, others)
            return
        self._moving[group] = what
        if what == "join":
            self._begin(self._moved(group, self._member.join(group, snapshot=snapshot, contacts=others)))
        elif what == "form":
            self._begin(self._moved(group, self._member.form(group, others, snapshot=snapshot)))
        else:
            assert what == "leave", what
            self._begin(self._moved(group, self._member.group(group).leave()))

    async def _moved(self, group: GroupId, work: Any) -> None:
        await work
        self._moving.pop(group, None)

    async def _stop(self) -> None:
        for task in [*self._tasks]:
            task.cancel()
        await self._member.stop()
        core = self._member.core
        held = {group: core.unstable(group) for group in self._recorder.groups}
        leaving = sorted(group for group, what in self._moving.items() if what == "leave")
        moving = {"joining": sorted(self._moving.keys() - leaving), "leaving": leaving}
        self._recorder.stopped(self._clock(), held, {}, moving)
        self._journal()
        os.close(self._rows)

    # The application

    async def _read(self) -> None:
        async for group, event in self._member.events():
            await self._going.wait()
            if isinstance(event, Message):
                self._deliveries += 1
                self._states[GroupId(group.name)].add(b"%b %b" % (event.sender.encode(), event.payload))
            elif isinstance(event, Reset):
                self._states[GroupId(group.name)].replace(event.states)
            else:
                self._viewed_at = self._clock()

    async def _send(self, workload: Workload) -> None:
        chance = random.Random(f"{self._scenario.seed}/{self._process}/{workload.name}")
        filler = f".{self._name}.{workload.name}".encode().ljust(workload.payload, b".")
        for position in range(workload.messages):
            planned = workload.start + (position + 1) * workload.interval
            if workload.jitter:
                planned += int(workload.jitter * (2.0 * chance.random() - 1.0) * workload.interval)
            wait = (planned - self._clock()) / 1e9
            if wait > 0:
                await asyncio.sleep(wait)
            group = self._member.find(workload.group)
            if group is not None and not group.leaving and (group.health.members or group.name in self._moving):
                self._requested_at = self._clock()
                await group.send((b"%d" % position + filler)[: workload.payload])
            self._left -= 1

    async def _report(self) -> None:
        """Whether there is anything left to wait for."""
        while True:
            await asyncio.sleep(_STATUS_S)
            groups = [group for each in self._states if (group := self._member.find(str(each))) is not None]
            tell({"status": self._status(groups)})

    def _status(self, groups: list[Group]) -> dict[str, Any]:
        core = self._member.core
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


def _mesh(scenario: Scenario, process: ProcessId) -> TcpMesh | UdpMesh:
    if scenario.network.transport == "stream":
        return TcpMesh(process, ("127.0.0.1", 0))
    return UdpMesh(process, ("127.0.0.1", 0), datagram_bytes=_DATAGRAM_BYTES)


def main() -> None:
    """`python -m antiphon.local.worker SCENARIO PROCESS ROWS`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts a run interrupts its supervisor
    scenario, process, rows = sys.argv[1:]
    parsed = parse_scenario(Path(scenario).read_text(encoding="utf-8"))
    asyncio.run(Worker(parsed, ProcessId(process), Path(rows)).run())


if __name__ == "__main__":
    main()
