"""The base of every member process of a local run, for any protocol.

The supervisor starts the process and gives it orders as lines of JSON on standard input; the process answers with such
lines. It plays the workloads of the scenario and keeps a journal of what it does: a killed process leaves its trace.
"""

import asyncio
import os
import random
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from antiphon.node.lines import orders, tell
from antiphon.protocols.assembly import recorder_of, start_detail
from antiphon.scenario.model import Scenario, Workload
from antiphon.scenario.placement import groups_of
from antiphon.scenario.read import run_id
from antiphon.sockets.transports.contract import Address
from antiphon.trace.journal import JournalFile, JournalRecorder
from antiphon.trace.records import Head
from antiphon.types import GroupId, ProcessId, split_process_id

_STATUS_S: Final = 0.05


class Player(ABC):
    """The process, its workloads, and the orders of the supervisor."""

    def __init__(self, scenario: Scenario, process: ProcessId, journal: Path) -> None:
        self._scenario = scenario
        self._process = process
        self._name, self._incarnation = split_process_id(process)
        head = Head.of(recorder_of(scenario, process), run_id(scenario))
        self._recorder = JournalRecorder(process, lambda: JournalFile(journal, head))
        self._recorder.open()
        self._epoch = time.monotonic_ns()
        self._left = sum(workload.messages for workload in self._workloads)
        self._requested_at = 0
        self._viewed_at = 0
        self._deliveries = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def _groups(self) -> list[GroupId]:
        return [GroupId(group.name) for group in groups_of(self._scenario, self._process)]

    @property
    def _workloads(self) -> list[Workload]:
        return [workload for workload in self._scenario.workload if self._name in workload.senders]

    def _clock(self) -> int:
        return time.monotonic_ns() - self._epoch

    # What each protocol does

    @abstractmethod
    async def _open(self) -> Address:
        """Listen; returns the address."""

    @abstractmethod
    async def _meet(self, order: dict[str, Any]) -> None:
        """Learn the addresses of the others."""

    @abstractmethod
    def _begin(self) -> None:
        """Start the core."""

    @abstractmethod
    def _do(self, what: str, order: dict[str, Any]) -> None:
        """Carry out any other order of the supervisor."""

    @abstractmethod
    async def _request(self, workload: Workload, payload: bytes) -> None:
        """The application sends, if it may."""

    @abstractmethod
    def _status(self) -> dict[str, Any]:
        """The status that the supervisor needs to decide whether the run is quiet."""

    @abstractmethod
    def _finish(self) -> None:
        """Do nothing more, and record the final state of the process. Connections stay open."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the connections."""

    # Orders of the supervisor

    async def run(self) -> None:
        """Carry out orders until the order to stop."""
        tell({"address": await self._open()})
        async for order in orders():
            if order["do"] == "stop":
                break
            await self._obey(order)
        await self._close()

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
        elif what == "finish":
            self._complete_trace()
            tell({"done": what})
        else:
            self._do(what, order)

    def _complete_trace(self) -> None:
        """All processes do this before any of them closes a connection, which would look like a crash to the others."""
        for task in [*self._tasks]:
            task.cancel()
        self._finish()
        self._recorder.close()
        if self._recorder.error is not None:
            raise self._recorder.error

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
            os._exit(1)  # the supervisor reports it, and the run is over

    # The application

    async def _send(self, workload: Workload) -> None:
        """Send the messages of a workload at their times; those that were due before a restart are left out."""
        chance, began_at = random.Random(f"{self._scenario.seed}/{self._process}/{workload.name}"), self._clock()
        filler = f".{self._name}.{workload.name}".encode().ljust(workload.payload, b".")
        for position in range(workload.messages):
            planned = workload.start + (position + 1) * workload.interval
            if workload.jitter:
                planned += int(workload.jitter * (2.0 * chance.random() - 1.0) * workload.interval)
            wait = (planned - self._clock()) / 1e9
            if wait > 0:
                await asyncio.sleep(wait)
            if not self._incarnation or planned >= began_at:
                await self._request(workload, (b"%d" % position + filler)[: workload.payload])
            self._left -= 1

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_STATUS_S)
            tell({"status": self._status() | {"now": self._clock()}})
