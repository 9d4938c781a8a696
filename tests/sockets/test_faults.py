"""The view of applications when members stall, vanish, come back, lose a connection, or send malformed bytes."""

import asyncio
import logging
from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest

from antiphon import Blocked, Event, FlowBlocked, Group, Member, Message, View
from antiphon.core.effects import Frame
from antiphon.sockets.transports.greeting import Hello, hello_in
from antiphon.sockets.transports.links import Link
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import ProcessId
from antiphon.wire.frame import seal
from tests.support.loopback import (
    FAST,
    fill,
    join_all,
    members,
    messages,
    name,
    names,
    on_loopback,
    payloads,
    read_on,
    take_each,
    take_messages,
    take_primary,
    take_until,
    take_view,
    until,
)


@on_loopback
async def test_a_reader_that_stalls_holds_senders_back_and_loses_nothing() -> None:
    async with members(2, window=4, frame_bytes=1_000, window_bytes=4_000) as found:
        sender, stalled = await join_all(found)
        await take_view(sender, lambda view: len(view.members) == 2)
        await take_view(stalled, lambda view: len(view.members) == 2)
        seen: list[Event] = []
        reading = asyncio.create_task(read_on(sender, seen))
        accepted = fill(sender, b"message")
        await until(lambda: sender.health.blocked_by == found[1].id)
        while more := fill(sender, b"message"):  # in place of messages that have left meanwhile
            accepted += more
            await asyncio.sleep(0.1)
        with pytest.raises(FlowBlocked, match=f"it waits for {found[1].id}"):
            sender.try_send(b"no")
        waiting = asyncio.create_task(sender.send(b"last"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await until(lambda: Blocked(by=found[1].id) in seen)
        taken = await take_messages(stalled, accepted + 1)
        assert [message.payload for message in taken] == [b"message"] * accepted + [b"last"]
        await waiting
        await until(lambda: len(payloads(seen)) == accepted + 1)
        await until(lambda: Blocked(by=None) in seen)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        told = [event.by for event in seen if isinstance(event, Blocked)]
        assert told[:2] == [found[1].id, None]
        assert all(one != other for one, other in pairwise(told))  # a busy machine may block it once more
        await until(lambda: sender.health.blocked_by is None)


@on_loopback
async def test_many_blocked_senders_all_go_on_though_some_are_cancelled() -> None:
    async with members(2, window=4, frame_bytes=1_000, window_bytes=4_000) as found:
        sender, stalled = await join_all(found)
        accepted = fill(sender, b"filler")
        tasks = [asyncio.create_task(sender.send(b"%d" % number)) for number in range(10)]
        await asyncio.sleep(0)
        seen: list[Event] = []
        readers = [asyncio.create_task(read_on(sender, [])), asyncio.create_task(read_on(stalled, seen))]
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks[1::2])
        await until(lambda: len(payloads(seen)) == accepted + 5)
        assert payloads(seen)[accepted:] == [b"%d" % number for number in range(1, 10, 2)]
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


@on_loopback
async def test_a_connection_that_breaks_parts_two_members_and_merging_brings_them_together() -> None:
    async with members(3) as found:
        groups = await join_all(found)
        seen: list[list[Event]] = [[] for _ in groups]
        readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
        sender = asyncio.create_task(send_numbers(groups[1], 200))
        await until(lambda: len(payloads(seen[0])) > 20)
        mesh_of(found[0])._links[found[2].id].abort(for_good=True)  # a reset alone would lose nothing
        await until(lambda: any(view.left for view in views(seen[0])) and any(view.left for view in views(seen[2])))
        await until(lambda: all(len(group.health.members) == 3 for group in groups))
        await sender
        await groups[1].send(b"end")
        await until(lambda: all(b"end" in payloads(events) for events in seen))
        together = max((view for view in views(seen[1]) if len(view.members) == 2), key=lambda view: view.id)
        for events, member in zip(seen, found, strict=True):
            if member.id in together.members:  # a member that stays with the sender gets every message once
                assert payloads(events) == [*(b"%d" % number for number in range(200)), b"end"]
            else:
                assert len({*payloads(events)}) == len(payloads(events))
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


def mesh_of(member: Member) -> TcpMesh:
    mesh = member._process.driver.transport
    assert isinstance(mesh, TcpMesh)
    return mesh


async def send_numbers(group: Group, count: int) -> None:
    for number in range(count):
        await group.send(b"%d" % number)
        await asyncio.sleep(0.002)


def views(events: list[Event]) -> list[View]:
    return [event for event in events if isinstance(event, View)]


@on_loopback
async def test_a_member_that_is_killed_is_excluded_and_the_others_go_on() -> None:
    async with members(2) as found:
        victim = Member(name="p3", peers=[found[0].address], **FAST)
        async with victim:
            groups = await join_all([*found, victim])
            for group in groups:
                await take_view(group, lambda view: len(view.members) == 3)
            await groups[0].send(b"before")
            assert await take_each(groups, 1) == [[Message(found[0].id, b"before")]] * 3
            await victim.abort()
            assert messages([event async for event in groups[2]]) == []  # perhaps a late `Primary`
        await groups[1].send(b"after")
        for group in groups[:2]:
            events = await take_until(group, lambda events: len(views(events)) == 1 and len(payloads(events)) == 1)
            (view,) = views(events)
            assert [name(left.process) for left in view.left] == ["p3"]
            assert view.left[0].reason != "left"
            assert payloads(events) == [b"after"]
            await take_primary(group, view.id)


@on_loopback
async def test_a_restarted_process_joins_under_its_name_as_a_new_incarnation() -> None:
    async with members(2) as found:
        first = Member(name="p3", peers=[found[0].address], **FAST)
        async with first:
            groups = await join_all([*found, first])
            await first.abort()
        await asyncio.sleep(0.26)  # numbers of starts count quarters of seconds
        second = Member(name="p3", peers=[found[1].address], **FAST)
        async with second:
            assert name(second.id) == name(first.id)
            assert second.id > first.id
            again = await second.join("orders")
            await again.ready(3)
            view = await take_view(groups[0], lambda view: second.id in view.members)
            assert first.id not in view.members
            assert names(view.members) == ["p1", "p2", "p3"]
            await until(lambda: all(second.id in member.peers for member in found))
            host, _, port = first.address.partition(":")
            before = host, int(port)
            await until(lambda: all(before not in mesh_of(member)._callers for member in found))  # no member calls it


def hello(process: str, host: str, port: int, others: tuple[tuple[str, str, int], ...] = ()) -> bytes:
    return seal(64, msgspec.msgpack.encode((process, host, port, others)))


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        b"",
        b"\x00" * 40,
        seal(64, b"not msgpack"),
        seal(1, b"a frame before a greeting"),
        hello("a b", "127.0.0.1", 7400),
        hello("p9", "127.0.0.1", 123_456_789),
        hello("p9", "127.0.0.1", 7400, (("p8", "127.0.0.1", -5),)),
        hello("zz", "127.0.0.1", 1, (("p8", "no\x00host", 5),)),
        hello("a", "\u2603" * 80, 7400),
        hello("p0", "127.0.0.1", 1) + seal(9, b"junk") + b"\x00\x00\x00\x01",
        (2 << 20).to_bytes(4) + b"a greeting longer than any",
    ],
    ids=range(13),
)
def test_malformed_bytes_on_the_socket_harm_no_member(nonsense: bytes, caplog: pytest.LogCaptureFixture) -> None:
    @on_loopback
    async def scenario() -> None:
        async with members(2) as found:
            groups = await join_all(found)
            host, port = found[0].address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(nonsense)
            writer.write_eof()
            await reader.read()  # until it is closed at the other end
            writer.close()
            await writer.wait_closed()
            for group in groups:
                await take_view(group, lambda view: len(view.members) == 2)
            await groups[0].send(b"unharmed")
            seen = await take_each(groups, 1)
            assert seen == [[Message(found[0].id, b"unharmed")]] * 2
            assert not any(caller.done() for caller in mesh_of(found[0])._callers.values())

    scenario()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@on_loopback
async def test_a_member_whose_frame_comes_damaged_loses_its_connection_and_comes_back() -> None:
    """If the frame were dropped silently, no member would see the gap in the stream, and all would wait for ever."""
    async with members(3) as found:
        groups = await join_all(found)
        for group in groups:
            await take_view(group, lambda view: len(view.members) == 3)
        mesh = mesh_of(found[2])
        damaged: list[bytes] = []

        def send(sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:
            if not damaged and sealed.endswith(b"damaged"):
                damaged.append(sealed)
                sealed = sealed[:-1] + b"?"
            TcpMesh.send(mesh, sealed, peers, frame)

        mesh.send = send  # type: ignore[method-assign]
        await groups[2].send(b"damaged")
        parted = [await take_view(group) for group in groups]
        assert damaged
        assert all(len(view.members) < 3 for view in parted)
        for group in groups:
            await take_view(group, lambda view: len(view.members) == 3)
        await groups[0].send(b"after")
        for group in groups:
            await take_until(group, lambda events: b"after" in payloads(events))


@on_loopback
async def test_many_greetings_at_once_are_taken_one_after_the_other() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        link = next(iter(mesh_of(found[1])._links.values()))
        link.write(mesh_of(found[1])._introduction([found[0].id]) * 3000)
        for group in groups:
            await take_view(group, lambda view: len(view.members) == 2)
        await groups[1].send(b"unharmed")
        assert await take_each(groups, 1) == [[Message(found[1].id, b"unharmed")]] * 2


@on_loopback
async def test_a_process_remembers_a_bounded_number_of_others_however_often_it_is_told() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        mesh = mesh_of(found[0])
        (link,) = mesh._links.values()
        known = mesh._addresses.known
        for round_ in range(3):
            others = tuple((f"q{round_}x{number}", "127.0.0.1", 1) for number in range(700))
            mesh.learned(link, Hello("stranger", "127.0.0.1", 1, others))
        assert len(known) == len(mesh._addresses._latest) == 1024
        mesh.learned(link, Hello("p2", "127.0.0.1", 1, (("other", "127.0.0.1", 1), ("q0x5#2", "127.0.0.1", 2))))
        assert known[ProcessId("q0x5#2")] == ("127.0.0.1", 2)  # started anew: it takes its own place
        assert len(known) == len(mesh._addresses._latest) == 1024
        assert groups[0].health.offenders[0].what == "tells of too many processes"
        assert groups[0].health.offenders[0].claimed == found[1].id


@on_loopback
async def test_a_process_in_no_view_with_us_may_tell_of_few_others() -> None:
    async with members(1) as found:
        mesh = mesh_of(found[0])
        link = Link(mesh, called=True)
        link.peer = ProcessId("stranger")
        others = tuple((f"q{number}", "127.0.0.1", 1) for number in range(700))
        mesh.learned(link, Hello("stranger", "127.0.0.1", 1, others))
        assert len(mesh._addresses.known) == 64


@on_loopback
async def test_a_process_that_is_connected_with_many_tells_of_a_bounded_number() -> None:
    async with members(1) as found:
        mesh = mesh_of(found[0])
        others = [ProcessId(f"q{number}") for number in range(1100)]
        for other in others:
            mesh._addresses.note(other, ("127.0.0.1", 1))
        assert len(hello_in(mesh._introduction(others), "later").others) == 1024


@on_loopback
async def test_a_stranger_that_says_nothing_is_not_waited_for_at_the_end() -> None:
    async with members(1) as found:
        await found[0].join("orders")
        host, port = found[0].address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await until(lambda: bool(mesh_of(found[0])._guests.half_open))
    assert await reader.read() == b""  # it is told nothing
    writer.close()
    await writer.wait_closed()
