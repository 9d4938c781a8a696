"""The supervisor of a local run: starts one process for each member, lets befall them what the scenario says, collects.

Time is that of the wall, the network is that of this machine: of the scenario, latency, bandwidth and hosts do not act,
nor does loss, but for InterGroup, whose processes lose what comes at that rate. A crash is a kill, a pause a stop
signal; a partition closes the connections between its sides and keeps them closed. The trace is of the same form as
that of a simulation, and is judged by the same properties. While the run goes on, what the processes have on record is
cut into segments that can be watched: here, so that it costs them nothing.
"""

import asyncio
import contextlib
import json
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from antiphon.errors import AntiphonError, ConfigurationError
from antiphon.protocols.assembly import facts_of, recorder_of
from antiphon.protocols.registry import families, family_of
from antiphon.scenario.model import (
    Cut,
    Delay,
    Loss,
    Partition,
    Recover,
    Scenario,
    Skew,
    Slow,
    cut_links,
    members_of,
)
from antiphon.scenario.read import run_id, scenario_toml
from antiphon.sim.faults import Faults
from antiphon.sim.run import Run
from antiphon.trace.journal import JournalReader, TornHead
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.trace.records import Head
from antiphon.trace.replay import Replay
from antiphon.trace.segments import SegmentWriter
from antiphon.trace.table import events_within
from antiphon.types import WORLD, GroupId, ProcessId, process_id, split_process_id

_START_S: Final = 120.0
"""So long the processes may take to start and to find one another."""
_GRACE_S: Final = 60.0
"""So long a process may take to stop."""
_POLL_S: Final = 0.05
_SEGMENT_NS: Final = 500_000_000
"""How often new rows become a segment of the trace, if the run can be watched."""
_SETTLED_NS: Final = 300_000_000
"""Where processes fall silent: so long nothing may be left to do before a run counts as quiet."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: on this machine, but perhaps in a network namespace of its own."""

    host: str = "127.0.0.1"
    """The address that it is bound to."""
    within: tuple[str, ...] = ()
    """What starts a command there, such as `ip netns exec NAME`."""


class WorkerFailed(AntiphonError):  # noqa: N818 - what happened
    """A member process ended by itself."""


def refuse(scenario: Scenario) -> None:
    """What real processes on one machine cannot play."""
    sockets = family_of(scenario).sockets
    if sockets is None:
        played = " and ".join(name for name, family in families().items() if family.sockets is not None)
        raise ConfigurationError(
            f"protocol {scenario.protocol!r} runs in the simulator only; antiphon run plays {played}"
        )
    for key, problem in sockets.problems(scenario):
        raise ConfigurationError(f"{key}: {problem}" if key else problem)
    if scenario.options.literal:
        raise ConfigurationError("options.literal: errata as printed run in the simulator only")
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Cut | Delay | Loss | Slow | Skew):
            kind = type(fault).__name__.lower()
            raise ConfigurationError(
                f"fault[{i}].kind: {kind!r} needs a simulated network, or clock; see antiphon simulate"
            )
    for i, workload in enumerate(scenario.workload):
        if workload.replies or workload.answers != "none":
            raise ConfigurationError(f"workload[{i}]: replies and answers are played in the simulator only")


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


class _Remote:
    """A member process, from outside."""

    def __init__(self, process: ProcessId, run: "LocalRun", place: Place) -> None:
        self.id = process
        self._place = place
        self.crashed = False
        self.stalled = False
        self.status: dict[str, Any] = {}
        self.address: tuple[str, int] | None = None
        self._paused = 0
        self._stalls = 0
        self._run = run
        self._done = {"meet": asyncio.Event(), "set_clock": asyncio.Event()}  # by order, for those that are answered
        self._known = asyncio.Event()
        self._stopping = False
        self._child: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return not self.crashed and not self._paused

    @property
    def ended(self) -> bool:
        """It runs no longer, and writes nothing more."""
        return self._child is not None and self._child.returncode is not None

    async def start(self, scenario: Path, rows: Path) -> None:
        """Until its address is known."""
        self._child = await asyncio.create_subprocess_exec(
            *self._place.within,
            sys.executable, "-m", "antiphon.node.play", str(scenario), self.id, str(rows), self._place.host,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._reader = asyncio.get_running_loop().create_task(self._listen(self._child))
        await self._known.wait()

    async def meet(self, others: "list[_Remote]", groups: Mapping[str, tuple[str, int]], *, wait: bool = True) -> None:
        """Tell it where these and the groups are; until it is connected with them, if that is to be waited for."""
        addresses = [other.address for other in others]
        self.order(do="meet", addresses=addresses, peers=[other.id for other in others if wait], groups=groups)
        await self._done["meet"].wait()

    async def set_clock(self, epoch: int) -> None:
        """Tell it when the run begins; until it knows."""
        self.order(do="set_clock", epoch=epoch)
        await self._done["set_clock"].wait()

    async def _listen(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        while line := await child.stdout.readline():
            told = json.loads(line)
            if "status" in told:
                self.status = told["status"]
            elif "address" in told:
                self.address = told["address"]
                self._known.set()
            else:
                self._done[told["done"]].set()
        for awaited in (self._known, *self._done.values()):
            awaited.set()  # whoever waits for it waits in vain
        if not self.crashed and not self._stopping:
            self._run.failed(self.id, (await child.stderr.read()).decode(errors="replace"))

    def order(self, **what: Any) -> None:
        """Tell it what to do."""
        if self.crashed or self._child is None:
            return
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(what).encode() + b"\n")

    async def stop(self) -> None:
        """Let it write the end of its trace; it is killed if it does not."""
        if self.crashed:
            return
        self._stopping = True
        if self._paused:
            self._signal(signal.SIGCONT)
        self.order(do="stop")
        if self._child is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._child.wait(), _GRACE_S)
        self.kill()

    def kill(self) -> None:
        """At once."""
        self._stopping = True
        self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """Until nothing of it is left."""
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
        self._run.crashed(self)

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

    def slow(self, _factor: float) -> None:
        raise AssertionError("refused before the run")

    def skew(self, _offset_ns: int, _rate: float) -> None:
        raise AssertionError("refused before the run")

    def lost(self, _process: ProcessId) -> None:
        raise AssertionError("real processes find out by themselves")


class _Partitions:
    """The connections between the processes: partitions keep them closed."""

    def __init__(self, remotes: dict[ProcessId, _Remote], *, merges: bool, renews: bool) -> None:
        self._remotes = remotes
        self._merges, self._renews = merges, renews
        self._faults: list[Partition] = []
        self._broken: set[tuple[str, str]] = set()

    def disturb(self, fault: Delay | Loss | Partition | Cut) -> None:
        assert isinstance(fault, Partition)
        self._faults.append(fault)
        self._act()

    def calm(self, fault: Delay | Loss | Partition | Cut | None = None) -> None:
        self._faults = [other for other in self._faults if fault is not None and other is not fault]
        self._act()

    def crash(self, node: _Remote) -> None:
        """Its connections end with it."""

    def works(self, sender: ProcessId, receiver: ProcessId) -> bool:
        pair = _names(sender, receiver)
        return pair not in self._cut and (self._merges or pair not in self._broken)

    def passes(self, sender: ProcessId, receiver: ProcessId) -> bool:
        pair = _names(sender, receiver)
        return pair not in self._cut and (self._renews or pair not in self._broken)

    @property
    def _cut(self) -> set[tuple[str, str]]:
        return {link for fault in self._faults for link in cut_links(fault)}

    def _act(self) -> None:
        cut = self._cut
        self._broken |= cut
        for remote in self._remotes.values():
            name = split_process_id(remote.id)[0]
            remote.order(do="forbid", names=sorted(other for one, other in cut if one == name))


class LocalRun:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        directory: Path,
        segments: SegmentWriter | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        """`places`: by name, of the processes that do not run where we do."""
        refuse(scenario)
        self._places = places or {}
        self._reserved: socket.socket | None = None
        self._scenario = scenario
        self._facts = facts_of(scenario)
        self._sockets = family_of(scenario).sockets
        self._segments = segments
        self._directory = directory
        self._toml = directory / "scenario.toml"
        self._toml.write_text(scenario_toml(scenario), encoding="utf-8")
        self._wall = _Wall()
        self._world = Recorder(WORLD)
        self._journals: dict[ProcessId, _Journal] = {}
        self._cut_to: dict[Recorder, int] = {}  # how many rows of each history are in segments
        self._remotes: dict[ProcessId, _Remote] = {}
        self._current: dict[str, _Remote] = {}
        self._crashes: dict[ProcessId, int] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._failure: str | None = None

    async def play(self, watch: Callable[[dict[ProcessId, dict[str, Any]]], None] | None = None) -> Run:
        """The whole of it. `watch` is shown how each process is doing, now and then."""
        try:
            await self._start()
            quiet, ended = await self._play(watch)
            await asyncio.gather(*(remote.stop() for remote in self._remotes.values()))
        finally:
            for remote in self._remotes.values():
                remote.kill()
            await asyncio.gather(*(remote.gone() for remote in self._remotes.values()), return_exceptions=True)
            if self._reserved is not None:
                self._reserved.close()
        self._world.note(
            "end", self._wall.now, compact_json({"quiet": quiet, "reason": "quiet" if ended else "duration"})
        )
        if self._segments is not None:
            self._cut(self._segments)
        return self._collect(quiet)

    def failed(self, process: ProcessId, errors: str) -> None:
        """A process has ended by itself."""
        last = errors.strip().splitlines()
        self._failure = self._failure or f"{process} ended by itself: {last[-1] if last else 'it says nothing of why'}"

    def crashed(self, remote: _Remote) -> None:
        """A process was killed."""
        self._crashes[remote.id] = self._wall.now

    # The course of a run

    async def _start(self) -> None:
        try:
            await asyncio.wait_for(self._gather(), _START_S)
        except TimeoutError:
            raise WorkerFailed(f"the processes did not find one another within {_START_S:.0f} s") from None
        self._require_health()

    def _require_health(self) -> None:
        if self._failure is not None:
            raise WorkerFailed(self._failure)

    async def _gather(self) -> None:
        for name in self._scenario.processes:
            self._add(ProcessId(name))
        await asyncio.gather(*(self._launch(remote) for remote in self._remotes.values()))
        remotes, groups = [*self._remotes.values()], self._group_addresses()
        await asyncio.gather(
            *(remote.meet([each for each in remotes if each is not remote], groups) for remote in remotes)
        )
        self._wall.epoch = time.monotonic_ns() + 50_000_000
        if self._segments is not None:
            self._segments.begin(time.time_ns() + 50_000_000)
        await asyncio.gather(*(remote.set_clock(self._wall.epoch) for remote in remotes))  # all, before anybody speaks
        for remote in remotes:
            remote.order(do="go")

    def _group_addresses(self) -> dict[str, tuple[str, int]]:
        """Where each group is multicast to, if it is; the port is ours while the run lasts, so no other run hears it.

        The addresses are of the scope that does not leave a site (RFC 2365); datagrams do not pass routers anyway.
        """
        if self._sockets is None or self._sockets.player != "multicast":
            return {}
        self._reserved = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._reserved.bind(("127.0.0.1", 0))
        port: int = self._reserved.getsockname()[1]
        names = [group.name for group in self._scenario.group]
        return {name: (f"239.255.{rank >> 8}.{rank & 255}", port) for rank, name in enumerate(names, start=1)}

    def _add(self, process: ProcessId) -> _Remote:
        name = split_process_id(process)[0]
        remote = self._remotes[process] = _Remote(process, self, self._places.get(name, Place()))
        self._current[name] = remote
        head = Head.of(recorder_of(self._scenario, process), run_id(self._scenario))
        self._journals[process] = _Journal(head, self._directory / f"{process}.journal")
        return remote

    async def _launch(self, remote: _Remote) -> None:
        await remote.start(self._toml, self._journals[remote.id].path)

    async def _play(self, watch: Callable[[dict[ProcessId, dict[str, Any]]], None] | None) -> tuple[bool, bool]:
        scenario = self._scenario
        network = _Partitions(
            self._remotes,
            merges=self._facts.merges or scenario.network.transport == "datagram",
            renews=self._facts.changing or (self._sockets is not None and self._sockets.reconnects),
        )
        faults = Faults(
            scenario.fault, self._wall, self._remotes, network, self._world, [*self._facts.waiting], None,
            random.Random(0), self._revive,
        )  # fmt: skip
        next_segment = _SEGMENT_NS
        while self._wall.now < scenario.duration:
            await asyncio.sleep(_POLL_S)
            if self._segments is not None and self._wall.now >= next_segment:
                next_segment = self._wall.now + _SEGMENT_NS
                await asyncio.to_thread(self._cut, self._segments)  # faults come when they are due
            self._require_health()
            if watch is not None:
                watch({remote.id: remote.status for remote in self._remotes.values() if not remote.crashed})
            if self._is_quiet(faults):
                return True, True
        return False, False

    def _is_quiet(self, faults: Faults[_Remote]) -> bool:
        """Whether all has been asked for, and nothing has been left to do for as long as the scenario says."""
        live = [remote for remote in self._remotes.values() if remote.running]
        if faults.ended_at is None or self._starting or not all(remote.status for remote in live):
            return False
        if any(remote.status["left"] for remote in live):
            return False
        now, last = self._wall.now, max(faults.ended_at, *(remote.status["requested_at"] for remote in live), 0)
        patience = int(self._scenario.quiet) if self._facts.perpetual else _SETTLED_NS
        if now < last + patience:
            return False
        connected = {process for component in faults.components for process in component}
        asked = [remote for remote in live if remote.id in connected]
        if any(each.status["unread"] or each.status["retains"] or each.status["moving"] for each in asked):
            return False
        return not self._parted(faults, last)

    def _parted(self, faults: Faults[_Remote], last: int) -> bool:
        """As in the simulator: those who are connected are not together yet, or only just, and may still be."""
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

    def _revive(self, fault: Recover) -> _Remote:
        name, incarnation = split_process_id(self._current[fault.process].id)
        remote = self._add(process_id(name, incarnation + 1))
        task = asyncio.get_running_loop().create_task(self._bring_back(remote, fault))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return remote

    async def _bring_back(self, remote: _Remote, fault: Recover) -> None:
        await self._launch(remote)
        await remote.set_clock(self._wall.epoch)
        # who is starting too will come to us; some may be gone before we are connected with them
        others = [each for each in self._current.values() if each is not remote and each.running and each.address]
        await remote.meet(others, {}, wait=False)
        remote.order(do="go")
        members = {group.name: members_of(group) for group in self._scenario.group}
        for group in fault.joins or ():
            contacts = tuple(self._current[other].id for other in members[group] if other != fault.process)
            remote.join(GroupId(group), contacts)

    # What is left

    def _collect(self, quiet: bool) -> Run:
        histories = [self._history(process) for process in sorted(self._remotes)]
        kinds = [row["kind"] for history in histories for row in history.rows]
        return Run(
            id=run_id(self._scenario),
            scenario=self._scenario,
            histories=(*histories, self._world),
            virtual_ns=self._wall.now,
            quiet=quiet,
            requests=kinds.count("send"),
            deliveries=kinds.count("deliver"),
            inputs=kinds.count("receive"),
        )

    def _cut(self, segments: SegmentWriter) -> None:
        """New rows since the last segment are the next one."""
        histories = [*map(self._history, [*self._remotes]), self._world]
        counts = {history: len(history.rows) for history in histories}  # the world's may grow meanwhile
        new = [(history, range(self._cut_to.get(history, 0), count)) for history, count in counts.items()]
        segments.add(events_within(run_id(self._scenario), new))
        self._cut_to = counts

    def _history(self, process: ProcessId) -> Recorder:
        """What a process has on record by now; if it was killed, that it was comes last."""
        journal, ended = self._journals[process], self._remotes[process].ended
        journal.read()
        history = journal.history
        if ended and process in self._crashes and (not history.rows or history.rows[-1]["kind"] != "crash"):
            last = history.rows[-1]["time"] if history.rows else 0
            history.note("crash", max(self._crashes[process], last))
        return history


class _Journal:
    """The journal of one process, read as it grows."""

    def __init__(self, head: Head, path: Path) -> None:
        self.path = path
        self._replay = Replay(head)
        self._reader: JournalReader | None = None

    @property
    def history(self) -> Recorder:
        """What the journal has told so far."""
        return self._replay.history

    def read(self) -> None:
        """Read what is new; nothing if the process was killed before it had begun."""
        with contextlib.suppress(FileNotFoundError, TornHead):
            self._reader = self._reader or JournalReader(self.path)
            for entry in self._reader.entries():
                self._replay.take(entry)


def _names(one: ProcessId, other: ProcessId) -> tuple[str, str]:
    return split_process_id(one)[0], split_process_id(other)[0]


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the task that plays, in order, and no other."""
    loop, task, before = asyncio.get_running_loop(), asyncio.current_task(), signal.getsignal(signal.SIGINT)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
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
    """Play a scenario with real processes; gives what a simulation gives, and segments of it meanwhile.

    `places`: by name, of the processes that are to run elsewhere than here.
    """

    async def play(directory: Path) -> Run:
        with _interruptible():
            return await LocalRun(scenario, directory, segments, places).play(watch)

    with tempfile.TemporaryDirectory(prefix="antiphon-") as directory:
        return asyncio.run(play(Path(directory)))
