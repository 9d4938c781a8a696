"""What every member process of a local run is, whatever its protocol: it hears the supervisor, asks, keeps its trace.

Started by the supervisor, told what to do by lines of JSON on its standard input, it answers by such lines. Rows of its
trace are written before anything that they tell of leaves the process: whoever is killed leaves a whole trace.
"""

import asyncio
import os
import random
import sys
import time
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.node.lines import orders, tell
from antiphon.protocols.assembly import recorder_of, start_detail
from antiphon.scenario.model import Scenario, Workload
from antiphon.sockets.transports.contract import Address
from antiphon.types import ProcessId, split_process_id

_STATUS_S: Final = 0.05


class Part:
    """The process, its workloads, and its ear for the supervisor."""

    def __init__(self, scenario: Scenario, process: ProcessId, rows: Path) -> None:
        self._scenario = scenario
        self._process = process
        self._name = split_process_id(process)[0]
        self._recorder = recorder_of(scenario, process)
        self._rows = os.open(rows, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._epoch = time.monotonic_ns()
        self._left = sum(workload.messages for workload in self._workloads)
        self._requested_at = 0
        self._viewed_at = 0
        self._deliveries = 0
        self._tasks: set[asyncio.Task[None]] = set()

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

    # What each protocol does

    async def _open(self) -> Address:
        """Be reachable; where."""
        raise NotImplementedError

    async def _meet(self, order: dict[str, Any]) -> None:
        """Get to know the others."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Take part."""
        raise NotImplementedError

    def _do(self, what: str, order: dict[str, Any]) -> None:
        """Anything else that the supervisor asks for."""
        raise NotImplementedError

    async def _request(self, workload: Workload, payload: bytes) -> None:
        """The application sends, if it may."""
        raise NotImplementedError

    def _status(self) -> dict[str, Any]:
        """Whether there is anything left to wait for."""
        raise NotImplementedError

    async def _end(self) -> None:
        """Be gone; tell the recorder how it was at the end."""
        raise NotImplementedError

    # What the supervisor says

    async def run(self) -> None:
        """Until it says stop."""
        tell({"address": await self._open()})
        async for order in orders():
            if order["do"] == "stop":
                break
            await self._obey(order)
        for task in [*self._tasks]:
            task.cancel()
        await self._end()
        self._journal()
        os.close(self._rows)

    async def _obey(self, order: dict[str, Any]) -> None:
        what = order.pop("do")
        if what == "meet":
            await self._meet(order)
            tell({"done": what})
        elif what == "set_clock":
            self._epoch = order["epoch"]
            self._recorder.note("start", self._clock(), start_detail(self._scenario, self._process))
            tell({"done": what})
        elif what == "go":
            self._go()
        else:
            self._do(what, order)

    def _go(self) -> None:
        self._work(self._report())
        self._begin()
        for workload in self._workloads:
            self._work(self._send(workload))

    def _work(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            traceback.print_exception(fault)
            sys.stderr.flush()
            os._exit(1)  # the supervisor tells of it; nothing here is worth going on for

    # The application

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
            await self._request(workload, (b"%d" % position + filler)[: workload.payload])
            self._left -= 1

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_STATUS_S)
            tell({"status": self._status()})
