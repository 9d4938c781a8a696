"""Members in processes of their own, told what to do in lines of JSON, and telling in such lines what happens."""

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antiphon import Member
from antiphon.core.effects import Deliver
from antiphon.node import lines
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.sockets.transports.tcp import TcpMesh

Report = dict[str, Any]
"""A report of a process; `event` is its kind."""


class Process:
    """One of them, as the benchmark holds it."""

    def __init__(self, module: str, name: str, **settings: Any) -> None:
        self.name = name
        self.reports: list[Report] = []
        self._module = module
        self._settings = {"name": name, **settings}
        self._news = asyncio.Event()

    async def start(self) -> None:
        """Start the process; its reports are kept from now on."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, "--worker", json.dumps(self._settings),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
        )  # fmt: skip
        self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if line.endswith(b"\n"):  # else it was killed while it spoke
                self.reports.append(json.loads(line))
                self._news.set()

    async def tell(self, do: str, **what: Any) -> None:
        """Let it do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **what}).encode() + b"\n")
        await self._process.stdin.drain()

    async def heard(self, event: str, holds: Callable[[Report], bool] = bool, within_s: float = 60) -> Report:
        """Wait for a report that satisfies the condition."""
        try:
            async with asyncio.timeout(within_s):
                while True:
                    for report in self.reports:
                        if report["event"] == event and holds(report):
                            return report
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise SystemExit(f"{self.name} has not told of {event!r} within {within_s:g} s") from None

    def all(self, event: str) -> list[Report]:
        """All reports of this kind."""
        return [report for report in self.reports if report["event"] == event]

    def signal(self, number: signal.Signals) -> None:
        """Stop, continue or kill it."""
        self._process.send_signal(number)

    async def close(self) -> int:
        """Tell it that there is nothing more to do, if it still listens, and wait for its end; gives its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = await self._process.wait()
        await self._listener
        return code


def tell(event: str, **what: Any) -> None:
    """In a process: report something."""
    lines.tell({"event": event, **what})


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


# Figures of the own process


def resident_bytes() -> int:
    """RSS."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    """Descriptors, without the one that this takes."""
    return len([*Path("/proc/self/fd").iterdir()]) - 1


def held_bytes(member: Member) -> int:
    """Payload bytes that a member holds, each counted once: unstable, unread, in part, or waiting to leave."""
    payloads: dict[int, bytes] = {}
    assert isinstance(member._process.core, NewtopProcess)
    for group in member._process.core._groups.values():
        for frame in group.holdings.buffers.held():
            payloads.update((id(each), each) for each in frame.payloads)
        waiting = [
            *group.outgoing.outbox.waiting,
            *(piece for pieces in group.fragments.open.values() for piece in pieces),
        ]
        payloads.update((id(each), each) for each in waiting)
    for shown in member._process._groups.values():
        payloads.update((id(each), each) for each in shown._outgoing.batch)
        for effect in shown._incoming.shown:
            if isinstance(effect, Deliver):
                payloads.update((id(each), each) for each in effect.frame.payloads)
    return sum(map(len, payloads.values()))


def table_sizes(member: Member) -> dict[str, int]:
    """Number of entries in the tables that live as long as the process."""
    core, driver, mesh = member._process.core, member._process.driver, member._process._transport
    assert isinstance(core, NewtopProcess)
    formations = core._formations
    assert formations is not None
    found: dict[str, Any] = {
        "groups": core._groups,
        "timers": core._alarms._timers._heap,
        "known": [each for known in formations.acquaintances.known.values() for each in known],
        "mute": formations.attempts.mute,
        "refused": formations.attempts.refused,
        "epochs": formations.attempts.epochs,
        "bound": core._connections._incoming,
        "broken": core._connections._broken,
        "others": driver.port.others,
    }
    if isinstance(mesh, TcpMesh):
        found |= {
            "addresses": mesh._addresses.known,
            "callers": mesh._callers,
            "numbers": mesh._addresses._numbers,
            "links": mesh._links,
            "strangers": mesh._guests.half_open,
        }
    return {name: len(table) for name, table in found.items()}


def live_objects() -> int:
    """Number of objects that the garbage collector knows after a collection."""
    gc.collect()
    return len(gc.get_objects())
