"""Processes of one event loop, connected without sockets: for tests, and for examples that need no network.

    network = MemoryNetwork()
    async with antiphon.Member(name="a", transport=network.attach) as a, antiphon.Member(name="b", …) as b:

All processes are connected with each other. Connections are numbered like those of sockets. A test may cut and heal
them; frames in transit when a connection is cut are lost, in both directions.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from antiphon.core.effects import Frame
from antiphon.errors import ConfigurationError, ProtocolViolation
from antiphon.sockets.offenders import Offence
from antiphon.sockets.transports.contract import Address, Receiver, Seed
from antiphon.types import ProcessId

_log: Final = logging.getLogger("antiphon.memory")


class MemoryNetwork:
    """Connects all processes that attach to it."""

    def __init__(self) -> None:
        self._open: dict[ProcessId, MemoryTransport] = {}
        self._cut: set[frozenset[ProcessId]] = set()
        self._numbers: dict[frozenset[ProcessId], int] = {}  # of the last connection of each pair

    def attach(self, process: ProcessId) -> "MemoryTransport":
        """The transport of one more process: what `Member(transport=…)` takes."""
        return MemoryTransport(process, self)

    def cut(self, one: ProcessId, other: ProcessId) -> None:
        """End the connection of two processes; they stay disconnected until `heal`."""
        pair = frozenset({one, other})
        if pair not in self._cut:
            self._cut.add(pair)
            if one in self._open and other in self._open:
                self._open[one].broken(other)
                self._open[other].broken(one)

    def heal(self, one: ProcessId, other: ProcessId) -> None:
        """Let them connect again: a new connection, with the next number."""
        self._cut.discard(frozenset({one, other}))
        self._connect(one, other)

    def replace(self, one: ProcessId, other: ProcessId) -> None:
        """End the connection of two processes; they connect again at once."""
        if frozenset({one, other}) not in self._cut:
            self.cut(one, other)
            self.heal(one, other)

    def opened(self, transport: "MemoryTransport") -> None:
        """A process has opened its transport."""
        if transport.me in self._open:
            raise ConfigurationError(f"{transport.me} is on this network already")
        self._open[transport.me] = transport
        for other in sorted(self._open):
            self._connect(transport.me, other)

    def closed(self, transport: "MemoryTransport") -> None:
        """A process has closed; what it has sent still arrives, followed by the end of the connection."""
        if self._open.get(transport.me) is transport:
            del self._open[transport.me]
            loop = asyncio.get_running_loop()
            for peer in transport.peers:
                if peer in self._open:  # not one that closes in the same turn of the loop
                    loop.call_soon(self._open[peer].ended, transport.me, transport.connection(peer))

    def find(self, process: ProcessId) -> "MemoryTransport | None":
        """The transport of that process, if it is open."""
        return self._open.get(process)

    def _connect(self, one: ProcessId, other: ProcessId) -> None:
        pair = frozenset({one, other})
        if one == other or pair in self._cut or not pair <= self._open.keys() or other in self._open[one].peers:
            return
        self._numbers[pair] = number = self._numbers.get(pair, -1) + 1
        self._open[one].connect(other, number)
        self._open[other].connect(one, number)


class MemoryTransport:
    """The transport of one process."""

    streams: Final = True
    seeds: Final[tuple[Seed, ...]] = ()  # processes on the network are peers at once
    offenders: tuple[Offence, ...] = ()

    def __init__(self, me: ProcessId, network: MemoryNetwork) -> None:
        self.me = me
        self.address: Address = me, 0
        """Not a real address; the name stands in for the host."""
        self._network = network
        self._links: dict[ProcessId, int] = {}
        self._waiting: dict[ProcessId, list[bytes]] = {}

    async def open(self, receiver: Receiver) -> None:
        """Connect with all processes on the network."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._network.opened(self)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that we are connected with."""
        return tuple(sorted(self._links))

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with it."""
        return self._links.get(peer)

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:  # noqa: ARG002
        """A frame to a peer without a connection is lost."""
        for peer in peers:
            if peer in self._links:
                self._waiting.setdefault(peer, []).append(sealed)

    def flush(self) -> None:
        """One call for each peer, in a later turn of the loop: frames never come while a core is at work."""
        waiting, self._waiting = self._waiting, {}
        for peer, frames in waiting.items():
            other, number = self._network.find(peer), self._links.get(peer)
            if other is not None and number is not None:
                self._loop.call_soon(other.arrive, self.me, number, frames)

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Does nothing: this transport has no backpressure."""

    async def close(self) -> None:
        """Leave the network; what was sent before still arrives."""
        self._network.closed(self)
        self._links.clear()

    # Calls of the network and of other transports

    def connect(self, peer: ProcessId, number: int) -> None:
        """Frames pass from now on."""
        self.broken(peer)  # if the end of an earlier connection was not reported yet
        self._links[peer] = number
        self._receiver.connected(peer)

    def broken(self, peer: ProcessId) -> None:
        """A connection has ended."""
        number = self._links.pop(peer, None)
        if number is not None:
            self._waiting.pop(peer, None)
            self._receiver.broke(peer, number)

    def ended(self, peer: ProcessId, number: int | None) -> None:
        """The other side has closed. If it is connected again already, this report is outdated."""
        if self._links.get(peer) == number:
            self.broken(peer)
            self._receiver.gone(peer)

    def arrive(self, peer: ProcessId, number: int, frames: list[bytes]) -> None:
        """Frames of a peer; dropped if their connection has ended meanwhile."""
        if self._links.get(peer) == number:
            try:
                self._receiver.arrived(peer, number, frames)
            except ProtocolViolation as violation:
                _log.warning("closing the connection with %s: %s", peer, violation)
                self._network.replace(self.me, peer)
