"""Members on datagrams (`sockets/transports/udp.py`): the cores repair losses."""

import asyncio
import random
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from antiphon import ConfigurationError, Group, Member, Message, ProcessId, Reset
from antiphon.api.settings import PRESETS
from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import BlockFrame, Flow, RepairFrame
from antiphon.sockets.transports import udp
from antiphon.sockets.transports.choice import parse_address
from antiphon.sockets.transports.contract import Transport
from antiphon.sockets.transports.datagrams import DatagramSocket, Sockaddr
from antiphon.sockets.transports.pieces import Piece, Reassembly, cut
from antiphon.sockets.transports.udp import UdpMesh
from antiphon.types import GroupId, formed_group, process_id
from antiphon.wire.codec import encode
from antiphon.wire.frame import seal
from tests.support.cast import LOOPBACK, Told, all_talk, multicast_or_skip, until, within_deadline


class LossyMesh(UdpMesh):
    """Loses one datagram in ten, hellos too."""

    dice = random.Random(7)
    lost = 0

    def transmit(self, datagrams: list[bytes], to: Sockaddr) -> None:
        kept = [datagram for datagram in datagrams if self.dice.random() >= 0.1]
        LossyMesh.lost += len(datagrams) - len(kept)
        super().transmit(kept, to)


def silence(mesh: Transport) -> None:
    """From now on none of its datagrams leaves: to others it has crashed."""
    assert isinstance(mesh, UdpMesh)
    mesh.transmit = lambda *_: None  # type: ignore[method-assign]


def frame(sender: str, payload: bytes) -> bytes:
    return encode(BlockFrame(GroupId("g"), ProcessId(sender), 1, 0, 0, (payload,)))


async def meshes(stack: AsyncExitStack, *names: str, host: str = LOOPBACK, **chosen: Any) -> list[tuple[UdpMesh, Told]]:
    """Transports without members; each hears all others."""
    found: list[tuple[UdpMesh, Told]] = []
    for name in names:
        mesh, told = (
            UdpMesh(ProcessId(name), (host, 0), [each.address for each, _ in found[:1]], **chosen),
            Told(),
        )
        await mesh.open(told)
        stack.push_async_callback(mesh.close)
        found.append((mesh, told))
    await until(lambda: all(len(mesh.peers) == len(names) - 1 for mesh, _ in found))
    return found


def udp_member(name: str, peers: list[str], **chosen: Any) -> Member:
    return Member(name=name, transport="udp", peers=peers, preset="local", **chosen)


async def together(
    stack: AsyncExitStack, *names: str, make: Callable[[str, list[str]], Member] | None = None, **chosen: Any
) -> tuple[list[Member], list[Group]]:
    """All in one group. Each knows only the address of the first, which founds the group before the others start."""
    cast: list[Member] = []
    groups: list[Group] = []
    for name in names:
        seeds = [member.address for member in cast[:1]]
        member = (
            make(name, seeds) if make else Member(name=name, transport="udp", peers=seeds, preset="local", **chosen)
        )
        cast.append(await stack.enter_async_context(member))
        groups.append(await member.join("orders"))
    await until(lambda: all(len(member.peers) >= len(names) - 1 for member in cast))
    for group in groups:
        await group.ready(len(names))
    return cast, groups


def test_three_members_read_the_same_order() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            _, groups = await together(stack, "a", "b", "c")
            first, *others = await all_talk(groups, each=500)
            assert len(first) == 1500
            assert others == [first, first]

    within_deadline(test)


def test_messages_larger_than_any_datagram_arrive() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            _, groups = await together(stack, "a", "b")
            first, second = await all_talk(groups, each=3, size=300_000)
            assert first == second
            assert {len(message.payload) for message in first} == {300_000}

    within_deadline(test)


def test_one_datagram_in_ten_is_lost_and_the_order_is_the_same() -> None:
    async def test() -> None:
        def lossy(name: str, seeds: list[str]) -> Member:
            addresses = [parse_address(seed) for seed in seeds]
            maker = lambda me: LossyMesh(me, (LOOPBACK, 0), addresses)  # noqa: E731
            return Member(name=name, transport=maker, suspect_after=5.0, merge_every=5.0)

        async with AsyncExitStack() as stack:
            _, groups = await together(stack, "a", "b", "c", make=lossy)
            first, *others = await all_talk(groups, each=500)
            assert LossyMesh.lost
            assert len(first) == 1500
            assert others == [first, first]

    within_deadline(test)


def test_a_joiner_gets_the_state_and_then_every_message_once() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            history: list[bytes] = []
            a = await stack.enter_async_context(udp_member("a", []))
            donor = await a.join("orders", snapshot=lambda: b"|".join(history))
            b = await stack.enter_async_context(udp_member("b", [a.address]))

            async def apply() -> None:
                while len(history) < 400:
                    event = await anext(donor)
                    if isinstance(event, Message):
                        history.append(event.payload)

            async def talk() -> None:
                for number in range(400):
                    await donor.send(str(number).encode())
                    if number % 10 == 0:
                        await asyncio.sleep(0.002)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(apply())
                tasks.create_task(talk())
                joiner = await b.join("orders", snapshot=lambda: b"")
                copy: list[bytes] = []
                while len(copy) < 400:
                    event = await anext(joiner)
                    if isinstance(event, Reset):
                        (state,) = event.states
                        copy = state.split(b"|") if state else []
                    elif isinstance(event, Message):
                        copy.append(event.payload)
            assert copy == history == [str(number).encode() for number in range(400)]

    within_deadline(test)


def test_a_silent_member_is_excluded_and_the_others_go_on() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (a, b, c), groups = await together(stack, "a", "b", "c")
            silence(c._process.driver.transport)
            first, second = await all_talk(groups[:2], each=20)
            assert first == second
            await until(lambda: all(group.health.members == (a.id, b.id) for group in groups[:2]))

    within_deadline(test)


def test_a_restarted_process_at_the_same_address_replaces_its_earlier_incarnation() -> None:
    async def test() -> None:
        told = Told()
        here = UdpMesh(process_id("a"), (LOOPBACK, 0))
        await here.open(told)
        seeds = [here.address]
        before = UdpMesh(process_id("b", 1), (LOOPBACK, 0), seeds)
        await before.open(Told())
        await until(lambda: here.peers == ("b#1",))
        silence(before)
        await before.close()
        after = UdpMesh(process_id("b", 2), before.address, seeds)
        await after.open(Told())
        await until(lambda: here.peers == ("b#2",))
        assert told.connections == ["b#1", "b#2"]
        await after.close()
        await until(lambda: here.peers == ())
        await here.close()

    within_deadline(test)


def test_a_peer_given_by_another_name_is_called_by_its_own_address() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            ((here, _),) = await meshes(stack, "a")
            there = UdpMesh(ProcessId("b"), (LOOPBACK, 0), [("localhost", here.address[1])])
            await there.open(Told())
            stack.push_async_callback(there.close)
            await until(lambda: there.peers == ("a",) and here.peers == ("b",))
            assert {contact.process for contact in there._contacts.values()} == {"a"}
            assert there._met[ProcessId("a")].address == here.address

    within_deadline(test)


def test_addresses_may_be_of_the_longer_kind() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            try:
                (here, _), (_, told) = await meshes(stack, "a", "b", host="::1")
            except OSError:
                pytest.skip("this machine has no IPv6")
            here.send(frame("a", b"far"), here.peers)
            here.flush()
            await until(lambda: bool(told.frames))
            assert told.frames == [("a", frame("a", b"far"), False)]

    within_deadline(test)


def test_our_own_address_among_the_peers_is_let_alone() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            ((here, told),) = await meshes(stack, "a")
            contact = here._call(("localhost", here.address[1]), named=True)
            assert contact is not None
            await until(lambda: not here._contacts)
            assert not told.connections

    within_deadline(test)


def test_a_silent_process_is_no_peer_until_it_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(udp, "_LOST_S", 0.2)
        monkeypatch.setattr(udp, "_RETRY_S", (0.02, 0.05))
        async with AsyncExitStack() as stack:
            (here, told), (there, _) = await meshes(stack, "a", "b")
            speak = there.transmit
            silence(there)
            await until(lambda: here.peers == ())
            there.transmit = speak  # type: ignore[method-assign]
            await until(lambda: here.peers == ("b",))
            assert told.connections == ["b", "b"]

    within_deadline(test)


def test_a_process_silent_for_long_is_forgotten_unless_the_user_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(udp, "_LOST_S", 0.1)
        monkeypatch.setattr(udp, "_FORGET_S", 0.2)
        monkeypatch.setattr(udp, "_RETRY_S", (0.01, 0.02))
        async with AsyncExitStack() as stack:
            (one, _), (two, _), (three, _) = await meshes(stack, "a", "b", "c")
            speak = one.transmit, three.transmit
            silence(one)
            silence(three)
            await until(lambda: two._contacts.keys() == {one.address})  # the named address
            await until(lambda: len(two._callers) == 1 and two.peers == ())
            one.transmit, three.transmit = speak  # type: ignore[method-assign]
            await until(lambda: all(len(mesh.peers) == 2 for mesh in (one, two, three)))

    within_deadline(test)


def test_more_peers_than_one_hello_names_get_to_know_each_other() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            found = await meshes(stack, *(f"p{number}" for number in range(20)), datagram_bytes=576)
            contact = found[0][0]._met[ProcessId("p1")]
            told = {address for _ in range(3) for address in found[0][0]._others(contact)}
            assert len(told) == 18

    within_deadline(test)


def test_frames_larger_than_a_datagram_leave_in_pieces_and_small_ones_together() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, _), (_, told) = await meshes(stack, "a", "b", datagram_bytes=1400)
            sent = [frame("a", bytes(size)) for size in (10, 20, 100_000, 30, 1300, 40)]
            for each in sent:
                here.send(each, here.peers)
            here.flush()
            await until(lambda: len(told.frames) == len(sent))
            assert sorted(told.frames) == sorted((ProcessId("a"), each, False) for each in sent)

    within_deadline(test)


@pytest.mark.parametrize("preset", PRESETS)
def test_data_and_their_repair_fit_in_a_datagram(preset: str) -> None:
    settings = PRESETS[preset]
    room = settings.core(datagrams=True, tracing=False).frame_bytes_max
    group, sender = formed_group("orders-of-the-day", 3, ProcessId("a"), 1), ProcessId("10.200.100.50-7400#1789000000")
    data = BlockFrame(group, sender, 1 << 40, 1 << 40, 1 << 40, (bytes(room),), flow=Flow(9, 8, 7, 6), sequence=5)
    repair = RepairFrame(group, sender, (data,))
    assert len(encode(data)) < len(encode(repair)) <= settings.datagram_bytes


def test_a_second_try_needs_only_the_pieces_that_were_lost() -> None:
    whole = frame("a", random.Random(1).randbytes(50_000))
    pieces = [Piece(piece) for piece in cut(whole, ProcessId("a"), 1400)]
    assert len(pieces) > 30
    reassembly = Reassembly()
    assert [reassembly.add(piece) for piece in pieces[::2]] == [None] * len(pieces[::2])
    assert [reassembly.add(piece) for piece in pieces[1::2]][-1] == whole


@pytest.mark.parametrize("body", [b"", b"\x01a", b"\x01a" + bytes(24), b"\x01a" + bytes(16) + b"\xff" * 8])
def test_a_piece_of_nothing_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        Piece(seal(65, body))


def test_few_frames_are_kept_incomplete() -> None:
    reassembly, first = Reassembly(), cut(bytes(5_000), ProcessId("a"), 1400)
    reassembly.add(Piece(first[0]))
    for size in range(5_001, 5_006):
        reassembly.add(Piece(cut(bytes(size), ProcessId("a"), 1400)[0]))
    assert [reassembly.add(Piece(piece)) for piece in first[1:]] == [None] * (len(first) - 1)


def test_incomplete_frames_are_bounded_for_each_peer_and_in_total() -> None:
    reassembly = Reassembly(10_000, 50_000)
    for number in range(100):
        for piece in cut(bytes([number]) * 9_000, ProcessId(f"p{number}"), 1400)[:-1]:
            reassembly.add(Piece(piece))
            assert reassembly.held_bytes <= 50_000
    assert reassembly.held_bytes > 30_000
    for whole, size in ((bytes(20_000), 1400), (bytes(9_000), 150)):  # many small pieces cost more than their content
        pieces = [Piece(piece) for piece in cut(whole, ProcessId("large"), size)]
        with pytest.raises(ProtocolViolation, match="exceed the limit"):
            _ = [reassembly.add(piece) for piece in pieces]
    held = reassembly.held_bytes
    reassembly.add(Piece(cut(bytes(9_000), ProcessId("gone"), 1400)[0]))
    reassembly.forget(ProcessId("gone"))
    assert reassembly.held_bytes <= held


def test_strange_datagrams_do_no_harm() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, _), (there, told) = await meshes(stack, "a", "b")
            stranger = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            no_text = msgspec.msgpack.encode(["z", "z", 1]).replace(b"z", b"\xff")
            for body in (b"no hello", no_text, msgspec.msgpack.encode(["z", "z", 0])):
                stranger.sendto(seal(64, body), there.address)
            for strange in (b"x", bytes(9), bytes(40), seal(65, b"no piece"), seal(1, b"")):
                stranger.sendto(strange, there.address)
            stranger.sendto(frame("nobody", b"unknown"), there.address)
            here.send(frame("a", b"after"), here.peers)
            here.flush()
            await until(lambda: bool(told.frames))
            assert [sealed for _, sealed, _ in told.frames] == [frame("a", b"after")]

    within_deadline(test)


def test_where_the_kernel_cuts_nothing_datagrams_leave_one_by_one() -> None:
    async def test() -> None:
        bound = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for each in bound:
            each.bind((LOOPBACK, 0))
        arrived: list[bytes] = []
        sender = DatagramSocket(bound[0], lambda *_: None, lambda _: None)
        receiver = DatagramSocket(bound[1], lambda datagram, _: arrived.append(datagram), lambda _: None)
        batch = [bytes([size]) * size for size in (100, 100, 100, 50, 100, 7)]
        sender.send(batch, receiver.name)
        await until(lambda: len(arrived) == len(batch))
        sender._segment_bytes_max = 0
        sender.send(batch, receiver.name)
        await until(lambda: len(arrived) == 2 * len(batch))
        assert arrived == batch * 2
        sender.close()
        receiver.close()

    within_deadline(test)


class Stubborn:
    """A socket that is full, or whose device cannot segment."""

    def __init__(self, real: socket.socket) -> None:
        self.real = real
        self.full = False

    def sendmsg(self, *_: object) -> int:
        raise OSError("the device cannot")

    def sendto(self, datagram: bytes, to: Sockaddr) -> int:
        if self.full:
            raise BlockingIOError
        return self.real.sendto(datagram, to)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_datagrams_wait_for_a_full_socket_and_the_core_is_told() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, told), (_, other) = await meshes(stack, "a", "b")
            stubborn = Stubborn(here._sockets[0]._socket)
            here._sockets[0]._socket = stubborn  # type: ignore[assignment]
            stubborn.full = True
            for number in range(30):
                here.send(frame("a", bytes([number]) * 8000), here.peers)
            here.flush()
            assert told.ready == [False]
            stubborn.full = False
            await until(lambda: len(other.frames) == 30)
            assert told.ready == [False, True]

    within_deadline(test)


def test_with_multicast_the_order_is_the_same() -> None:
    group = "{}:{}".format(*multicast_or_skip())

    async def test() -> None:
        async with AsyncExitStack() as stack:
            _, groups = await together(stack, "a", "b", "c", multicast=group)
            first, *others = await all_talk(groups, each=200)
            assert others == [first, first]

    within_deadline(test)


def test_a_frame_for_several_leaves_once_and_a_frame_for_one_is_not_overheard() -> None:
    group = multicast_or_skip()

    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, _), (_, one), (_, other) = await meshes(stack, "a", "b", "c", multicast=group)
            away: list[Sockaddr] = []
            transmit = here.transmit

            def noted(datagrams: list[bytes], to: Sockaddr) -> None:
                away.append(to)
                transmit(datagrams, to)

            here.transmit = noted  # type: ignore[method-assign]
            here.send(frame("a", b"to both"), here.peers)
            here.flush()
            here.send(frame("a", b"to one"), (ProcessId("b"),))
            here.flush()
            await until(lambda: len(one.frames) == 2 and len(other.frames) == 1)
            assert [overheard for *_, overheard in one.frames] == [True, False]
            assert [overheard for *_, overheard in other.frames] == [True]
            assert away[0] == group
            assert group not in away[1:]

    within_deadline(test)


def test_frames_of_groups_that_we_are_not_in_are_not_for_us() -> None:
    """All listen at one address: a member of another group neither accepts nor answers overheard frames."""
    group = "{}:{}".format(*multicast_or_skip())

    async def test() -> None:
        async with AsyncExitStack() as stack:
            outsider = await stack.enter_async_context(udp_member("d", [], multicast=group))
            alone = await outsider.join("elsewhere")
            fed: list[str] = []
            receive = outsider._process.core.receive

            def noted(frame: Frame, now: int) -> None:
                fed.append(frame.kind)
                receive(frame, now)

            outsider._process.core.receive = noted  # type: ignore[method-assign]
            (a, *_), groups = await together(stack, "a", "b", "c", multicast=group)
            outsider._process.driver.transport._call(parse_address(a.address))  # type: ignore[attr-defined]
            await until(lambda: len(outsider.peers) == 3)
            await all_talk(groups, each=20)
            assert "data" not in fed
            assert alone.health.members == (outsider.id,)

    within_deadline(test)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"transport": "pigeon"}, "there is no transport 'pigeon'; take one of tcp, udp"),
        ({"multicast": "239.1.2.3:7500"}, "multicast needs transport 'udp', not 'tcp'"),
        ({"transport": "udp", "multicast": "10.0.0.1:7500"}, "'10.0.0.1:7500' is not a multicast address"),
        ({"transport": "udp", "multicast": "239.1.2.3:0"}, "'239.1.2.3:0' is not a multicast address"),
        ({"transport": "udp", "datagram_bytes": 100}, "datagram_bytes must lie between 576 and 65,507"),
    ],
)
def test_contradictory_transport_settings_are_refused_in_a_sentence(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Member(name="a", **chosen)


def test_multicast_needs_ipv4() -> None:
    async def test() -> None:
        member = Member(name="a", transport="udp", bind="[::1]:0", multicast="239.1.2.3:7500")
        with pytest.raises((ConfigurationError, OSError)):
            await member.__aenter__()

    within_deadline(test)
