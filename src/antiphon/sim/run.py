"""One simulated run of a scenario, with its histories and figures. The same scenario gives the same run."""

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from antiphon.core.contract import Core
from antiphon.protocols.assembly import (
    core_builder,
    facts_of,
    listened_to,
    outside_of,
    recorder_of,
    start_detail,
)
from antiphon.scenario.changes import returns_at
from antiphon.scenario.model import Recover, Scenario, members_of
from antiphon.scenario.read import run_id
from antiphon.scenario.topology import paths_between
from antiphon.sim.faults import Faults
from antiphon.sim.hosts import Host
from antiphon.sim.links import Links
from antiphon.sim.network import Carry, SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.states import States
from antiphon.sim.workload import Applications
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import WORLD, GroupId, ProcessId, process_id, split_process_id


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a simulation."""

    id: str
    scenario: Scenario
    histories: tuple[Recorder, ...]
    """The history of every process, then of the world; empty if the scenario turned tracing off."""
    virtual_ns: int
    quiet: bool
    """True if the run settled, so that liveness can be judged."""
    requests: int
    deliveries: int
    inputs: int
    """Frames, requests and ticks fed to cores."""
    interrupted: bool = False
    """Whether the user ended it early; only a run of real processes can be."""


Watch = Callable[[Core], None]
"""Called with each core that is built."""


def simulate(scenario: Scenario, carry: Carry = "bytes", watch: Watch | None = None) -> Run:
    """Run a scenario to its end in virtual time; `watch` sees its cores."""
    return _Simulation(scenario, carry, watch).run()


class _Simulation:
    """The connected parts of one run."""

    def __init__(self, scenario: Scenario, carry: Carry, watch: Watch | None) -> None:
        self._scenario, self._watch = scenario, watch
        self._facts = facts_of(scenario)
        self._queue = EventQueue()
        self._world = Recorder(WORLD) if scenario.trace == "full" else None
        self._applications = Applications(
            scenario.workload,
            self._queue,
            self._chance("workload"),
            States({GroupId(group.name): group.state_bytes for group in scenario.group}, self._facts.unordered)
            if self._facts.changing
            else None,
            returns_at(scenario.fault),
        )
        links = Links(
            self._queue,
            self._chance("links"),
            self._facts.broken_after_ns,
            renews=self._facts.changing,
            merges=self._facts.merges,
        )
        self._network = SimulatedNetwork(
            scenario.network, self._queue, self._chance("network"), carry, links, paths_between(scenario)
        )
        self._build = core_builder(scenario, self._chance("cores"))
        names = scenario.processes
        hosts = [Host() for _ in range(min(scenario.hosts.count or len(names), len(names)))]
        self._hosts = {name: hosts[rank % len(hosts)] for rank, name in enumerate(names)}
        self._nodes = {process: self._node(process) for process in map(ProcessId, names)}
        """Every incarnation of every process."""

    def run(self) -> Run:
        """From the start of every process to its stop."""
        scenario, facts, queue = self._scenario, self._facts, self._queue
        with _no_garbage_collection():
            for node in self._nodes.values():
                self._begin(node)
            faults = Faults(
                scenario.fault,
                queue,
                self._nodes,
                self._network,
                self._world,
                [*facts.waiting],
                facts.told_after_ns,
                self._chance("notices"),
                self._revive,
            )
            self._applications.start(self._nodes)
            ended = self._run_until_quiet(faults) if facts.perpetual else queue.run(int(scenario.duration))
        quiet = faults.ended_at is not None and (
            ended or (self._only_timers_left(faults) and queue.now - self._last_disturbance(faults) >= scenario.quiet)
        )
        self._stop(ended, quiet)
        recorders = [self._nodes[process].recorder for process in self._in_order()] + [self._world]
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

    def _run_until_quiet(self, faults: Faults[Node]) -> bool:
        """Run processes that are never silent: the run ends a quiet time after the last request and the last fault.

        It continues, at most for its duration, while a core still holds messages or is about to join or leave a group.
        At the end of the duration, unfinished work counts against the run, unless messages are still under way. It also
        continues as long as connected members may need to merge. Members hold their probes for some time, so the run
        is examined again at another phase of the probe.
        """
        queue, scenario, duration = self._queue, self._scenario, int(self._scenario.duration)
        again = self._facts.recheck_ns or int(scenario.quiet)
        while True:
            calm = not self._applications.outstanding and faults.ended_at is not None
            until = (self._last_disturbance(faults) if calm else queue.now) + scenario.quiet
            settled = calm and until <= queue.now
            open_still = settled and (self._unsettled(faults) or self._parted(faults))
            if settled and not self._messages_travel() and (queue.now == duration or not open_still):
                return True
            if queue.now == duration:
                return False
            if queue.run(min(queue.now + again if settled else until, duration)):
                return True  # no process is left

    def _messages_travel(self) -> bool:
        """True if a message is under way to a process, or to an application that could take it."""
        nodes = self._nodes.values()
        arrivals = {node.arrive for node in nodes if not node.crashed}
        frames = [argument for _, _, action, argument in self._queue.heap if action in arrivals]
        return any(node.behind for node in nodes) or any(
            self._network.frame(each).kind in ("data", "fragment", "state", "word", "submit", "piece")
            for each in frames
        )

    def _unsettled(self, faults: Faults[Node]) -> bool:
        """True if a live process holds something that others may lack, or is joining or leaving a group."""
        asked = self._asked(faults)
        messages = self._facts.changing  # where groups overlap and are probed, a process always holds some null
        return any(
            node.id in asked and (node.moving or node.holds(GroupId(group.name), messages=messages))
            for group in self._scenario.group
            for node in map(self._applications.node, members_of(group))
        )

    def _parted(self, faults: Faults[Node]) -> bool:
        """Where groups change: True if connected members may still merge, or have merged only recently."""
        scenario = self._scenario
        if not self._facts.changing or self._queue.now >= self._last_disturbance(faults) + self._facts.uniting_ns:
            return False
        nodes = [[self._nodes[process] for process in component] for component in faults.components]
        views = [
            {node.presence.views[name] for node in component if not node.crashed and name in node.presence.views}
            for component in nodes
            for name in (GroupId(group.name) for group in scenario.group)
        ]
        viewed_at = max((node.presence.viewed_at for node in self._nodes.values()), default=0)
        return any(len(found) > 1 for found in views) or self._queue.now < viewed_at + self._facts.settling_ns

    def _only_timers_left(self, faults: Faults[Node]) -> bool:
        """True if nothing is under way or waiting, not even for a timer: the state would never change."""
        asked = self._asked(faults)
        timers = {node.tick for node in self._nodes.values()}
        arrivals = {node.arrive for node in self._nodes.values() if node.id not in asked}
        return all(action in timers or action in arrivals for _, _, action, _ in self._queue.heap) and not any(
            node.expectant for node in self._nodes.values() if node.id in asked
        )

    def _asked(self, faults: Faults[Node]) -> set[ProcessId]:
        """The processes that must come to rest; with views only well-connected ones: others may wait forever (E-56)."""
        if not self._facts.agreed:
            return {*self._nodes}
        return {process for component in faults.components for process in component}

    def _last_disturbance(self, faults: Faults[Node]) -> int:
        return max(faults.ended_at or 0, self._applications.last_request_at)

    def _chance(self, purpose: str) -> random.Random:
        """One stream of randomness per purpose: a change in one does not shift the others."""
        return random.Random(f"{self._scenario.seed}/{purpose}")

    def _in_order(self) -> list[ProcessId]:
        """Every incarnation, those of one process together."""
        place = {name: rank for rank, name in enumerate(self._scenario.processes)}
        return sorted(self._nodes, key=lambda process: (place[split_process_id(process)[0]], split_process_id(process)))

    def _node(self, process: ProcessId) -> Node:
        scenario, core = self._scenario, self._build(process)
        if self._watch is not None:
            self._watch(core)
        return Node(
            process,
            core,
            host=self._hosts[split_process_id(process)[0]],
            hosts=scenario.hosts,
            queue=self._queue,
            network=self._network,
            application=self._applications,
            recorder=recorder_of(scenario, process) if scenario.trace == "full" else None,
            outside=outside_of(scenario, process),
        )

    def _revive(self, fault: Recover) -> Node:
        """A process starts again as a new incarnation, in no group, and asks all possible members of its groups."""
        applications = self._applications
        name, incarnation = split_process_id(applications.node(fault.process).id)
        process = process_id(name, incarnation + 1)
        node = self._nodes[process] = self._node(process)
        applications.recovered(name, node)
        self._begin(node)
        members = {group.name: members_of(group) for group in self._scenario.group}
        for group in fault.joins or ():
            contacts = tuple(applications.node(other).id for other in members[group] if other != name)
            node.join(GroupId(group), contacts)
        return node

    def _begin(self, node: Node) -> None:
        if node.recorder is not None:
            node.recorder.note("start", self._queue.now, start_detail(self._scenario, node.id))
        for group in listened_to(self._scenario, node.id):
            self._network.listen(node, group)
        node.turn()

    def _stop(self, ended: bool, quiet: bool) -> None:
        now = self._queue.now
        for node in self._nodes.values():
            node.stop()
        if self._world is not None:
            self._world.note("end", now, compact_json({"quiet": quiet, "reason": "quiet" if ended else "duration"}))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A run builds millions of values and no cycles; the search for cycles costs a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
