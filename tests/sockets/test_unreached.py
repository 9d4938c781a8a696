"""Addresses that lead to no member: the reason of each is told, and no group is founded beside the one that exists."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from antiphon import Member, NotJoined
from antiphon.sockets.transports import greeting
from antiphon.sockets.transports.sessions import Offer
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import ProcessId
from antiphon.wire.frame import seal
from tests.support.loopback import FAST, name, on_loopback, take_view, until

ROOT = Path(__file__).parents[2]


def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return f"127.0.0.1:{unused.getsockname()[1]}"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(answer: bytes | None) -> AsyncIterator[str]:
    """An address where every caller gets this answer; with None no answer, and the connection stays open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def of_another_version() -> bytes:
    sealed = bytearray(seal(64, b"hello"))
    sealed[4] += 1
    return bytes(sealed)


@on_loopback
async def test_the_reason_is_told_for_each_address() -> None:
    async with AsyncExitStack() as stack:
        html = await stack.enter_async_context(server(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        newer = await stack.enter_async_context(server(of_another_version()))
        shut = await stack.enter_async_context(server(b""))
        silent = await stack.enter_async_context(server(None))
        own, refused, nowhere = unused_address(), unused_address(), "antiphon.invalid:7400"
        peers = [html, newer, shut, silent, own, refused, nowhere]
        member = await stack.enter_async_context(Member(name="p1", bind=own, peers=peers, **FAST))
        expected = {
            html: "no antiphon process: the greeting is something else",
            newer: "another version of the wire format",
            shut: "closed before the greeting",
            silent: "no answer",
            refused: "connection refused",
            nowhere: "name not resolved",
        }
        await until(lambda: member.unreached == expected)
        with pytest.raises(NotJoined) as caught:
            await member.join("orders", join_within=0.5)
        for address, reason in expected.items():
            assert f"{address}: {reason}" in str(caught.value)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_the_own_address_among_the_peers_does_not_count(transport: str) -> None:
    @on_loopback
    async def scenario() -> None:
        own = unused_address()
        also = own.replace("127.0.0.1", "localhost")
        async with Member(name="p1", bind=own, peers=[own, also], transport=transport, **FAST) as member:
            group = await member.join("orders")
            assert group.health.members == (member.id,)
            assert member.unreached == {}

    scenario()


@on_loopback
async def test_on_datagrams_silence_and_names_are_told() -> None:
    nobody, nowhere = unused_address(), "antiphon.invalid:7400"
    async with Member(name="p1", peers=[nobody, nowhere], transport="udp", **FAST) as member:
        await until(lambda: member.unreached == {nobody: "no answer", nowhere: "name not resolved"})


@on_loopback
async def test_a_peer_that_was_reached_and_is_gone_is_told() -> None:
    async with Member(name="p1", **FAST) as one, Member(name="p2", peers=[one.address], **FAST) as two:
        await until(lambda: one.id in two.peers)
        assert two.unreached == {}
        await one.abort()
        await until(lambda: two.unreached != {})


@on_loopback
async def test_a_process_that_greets_is_reached_only_once_frames_can_pass() -> None:
    """Otherwise a member founds a group beside a seed that it has not asked."""
    offer_due = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(greeting.answer(ProcessId("z"), address, 1, 0))
        await offer_due.wait()
        writer.write(Offer(1, 0, 0).sealed())
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        address = listening.sockets[0].getsockname()
        async with Member(name="p1", peers=[f"127.0.0.1:{address[1]}"], **FAST) as member:
            mesh = member._process.driver.transport
            assert isinstance(mesh, TcpMesh)
            await until(lambda: "z" in mesh._links)
            assert member.peers == ()
            assert [seed.peer for seed in mesh.seeds] == [None]
            offer_due.set()
            await until(lambda: member.peers == ("z",))
            assert [seed.peer for seed in mesh.seeds] == ["z"]


class Stoppable:
    """A member in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def sees(self, members: int) -> None:
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()) != f"{members}\n".encode():
            assert line, "it ended"

    def tell(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.communicate()


async def start(name: str, bind: str, *peers: str) -> Stoppable:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.waiting_member", name, bind, *peers),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    return Stoppable(process)


@on_loopback
async def test_a_process_does_not_found_a_group_whose_members_are_stopped() -> None:
    a, b = unused_address(), unused_address()
    async with AsyncExitStack() as stack:
        others = [await start("a", a, b), await start("b", b, a)]
        for each in others:
            stack.push_async_callback(each.end)
        for each in others:
            await each.sees(2)
        for each in others:
            each.tell(signal.SIGSTOP)
        member = await stack.enter_async_context(Member(name="c", peers=[a, b], **FAST))
        joining = asyncio.create_task(member.join("orders"))
        await until(lambda: member.unreached == dict.fromkeys((a, b), "no answer"))
        assert not joining.done()
        for each in others:
            each.tell(signal.SIGCONT)
        group = await joining
        first = await take_view(group)
        assert {"a", "b"} & {*map(name, first.members)}
        await until(lambda: len(group.health.members) == 3 and group.health.primary)
