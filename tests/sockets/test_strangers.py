"""Processes in no group that break every rule: members continue, and `health` names the offender."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from antiphon import Event, Group, Member, View
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import ProbeFrame
from antiphon.sockets.transports import greeting, guests, links, sessions, udp_greeting
from antiphon.sockets.transports.links import Link
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import GroupId, ProcessId, process_id, split_process_id
from antiphon.wire.codec import encode
from antiphon.wire.frame import BODY_BYTES_MAX, seal
from antiphon.wire.names import INCARNATION_MAX
from tests.support.loopback import FAST, deliver_at_all, join_all, members, on_loopback, read_on, until
from tools.lab.strangers import TcpStranger, UdpStranger, address_of


@asynccontextmanager
async def reading(groups: list[Group]) -> AsyncIterator[list[list[Event]]]:
    """Read all events of all groups."""
    seen: list[list[Event]] = [[] for _ in groups]
    tasks = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def mesh_of(member: Member) -> TcpMesh:
    mesh = member._process.driver.transport
    assert isinstance(mesh, TcpMesh)
    return mesh


def offences(group: Group) -> set[str]:
    return {offence.what for offence in group.health.offenders}


@on_loopback
async def test_a_prober_that_never_reads_delays_no_member() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            stranger = await TcpStranger.connect(address_of(found[0].address))
            probes = encode(ProbeFrame(GroupId("orders"), stranger.name, False)) * 1000
            await until(lambda: stranger.name in found[0].peers)
            to_stranger = mesh_of(found[0])._links[stranger.name]._transport
            assert to_stranger is not None
            while "sends too many frames" not in offences(groups[0]):
                stranger.writer.write(probes)
                await asyncio.sleep(0.001)
            socket_to_it = to_stranger.get_extra_info("socket")
            socket_to_it.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # else the system takes megabytes
            while stranger.name in found[0].peers:  # until the member has had enough
                stranger.writer.write(probes)
                await asyncio.sleep(0.001)
            await deliver_at_all(groups, seen, b"unharmed")
            assert offences(groups[0]) >= {"reads too little", "sends too many frames"}
            assert {(each.address, each.claimed) for each in groups[0].health.offenders} == {
                ("127.0.0.1", stranger.name)
            }
            await stranger.close()


@on_loopback
async def test_a_full_connection_of_a_stranger_never_makes_the_transport_full() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            stranger = await TcpStranger.connect(address_of(found[0].address))
            await until(lambda: stranger.name in found[0].peers)
            mesh = mesh_of(found[0])
            mesh.filled(mesh._links[stranger.name], True)
            assert not mesh._full
            await deliver_at_all(groups, seen, b"unharmed")
            await stranger.close()


@on_loopback
async def test_a_member_that_left_has_the_limits_of_a_guest_until_it_is_back() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        mesh, peer = mesh_of(found[0]), found[1].id
        async with reading(groups) as seen:
            await deliver_at_all(groups, seen, b"large buffers")
            link = mesh._links[peer]
            session, transport = link.session, link._transport
            assert session is not None
            assert transport is not None
            assert link.larger_bytes >= 1 << 20
            await groups[1].leave()
            await until(lambda: peer not in mesh._members)
            assert mesh._links[peer] is link
            assert link in mesh._guests.named
            assert (link.larger_bytes, link._least_bytes) == (0, 0)
            assert transport.get_write_buffer_limits()[1] == links.GUEST_BYTES_MAX
            assert session._kept_bytes_max == sessions._KEPT_BYTES_MAX
        again = [groups[0], await found[1].join("orders")]
        async with reading(again) as seen:
            await deliver_at_all(again, seen, b"and again")
            assert mesh._links[peer].larger_bytes >= 1 << 20
            assert transport.get_write_buffer_limits()[1] == links.HIGH_WATER_BYTES
            assert session._kept_bytes_max == sessions._MEMBER_BYTES_MAX


def test_a_stranger_that_no_buffer_is_left_for_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guests, "_BUFFERS_BYTES_MAX", 1 << 20)

    @on_loopback
    async def scenario() -> None:
        async with members(1) as found:
            stranger = await TcpStranger.connect(address_of(found[0].address))
            await until(lambda: stranger.name in found[0].peers)
            stranger.writer.write(seal(1, bytes(2 << 20))[:100])
            await stranger.reader.read()
            offences = mesh_of(found[0]).offenders
            assert [each.what for each in offences] == ["sends frames that no buffer is left for"]
            await stranger.close()

    scenario()


@on_loopback
async def test_connections_without_a_greeting_are_bounded_and_the_oldest_end() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            to = address_of(found[0].address)
            silent = [await asyncio.open_connection(*to) for _ in range(100)]
            assert await silent[0][0].read() == b""
            await until(lambda: len(mesh_of(found[0])._guests.half_open) <= 32)
            await deliver_at_all(groups, seen, b"unharmed")
            assert offences(groups[0]) == {"opens connections without a greeting"}
            for _, writer in silent:
                writer.close()


@on_loopback
async def test_a_flood_of_connections_is_refused_and_makes_few_tasks() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            to = address_of(found[0].address)
            before = len(asyncio.all_tasks())
            for first in range(1, 60_000, 100):  # until they come too fast, however slow the machine is
                calls = (TcpStranger.connect(to, f"!x{port}", port=port) for port in range(first, first + 100))
                for stranger in await asyncio.gather(*calls, return_exceptions=True):
                    if isinstance(stranger, TcpStranger):
                        stranger.writer.close()
                if "connects too often" in offences(groups[0]):
                    break
            await deliver_at_all(groups, seen, b"unharmed")
            assert "connects too often" in offences(groups[0])
            assert len(asyncio.all_tasks()) < before + 400
            assert len(mesh_of(found[0])._addresses.known) <= 1024


@on_loopback
async def test_only_the_process_itself_replaces_its_connection() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            impostor = await TcpStranger.connect(address_of(found[1].address), found[0].id)
            assert await impostor.reader.read() == b""
            await deliver_at_all(groups, seen, b"unharmed")
            assert offences(groups[1]) == {"claims the name of a process that is connected"}
            assert all(len(group.health.members) == 2 for group in groups)
            await impostor.close()


def test_a_process_that_greets_and_makes_no_offer_keeps_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "GREETING_S", 0.5)

    @on_loopback
    async def scenario() -> None:
        async with members(1) as (one,), Member(name="z", **FAST) as real:
            mesh, to = mesh_of(one), address_of(one.address)

            async def answer_as_real(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.read(1)
                writer.write(greeting.answer(real.id, address, 1, 0))
                await reader.read()
                writer.close()

            async with await asyncio.start_server(answer_as_real, "127.0.0.1", 0) as listening:
                address = listening.sockets[0].getsockname()
                caller = await TcpStranger.connect(to, real.id, port=address[1])  # an introduction: it is called back
                await until(lambda: real.id in mesh._links)
                mesh_of(real).meet([to])
                await until(lambda: real.id in one.peers and one.id in real.peers)
                await caller.close()

    scenario()


@on_loopback
async def test_a_stranger_gets_no_more_bytes_than_it_has_sent() -> None:
    async with members(2) as found:
        await join_all(found)
        stranger = await TcpStranger.connect(address_of(found[0].address), "zzz", port=9)  # higher: an introduction
        assert 0 < len(await stranger.reader.read()) <= 512
        await stranger.close()


@on_loopback
async def test_hearsay_replaces_no_process_that_is_connected_or_a_member() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        mesh, to = mesh_of(found[0]), address_of(found[0].address)
        async with reading(groups) as seen:
            guest = await TcpStranger.connect(to, "!guest")
            liar = await TcpStranger.connect(to, "!liar", port=10)
            await until(lambda: {guest.name, liar.name} <= {*found[0].peers})
            before = {peer: mesh._addresses.known[peer] for peer in (found[1].id, guest.name)}
            later = [process_id(split_process_id(peer)[0], INCARNATION_MAX) for peer in before]
            lies = tuple((name, "127.0.0.1", 11) for name in (*later, "!new"))
            liar.writer.write(greeting.introduction(liar.name, ("127.0.0.1", 10), lies))
            await until(lambda: "!new" in mesh._addresses.known)
            mesh._links[found[1].id].abort()  # a reset: its address is needed again
            await deliver_at_all(groups, seen, b"unharmed")
            assert {peer: mesh._addresses.known.get(peer) for peer in before} == before
            assert [*map(left_in, seen)] == [[], []]
            await guest.close()
            await liar.close()


def left_in(events: list[Event]) -> list[ProcessId]:
    return [left.process for event in events if isinstance(event, View) for left in event.left]


@on_loopback
async def test_hearsay_of_later_incarnations_is_counted() -> None:
    async with members(1) as found:
        mesh = mesh_of(found[0])
        link = Link(mesh, called=True)
        link.peer = ProcessId("stranger")
        for incarnation in range(1, 100):
            others = ((f"q#{incarnation}", "127.0.0.1", incarnation),)
            mesh.learned(link, greeting.Hello("stranger", "127.0.0.1", 1, others))
        assert [*mesh._addresses.known] == ["q#64"]
        assert [offence.what for offence in mesh.offenders] == ["tells of too many processes"]


LONG_GREETINGS = [
    pytest.param("z", "h" * 256, (), id="its own host"),
    pytest.param("z", "é" * 128, (), id="its own host, in bytes"),
    pytest.param("z", "h", ("y", "h" * (1 << 20)), id="a host of another"),
    pytest.param("z" * 256, "h", (), id="its own name"),
    pytest.param("z", "h", ("y" * 256, "h"), id="a name of another"),
]


@pytest.mark.parametrize(("name", "host", "other"), LONG_GREETINGS)
def test_a_greeting_with_a_long_host_or_name_is_refused(name: str, host: str, other: tuple[str, ...]) -> None:
    """They are kept and told to all others: many of them would exceed the largest frame."""
    others = ((other[0], other[1], 1),) if other else ()
    with pytest.raises(ProtocolViolation, match=r"a host of|too long"):
        greeting.hello_in(greeting.introduction(ProcessId(name), (host, 1), others), "later")


def test_a_greeting_on_datagrams_with_a_long_host_is_refused() -> None:
    for host, others in (("h" * 256, ()), ("é" * 128, ()), ("h", (("h" * 256, 1),))):
        with pytest.raises(ProtocolViolation, match="too long"):
            udp_greeting.hello_in(seal(64, msgspec.msgpack.encode(udp_greeting.Hello("z", host, 1, others=others))))


def test_the_largest_introduction_fits_in_a_frame() -> None:
    others = tuple((f"{number:04}".ljust(255, "n"), "h" * 255, 65_535) for number in range(greeting.OTHERS_MAX))
    sealed = greeting.introduction(ProcessId("p" * 255), ("h" * 255, 65_535), others)
    assert len(greeting.hello_in(sealed, "later").others) == greeting.OTHERS_MAX
    assert len(sealed) < BODY_BYTES_MAX / 10


@on_loopback
async def test_on_datagrams_a_stranger_is_remembered_only_after_it_has_answered() -> None:
    async with members(2, transport="udp", preset="local") as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            to, stranger = address_of(found[0].address), UdpStranger()
            contacts = len(found[0]._process.driver.transport._contacts)  # type: ignore[attr-defined]
            for number in range(50):
                stranger.send_bytes(stranger.hello(f"x{number}", padding=b""), to)
            short = stranger.hello("y", padding=b"")
            stranger.send_bytes(short, to)
            await deliver_at_all(groups, seen, b"unharmed")
            assert len(found[0].peers) == 1
            assert len(found[0]._process.driver.transport._contacts) == contacts  # type: ignore[attr-defined]
            await stranger.greet(to)
            await until(lambda: stranger.name in found[0].peers)
            stranger.close()


@on_loopback
async def test_a_flood_of_greetings_on_datagrams_is_answered_by_few_datagrams() -> None:
    async with members(2, transport="udp", preset="local") as found:
        groups = await join_all(found)
        async with reading(groups) as seen:
            to, stranger = address_of(found[0].address), UdpStranger()
            tasks = len(asyncio.all_tasks())
            for number in range(3000):
                stranger.send_bytes(stranger.hello(f"x{number}"), to)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            await until(lambda: "greets too often" in offences(groups[0]))
            await deliver_at_all(groups, seen, b"unharmed")
            assert len(asyncio.all_tasks()) == tasks
            answers = 0
            try:
                while True:
                    stranger.socket.recv(65_536)
                    answers += 1
            except BlockingIOError:
                stranger.close()
            assert answers < 1000
