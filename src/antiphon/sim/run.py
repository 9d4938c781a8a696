"""One simulated run: a scenario in, its histories and figures out. The same scenario gives the same run."""

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from antiphon.core.newtop.process import NewtopProcess
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.scenario.model import Scenario, members_of
from antiphon.scenario.read import run_id
from antiphon.sim.faults import Faults
from antiphon.sim.hosts import Host, Node
from antiphon.sim.network import Carry, SimulatedNetwork
from antiphon.sim.workload import Applications
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, first_view

WORLD = ProcessId("world")


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
    """Frames, requests and ticks fed to cores: the protocol events that benchmarks count."""


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
        views = {
            GroupId(group.name): first_view(GroupId(group.name), _ids(members_of(group))) for group in scenario.group
        }
        hosts = [Host() for _ in range(scenario.hosts.count or len(scenario.processes))]
        self._nodes = {
            ProcessId(name): self._node(ProcessId(name), views, hosts[rank % len(hosts)])
            for rank, name in enumerate(scenario.processes)
        }

    def run(self) -> Run:
        """From the start of every process to its stop."""
        scenario, queue = self._scenario, self._queue
        with _no_garbage_collection():
            self._start()
            faults = Faults(scenario.fault, queue, self._nodes, self._network, self._world)
            self._applications.start(self._nodes)
            ended = queue.run(scenario.duration)
        quiet = faults.ended_at is not None and (
            ended or queue.now - max(faults.ended_at, self._applications.last_request_at) >= scenario.quiet
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

    def _chance(self, purpose: str) -> random.Random:
        """One stream of randomness per purpose: a change in one does not shift the others."""
        return random.Random(f"{self._scenario.seed}/{purpose}")

    def _node(self, process: ProcessId, views: dict[GroupId, View], host: Host) -> Node:
        scenario = self._scenario
        own = {name: view for name, view in views.items() if process in view.members}
        services = {GroupId(group.name): group.service for group in scenario.group if group.name in own}
        options = scenario.options
        settings = NewtopSettings(
            silence_timeout_ns=options.time_silence,
            packing=options.packing,
            frame_bytes_max=options.frame_bytes,
            tracing=scenario.trace == "full",
        )
        return Node(
            process,
            NewtopProcess(process, own, settings),
            host=host,
            hosts=scenario.hosts,
            queue=self._queue,
            network=self._network,
            application=self._applications,
            recorder=Recorder(process, services) if scenario.trace == "full" else None,
        )

    def _start(self) -> None:
        scenario = self._scenario
        for process, node in self._nodes.items():
            if node.recorder is not None:
                groups = {
                    group.name: {"members": sorted(members_of(group)), "service": group.service}
                    for group in scenario.group
                    if process in members_of(group)
                }
                options = msgspec.to_builtins(scenario.options, enc_hook=str)
                node.recorder.note("start", 0, {"protocol": scenario.protocol, "options": options, "groups": groups})
            node.turn()

    def _stop(self, ended: bool, quiet: bool) -> None:
        now = self._queue.now
        for node in self._nodes.values():
            if node.recorder is not None:
                node.recorder.note("stop", now)
        if self._world is not None:
            self._world.note("end", now, {"quiet": quiet, "reason": "quiet" if ended else "duration"})


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
