"""The network between simulated processes: latency, order, loss, bandwidth; all drawn from one seeded stream.

It carries bytes, as a real network does, so that no two processes ever share an object; for speed it can carry the
frames themselves, with the same result (tests compare the traces).
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from heapq import heappush
from statistics import NormalDist
from types import MethodType
from typing import Any, Final, Literal, NamedTuple, Protocol

from antiphon.core.effects import Channel, Frame, Scope, Transmit
from antiphon.scenario.model import Cut, Delay, Fixed, Latency, Loss, Network, Partition, Path, Uniform
from antiphon.sim.links import Break, Direction, Links
from antiphon.sim.world import EventQueue
from antiphon.types import GroupId, ProcessId, View, ViewId, name_of, split_process_id
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes

Carry = Literal["bytes", "frames"]
REORDER_LATENCIES: Final = 10
"""A reordered datagram arrives up to this many latencies later."""
_ALWAYS_DATAGRAMS: Final = frozenset({"acknowledgment"})
"""Kinds of frames that are datagrams even if messages use streams."""
HIGH_WATER_BYTES: Final = 65_536
"""With more bytes than this waiting, a line tells its process to pack; at half of it, to continue."""
_Loss = Callable[[int, Callable[[Any], None], Any], Direction | None]


class OnConnection(NamedTuple):
    """A frame on a later connection than the first of its direction."""

    connection: int
    carried: Any


def latency_source(latency: Latency, chance: random.Random) -> Callable[[], int]:
    """A function that draws one travel time after another, in nanoseconds."""
    if isinstance(latency, Fixed):
        value = int(latency.value)
        return lambda: value
    uniform = chance.random
    if isinstance(latency, Uniform):
        low, span = int(latency.low), latency.high - latency.low + 1
        return lambda: low + int(uniform() * span)
    return _lognormal(int(latency.median), latency.sigma, uniform).__next__


def _lognormal(median: int, sigma: float, uniform: Callable[[], float]) -> Iterator[int]:
    """An endless sequence of travel times; a generator, because resuming it is cheaper than a call."""
    exp, normal = math.exp, NormalDist().inv_cdf  # takes a third of the time of `random.gauss`; undefined at 0
    while True:
        yield int(median * exp(sigma * normal(uniform() or 0.5)))


class Line:
    """The line out of one process: one frame after another at a fixed rate."""

    def __init__(self, bits_per_second: int) -> None:
        self._bits_per_second = bits_per_second
        self._free_at = 0

    def send(self, size_bytes: int, now: int) -> int:
        """The time at which the last bit of a frame that is ready now has left."""
        self._free_at = max(self._free_at, now) + size_bytes * 8 * 1_000_000_000 // self._bits_per_second
        return self._free_at

    def falls_to(self, size_bytes: int) -> int:
        """The time at which at most this many bytes wait; in the past if that is already the case."""
        return self._free_at - size_bytes * 8 * 1_000_000_000 // self._bits_per_second


class Endpoint(Protocol):
    """A process, as the network sees it."""

    @property
    def id(self) -> ProcessId: ...
    @property
    def line(self) -> Line | None:
        """Its outgoing line, if lines are limited."""

    @property
    def last_arrival(self) -> dict[ProcessId, int]:
        """Per receiver, the arrival time of the last frame of the stream to it; written by the network."""

    def arrive(self, carried: Any) -> None:
        """A frame reaches it."""

    def is_bound(self, frame: Frame) -> bool:
        """True if an own frame belongs to the connection that the frame's group uses."""

    def severed(self, told: Break) -> None:
        """A connection with a peer has lost frames for good."""

    def reconnected(self, peer: ProcessId, connection: int | None) -> None:
        """Its frames to that peer use this connection from now on; None: no connection, they are lost."""


class SimulatedNetwork:
    """Carries frames between nodes; the faults of links act here."""

    def __init__(
        self,
        settings: Network,
        queue: EventQueue,
        chance: random.Random,
        carry: Carry,
        links: Links,
        paths: Mapping[tuple[str, str], Path] | None = None,
    ) -> None:
        """`paths`: by pair of processes, the path between them, if it differs from the default."""
        self._settings = settings
        self._streams = settings.transport == "stream"
        self._queue = queue
        self._chance = chance
        self._links = links
        self._draw = latency_source(settings.latency, chance)
        self._nodes: dict[ProcessId, Endpoint] = {}
        self._views: dict[tuple[ProcessId, GroupId], list[Endpoint]] = {}
        self._members: dict[ViewId, list[Endpoint]] = {}  # shared by all members of the view
        self._private: dict[tuple[ProcessId, GroupId, Scope], list[Endpoint]] = {}
        self._listeners: dict[GroupId, list[Endpoint]] = {}
        self._paths = {ends: (latency_source(path.latency, chance), path.loss) for ends, path in (paths or {}).items()}
        self._disturbances: list[Delay | Loss] = []
        self.carries_bytes = carry == "bytes"
        """True if frames are encoded. If not, no function is called, because a call per frame would cost time."""

    def attach(self, node: Endpoint) -> Line | None:
        """Connect a node; returns its outgoing line, if lines are limited."""
        self._nodes[node.id] = node
        self._links.attach(node.id)
        return Line(self._settings.bandwidth) if self._settings.bandwidth else None

    @property
    def counts_connections(self) -> bool:
        """True if groups may use other connections than the first ones."""
        return self._streams and self._links.renews

    def connect(self, node: Endpoint) -> None:
        """Inform a node about its connections with all others, and the others about theirs with it."""
        for other in self._nodes.values():
            if other is not node:
                for one, peer in ((node, other.id), (other, node.id)):
                    one.reconnected(peer, self._links.number((one.id, peer)))

    def install(self, process: ProcessId, view: View) -> None:
        """From now on frames of `process` to its view of that group go to these members."""
        if view.id not in self._members:
            self._members[view.id] = [self._nodes[member] for member in view.members]
        self._views[process, view.group] = self._members[view.id]
        for scope, chosen in ((Scope.RECEIVERS, view.receivers), (Scope.SENDERS, view.senders)):
            self._private[process, view.group, scope] = [self._nodes[member] for member in chosen or ()]

    def listen(self, node: Endpoint, group: GroupId) -> None:
        """Frames to the listeners of that group also go to this process."""
        self._listeners.setdefault(group, []).append(node)

    def unlisten(self, node: Endpoint, group: GroupId) -> None:
        """Stop listening."""
        self._listeners[group].remove(node)

    def forget(self, process: ProcessId, group: GroupId) -> None:
        """The process has no view of that group any more, if it had one."""
        self._views.pop((process, group), None)

    def disturb(self, fault: Delay | Loss | Partition | Cut) -> None:
        """Begin a fault on links."""
        if isinstance(fault, Delay | Loss):
            self._disturbances.append(fault)
        else:
            self._cut(self._links.cut(fault))
            self._reconnect()

    def calm(self, fault: Delay | Loss | Partition | Cut | None = None) -> None:
        """End one fault on links, or all of them."""
        if not isinstance(fault, Partition | Cut):
            self._disturbances = [other for other in self._disturbances if fault is not None and other is not fault]
        if not isinstance(fault, Delay | Loss):
            self._links.mend(fault)
            self._reconnect()

    def works(self, sender: ProcessId, receiver: ProcessId) -> bool:
        """True if frames pass in that direction from here on, if nothing changes."""
        return self._links.works((sender, receiver))

    def passes(self, sender: ProcessId, receiver: ProcessId) -> bool:
        """True if frames of some group do."""
        return self._links.passes((sender, receiver))

    def frame(self, carried: Any) -> Frame:
        """The payload of a queue entry, for any connection."""
        sent = carried.carried if type(carried) is OnConnection else carried
        return decode(sent) if self.carries_bytes else sent

    def copies(self, sender: Endpoint, effect: Transmit) -> int:
        """The number of receivers of a frame."""
        receivers = self._receivers(sender, effect)
        return len(receivers) - (sender in receivers)

    def transmit(self, sender: Endpoint, effect: Transmit, departure: int) -> None:
        """Transmit a frame to all its receivers."""
        frame = effect.frame
        assert not effect.ttl, "hops come with their family"
        everybody = effect.to is Scope.VIEW
        receivers = self._views[sender.id, frame.group] if everybody else self._receivers(sender, effect)
        if self._links.troubled:
            receivers = self._reached(sender, receivers, frame)
        carried = encode(frame) if self.carries_bytes else frame
        if effect.channel is Channel.STREAM:
            assert self._streams, "a core uses a channel that its settings do not have"
            self._stream(sender, receivers, frame, carried, departure)
        else:
            self._datagram(sender, receivers, frame, carried, departure)

    def crash(self, node: Endpoint) -> None:
        """The process has crashed, and a part of its frames under way is lost."""
        directions = [(node.id, receiver) for receiver in (*node.last_arrival, *self._nodes)]
        lost = self._lost_under_way([*dict.fromkeys(directions)], self._chance)

        def gone(time: int, action: Callable[[Any], None], argument: Any) -> bool:
            return (isinstance(action, MethodType) and action.__self__ is node) or lost(
                time, action, argument
            ) is not None

        self._queue.drop(gone)

    def _cut(self, directions: list[Direction]) -> None:
        """Nothing passes there from now on, and a part of the frames under way is lost."""
        lost = self._lost_under_way(directions, self._links.chance)
        hit = set()

        def unwanted(time: int, action: Callable[[Any], None], argument: Any) -> bool:
            direction = lost(time, action, argument)
            hit.add(direction)
            return direction is not None

        self._queue.drop(unwanted)
        for direction in directions:
            if self._streams and direction in hit:
                self._sever(direction)

    def _sever(self, direction: Direction) -> None:
        self._links.lose(direction, {end: self._nodes[end].severed for end in direction})
        self._reconnect()

    def _reconnect(self) -> None:
        """Inform the senders of all directions that gained or lost a connection."""
        if self.counts_connections:
            for sender, receiver in self._links.changed():
                self._nodes[sender].reconnected(receiver, self._links.number((sender, receiver)))

    def _reached(self, sender: Endpoint, receivers: list[Endpoint], frame: Frame) -> list[Endpoint]:
        """The receivers that the frame can reach; a stream that meets a cut now loses its frame.

        A frame that would be dropped on arrival is not transmitted: a configured group uses first connections.
        """
        links, reached = self._links, []
        configured = name_of(frame.group) == frame.group and sender.is_bound(frame)
        for receiver in receivers:
            direction = (sender.id, receiver.id)
            if links.is_cut(direction):
                if self._streams and links.breaks(direction):
                    self._sever(direction)
            elif not (configured and direction in links.connections):
                reached.append(receiver)
        return reached

    def _lost_under_way(self, directions: list[Direction], chance: random.Random) -> _Loss:
        """A function that gives, for a queue entry, the direction in which it is lost, if it is.

        Of the frames under way, each stream loses a suffix, and datagrams lose any part.
        """
        now = self._queue.now
        endings = dict.fromkeys(directions, now)
        for a, b in directions:
            if (arrival := self._nodes[a].last_arrival.get(b)) is not None:
                endings[a, b] = now + int(chance.random() * max(0, arrival - now))
        share = chance.random()
        arrivals: dict[Callable[[Any], None], ProcessId] = {each.arrive: each.id for each in self._nodes.values()}

        def lost(time: int, action: Callable[[Any], None], argument: Any) -> Direction | None:
            receiver = arrivals.get(action)
            if receiver is None:
                return None
            frame = self.frame(argument)
            direction = frame.sender, receiver
            if direction not in endings:
                return None
            on_stream = self._streams and frame.kind not in _ALWAYS_DATAGRAMS
            is_lost = time > endings[direction] if on_stream else chance.random() < share
            return direction if is_lost else None

        return lost

    def _receivers(self, sender: Endpoint, effect: Transmit) -> list[Endpoint]:
        to = effect.to
        if to is Scope.VIEW:
            return self._views[sender.id, effect.frame.group]
        if to is Scope.GROUP:
            return self._listeners[effect.frame.group]
        if isinstance(to, Scope):
            return self._private[sender.id, effect.frame.group, to]
        return [self._nodes[to]]

    def _stream(
        self, sender: Endpoint, receivers: list[Endpoint], frame: Frame, carried: object, departure: int
    ) -> None:
        heap, ticket, draw = self._queue.heap, self._queue.ticket, self._draw
        disturbed, line, last_arrival = self._disturbances, sender.line, sender.last_arrival
        renewed = self._links.connections
        for receiver in receivers:
            if receiver is sender:
                continue  # own copies never travel (Macedo94 §7.1)
            if line is not None:
                departure = line.send(_size(frame), departure)
            arrival = departure + draw()
            if disturbed:
                arrival += self._extra_ns(sender.id, receiver.id)
            earliest = last_arrival.get(receiver.id, 0)
            if arrival < earliest:
                arrival = earliest  # FIFO: never before its predecessor
            last_arrival[receiver.id] = arrival
            sent = carried
            if renewed and (sender.id, receiver.id) in renewed:
                sent = OnConnection(self._links.use((sender.id, receiver.id)), carried)
            heappush(heap, (arrival, ticket(), receiver.arrive, sent))

    def _datagram(
        self, sender: Endpoint, receivers: list[Endpoint], frame: Frame, carried: object, departure: int
    ) -> None:
        settings, chance, draw = self._settings, self._chance.random, self._draw
        if sender.line is not None:
            departure = sender.line.send(_size(frame), departure)
        for receiver in receivers:
            lost_on_path = 0.0
            if self._paths:
                draw, lost_on_path = self._paths.get((_name(sender.id), _name(receiver.id)), (self._draw, 0.0))
            for _ in range(receiver is not sender and 1 + (chance() < settings.duplicate)):
                if chance() < settings.loss or self._lost(sender.id, receiver.id):
                    continue
                if lost_on_path and chance() < lost_on_path:
                    continue
                arrival = departure + draw() + self._extra_ns(sender.id, receiver.id)
                if chance() < settings.reorder:
                    arrival += int(chance() * REORDER_LATENCIES * draw())
                self._queue.at(arrival, receiver.arrive, carried)

    def _extra_ns(self, sender: ProcessId, receiver: ProcessId) -> int:
        return sum(
            fault.extra
            for fault in self._disturbances
            if isinstance(fault, Delay) and _concerns(fault, sender, receiver)
        )

    def _lost(self, sender: ProcessId, receiver: ProcessId) -> bool:
        return any(
            self._chance.random() < fault.rate
            for fault in self._disturbances
            if isinstance(fault, Loss) and _concerns(fault, sender, receiver)
        )


def _concerns(fault: Delay | Loss, sender: ProcessId, receiver: ProcessId) -> bool:
    ends = _name(sender), _name(receiver)
    if fault.from_ is not None:
        return (fault.from_, fault.to) == ends
    return fault.process is None or fault.process in ends


@cache
def _name(process: ProcessId) -> str:
    """Faults affect every incarnation of a name."""
    return split_process_id(process)[0]


def _size(frame: Frame) -> int:
    return header_bytes(frame) + payload_bytes(frame)
