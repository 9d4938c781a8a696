"""The faults of a scenario: begun and ended at their times, and recorded in the world's own history."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from antiphon.scenario.model import (
    Crash,
    Cut,
    Delay,
    Demote,
    Fault,
    Form,
    Gone,
    Heal,
    Join,
    Leave,
    Loss,
    Merge,
    Moment,
    Partition,
    Pause,
    Promote,
    Recover,
    Skew,
    Slow,
    Stall,
    Suspect,
    accusers,
)
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import GroupId, ProcessId, split_process_id


class Time(Protocol):
    """The virtual clock or the wall clock."""

    @property
    def now(self) -> int: ...

    def at(self, time: int, action: Callable[[Any], None], argument: Any = None, /) -> None:
        """Schedule an action."""


class Struck(Protocol):
    """A process, as faults see it."""

    @property
    def id(self) -> ProcessId: ...
    @property
    def crashed(self) -> bool: ...
    @property
    def running(self) -> bool: ...
    @property
    def stalled(self) -> bool: ...
    def crash(self) -> None: ...
    def pause(self, begins: bool) -> None: ...
    def stall(self, begins: bool) -> None: ...
    def suspect(self, process: ProcessId) -> None: ...
    def join(self, group: GroupId, contacts: tuple[ProcessId, ...]) -> None: ...
    def leave(self, group: GroupId) -> None: ...
    def form(self, group: GroupId, members: tuple[ProcessId, ...]) -> None: ...
    def merge(self, group: GroupId, others: tuple[ProcessId, ...]) -> None: ...
    def promote(self, group: GroupId) -> None: ...
    def demote(self, group: GroupId) -> None: ...

    # Only a simulated process has its own host and clock and is informed of deaths; others refuse these faults.

    def slow(self, factor: float, /) -> None: ...
    def skew(self, offset_ns: int, rate: float, /) -> None: ...
    def lost(self, process: ProcessId, /) -> None: ...
    def told_gone(self, process: ProcessId, /) -> None: ...


_Process = TypeVar("_Process", bound=Struck)


class Disturbed(Protocol):
    """A network, as faults see it."""

    def disturb(self, fault: Delay | Loss | Partition | Cut) -> None: ...
    def calm(self, fault: Delay | Loss | Partition | Cut | None = None) -> None: ...
    def crash(self, node: Any) -> None: ...
    def works(self, sender: ProcessId, receiver: ProcessId) -> bool: ...
    def passes(self, sender: ProcessId, receiver: ProcessId) -> bool: ...


class Faults(Generic[_Process]):
    """Carries out the plan. After its last entry no fault begins or ends: `ended_at`.

    In each of `companies` all members wait for the slowest. Every other process is informed of a crash after
    `notice_ns` to 1.5 times `notice_ns`, and all are informed in the same order. This is a perfect failure detector,
    which needs bounds that only a simulation has (N4). With None no process is informed: members detect failures.

    A fault affects the incarnation that is up when it begins, and ends at the same incarnation.
    """

    def __init__(
        self,
        plan: tuple[Fault, ...],
        queue: Time,
        nodes: Mapping[ProcessId, _Process],
        network: Disturbed,
        world: Recorder | None,
        companies: Sequence[frozenset[ProcessId]],
        notice_ns: int | None,
        chance: random.Random,
        revive: Callable[[Recover], _Process] | None = None,
    ) -> None:
        """`revive`: starts a crashed process again, as its next incarnation, which joins its groups."""
        self.ended_at: int | None = None
        self.components: list[list[ProcessId]] = []
        """The stable components, after the plan has ended."""
        self._queue = queue
        self._nodes = nodes
        self._current = {str(process): node for process, node in nodes.items()}
        self._struck: dict[int, _Process] = {}  # by fault: the affected process
        self._revive = revive
        self._network = network
        self._world = world
        self._companies = companies
        self._notice_ns = notice_ns
        self._chance = chance
        self._noticed: dict[ProcessId, int] = {}  # when each process learns of the last loss so far
        self._entries_left = 0
        self._factors: dict[tuple[type[Fault], ProcessId], list[float]] = defaultdict(list)
        for fault in plan:
            self._plan(fault.at, fault, begins=True)
            if not isinstance(fault, Moment) and fault.until is not None:
                self._plan(fault.until, fault, begins=False)
        if not plan:
            self._end()

    def _plan(self, when: int, fault: Fault, *, begins: bool) -> None:
        self._entries_left += 1
        self._queue.at(int(when), self._carry_out, (fault, begins))  # a point in time, not a duration

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
            case Pause() | Stall() | Slow() | Skew():
                if begins:
                    self._struck[id(fault)] = self._node(fault.process)
                self._strike(self._struck[id(fault)], fault, begins)
            case Delay() | Loss() | Partition() | Cut() if begins:
                self._network.disturb(fault)
            case Delay() | Loss() | Partition() | Cut():
                self._network.calm(fault)
            case Suspect():
                for name in accusers(fault):
                    self._node(name).suspect(self._node(fault.process).id)
            case Gone():
                for name in accusers(fault):
                    self._node(name).told_gone(self._node(fault.process).id)
            case Heal():
                self._network.calm()
            case Crash():
                self._crash(self._node(fault.process))
            case Recover():
                assert self._revive is not None, "only in families with a failure detector of their own"
                self._current[fault.process] = self._revive(fault)
            case Join() | Leave() | Form() | Merge() | Promote() | Demote():
                self._move(self._node(fault.process), GroupId(fault.group), fault)

    def _move(self, node: _Process, group: GroupId, fault: Join | Leave | Form | Merge | Promote | Demote) -> None:
        match fault:
            case Join():
                node.join(group, self._ids(fault.via))
            case Leave():
                node.leave(group)
            case Form():
                node.form(group, self._ids(fault.members))
            case Merge():
                node.merge(group, self._ids(fault.with_))
            case Promote():
                node.promote(group)
            case Demote():
                node.demote(group)

    def _strike(self, node: _Process, fault: Pause | Stall | Slow | Skew, begins: bool) -> None:
        match fault:
            case Pause():
                node.pause(begins)
            case Stall():
                node.stall(begins)
            case Slow():
                node.slow(self._combined(node, fault, begins, fault.factor))
            case Skew():
                rate = self._combined(node, fault, begins, fault.rate)
                node.skew(int(fault.offset) if begins else 0, rate)

    def _crash(self, node: _Process) -> None:
        node.crash()
        self._network.crash(node)
        if self._notice_ns is None:
            return
        for other in [other for other in self._nodes.values() if not other.crashed]:
            late = int(self._chance.random() * self._notice_ns / 2)
            when = max(self._queue.now + self._notice_ns + late, self._noticed.get(other.id, 0))
            self._noticed[other.id] = when
            self._entries_left += 1
            self._queue.at(when, self._tell, (other, node.id))

    def _tell(self, notice: tuple[_Process, ProcessId]) -> None:
        node, lost = notice
        node.lost(lost)
        self._done()

    def _combined(self, node: _Process, fault: Slow | Skew, begins: bool, factor: float) -> float:
        """The product of all current factors of this kind at a process: faults may overlap."""
        factors = self._factors[type(fault), node.id]
        if begins:
            factors.append(factor)
        else:
            factors.remove(factor)
        return math.prod(factors)

    def _node(self, name: str) -> _Process:
        """The last incarnation of a process."""
        return self._current[name]

    def _ids(self, names: tuple[str, ...] | None) -> tuple[ProcessId, ...]:
        return tuple(self._current[name].id for name in names or ())

    def _end(self) -> None:
        self.ended_at = self._queue.now
        found = [self._served(component) for component in self._cliques()]
        self.components = [component for component in found if component] or [[]]
        if self._world is not None:
            self._world.note("faults_end", self._queue.now, compact_json({"components": self.components}))

    def _cliques(self) -> Iterator[list[ProcessId]]:
        """Sets of processes that are up and connected pairwise from here on; without cuts there is one set.

        Where two processes reach each other only through others, the others refute correct suspicions forever. So
        nothing can be demanded of such a set (E-56).
        """
        works, passes = self._network.works, self._network.passes
        left = [process for process, node in self._nodes.items() if node.running]
        reached = {process: _closure(process, left, passes) for process in left}
        while left:
            component = [other for other in left if other in reached[left[0]] and left[0] in reached[other]]
            left = [other for other in left if other not in component]
            if all(works(a, b) for a in component for b in component):
                yield component

    def _served(self, component: list[ProcessId]) -> list[ProcessId]:
        """The processes of a component that do not wait for a stalled application."""
        stalled = {_name(process) for process in component if self._nodes[process].stalled}
        waiting = stalled.union(*(company for company in self._companies if company & stalled))
        return [process for process in component if _name(process) not in waiting]


def _name(process: ProcessId) -> ProcessId:
    """The name of the process, without its incarnation, as in the companies."""
    return ProcessId(split_process_id(process)[0])


def _closure(
    process: ProcessId, others: list[ProcessId], works: Callable[[ProcessId, ProcessId], bool]
) -> set[ProcessId]:
    """The processes that messages of a process may reach, also through others; including itself."""
    reached = [process]
    for each in reached:  # the list grows during the loop
        reached += [other for other in others if other not in reached and works(each, other)]
    return {*reached}
