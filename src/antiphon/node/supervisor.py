"""The supervisor of a local run: starts one process for each member, applies the faults of the scenario, collects.

Time is wall time, and the network is that of this machine. The scenario's latency, bandwidth and hosts have no effect.
Its loss has none either, except under InterGroup, where processes drop frames at that rate. A crash is a kill, and a
pause is a stop signal. A partition closes the connections between its sides and keeps them closed. The trace has the
form of a simulation's, and the same properties judge it.
"""

import asyncio
import contextlib
import random
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from antiphon.errors import AntiphonError
from antiphon.node.histories import Histories
from antiphon.node.partitions import Partitions
from antiphon.node.refusals import refuse
from antiphon.node.remote import Place, Remote
from antiphon.protocols.assembly import facts_of
from antiphon.protocols.registry import family_of
from antiphon.scenario.model import Recover, Scenario, members_of
from antiphon.scenario.read import run_id, scenario_toml
from antiphon.sim.faults import Faults
from antiphon.sim.run import Run
from antiphon.trace.recorder import compact_json
from antiphon.trace.segments import SegmentWriter
from antiphon.types import GroupId, ProcessId, process_id, split_process_id

_START_S: Final = 120.0
"""The processes may take this long to start and to find each other."""
_POLL_S: Final = 0.05
_SEGMENT_NS: Final = 500_000_000
"""How often new rows become a segment of the trace, if the run can be watched."""
_SETTLED_NS: Final = 300_000_000
"""If processes become silent, a run counts as quiet after nothing was left to do for this long."""


class WorkerFailed(AntiphonError):  # noqa: N818 - what happened
    """A member process ended by itself."""


class _Wall:
    """Time since the run began."""

    def __init__(self) -> None:
        self.epoch = 0
        self._loop = asyncio.get_running_loop()

    @property
    def now(self) -> int:
        return time.monotonic_ns() - self.epoch

    def at(self, when: int, action: Callable[[Any], None], argument: Any = None, /) -> None:
        self._loop.call_later(max(0, when - self.now) / 1e9, action, argument)


class LocalRun:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        directory: Path,
        segments: SegmentWriter | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        """`places`: by name, the places of processes that run elsewhere."""
        refuse(scenario)
        self._places = places or {}
        self._reserved: socket.socket | None = None
        self._scenario = scenario
        self._facts = facts_of(scenario)
        self._sockets = family_of(scenario).sockets
        self._segments = segments
        self._toml = directory / "scenario.toml"
        self._toml.write_text(scenario_toml(scenario), encoding="utf-8")
        self._wall = _Wall()
        self._remotes: dict[ProcessId, Remote] = {}
        self._histories = Histories(scenario, directory, lambda process: self._remotes[process].ended)
        self._current: dict[str, Remote] = {}
        self._groups: dict[str, tuple[str, int]] = {}
        """The multicast addresses of the groups."""
        self._network = Partitions(
            self._remotes,
            merges=self._facts.merges or scenario.network.transport == "datagram",
            renews=self._facts.changing or (self._sockets is not None and self._sockets.reconnects),
        )
        self._starting: set[asyncio.Task[None]] = set()
        self._failure: str | None = None
        self._began = self._interrupted = False

    @property
    def began(self) -> bool:
        """True if there is a trace to keep."""
        return self._began

    def interrupt(self) -> None:
        """End the run early: the processes stop, and the trace up to here is kept."""
        self._interrupted = True

    async def play(self, watch: Callable[[dict[ProcessId, dict[str, Any]]], None] | None = None) -> Run:
        """Play the whole run. `watch` is called regularly with the status of each process."""
        try:
            await self._start()
            reason = await self._play(watch)
            await self._stop()
        finally:
            for remote in self._remotes.values():
                remote.kill()
            await asyncio.gather(*(remote.gone() for remote in self._remotes.values()), return_exceptions=True)
            if self._reserved is not None:
                self._reserved.close()
        quiet = reason == "quiet"
        self._histories.world.note("end", self._wall.now, compact_json({"quiet": quiet, "reason": reason}))
        if self._segments is not None:
            self._histories.cut(self._segments)
        return self._collect(quiet)

    async def _stop(self) -> None:
        """All traces end before the first connection is closed: a closed connection looks like a crash to its peer."""
        await asyncio.gather(*(remote.finish() for remote in self._remotes.values()))
        self._require_health()
        await asyncio.gather(*(remote.stop() for remote in self._remotes.values()))

    def failed(self, process: ProcessId, errors: str) -> None:
        """A process has ended by itself."""
        last = errors.strip().splitlines()
        self._failure = self._failure or f"{process} ended by itself: {last[-1] if last else 'it printed no error'}"

    def crashed(self, process: ProcessId) -> None:
        """A process was killed."""
        self._histories.crashed(process, self._wall.now)

    # The course of a run

    async def _start(self) -> None:
        try:
            await asyncio.wait_for(self._gather(), _START_S)
        except TimeoutError:
            raise WorkerFailed(f"the processes did not find each other within {_START_S:.0f} s") from None
        self._require_health()

    def _require_health(self) -> None:
        if self._failure is not None:
            raise WorkerFailed(self._failure)

    async def _gather(self) -> None:
        for name in self._scenario.processes:
            self._add(ProcessId(name))
        await asyncio.gather(*(self._launch(remote) for remote in self._remotes.values()))
        self._groups = self._group_addresses()
        remotes, groups = [*self._remotes.values()], self._groups
        await asyncio.gather(
            *(remote.meet([each for each in remotes if each is not remote], groups) for remote in remotes)
        )
        self._wall.epoch = time.monotonic_ns() + 50_000_000
        if self._segments is not None:
            self._segments.begin(time.time_ns() + 50_000_000)
        await asyncio.gather(
            *(remote.set_clock(self._wall.epoch) for remote in remotes)
        )  # all processes listen before any frame leaves
        for remote in remotes:
            remote.order(do="go")

    def _group_addresses(self) -> dict[str, tuple[str, int]]:
        """The multicast address of each group, if it has one; no other run receives it: the port is ours meanwhile.

        The addresses are of the scope that does not leave a site (RFC 2365); datagrams do not pass routers anyway.
        """
        if self._sockets is None or self._sockets.player != "multicast":
            return {}
        self._reserved = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reserved.bind(("127.0.0.1", 0))
        port: int = self._reserved.getsockname()[1]
        names = [group.name for group in self._scenario.group]
        return {name: (f"239.255.{rank >> 8}.{rank & 255}", port) for rank, name in enumerate(names, start=1)}

    def _add(self, process: ProcessId) -> Remote:
        name = split_process_id(process)[0]
        remote = self._remotes[process] = Remote(process, self, self._places.get(name, Place()))
        self._current[name] = remote
        self._histories.add(process)
        return remote

    async def _launch(self, remote: Remote) -> None:
        await remote.start(self._toml, self._histories.path(remote.id))

    async def _play(
        self, watch: Callable[[dict[ProcessId, dict[str, Any]]], None] | None
    ) -> Literal["quiet", "duration", "interrupted"]:
        """Returns the reason why the run ended."""
        self._began = True
        scenario = self._scenario
        faults = Faults(
            scenario.fault, self._wall, self._remotes, self._network, self._histories.world, [*self._facts.waiting],
            None, random.Random(0), self._revive,
        )  # fmt: skip
        next_segment = _SEGMENT_NS
        while self._wall.now < scenario.duration:
            await asyncio.sleep(_POLL_S)
            if self._segments is not None and self._wall.now >= next_segment:
                next_segment = self._wall.now + _SEGMENT_NS
                await asyncio.to_thread(self._histories.cut, self._segments)  # faults begin at their times
            if self._interrupted:
                return "interrupted"
            self._require_health()
            if watch is not None:
                watch({remote.id: remote.status for remote in self._remotes.values() if not remote.crashed})
            if self._is_quiet(faults):
                return "quiet"
        return "duration"

    def _is_quiet(self, faults: Faults[Remote]) -> bool:
        """True if everything was sent, and nothing was left to do for the quiet time of the scenario."""
        live = [remote for remote in self._remotes.values() if remote.running]
        if faults.ended_at is None or self._starting or not all(remote.status for remote in live):
            return False
        last = max(faults.ended_at, *(remote.status["requested_at"] for remote in live), 0)
        patience = int(self._scenario.quiet) if self._facts.perpetual else _SETTLED_NS
        if self._wall.now < last + patience or any(remote.status["left"] for remote in live):
            return False
        return not self._is_at_work(live, faults) and not self._parted(faults, last)

    def _is_at_work(self, live: list[Remote], faults: Faults[Remote]) -> bool:
        """True if processes in stable components still have something to do, or were not at rest together for long."""
        connected = {process for component in faults.components for process in component}
        told = [remote.rest for remote in live if remote.id in connected]
        rests = [rest for rest in told if rest is not None]
        if len(rests) < len(told):
            return True
        together = min((end for _, end in rests), default=0) - max((begin for begin, _ in rests), default=0)
        return bool(self._facts.resting_ns and rests) and together < self._facts.resting_ns

    def _parted(self, faults: Faults[Remote], last: int) -> bool:
        """As in the simulator: True if connected members may still merge, or have merged only recently."""
        scenario = self._scenario
        if not self._facts.changing or self._wall.now >= last + self._facts.uniting_ns:
            return False
        for component in faults.components:
            status = [self._remotes[process].status for process in component if not self._remotes[process].crashed]
            for group in scenario.group:
                if len({each["views"][group.name] for each in status if group.name in each["views"]}) > 1:
                    return True
        viewed_at = max((remote.status.get("viewed_at", 0) for remote in self._remotes.values()), default=0)
        return self._wall.now < viewed_at + self._facts.settling_ns

    def _revive(self, fault: Recover) -> Remote:
        name, incarnation = split_process_id(self._current[fault.process].id)
        remote = self._add(process_id(name, incarnation + 1))
        task = asyncio.get_running_loop().create_task(self._bring_back(remote, fault))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return remote

    async def _bring_back(self, remote: Remote, fault: Recover) -> None:
        await self._launch(remote)
        self._network.inform(remote)
        await remote.set_clock(self._wall.epoch)
        # processes that also start will connect to us; some may be gone before that
        others = [each for each in self._current.values() if each is not remote and not each.crashed and each.address]
        await remote.meet(others, self._groups, wait=False)
        for other in others if self._groups else ():  # datagrams of a process that was not introduced are ignored
            other.introduce(remote)
        remote.order(do="go")
        members = {group.name: members_of(group) for group in self._scenario.group}
        for group in fault.joins or ():
            contacts = tuple(self._current[other].id for other in members[group] if other != fault.process)
            remote.join(GroupId(group), contacts)

    # What is left

    def _collect(self, quiet: bool) -> Run:
        *histories, world = self._histories.read()
        kinds = [row["kind"] for history in histories for row in history.rows]
        return Run(
            id=run_id(self._scenario),
            scenario=self._scenario,
            histories=(*histories, world),
            virtual_ns=self._wall.now,
            quiet=quiet,
            requests=kinds.count("send"),
            deliveries=kinds.count("deliver"),
            inputs=kinds.count("receive"),
            interrupted=self._interrupted,
        )


@contextlib.contextmanager
def _interruptible(run: LocalRun) -> Iterator[None]:
    """The first Ctrl-C ends a run that has begun, and its trace is kept. Any other one cancels the task that plays."""
    loop, task, before = asyncio.get_running_loop(), asyncio.current_task(), signal.getsignal(signal.SIGINT)
    interrupted = kept = False

    def interrupt() -> None:
        nonlocal interrupted, kept
        if run.began and not kept:
            kept = True
            run.interrupt()
            return
        interrupted = True
        assert task is not None
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def run_locally(
    scenario: Scenario,
    watch: Callable[[dict[ProcessId, dict[str, Any]]], None] | None = None,
    segments: SegmentWriter | None = None,
    places: Mapping[str, Place] | None = None,
) -> Run:
    """Play a scenario with real processes; returns the result of a simulation, and writes segments meanwhile.

    `places`: by name, the places of processes that run elsewhere.
    """

    async def play(directory: Path) -> Run:
        run = LocalRun(scenario, directory, segments, places)
        with _interruptible(run):
            return await run.play(watch)

    with tempfile.TemporaryDirectory(prefix="antiphon-") as directory:
        return asyncio.run(play(Path(directory)))
