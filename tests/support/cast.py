"""Helpers for the tests of transports: members in one event loop, and their events."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from antiphon import Group, Message, ProcessId
from antiphon.sockets.transports.contract import Address
from antiphon.wire.frame import Sealed

DEADLINE_S = 120.0
LOOPBACK = "127.0.0.1"


class Told:
    """A driver that only records the calls of its transport."""

    def __init__(self) -> None:
        self.frames: list[tuple[ProcessId, Sealed, bool]] = []
        self.connections: list[ProcessId] = []
        self.ready: list[bool] = []

    def arrived(self, peer: ProcessId, connection: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        self.frames += [(peer, each, overheard) for each in sealed]

    def connected(self, peer: ProcessId) -> None:
        self.connections.append(peer)

    def broke(self, peer: ProcessId, connection: int) -> None:
        raise AssertionError("datagrams have no connections")

    def gone(self, peer: ProcessId) -> None:
        raise AssertionError("datagrams give no evidence of a death")

    def writable(self, ready: bool) -> None:
        self.ready.append(ready)


def within_deadline(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test that may not hang."""

    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test()

    asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that other tasks make true."""
    while not condition():
        await asyncio.sleep(0.005)


async def read(group: Group, count: int) -> list[Message]:
    """The next `count` messages."""
    found: list[Message] = []
    while len(found) < count:
        event = await anext(group)
        if isinstance(event, Message):
            found.append(event)
    return found


async def send_all(group: Group, payloads: Iterable[bytes]) -> None:
    for payload in payloads:
        await group.send(payload)


async def all_talk(groups: list[Group], each: int, size: int = 20) -> list[list[Message]]:
    """Every member sends this many messages at once, and reads those of all."""
    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(group, each * len(groups))) for group in groups]
        for place, group in enumerate(groups):
            tasks.create_task(send_all(group, [f"{place}/{number}".encode().ljust(size) for number in range(each)]))
    return [reader.result() for reader in readers]


def loopback_multicast() -> Address | None:
    """A free multicast address on which this machine hears itself."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending,
    ):
        interface = socket.inet_aton(LOOPBACK)
        try:
            listening.bind(("239.255.77.77", 0))
            joined = socket.inet_aton("239.255.77.77") + interface
            listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
            listening.settimeout(1.0)
            sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            sending.sendto(b"?", listening.getsockname())
            listening.recv(1)
        except OSError:
            return None
        host, port = listening.getsockname()
        return host, port


def multicast_or_skip() -> Address:
    found = loopback_multicast()
    if found is None:
        pytest.skip("the loopback interface carries no multicast here")
    return found
