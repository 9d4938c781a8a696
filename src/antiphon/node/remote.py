"""A member process as its supervisor sees it: started, controlled by lines of JSON, stopped, killed."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from antiphon.types import GroupId, ProcessId

_GRACE_S: Final = 60.0
"""A process may take this long to stop."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: on this machine, but perhaps in a network namespace of its own."""

    host: str = "127.0.0.1"
    """The address that it is bound to."""
    within: tuple[str, ...] = ()
    """The prefix that starts a command there, such as `ip netns exec NAME`."""


class Owner(Protocol):
    """The run that a process belongs to."""

    def failed(self, process: ProcessId, errors: str) -> None:
        """A process has ended by itself; `errors` is what it wrote to its standard error."""

    def crashed(self, process: ProcessId) -> None:
        """A process was killed."""


class Remote:
    """A member process, from outside."""

    def __init__(self, process: ProcessId, run: Owner, place: Place) -> None:
        self.id = process
        self._place = place
        self.crashed = False
        self.stalled = False
        self.status: dict[str, Any] = {}
        self.address: tuple[str, int] | None = None
        self._rests_since: int | None = None
        """The time of the first status since it was last at work."""
        self._paused = 0
        self._stalls = 0
        self._run = run
        self._done = {
            each: asyncio.Event() for each in ("meet", "set_clock", "finish")
        }  # by order, for orders that are answered
        self._known = asyncio.Event()
        self._stopping = False
        self._child: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return not self.crashed and not self._paused

    @property
    def ended(self) -> bool:
        """True if it has ended and writes nothing more."""
        return self._child is not None and self._child.returncode is not None

    @property
    def rest(self) -> tuple[int, int] | None:
        """From when until when it was at rest and in one view, as far as it has told; None if it is at work.

        It is at work if it has events to read, messages that others may lack, or a group to join or leave.
        """
        if self._rests_since is None:
            return None
        return max(self._rests_since, self.status["viewed_at"]), self.status["now"]

    def _told(self, status: dict[str, Any]) -> None:
        self.status = status
        if any(status[each] for each in ("unread", "retains", "moving")):
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = status["now"]

    async def start(self, scenario: Path, rows: Path) -> None:
        """Wait until its address is known."""
        self._child = await asyncio.create_subprocess_exec(
            *self._place.within,
            sys.executable, "-m", "antiphon.node.play", str(scenario), self.id, str(rows), self._place.host,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            process_group=0,  # Ctrl-C is for the supervisor: a process that is only starting would die of it
        )  # fmt: skip
        self._reader = asyncio.get_running_loop().create_task(self._listen(self._child))
        await self._known.wait()

    async def meet(self, others: "list[Remote]", groups: Mapping[str, tuple[str, int]], *, wait: bool = True) -> None:
        """Send it the addresses of these processes and of the groups; optionally wait until it is connected."""
        self._tell_addresses(others, groups, wait=wait)
        await self._done["meet"].wait()

    def introduce(self, other: "Remote") -> None:
        """Send it the address of a process that has started since."""
        self._tell_addresses([other], {}, wait=False)

    def _tell_addresses(self, others: "list[Remote]", groups: Mapping[str, tuple[str, int]], *, wait: bool) -> None:
        addresses, peers = [other.address for other in others], [other.id for other in others]
        self.order(do="meet", addresses=addresses, peers=peers, groups=groups, wait=wait)

    async def set_clock(self, epoch: int) -> None:
        """Send it the start time of the run, and wait for its answer."""
        self.order(do="set_clock", epoch=epoch)
        await self._done["set_clock"].wait()

    async def _listen(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        while line := await child.stdout.readline():
            told = json.loads(line)
            if "status" in told:
                self._told(told["status"])
            elif "address" in told:
                self.address = told["address"]
                self._known.set()
            else:
                self._done[told["done"]].set()
        for awaited in (self._known, *self._done.values()):
            awaited.set()  # cancel all that wait for an answer
        if not self.crashed and not self._stopping:
            self._run.failed(self.id, (await child.stderr.read()).decode(errors="replace"))

    def order(self, **what: Any) -> None:
        """Send it an order."""
        if self.crashed or self._child is None:
            return
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(what).encode() + b"\n")

    async def finish(self) -> None:
        """Let it write the end of its trace. It does nothing more then, but keeps its connections."""
        if self.crashed:
            return
        if self._paused:
            self._signal(signal.SIGCONT)
        self.order(do="finish")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done["finish"].wait(), _GRACE_S)

    async def stop(self) -> None:
        """Let it close its connections and end; kill it if it does not."""
        if self.crashed:
            return
        self._stopping = True
        self.order(do="stop")
        if self._child is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._child.wait(), _GRACE_S)
        self.kill()

    def kill(self) -> None:
        """Kill it at once."""
        self._stopping = True
        self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until it has ended completely."""
        if self._child is not None:
            await self._child.wait()
            await self._reader

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    # What faults do

    def crash(self) -> None:
        self.crashed = True
        self._signal(signal.SIGKILL)
        self._run.crashed(self.id)

    def pause(self, begins: bool) -> None:
        self._paused += 1 if begins else -1
        if not self.crashed:
            self._signal(signal.SIGSTOP if self._paused else signal.SIGCONT)

    def stall(self, begins: bool) -> None:
        self._stalls += 1 if begins else -1
        self.stalled = self._stalls > 0
        self.order(do="stall", begins=self.stalled)

    def suspect(self, process: ProcessId) -> None:
        self.order(do="suspect", process=process)

    def join(self, group: GroupId, contacts: tuple[ProcessId, ...]) -> None:
        self.order(do="join", group=group, others=contacts)

    def leave(self, group: GroupId) -> None:
        self.order(do="leave", group=group)

    def form(self, group: GroupId, members: tuple[ProcessId, ...]) -> None:
        self.order(do="form", group=group, others=members)

    def merge(self, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        self.order(do="merge", group=group, others=others)

    def promote(self, group: GroupId) -> None:
        self.order(do="promote", group=group)

    def demote(self, group: GroupId) -> None:
        self.order(do="demote", group=group)

    def slow(self, _factor: float) -> None:
        raise AssertionError("refused before the run")

    def skew(self, _offset_ns: int, _rate: float) -> None:
        raise AssertionError("refused before the run")

    def lost(self, _process: ProcessId) -> None:
        raise AssertionError("real processes detect failures themselves")

    def told_gone(self, _process: ProcessId) -> None:
        raise AssertionError("refused before the run")
