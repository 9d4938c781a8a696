"""Processes that speak the wire format by hand, to attack members: shared by tests and benchmarks.

They know only public facts: addresses, the view, recent numbers. They keep no rule of the protocol.
"""

import asyncio
import contextlib
import itertools
import random
import socket
from typing import Any, Final

import msgspec

from antiphon.core.effects import Frame
from antiphon.sockets.transports import greeting
from antiphon.sockets.transports.sessions import Offer
from antiphon.sockets.transports.udp_greeting import Hello as UdpHello
from antiphon.types import ProcessId
from antiphon.wire.codec import encode
from antiphon.wire.frame import ENVELOPE_BYTES, envelopes, seal

Address = tuple[str, int]
UNUSED_PORT = 9
"""A port at which nothing listens."""
_REPEAT_S: Final = 0.2


class TcpStranger:
    """One connection to a member."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.name = ProcessId(name)
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, to: Address, name: str = "!stranger", *, port: int = UNUSED_PORT) -> "TcpStranger":
        """Connect and greet. A name below that of the member makes a connection for frames."""
        reader, writer = await asyncio.open_connection(*to)
        stranger = cls(name, reader, writer)
        writer.write(greeting.call(stranger.name, ("127.0.0.1", port), 1, 0) + Offer(1, 0, 0).sealed())
        await writer.drain()
        return stranger

    def send(self, *frames: Frame) -> None:
        """Transmit without waiting for anything."""
        self.writer.write(b"".join(map(encode, frames)))

    async def receive(self) -> bytes:
        """The next frame of the member, sealed."""
        head = await self.reader.readexactly(ENVELOPE_BYTES)
        return head + await self.reader.readexactly(int.from_bytes(head[:4]))

    async def close(self) -> None:
        """End the connection."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class UdpStranger:
    """One socket that sends datagrams to members."""

    def __init__(self, name: str = "!stranger") -> None:
        self.name = ProcessId(name)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.address: Address = self.socket.getsockname()
        self._tokens: dict[Address, int] = {}

    def hello(self, name: str = "", *, port: int = 0, **chosen: Any) -> bytes:
        """A greeting of this process, or of another name."""
        fields = {"padding": bytes(512), "asks": True, **chosen}
        found = UdpHello(name or self.name, self.address[0], port or self.address[1], **fields)
        return seal(64, msgspec.msgpack.encode(found))

    async def greet(self, to: Address) -> None:
        """Be a peer of the member there; a greeting that is lost or over the limit of greetings is repeated."""
        while True:
            self.send_bytes(self.hello(), to)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPEAT_S):
                    self._tokens[to] = token = await self._challenge()
                    self.send_bytes(self.hello(asks=False, echo=token), to)
                    return

    async def _challenge(self) -> int:
        while (answer := await self.answer()) is None or not answer.asks:
            pass
        return answer.token

    async def answer(self) -> UdpHello | None:
        """The next datagram that came, if it is a greeting."""
        datagram = await asyncio.get_running_loop().sock_recv(self.socket, 65_536)
        frame = envelopes(datagram)[0]
        return msgspec.msgpack.decode(frame[ENVELOPE_BYTES:], type=UdpHello) if frame[5] == 64 else None

    def send(self, to: Address, *frames: Frame) -> None:
        """Transmit frames, each in a datagram of its own."""
        for frame in frames:
            self.send_bytes(encode(frame), to)

    def send_bytes(self, datagram: bytes, to: Address) -> None:
        """Transmit a datagram; a full socket loses it."""
        with contextlib.suppress(BlockingIOError):
            self.socket.sendto(datagram, to)

    def close(self) -> None:
        """Say goodbye, so that the name is free again, and end."""
        for to, token in self._tokens.items():
            self.send_bytes(self.hello(asks=False, gone=True, echo=token), to)
        self.socket.close()


def address_of(text: str) -> Address:
    """`host:port`."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def garbage(dice: random.Random, count: int, size_max: int = 2_000) -> list[bytes]:
    """Bytes that are no frames; some begin like one."""
    found = []
    for number in itertools.islice(itertools.count(), count):
        body = dice.randbytes(dice.randrange(size_max))
        kind = dice.randrange(256)
        found.append((body, seal(kind, body), body[:7], seal(kind, body)[: dice.randrange(1, 60)])[number % 4])
    return found
