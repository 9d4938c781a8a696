"""The baseline: the same processes with one TCP connection for each pair, without order, membership or window.

Messages are written to every peer with plain asyncio, each with its length first. Unpacked, every message is written
and read by itself, as a simple program would do it. Packed, prepared blocks of many messages are written and only
counted at the receiver: nothing in Python can be faster.
"""

import asyncio
import struct
import time
from typing import Final

from antiphon.bench.meter import Meter, until

_LENGTH: Final = struct.Struct(">I")
_RANK: Final = struct.Struct(">I")
_BUFFER_BYTES: Final = 262_144
_PACK_BYTES: Final = 65_536
_HIGH_WATER_BYTES: Final = 1 << 20
_REQUEST: Final = b"?"
_REPLY: Final = b"!"
_BURST: Final = 64
"""How many messages are written before other tasks get a turn."""


class BareMesh:
    """One process of the baseline."""

    def __init__(self) -> None:
        self._links: dict[int, _Link] = {}
        self._meter = Meter()
        self._met = asyncio.Event()

    async def open(self) -> tuple[str, int]:
        """Listen, and return the address."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Link(self), "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def meet(self, me: int, addresses: list[tuple[str, int]]) -> None:
        """Connect with all others: the lower rank connects to the higher one."""
        loop = asyncio.get_running_loop()
        for rank, (host, port) in enumerate(addresses):
            if rank > me:
                _, link = await loop.create_connection(lambda: _Link(self), host, port)
                link.write(_RANK.pack(me))
                self.greeted(link, rank)
        while len(self._links) < len(addresses) - 1:
            self._met.clear()
            await self._met.wait()

    def greeted(self, link: "_Link", rank: int) -> None:
        """Record the rank of the peer of a connection."""
        link.greeted = True
        self._links[rank] = link
        self._met.set()

    def close(self) -> None:
        """Close all connections."""
        self._server.close()
        for link in self._links.values():
            link.close()

    async def fan_out(
        self, size: int, begin_ns: int, end_ns: int, *, packed: bool, senders: list[int], me: int
    ) -> float:
        """Return the messages per second that reached this process, its own included."""
        self._meter = Meter()
        for link in self._links.values():
            link.begin(self._meter, size, counting=packed)
        measured = asyncio.create_task(self._meter.rate(begin_ns, end_ns))
        if me in senders:
            await until(begin_ns)
            await self._send_until(end_ns, size, packed=packed)
            for link in self._links.values():
                link.write(_LENGTH.pack(0))
        rate = await measured
        for rank in senders:
            if rank != me:
                await self._links[rank].over.wait()
        for link in self._links.values():
            link.end()
        return rate

    async def _send_until(self, end_ns: int, size: int, *, packed: bool) -> None:
        together = max(1, _PACK_BYTES // size) if packed else 1
        block = _LENGTH.pack(size * together) + bytes(size * together)
        links, meter = [*self._links.values()], self._meter
        while time.monotonic_ns() < end_ns:
            for _ in range(1 if packed else _BURST):
                for link in links:
                    link.write(block)
                meter.count += together
            for link in links:
                await link.room()
            await asyncio.sleep(0)

    async def ask(self, peers: list[int], size: int, times_ns: list[int]) -> list[int]:
        """Send requests at these times; return how long each took until all had replied, in nanoseconds."""
        took = []
        for moment in times_ns:
            await until(moment)
            asked = time.monotonic_ns()
            for reply in [self._links[peer].ask(size) for peer in peers]:
                await reply
            took.append(time.monotonic_ns() - asked)
        return took


class _Link(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, mesh: BareMesh) -> None:
        self._mesh = mesh
        self.greeted = False
        self.over = asyncio.Event()
        """Set when the peer has sent everything."""
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._end = 0
        self._meter = Meter()
        self._size = 1
        self._fanned = self._counting = False
        self._reply: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def begin(self, meter: Meter, size: int, *, counting: bool) -> None:
        """Count messages of that size; unless `counting`, also copy each one out of the buffer."""
        self._meter, self._size, self._counting, self._fanned = meter, size, counting, True
        self.over.clear()

    def end(self) -> None:
        """From now on, expect requests and replies."""
        self._counting = self._fanned = False

    def ask(self, size: int) -> asyncio.Future[None]:
        """Send one request; the future is done when the reply is here."""
        self._reply = asyncio.get_running_loop().create_future()
        self.write(_LENGTH.pack(size) + _REQUEST + bytes(size - 1))
        return self._reply

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    async def room(self) -> None:
        await self._room.wait()

    def close(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        self._transport = transport

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        begin, end, buffer = 0, self._end + nbytes, self._buffer
        if not self.greeted and end >= _RANK.size:
            self._mesh.greeted(self, _RANK.unpack_from(buffer)[0])
            begin = _RANK.size
        taken: list[bytes] = []
        while end - begin >= 4:
            (length,) = _LENGTH.unpack_from(buffer, begin)
            if end - begin < 4 + length:
                break
            if not length:
                self.over.set()
            elif self._counting:
                self._meter.count += length // self._size
            else:
                taken.append(bytes(buffer[begin + 4 : begin + 4 + length]))
            begin += 4 + length
        self._end = end - begin
        buffer[: self._end] = bytes(buffer[begin:end])
        self._take(taken)

    def _take(self, taken: list[bytes]) -> None:
        self._meter.count += len(taken)
        for message in () if self._fanned else taken:
            if message[:1] == _REQUEST:
                self.write(_LENGTH.pack(len(message)) + _REPLY + message[1:])
            elif self._reply is not None:
                self._reply.set_result(None)
