"""Multicast sockets with nothing beneath them (`sockets/transports/multicast.py`), and the faults of its links."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack

from antiphon import ProcessId
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame
from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.datagrams import DatagramSocket, Sockaddr
from antiphon.sockets.transports.multicast import LinkFaults, MulticastMesh
from antiphon.types import GroupId, ViewId
from antiphon.wire.codec import decode, encode
from antiphon.wire.frame import Sealed
from tests.support.cast import LOOPBACK, multicast_or_skip, until, within_deadline

PRICES, ALERTS = GroupId("prices"), GroupId("alerts")


class Ear:
    """Records the frames that its transport hands over."""

    def __init__(self) -> None:
        self.heard: list[tuple[ProcessId, bytes]] = []

    def arrived(self, peer: ProcessId, _: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        assert not overheard, "a process listens to a group on purpose"
        self.heard += [(peer, decode(each).payloads[0]) for each in sealed]

    def connected(self, peer: ProcessId) -> None:
        raise AssertionError(peer)

    def broke(self, peer: ProcessId, connection: int) -> None:
        raise AssertionError(peer, connection)

    def gone(self, peer: ProcessId) -> None:
        raise AssertionError(peer)

    def writable(self, ready: bool) -> None:
        raise AssertionError(ready)


def message(sender: str, payload: bytes, group: GroupId = PRICES) -> bytes:
    return encode(DataFrame(group, ProcessId(sender), 1, 7, ViewId("v"), 0, (payload,)))


async def meshes(
    stack: AsyncExitStack, *names: str, link_faults: LinkFaults | None = None, strangers: str = ""
) -> list[tuple[MulticastMesh, Ear]]:
    """One mesh for each name; all know each other except the strangers; all are in `prices`."""
    host, port = multicast_or_skip()
    made = {ProcessId(name): (MulticastMesh(ProcessId(name), (LOOPBACK, 0), link_faults), Ear()) for name in names}
    for mesh, ear in made.values():
        await mesh.open(ear)
        stack.push_async_callback(mesh.close)
    addresses: dict[ProcessId, Address] = {name: mesh.address for name, (mesh, _) in made.items()}
    groups = {PRICES: (host, port), ALERTS: ("239.255.77.78", port)}
    for name, (mesh, _) in made.items():
        mesh.meet({peer: at for peer, at in addresses.items() if peer != name and peer not in strangers}, groups)
        mesh.listen(PRICES)
    return [*made.values()]


def test_a_multicast_is_one_datagram_for_all_listeners_and_its_sender_takes_no_copy() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, own), *others = await meshes(stack, "a", "b", "c", "d")
            noted = Noted(here._socket)
            here._socket = noted  # type: ignore[assignment]
            here.multicast(message("a", b"to all"), PRICES)
            here.send(message("a", b"to one"), [ProcessId("d")])
            here.flush()
            await until(lambda: len(others[2][1].heard) == 2 and all(ear.heard for _, ear in others))
            assert [ear.heard for _, ear in others[:2]] == [[("a", b"to all")]] * 2
            assert own.heard == []
            assert noted.datagrams == 2

    within_deadline(test)


class Noted:
    """A socket that counts the datagrams that it sends."""

    def __init__(self, inner: DatagramSocket) -> None:
        self._inner = inner
        self.datagrams = 0

    def send(self, datagrams: list[bytes], to: Sockaddr) -> None:
        self.datagrams += len(datagrams)
        self._inner.send(datagrams, to)

    def close(self) -> None:
        self._inner.close()


def test_only_listeners_of_a_group_hear_it_and_only_while_they_listen() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, _), (there, ear), (_, outsider) = await meshes(stack, "a", "b", "c")

            async def say(payload: bytes) -> None:
                """Send it, and then a message that all hear."""
                here.multicast(message("a", payload, ALERTS), ALERTS)
                here.flush()
                here.multicast(message("a", b"all"), PRICES)
                here.flush()
                await until(lambda: ear.heard[-1:] == [("a", b"all")] == outsider.heard[-1:])

            await say(b"too early")
            there.listen(ALERTS)
            ear.heard.clear()
            await say(b"in time")
            there.unlisten(ALERTS)
            heard, ear.heard[:] = [*ear.heard], []
            await say(b"too late")
            assert ("a", b"in time") in heard
            assert {payload for _, payload in ear.heard + outsider.heard} == {b"all"}

    within_deadline(test)


def test_frames_of_strangers_and_of_the_other_side_of_a_partition_are_dropped() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (a, _), (b, _), (x, _), (here, ear) = await meshes(stack, "a", "b", "x", "d", strangers="x")
            here.forbid(frozenset({"a"}))
            for mesh, sender in ((x, "x"), (a, "a"), (b, "b")):
                mesh.multicast(message(sender, b"hello"), PRICES)
                mesh.flush()
            b.multicast(b"no frame at all", PRICES)
            b.multicast(message("b", b"end"), PRICES)
            b.flush()
            await until(lambda: ("b", b"end") in ear.heard)
            here.forbid(frozenset())
            a.multicast(message("a", b"healed"), PRICES)
            a.flush()
            await until(lambda: ("a", b"healed") in ear.heard)
            assert [*ear.heard] == [("b", b"hello"), ("b", b"end"), ("a", b"healed")]

    within_deadline(test)


def test_a_process_that_starts_again_is_a_new_peer_and_frames_to_it_are_lost_until_it_is_introduced() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, own), (again, ear) = await meshes(stack, "a", "b#1", strangers="b#1")
            here.send(message("a", b"too early"), [ProcessId("b#1")])
            here.flush()
            here.meet({ProcessId("b#1"): again.address}, {})
            here.send(message("a", b"in time"), [ProcessId("b#1")])
            here.flush()
            again.multicast(message("b#1", b"back"), PRICES)
            again.flush()
            await until(lambda: bool(ear.heard) and bool(own.heard))
            assert ear.heard == [("a", b"in time")]
            assert own.heard == [("b#1", b"back")]
            assert LinkFaults(loss={"b": 1.0}).arrivals(ProcessId("b#1")) == [], "all incarnations lose"

    within_deadline(test)


def test_losses_are_injected_where_datagrams_arrive() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            link_faults = LinkFaults(random.Random(3), {"a": 1.0})
            (lost, _), (kept, _), (_, ear) = await meshes(stack, "a", "b", "c", link_faults=link_faults)
            for mesh, sender in ((lost, "a"), (kept, "b")):
                mesh.multicast(message(sender, b"hello"), PRICES)
                mesh.flush()
            await until(lambda: len(ear.heard) == 1)
            assert ear.heard == [("b", b"hello")]

    within_deadline(test)


def test_the_faults_of_links_are_those_of_the_scenario_and_the_same_for_the_same_seed() -> None:
    def year(seed: int) -> list[list[float]]:
        link_faults = LinkFaults(random.Random(seed), {"a": 0.1}, duplicate=0.2, reorder=0.3, late_s=0.01)
        return [link_faults.arrivals(ProcessId("a")) for _ in range(10_000)]

    days = year(1)
    copies = [late for day in days for late in day]
    assert days == year(1) != year(2)
    assert 0.07 < sum(not day for day in days) / 10_000 < 0.095  # of two copies, both must be lost
    assert 0.15 < sum(len(day) == 2 for day in days) / 10_000 < 0.18
    assert 0.28 < sum(late > 0 for late in copies) / len(copies) < 0.32
    assert max(copies) <= 0.01
    assert LinkFaults().arrivals(ProcessId("a")) == [0.0]


def test_a_late_datagram_is_not_delivered_to_a_closed_mesh() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            link_faults = LinkFaults(random.Random(1), reorder=1.0, late_s=3.0)
            (here, _), (there, ear) = await meshes(stack, "a", "b", link_faults=link_faults)
            for number in range(20):
                here.multicast(message("a", b"%d" % number), PRICES)
            here.flush()
            await until(lambda: bool(ear.heard))
            await there.close()
            before = len(ear.heard)
            await asyncio.sleep(3.1)
            assert len(ear.heard) == before < 20

    within_deadline(test)


def test_frames_of_one_turn_are_not_packed_into_one_datagram() -> None:
    """So each frame is lost or kept independently."""

    async def test() -> None:
        async with AsyncExitStack() as stack:
            (here, _), (there, _) = await meshes(stack, "a", "b")
            came: list[bytes] = []
            there._arrived = lambda datagram, source: came.append(datagram)  # type: ignore[method-assign]  # noqa: ARG005
            there.unlisten(PRICES)
            there.listen(PRICES)
            frames = [message("a", b"x" * size) for size in (10, 10, 5, 2000)]
            frames.append(encode(KeepAliveFrame(PRICES, ProcessId("a"), 1, 8, ViewId("v"), 0)))
            for frame in frames:
                here.multicast(frame, PRICES)
            here.flush()
            await until(lambda: len(came) == 5)
            assert came == frames

    within_deadline(test)
