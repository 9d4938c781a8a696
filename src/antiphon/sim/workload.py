"""The simulated applications: their requests to send, and the replies of the papers' experiments."""

import random
from collections import defaultdict
from collections.abc import Mapping

from antiphon.core.effects import Frame, InstallState
from antiphon.scenario.model import Workload
from antiphon.sim.node import Node
from antiphon.sim.states import States
from antiphon.sim.world import EventQueue
from antiphon.types import GroupId, ProcessId, name_of


class Applications:
    """All applications of a run: they send by their workloads and count deliveries."""

    def __init__(
        self,
        workloads: tuple[Workload, ...],
        queue: EventQueue,
        chance: random.Random,
        states: States | None = None,
        returns_at: Mapping[str, int] | None = None,
    ) -> None:
        """`states`: states of applications, where groups change. `returns_at`: the last recovery of each process."""
        self.requests = 0
        self.deliveries = 0
        self.last_request_at = 0
        self.outstanding = sum(workload.messages * len(workload.senders) for workload in workloads)
        """Requests that are planned and not made yet; those of a process that is down for good are never made."""
        self._queue = queue
        self._chance = chance
        self._workloads = workloads
        self._states = states
        self._returns_at = returns_at or {}
        self._nodes: dict[str, Node] = {}  # by name, in its last incarnation
        self._awaited = {workload.name: _Replies(workload) for workload in workloads if workload.replies}
        self._listens = any(workload.replies or workload.answers != "none" for workload in workloads)
        self._sent: dict[tuple[ProcessId, GroupId], int] = defaultdict(int)
        self._taken: dict[tuple[ProcessId, ProcessId, GroupId], int] = defaultdict(int)

    def start(self, nodes: Mapping[ProcessId, Node]) -> None:
        """Start every sender of every workload."""
        self._nodes |= {str(process): node for process, node in nodes.items()}
        for workload in self._workloads:
            for name in workload.senders if workload.messages else ():
                _Sender(self, workload, name, self._queue, self._chance).start()

    def recovered(self, name: str, node: Node) -> None:
        """A process is up again: its senders continue."""
        self._nodes[name] = node

    def node(self, name: str) -> Node:
        """The last incarnation of a process."""
        return self._nodes[name]

    def gone(self, name: str) -> bool:
        """True if a process is down for good."""
        return self._nodes[name].crashed and self._queue.now >= self._returns_at.get(name, 0)

    def request(self, node: Node, group: GroupId, *payloads: bytes, workload: str | None = None) -> None:
        """An application sends all of these in one turn of its loop."""
        if not node.accepts(group):
            return
        self.requests += len(payloads)
        self.last_request_at = self._queue.now
        if self._awaited:
            first = self._sent[node.id, group]
            self._sent[node.id, group] = first + len(payloads)
            if workload in self._awaited:
                self._awaited[workload].places[node.id].update(range(first, first + len(payloads)))
        node.request(group, *payloads, container=workload or "")

    def ask(self, node: Node, group: GroupId, payload: bytes, answers: str) -> None:
        """An application sends a request to its group."""
        if node.accepts(group):
            self.requests += 1
            self.last_request_at = self._queue.now
            node.ask(group, payload, answers)

    def asked(self, node: Node, frame: Frame) -> None:
        """Answer a request that arrived outside the order of the group."""
        node.answer(frame, b"answer")

    def taken(self, node: Node, frame: Frame) -> None:
        """Count deliveries; answer requests; send a due reply as the next event."""
        self.deliveries += len(frame.payloads)
        if self._states is not None:
            self._states.delivered(node.id, frame)
        if not self._listens:
            return
        if node.must_answer(frame):
            self.asked(node, frame)
        group = name_of(frame.group)
        stream = node.id, frame.author, group
        first = self._taken[stream]
        self._taken[stream] = first + len(frame.payloads)
        for replies in self._awaited.values():
            if replies.due(node.id, frame, first):
                self._queue.at(self._queue.now, lambda payload: self.request(node, group, payload), replies.payload)

    def state(self, node: Node, group: GroupId) -> bytes:
        """The state of the application."""
        assert self._states is not None, "groups change"
        return self._states.of(node.id, group)

    def merge(self, node: Node, effect: InstallState) -> bytes:
        """The state of the application after it has taken the states of others."""
        assert self._states is not None, "groups change"
        return self._states.merge(node.id, effect)

    def left(self, node: Node, group: GroupId) -> None:
        """Forget the state, where states are transferred."""
        if self._states is not None:
            self._states.forget(node.id, group)


class _Sender:
    """One sender of one workload. Requests due while its process is down or outside the group are left out."""

    def __init__(
        self, applications: Applications, workload: Workload, name: str, queue: EventQueue, chance: random.Random
    ) -> None:
        self._applications = applications
        self._workload = workload
        self._group = GroupId(workload.group)
        self._name = name
        self._queue = queue
        self._chance = chance
        self._filler = f".{name}.{workload.name}".encode().ljust(workload.payload, b".")
        self._position = 0

    def start(self) -> None:
        """Schedule the first request, or without an interval all of them."""
        if self._workload.interval:
            self._schedule()
        else:
            self._queue.at(int(self._workload.start), self._request_all)

    def _schedule(self) -> None:
        workload = self._workload
        planned = workload.start + (self._position + 1) * workload.interval
        if workload.jitter:
            planned += int(workload.jitter * (2.0 * self._chance.random() - 1.0) * workload.interval)
        self._queue.at(max(planned, self._queue.now), self._request_next)

    def _request_next(self, _: object) -> None:
        self._request(self._payload(self._position))
        self._position += 1
        if self._applications.gone(self._name):
            self._applications.outstanding -= self._workload.messages - self._position
        elif self._position < self._workload.messages:
            self._schedule()

    def _request_all(self, _: object) -> None:
        self._request(*map(self._payload, range(self._workload.messages)))

    def _request(self, *payloads: bytes) -> None:
        applications, answers = self._applications, self._workload.answers
        node = applications.node(self._name)
        applications.outstanding -= len(payloads)
        if answers == "none":
            applications.request(node, self._group, *payloads, workload=self._workload.name)
            return
        for payload in payloads:
            applications.ask(node, self._group, payload, answers)

    def _payload(self, position: int) -> bytes:
        """A payload of this size, with the differing bytes first: most payloads of a run are different."""
        return (b"%d" % position + self._filler)[: self._workload.payload]


class _Replies:
    """Counts deliveries of a workload with replies, per process (Macedo94 ch. 7: 1-active, all-active)."""

    def __init__(self, workload: Workload) -> None:
        self.payload = f"reply.{workload.name}".encode().ljust(workload.payload, b".")[: workload.payload]
        self.places: dict[ProcessId, set[int]] = {ProcessId(name): set() for name in workload.senders}
        """Per sender, the positions of this workload's messages among its messages in the group, counted from 0."""
        self._workload = workload
        self._missing: dict[ProcessId, int] = {}

    def due(self, process: ProcessId, frame: Frame, first: int) -> bool:
        """True if this frame, with messages from position `first`, brought the last one that `process` waited for."""
        if process == self._workload.senders[0] or name_of(frame.group) != self._workload.group:
            return False
        own = self.places.get(frame.author, ())
        before = self._missing.get(process, self._workload.messages * len(self.places))
        after = before - sum(place in own for place in range(first, first + len(frame.payloads)))
        self._missing[process] = after
        return after == 0 < before
