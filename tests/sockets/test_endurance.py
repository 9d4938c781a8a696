"""Endurance: memory stays bounded while an application stalls, and departed processes leave nothing behind."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from antiphon import Blocked, Event, FlowBlocked, Group, Member, View
from antiphon.api import outgoing
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.sockets.transports import tcp
from antiphon.sockets.transports.tcp import TcpMesh
from tests.support.loopback import FAST, fill, join_all, members, name, names, on_loopback, payloads, read_on, until
from tools.lab.processes import held_bytes, open_files, table_sizes

WINDOW_BYTES, WAITING_BYTES = 32_000, 16_000


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_with_a_stalled_application_no_member_holds_more_than_the_bound(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "WAITING_BYTES_MAX", WAITING_BYTES)

    @on_loopback
    async def scenario() -> None:
        chosen = {"window": 16, "frame_bytes": 4_000, "window_bytes": WINDOW_BYTES, "datagram_bytes": 4_000}
        times = {"suspect_after": 1.5, "merge_every": 1.5}  # no pause of a busy machine is that long
        async with members(3, transport=transport, **chosen, **times) as found:
            groups = await join_all(found)
            seen: list[list[Event]] = [[], [], []]
            readers = [asyncio.create_task(read_on(groups[place], seen[place])) for place in range(2)]
            senders = [asyncio.create_task(send_for_ever(group)) for group in groups]
            watch = asyncio.create_task(most_held(found))
            stalled = found[2].id
            await until(lambda: all(group.health.blocked_by == stalled for group in groups[:2]))
            await asyncio.sleep(2 * times["suspect_after"])  # long enough to be suspected for it
            assert all(len(payloads(events)) <= 3 * WINDOW_BYTES // 1_000 for events in seen)  # no member continues
            readers.append(asyncio.create_task(read_on(groups[2], seen[2])))
            await until(lambda: len(payloads(seen[2])) > 3 * WINDOW_BYTES // 1_000)
            for sender in senders:
                sender.cancel()
            await asyncio.wait(senders)
            for group in groups:
                await group.send(b"end")
            await until(lambda: all(payloads(events).count(b"end") == 3 for events in seen))
            assert payloads(seen[0]) == payloads(seen[1]) == payloads(seen[2])
            for events in seen:
                assert not [view.left for view in events if isinstance(view, View) and view.left]
            assert any(Blocked(by=stalled) in events for events in seen[:2])
            watch.cancel()
            await asyncio.wait([watch])
            for held in most.values():
                assert WINDOW_BYTES < held <= 3 * WINDOW_BYTES + WAITING_BYTES
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)

    most: dict[str, int] = {}

    async def most_held(found: list[Member]) -> None:
        while True:
            for member in found:
                most[member.id] = max(most.get(member.id, 0), held_bytes(member))
            await asyncio.sleep(0.01)

    scenario()


async def send_for_ever(group: Group) -> None:
    while True:
        await group.send(bytes(1_000))
        await asyncio.sleep(0)


@on_loopback
async def test_few_large_messages_wait_for_the_window_or_many_small_ones() -> None:
    async with members(2, window=4, frame_bytes=1_000, window_bytes=4_000) as found:
        sender, _ = await join_all(found)
        fill(sender, bytes(60_000))
        await until(lambda: sender.health.blocked_by is not None)
        fill(sender, bytes(60_000))
        assert 15 <= sender.health.waiting <= 18
        sender.try_send(b"small")
        with pytest.raises(FlowBlocked):
            sender.try_send(bytes(60_000))


def test_thirty_restarts_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """At one address or at others, under one name or under others; crashed, or in good order."""
    monkeypatch.setattr(tcp, "_TRIES_MAX", 5)
    monkeypatch.setattr(tcp, "_RETRY_S", (0.02, 0.1))

    @on_loopback
    async def scenario() -> None:
        async with members(2) as found:
            groups = await join_all(found)
            readers = [asyncio.create_task(read_on(group, [])) for group in groups]
            bind = "127.0.0.1:0"
            before = inventory(found)
            for number in range(30):
                name = "again" if number % 3 else f"guest-{number}"
                at, contact = bind if name == "again" else "127.0.0.1:0", found[number % 2]
                async with Member(name=name, bind=at, peers=[contact.address], **FAST) as visitor:
                    await (await visitor.join("orders")).ready(2)
                    bind = visitor.address if name == "again" and number > 15 else bind
                    if number % 2:
                        await visitor.abort()
            await until(lambda: all(len(group.health.members) == 2 for group in groups))
            await until(lambda: inventory(found) == before)
            for member in found:
                core = member._process.core
                assert isinstance(core, NewtopProcess)
                assert {group for _, group in core._connections._incoming} == {*core._groups}
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)

    scenario()


def inventory(found: list[Member]) -> tuple[object, ...]:
    """Tasks, file descriptors, and the tables of the staying members."""
    tables = []
    for member in found:
        sizes = table_sizes(member)
        tables.append([sizes[name] for name in ("addresses", "callers", "numbers", "links", "strangers", "others")])
    return len(asyncio.all_tasks()), open_files(), tables


def mesh_of(member: Member) -> TcpMesh:
    mesh = member._process._transport
    assert isinstance(mesh, TcpMesh)
    return mesh


def test_a_process_that_was_in_no_view_is_forgotten_and_found_again_by_the_addresses_that_the_user_has_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "_TRIES_MAX", 5)
    monkeypatch.setattr(tcp, "_RETRY_S", (0.02, 0.1))

    @on_loopback
    async def scenario() -> None:
        async with members(3) as found:
            one, two, three = map(mesh_of, found)
            await until(lambda: all(len(member.peers) == 2 for member in found))
            cut_off(one, two, three)
            await until(lambda: {*one._addresses.known} == {found[1].id} and {*two._addresses.known} == {found[0].id})
            await until(lambda: three._callers.keys() == {one.address})  # the named address; p2 is forgotten
            for mesh in (one, two, three):
                mesh.forbid(frozenset())
            await until(lambda: all(len(member.peers) == 2 for member in found))
            number = one.connection(found[2].id)
            assert number is not None
            assert number > 0  # connections are counted on

    scenario()


def test_members_that_are_cut_off_for_long_do_not_forget_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """All were given only the address of p1, which stays cut off."""
    monkeypatch.setattr(tcp, "_TRIES_MAX", 5)
    monkeypatch.setattr(tcp, "_RETRY_S", (0.02, 0.1))
    monkeypatch.setattr(tcp, "_RARELY_S", 0.1)
    calls = 0
    original = tcp.TcpMesh._try

    async def count(mesh: tcp.TcpMesh, address: tuple[str, int]) -> object:
        nonlocal calls
        calls += 1
        return await original(mesh, address)

    @on_loopback
    async def scenario() -> None:
        nonlocal calls
        async with members(3) as found:
            groups = await join_all(found)
            readers = [asyncio.create_task(read_on(group, [])) for group in groups]
            one, two, three = map(mesh_of, found)
            cut_off(one, two, three)
            await until(lambda: [len(group.health.members) for group in groups] == [2, 2, 1])
            monkeypatch.setattr(tcp.TcpMesh, "_try", count)
            await until(lambda: calls > 40)  # for each pair and direction, more than enough to forget the peer
            for mesh in (two, three):
                mesh.forbid(frozenset({"p1"}))
            await until(lambda: found[2].id in two.peers)
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)

    scenario()


def cut_off(one: tcp.TcpMesh, two: tcp.TcpMesh, three: tcp.TcpMesh) -> None:
    """Cut off the third member from the others."""
    one.forbid(frozenset({"p3"}))
    two.forbid(frozenset({"p3"}))
    three.forbid(frozenset({"p1", "p2"}))


@on_loopback
async def test_a_process_names_only_peers_that_it_is_connected_with() -> None:
    async with AsyncExitStack() as stack:
        (found,) = await stack.enter_async_context(members(1))
        gone = await stack.enter_async_context(Member(name="gone", peers=[found.address], **FAST))
        await until(lambda: gone.id in found.peers)
        mesh = mesh_of(found)
        assert b"gone" in mesh._introduction(mesh.peers)
        mesh.forbid(frozenset({"gone"}))
        await until(lambda: gone.id not in found.peers)
        assert gone.id in mesh._addresses.known
        assert b"gone" not in mesh._introduction(mesh.peers)


@on_loopback
async def test_a_member_that_reads_no_connection_is_excluded_and_the_others_go_on() -> None:
    """Like a stopped process: the buffers of its peers fill, and stay full after its exclusion."""
    times = {"suspect_after": 2.0, "merge_every": 2.0}  # the buffers fill before the exclusion
    async with members(3, window=2_000, window_bytes=64 << 20, **times) as found:
        groups = await join_all(found)
        counts = [0, 0]
        stopped, one = found[2], mesh_of(found[0])
        for link in mesh_of(stopped)._links.values():
            assert link._transport is not None
            link._transport.pause_reading()
        stopped._process.driver.halt()
        tasks = [asyncio.create_task(send_large(group)) for group in groups[:2]]
        tasks += [asyncio.create_task(count_messages(groups[place], counts, place)) for place in range(2)]
        try:
            await until(lambda: stopped.id in {link.peer for link in one._full})
            await until(lambda: all(len(group.health.members) == 2 for group in groups[:2]))
            before = counts[0]
            await until(lambda: counts[0] > before + 50)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for member in found:  # one of them cannot leave any more
                await member.abort()


async def count_messages(group: Group, counts: list[int], place: int) -> None:
    while events := await group.receive():
        counts[place] += len(payloads(events))


async def send_large(group: Group) -> None:
    while True:
        await group.send(bytes(60_000))


@on_loopback
async def test_a_joiner_is_admitted_only_when_all_members_are_connected_with_it() -> None:
    """Otherwise a member that connects slowly would be severed from the joiner, and in the end be excluded."""
    async with members(2) as found:
        groups = await join_all(found)
        seen: list[list[Event]] = [[], []]
        readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
        mesh_of(found[1]).forbid(frozenset({"p3"}))
        async with Member(name="p3", peers=[found[0].address], **FAST) as late:
            joining = asyncio.create_task(late.join("orders"))
            await until(lambda: late.id in found[0].peers)
            await asyncio.sleep(5 * FAST["suspect_after"])
            assert all(names(group.health.members) == ["p1", "p2"] for group in groups)
            mesh_of(found[1]).forbid(frozenset())
            await (await joining).ready(3)
            await until(lambda: all(len(group.health.members) == 3 for group in groups))
        for events in seen:
            left = [each for view in events if isinstance(view, View) for each in view.left]
            assert {name(each.process) for each in left} <= {"p3"}
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
