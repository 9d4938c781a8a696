"""The faults of a scenario: put in force at their time, undone at theirs, and told in the world's own history."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from antiphon.scenario.model import Crash, Delay, Fault, Heal, Join, Leave, Loss, Pause, Skew, Slow, Stall
from antiphon.sim.network import SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import GroupId, ProcessId


class Faults:
    """Carries the plan out. After its last entry nothing breaks or mends any more: `ended_at`.

    In each of `companies` all wait for the slowest. Of a crash every other process learns `notice_ns` later or up to
    half as much again, all of the same crashes in the same order: a perfect failure detector, which needs bounds that
    only a simulation has (N4).
    """

    def __init__(
        self,
        plan: tuple[Fault, ...],
        queue: EventQueue,
        nodes: Mapping[ProcessId, Node],
        network: SimulatedNetwork,
        world: Recorder | None,
        companies: Sequence[frozenset[ProcessId]],
        notice_ns: int,
        chance: random.Random,
    ) -> None:
        self.ended_at: int | None = None
        self._queue = queue
        self._nodes = nodes
        self._network = network
        self._world = world
        self._companies = companies
        self._notice_ns = notice_ns
        self._chance = chance
        self._noticed: dict[ProcessId, int] = {}  # when each process learns of the last loss so far
        self._entries_left = 0
        self._factors: dict[tuple[type[Fault], str], list[float]] = defaultdict(list)
        for fault in plan:
            self._plan(fault.at, fault, begins=True)
            if not isinstance(fault, Heal | Crash | Join | Leave) and fault.until is not None:
                self._plan(fault.until, fault, begins=False)
        if not plan:
            self._end()

    def _plan(self, when: int, fault: Fault, *, begins: bool) -> None:
        self._entries_left += 1
        self._queue.at(int(when), self._carry_out, (fault, begins))  # a time, no longer a length of time

    def _carry_out(self, entry: tuple[Fault, bool]) -> None:
        fault, begins = entry
        if self._world is not None:
            detail = msgspec.to_builtins(fault, enc_hook=str) | {"begins": begins}
            told = {key: value for key, value in detail.items() if value is not None}
            self._world.note("fault", self._queue.now, compact_json(told))
        self._apply(fault, begins)
        self._done()

    def _done(self) -> None:
        self._entries_left -= 1
        if not self._entries_left:
            self._end()

    def _apply(self, fault: Fault, begins: bool) -> None:
        match fault:
            case Pause():
                self._node(fault.process).pause(begins)
            case Stall():
                self._node(fault.process).stall(begins)
            case Slow():
                self._node(fault.process).slowness = self._combined(fault, begins, fault.factor)
            case Skew():
                rate = self._combined(fault, begins, fault.rate)
                self._node(fault.process).skew(int(fault.offset) if begins else 0, rate)
            case Delay() | Loss() if begins:
                self._network.disturb(fault)
            case Delay() | Loss():
                self._network.calm(fault)
            case Heal():
                self._network.calm()
            case Crash():
                self._crash(self._node(fault.process))
            case Join():
                self._node(fault.process).join(GroupId(fault.group))
            case Leave():
                self._node(fault.process).leave(GroupId(fault.group))

    def _crash(self, node: Node) -> None:
        node.crash()
        self._network.crash(node)
        for other in [other for other in self._nodes.values() if not other.crashed]:
            late = int(self._chance.random() * self._notice_ns / 2)
            when = max(self._queue.now + self._notice_ns + late, self._noticed.get(other.id, 0))
            self._noticed[other.id] = when
            self._entries_left += 1
            self._queue.at(when, self._tell, (other, node.id))

    def _tell(self, notice: tuple[Node, ProcessId]) -> None:
        node, lost = notice
        node.lost(lost)
        self._done()

    def _combined(self, fault: Slow | Skew, begins: bool, factor: float) -> float:
        """The product of all factors of this kind now in force at a process: faults may overlap."""
        factors = self._factors[type(fault), fault.process]
        if begins:
            factors.append(factor)
        else:
            factors.remove(factor)
        return math.prod(factors)

    def _node(self, name: str) -> Node:
        return self._nodes[ProcessId(name)]

    def _end(self) -> None:
        """A stable component: processes that are up and connected from here on. Without cuts there is one.

        Whoever cannot but wait for a hindered process is in none: flow control stops the company of one that takes
        nothing.
        """
        self.ended_at = self._queue.now
        if self._world is not None:
            hindered = {node.id for node in self._nodes.values() if node.hindered}
            waiting = hindered.union(*(company for company in self._companies if company & hindered))
            up = [process for process, node in self._nodes.items() if process not in waiting and not node.crashed]
            self._world.note("faults_end", self._queue.now, compact_json({"components": [up]}))
