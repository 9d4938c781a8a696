"""A network inside one event loop: a stream for each pair of processes, with travel times drawn from a seed.

As on TCP, frames of one direction stay in order. A cut connection loses what was in transit; both ends learn that when
the cut is healed, with the next connection. A crash is noticed after the last frames have arrived.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.scenario.model import Uniform
from antiphon.scenario.units import Duration
from antiphon.sim.network import latency_source
from antiphon.sockets.offenders import Offence
from antiphon.sockets.transports.contract import Receiver, Seed, Unreached
from antiphon.types import ProcessId, split_process_id

_log: Final = logging.getLogger("antiphon.testing")
_NEXT_S: Final = 1e-9
"""Least time between two arrivals on one stream: timers of the same moment have no order."""


class _Connection:
    """A connection of two processes, in both directions."""

    def __init__(self, ends: tuple["Port", "Port"], number: int) -> None:
        self.ends = ends
        self.number = number
        self.cut_to: set[Port] = set()
        """Ends at which nothing arrives any more, without their knowledge."""
        self.last = dict.fromkeys(ends, 0.0)  # by receiver, when its last frames arrive

    def other(self, end: "Port") -> "Port":
        return self.ends[self.ends[0] is end]


class Network:
    """The network of all processes of a cluster."""

    def __init__(self, seed: int, latency_s: tuple[float, float]) -> None:
        low, high = (Duration(round(each * 1e9)) for each in latency_s)
        self._draw_ns = latency_source(Uniform(low=low, high=high), random.Random(seed))
        self._loop = asyncio.get_running_loop()
        self._ports: list[Port] = []
        self._latest: dict[frozenset[Port], _Connection] = {}
        """The last connection of each pair; its ends may not know yet that it began or ended."""
        self._sides: dict[str, int] = {}  # by name of the process; a process without an entry reaches all
        self._one_way: set[tuple[str, str]] = set()  # sender and receiver of frames that are lost

    def attach(self, port: "Port") -> None:
        """Connect a process with all that it reaches."""
        others, self._ports = self._ports, [*self._ports, port]
        for other in others:
            self._connect(port, other)

    def detach(self, port: "Port") -> None:
        """A process has ended."""
        self._ports.remove(port)
        for pair in [each for each in self._latest if port in each]:
            connection = self._latest.pop(pair)
            other = connection.other(port)
            self.carry(connection, other, other.vanished, connection)
        port.connections.clear()

    def carry(self, connection: _Connection, to: "Port", tell: Callable[..., None], *what: Any) -> None:
        """Call `tell` at the other end, after all that was sent there before."""
        arrival_s = max(self._loop.time() + self._draw_ns() / 1e9, connection.last[to] + _NEXT_S)
        connection.last[to] = arrival_s
        self._loop.call_at(arrival_s, self._arrive, connection, to, tell, what)

    def _arrive(self, connection: _Connection, to: "Port", tell: Callable[..., None], what: tuple[Any, ...]) -> None:
        if to not in connection.cut_to:
            tell(*what)

    def partition(self, sides: Iterable[Iterable[str]]) -> None:
        """From now on nothing passes between two of these sides."""
        self._sides = {name: place for place, side in enumerate(sides) for name in side}
        for connection in self._all():
            if not self._on_one_side(*connection.ends):
                connection.cut_to |= {*connection.ends}

    def cut(self, sender: str, receiver: str) -> None:
        """From now on nothing passes from one process to another; the other direction stays as it is."""
        self._one_way.add((sender, receiver))
        for connection in self._all():
            for end in connection.ends:
                if (_name(connection.other(end)), _name(end)) == (sender, receiver):
                    connection.cut_to.add(end)

    def heal(self) -> None:
        """All reach each other again; cut connections are replaced."""
        self._sides = {}
        self._one_way.clear()
        for connection in [each for each in self._all() if each.cut_to]:
            for end in connection.ends:
                end.ended(connection)
        for place, port in enumerate(self._ports):
            for other in self._ports[:place]:
                self._connect(port, other)

    def replace(self, connection: _Connection) -> None:
        """End a connection at both ends, and connect its processes again."""
        connection.cut_to.update(connection.ends)
        for end in connection.ends:
            end.ended(connection)
        if all(end in self._ports for end in connection.ends):
            self._connect(*connection.ends)

    def silence(self, port: "Port") -> None:
        """From now on nothing passes between this process and any other, without notice."""
        for connection in self._all():
            if port in connection.ends:
                connection.cut_to |= {*connection.ends}

    def _all(self) -> Iterable[_Connection]:
        """All connections, with those whose begin or end is not yet known at one end."""
        known = (connection for port in self._ports for connection in port.connections.values())
        return [*dict.fromkeys((*known, *self._latest.values()))]

    def _connect(self, one: "Port", other: "Port") -> None:
        pair = frozenset((one, other))
        before = self._latest.get(pair)
        if (before is not None and not before.cut_to) or not self._reaches(one, other):
            return
        connection = _Connection((one, other), 0 if before is None else before.number + 1)
        self._latest[pair] = connection
        for end in connection.ends:
            self.carry(connection, end, end.began, connection)

    def _reaches(self, one: "Port", other: "Port") -> bool:
        """Whether both directions work: a connection needs both."""
        names = _name(one), _name(other)
        if names in self._one_way or names[::-1] in self._one_way:
            return False
        return self._on_one_side(one, other)

    def _on_one_side(self, one: "Port", other: "Port") -> bool:
        sides = [self._sides.get(_name(port)) for port in (one, other)]
        return None in sides or sides[0] == sides[1]


class Port:
    """The transport of one process. Satisfies `Transport`."""

    streams: Final = True
    offenders: tuple[Offence, ...] = ()

    def __init__(self, me: ProcessId, network: Network, others: Iterable[str] = ()) -> None:
        """`others`: names of processes, as a user gives the addresses of peers."""
        self.id = me
        self._others = tuple(others)
        self.address = me, 0
        """Not a real address; the name stands in for the host."""
        self.connections: dict[ProcessId, _Connection] = {}
        self._network = network
        self._waiting: dict[ProcessId, list[bytes]] = {}
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None  # while the process is paused
        self._closed = False

    async def open(self, receiver: Receiver) -> None:
        """Connect with all processes."""
        self._receiver = receiver
        self._network.attach(self)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that we are connected with."""
        return tuple(sorted(self.connections))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The processes that we should know, each with its incarnation that we are connected with."""
        found = {split_process_id(peer)[0]: peer for peer in self.connections}
        return tuple(
            Seed((name, 0), found.get(name), None if name in found else Unreached.REFUSED) for name in self._others
        )

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with it."""
        found = self.connections.get(peer)
        return None if found is None else found.number

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:  # noqa: ARG002
        """A frame to a peer without a connection is lost."""
        for peer in peers:
            if peer in self.connections:
                self._waiting.setdefault(peer, []).append(sealed)

    def flush(self) -> None:
        """All frames for one process travel together."""
        waiting, self._waiting = self._waiting, {}
        for peer, sealed in waiting.items():
            if peer in self.connections:
                connection = self.connections[peer]
                other = connection.other(self)
                self._network.carry(connection, other, other.came, connection, sealed)

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Does nothing: this transport has no backpressure."""

    def fall_silent(self) -> None:
        """Let nothing pass from now on, without notice to others, as if the host were lost."""
        self._network.silence(self)

    async def close(self) -> None:
        """Close; what was sent still arrives."""
        if not self._closed:
            self._closed = True
            self._network.detach(self)

    # Calls of the network

    def came(self, connection: _Connection, sealed: list[bytes]) -> None:
        """Frames of a peer."""
        self._tell(self._arrived, connection, sealed)

    def began(self, connection: _Connection) -> None:
        """A connection has begun."""
        self._tell(self._connected, connection)

    def ended(self, connection: _Connection) -> None:
        """A connection has ended."""
        self._tell(self._broke, connection)

    def vanished(self, connection: _Connection) -> None:
        """A connection has ended because the other process has; its host reports that."""
        self._tell(self._gone, connection)

    def _tell(self, tell: Callable[..., None], *what: Any) -> None:
        if self._held is not None:
            self._held.append((tell, what))
        elif not self._closed:
            tell(*what)

    def _arrived(self, connection: _Connection, sealed: list[bytes]) -> None:
        peer = connection.other(self).id
        if self.connections.get(peer) is connection:
            try:
                self._receiver.arrived(peer, connection.number, sealed)
            except ProtocolViolation as violation:
                _log.warning("closing the connection with %s: %s", peer, violation)
                self._network.replace(connection)

    def _connected(self, connection: _Connection) -> None:
        peer = connection.other(self).id
        self.connections[peer] = connection
        self._receiver.connected(peer)

    def _broke(self, connection: _Connection) -> None:
        peer = connection.other(self).id
        if self.connections.get(peer) is connection:
            del self.connections[peer]
            self._receiver.broke(peer, connection.number)

    def _gone(self, connection: _Connection) -> None:
        peer = connection.other(self).id
        if self.connections.get(peer) is connection:
            self._broke(connection)
            self._receiver.gone(peer)

    # A process that does not run

    def hold(self) -> None:
        """Keep what arrives, because the process is paused."""
        self._held = self._held or []

    def release(self) -> None:
        """Handle what has arrived meanwhile."""
        held, self._held = self._held or [], None
        for tell, what in held:
            self._tell(tell, *what)


def _name(port: Port) -> str:
    return split_process_id(port.id)[0]
