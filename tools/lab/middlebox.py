"""A middlebox between members: it forwards TCP connections, and resets them on request while both ends live.

A member behind it is given `advertise=box.address`, so that its peers connect through the box.
"""

import asyncio
import socket
import struct
from typing import Final

from antiphon import Member
from antiphon.sockets.transports.tcp import TcpMesh

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset, and drops unsent bytes."""


def listening_at(member: Member) -> str:
    """Where a member listens, whatever it advertises."""
    mesh = member._process.driver.transport
    assert isinstance(mesh, TcpMesh)
    host, port = mesh._door._sockets[0].getsockname()
    return f"{host}:{port}"


class Middlebox:
    """In front of one listening process."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.halves: set[_Half] = set()
        """Connections with it, two for each that it forwards."""
        self.target: tuple[str, int] | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self._host = host
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def address(self) -> str:
        return f"{self._host}:{self._port}"

    @property
    def flows(self) -> int:
        """Connections that it forwards now."""
        return len([half for half in self.halves if half.is_caller and half.other is not None])

    async def open(self) -> None:
        """Listen; always at the same port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Half(self), self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def forward_to(self, address: str) -> None:
        """The process that connections lead to."""
        host, _, port = address.rpartition(":")
        self.target = host, int(port)

    def reset(self) -> int:
        """Reset all connections, at both ends; gives the number of those that were forwarded."""
        count = self.flows
        for half in [*self.halves]:
            half.reset()
        return count

    def refuse(self) -> None:
        """Listen no longer: new connections are refused."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def close(self) -> None:
        self.refuse()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.reset()


class _Half(asyncio.Protocol):
    """The connection with one of the two ends."""

    def __init__(self, box: Middlebox, other: "_Half | None" = None) -> None:
        self.other = other
        self.is_caller = other is None
        self._box = box
        self._early: list[bytes] = []  # bytes that arrived before the other half

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._box.halves.add(self)
        if self.other is not None:
            self.other.join(self)
            return
        task = asyncio.get_running_loop().create_task(self._forward())
        self._box.tasks.add(task)
        task.add_done_callback(self._box.tasks.discard)

    async def _forward(self) -> None:
        assert self._box.target is not None
        try:
            await asyncio.get_running_loop().create_connection(lambda: _Half(self._box, self), *self._box.target)
        except OSError:
            self.reset()

    def join(self, other: "_Half") -> None:
        """The other half is there; nothing passes if this one was reset meanwhile."""
        if self not in self._box.halves:
            other.reset()
            return
        self.other = other
        for piece in self._early:
            other.write(piece)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            self.other.write(data)

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def reset(self) -> None:
        if self in self._box.halves:
            self._box.halves.discard(self)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._box.halves.discard(self)
        if self.other is not None:
            self.other.close()

    def close(self) -> None:
        """The other end has closed: its bytes still leave."""
        self._transport.close()
