"""One simulated run: a scenario in, its histories and figures out. The same scenario gives the same run."""

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from antiphon.core.newtop.literal import printed
from antiphon.core.newtop.process import NewtopProcess
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.scenario.model import OPTIONS_IN_FORCE, Group, Scenario, members_of
from antiphon.scenario.read import run_id
from antiphon.sim.faults import Faults
from antiphon.sim.hosts import Host
from antiphon.sim.network import Carry, SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.workload import Applications
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import WORLD, GroupId, ProcessId, View, first_view


@dataclass(frozen=True, slots=True)
class Run:
    """What a simulation leaves."""

    id: str
    scenario: Scenario
    histories: tuple[Recorder, ...]
    """Of every process, then of the world; empty if the scenario turned tracing off."""
    virtual_ns: int
    quiet: bool
    """Whether the run settled, so that liveness can be judged."""
    requests: int
    deliveries: int
    inputs: int
    """Frames, requests and ticks fed to cores."""


def simulate(scenario: Scenario, carry: Carry = "bytes") -> Run:
    """Run a scenario to its end in virtual time."""
    return _Simulation(scenario, carry).run()


class _Simulation:
    """The parts of one run, wired."""

    def __init__(self, scenario: Scenario, carry: Carry) -> None:
        self._scenario = scenario
        self._queue = EventQueue()
        self._world = Recorder(WORLD) if scenario.trace == "full" else None
        self._applications = Applications(scenario.workload, self._queue, self._chance("workload"))
        self._network = SimulatedNetwork(scenario.network, self._queue, self._chance("network"), carry)
        self._groups = {GroupId(group.name): group for group in scenario.group}
        views = {name: first_view(name, _ids(members_of(group))) for name, group in self._groups.items()}
        self._views: dict[ProcessId, dict[GroupId, View]] = {ProcessId(name): {} for name in scenario.processes}
        for name, view in views.items():
            for process in view.members:
                self._views[process][name] = view
        hosts = [Host() for _ in range(min(scenario.hosts.count or len(self._views), len(self._views)))]
        self._rules = printed(scenario.options.literal)
        self._nodes = {
            process: self._node(process, hosts[rank % len(hosts)]) for rank, process in enumerate(self._views)
        }

    def run(self) -> Run:
        """From the start of every process to its stop."""
        scenario, queue = self._scenario, self._queue
        with _no_garbage_collection():
            self._start()
            faults = Faults(scenario.fault, queue, self._nodes, self._network, self._world, self._companies())
            self._applications.start(self._nodes)
            ended = queue.run(scenario.duration)
        quiet = faults.ended_at is not None and (
            ended or (self._only_timers_left() and queue.now - self._last_disturbance(faults) >= scenario.quiet)
        )
        self._stop(ended, quiet)
        recorders = [node.recorder for node in self._nodes.values()] + [self._world]
        return Run(
            id=run_id(scenario),
            scenario=scenario,
            histories=tuple(recorder for recorder in recorders if recorder is not None),
            virtual_ns=queue.now,
            quiet=quiet,
            requests=self._applications.requests,
            deliveries=self._applications.deliveries,
            inputs=sum(node.inputs for node in self._nodes.values()),
        )

    def _companies(self) -> list[frozenset[ProcessId]]:
        """Who waits for whom: with flow control, the members of a group for its slowest one."""
        return [_ids(members_of(group)) for group in self._groups.values() if self._scenario.options.flow_control]

    def _only_timers_left(self) -> bool:
        """Nothing is under way or waiting, not even for time to pass: what is missing now would stay missing."""
        timers = {node.tick for node in self._nodes.values()}
        return all(action in timers for _, _, action, _ in self._queue.heap) and not any(
            node.expectant for node in self._nodes.values()
        )

    def _last_disturbance(self, faults: Faults) -> int:
        return max(faults.ended_at or 0, self._applications.last_request_at)

    def _chance(self, purpose: str) -> random.Random:
        """One stream of randomness per purpose: a change in one does not shift the others."""
        return random.Random(f"{self._scenario.seed}/{purpose}")

    def _node(self, process: ProcessId, host: Host) -> Node:
        scenario, traced, views = self._scenario, self._scenario.trace == "full", self._views[process]
        services = {name: self._groups[name].service for name in views}
        core = NewtopProcess(process, views, self._settings(process), self._rules)
        return Node(
            process,
            core,
            host=host,
            hosts=scenario.hosts,
            queue=self._queue,
            network=self._network,
            application=self._applications,
            recorder=Recorder(process, services) if traced else None,
        )

    def _settings(self, process: ProcessId) -> NewtopSettings:
        options, groups = self._scenario.options, [self._groups[name] for name in self._views[process]]
        return NewtopSettings(
            service=groups[0].service,  # the same in all groups of a process
            silence_timeout_ns=options.time_silence,
            packing=options.packing,
            frame_bytes_max=options.frame_bytes,
            flow_control=options.flow_control,
            window=options.window,
            window_bytes=options.window_bytes,
            block_numbered=frozenset(GroupId(group.name) for group in groups if group.numbering == "block"),
            compression=options.compression,
            datagrams=self._scenario.network.transport == "datagram",
            repair_max_ns=options.suspect_after // 4,
            tracing=self._scenario.trace == "full",
        )

    def _start(self) -> None:
        options = msgspec.to_builtins(self._scenario.options, enc_hook=str)
        in_force = {name: value for name, value in options.items() if name in OPTIONS_IN_FORCE}
        told = {name: _promise(group) for name, group in self._groups.items()}
        for process, node in self._nodes.items():
            if node.recorder is not None:
                groups = {name: told[name] for name in self._views[process]}
                detail = {"protocol": self._scenario.protocol, "options": in_force, "groups": groups}
                node.recorder.note("start", 0, compact_json(detail))
            node.turn()

    def _stop(self, ended: bool, quiet: bool) -> None:
        now = self._queue.now
        for node in self._nodes.values():
            if node.recorder is not None:
                node.recorder.stopped(now)
        if self._world is not None:
            self._world.note("end", now, compact_json({"quiet": quiet, "reason": "quiet" if ended else "duration"}))


def _promise(group: Group) -> dict[str, object]:
    """What a member of a group goes by, as its `start` row tells."""
    return {"members": sorted(members_of(group)), "service": group.service, "numbering": group.numbering}


def _ids(names: tuple[str, ...]) -> frozenset[ProcessId]:
    return frozenset(map(ProcessId, names))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A run builds millions of values and no cycles: looking for cycles costs a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
