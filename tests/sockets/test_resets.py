"""Connections that are reset: the session goes on if both processes live, and a death is noticed at once if not."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from antiphon import Event, Group, Member, View
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.sockets.transports import sessions
from antiphon.sockets.transports.links import Link
from antiphon.sockets.transports.sessions import (
    RECEIVED,
    Answer,
    Offer,
    Session,
    Sessions,
    count_in,
    is_refusal,
    offer_in,
)
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import encode
from antiphon.wire.frame import Sealed, seal
from tests.support.loopback import FAST, on_loopback, payloads, read_on, take_view, until
from tools.lab.middlebox import Middlebox, listening_at

PATIENT: dict[str, Any] = {**FAST, "suspect_after": 20.0, "merge_every": 20.0}
"""No timeout excludes a member in these tests: every exclusion is due to evidence."""


@asynccontextmanager
async def behind_boxes(count: int, **chosen: Any) -> AsyncIterator[tuple[list[Member], list[Middlebox]]]:
    """p1 … pn, each behind a middlebox of its own."""
    async with AsyncExitStack() as stack:
        found: list[Member] = []
        boxes: list[Middlebox] = []
        for number in range(1, count + 1):
            box = Middlebox()
            await box.open()
            stack.push_async_callback(box.close)
            seeds = [boxes[0].address] if boxes else []
            member = Member(name=f"p{number}", peers=seeds, advertise=box.address, **{**PATIENT, **chosen})
            boxes.append(box)
            found.append(await stack.enter_async_context(member))
            box.forward_to(listening_at(member))
        yield found, boxes


def mesh_of(member: Member) -> TcpMesh:
    mesh = member._process.driver.transport
    assert isinstance(mesh, TcpMesh)
    return mesh


async def formed(found: list[Member]) -> list[Group]:
    """Form a group of all members directly, so that no member waits for a suspicion timeout first."""
    everybody = tuple(member.id for member in found)
    await until(lambda: all(len(member.peers) == len(found) - 1 for member in found))
    first = found[0]._process.form("orders", everybody)
    groups = await asyncio.gather(first, *(member.join("orders") for member in found[1:]))
    await asyncio.gather(*(group.ready(len(found)) for group in groups))
    return groups


def exclusions(events: list[Event]) -> list[ProcessId]:
    return [left.process for event in events if isinstance(event, View) for left in event.left]


@pytest.mark.parametrize("size_bytes", [20, 40_000])
def test_resets_without_a_death_lose_nothing_and_exclude_no_member(size_bytes: int) -> None:
    @on_loopback
    async def scenario() -> None:
        chance = random.Random(size_bytes)
        async with behind_boxes(3) as (found, boxes):
            groups = await formed(found)
            seen: list[list[Event]] = [[] for _ in groups]
            readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
            sent = 0
            for _ in range(12):
                for group in groups:
                    for _ in range(5):
                        await group.send(b"%d " % sent + bytes(size_bytes))
                        sent += 1
                await asyncio.sleep(chance.choice([0, 0.001, 0.003]))
                assert sum(box.reset() for box in boxes) or sent
            await until(lambda: all(len(payloads(events)) == sent for events in seen))
            assert len({*payloads(seen[0])}) == sent
            assert payloads(seen[0]) == payloads(seen[1]) == payloads(seen[2])
            assert all(exclusions(events) == [] for events in seen)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    scenario()


@on_loopback
async def test_a_reset_in_an_idle_group_of_two_excludes_no_member() -> None:
    async with behind_boxes(2, suspect_after=5.0) as (found, boxes):
        groups = await formed(found)
        for group in groups:
            await take_view(group, lambda view: len(view.members) == 2)
        numbers = [mesh_of(found[0]).connection(found[1].id), mesh_of(found[1]).connection(found[0].id)]
        await until(lambda: sum(box.flows for box in boxes) > 0)
        assert sum(box.reset() for box in boxes) > 0
        await groups[0].send(b"after")
        for group in groups:
            assert payloads(await group.receive()) == [b"after"]  # and no view before it
        assert numbers == [mesh_of(found[0]).connection(found[1].id), mesh_of(found[1]).connection(found[0].id)]


@on_loopback
async def test_a_dead_process_is_excluded_long_before_its_silence_would_tell() -> None:
    async with AsyncExitStack() as stack:
        found: list[Member] = []
        for number in range(1, 4):
            seeds = [found[0].address] if found else []
            found.append(await stack.enter_async_context(Member(name=f"p{number}", peers=seeds, **PATIENT)))
        groups = await formed(found)
        await kill(found[2])
        for group in groups[:2]:
            view = await take_view(group, lambda view: len(view.members) == 2)
            assert [(left.process, left.reason) for left in view.left] == [(found[2].id, "gone")]


async def kill(member: Member) -> None:
    """As `kill -9` does: the port is closed, and all connections end without a goodbye."""
    for link in [*mesh_of(member)._links.values()]:
        link.abort()
    await member.abort()


@on_loopback
async def test_of_two_members_the_survivor_of_a_death_goes_on_soon() -> None:
    async with AsyncExitStack() as stack:
        chosen = {**PATIENT, "suspect_after": 4.0}
        one = await stack.enter_async_context(Member(name="p1", **chosen))
        other = await stack.enter_async_context(Member(name="p2", peers=[one.address], **chosen))
        groups = await formed([one, other])
        await kill(other)
        view = await take_view(groups[0], lambda view: len(view.members) == 1)
        assert [left.reason for left in view.left] == ["gone"]


@on_loopback
async def test_a_peer_that_refuses_connections_for_a_moment_is_not_excluded_if_another_member_hears_it() -> None:
    """p1 has evidence against p2, which is wrong: p3 still hears p2, and refutes it. Then p1 hears it again too."""
    async with behind_boxes(3) as (found, boxes):
        groups = await formed(found)
        seen: list[list[Event]] = [[] for _ in groups]
        readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
        await until(lambda: found[1].id in mesh_of(found[0])._links)
        boxes[1].refuse()
        assert boxes[1].reset() == 1  # that of p1, which is lower: p2 itself calls p3
        await asyncio.sleep(0.05)  # refused again and again
        await boxes[1].open()
        for number, group in enumerate(groups):
            await group.send(b"%d" % number)
        await until(lambda: all(len(payloads(events)) == 3 for events in seen))
        assert payloads(seen[0]) == payloads(seen[1]) == payloads(seen[2])
        assert all(exclusions(events) == [] for events in seen)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


@on_loopback
async def test_frames_that_could_not_be_processed_end_the_session() -> None:
    """They count as received, so a resumed session would never send them again."""
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
    async with behind_boxes(2, **FAST) as (found, _):
        groups = await formed(found)
        mesh, peer = mesh_of(found[0]), found[1].id
        driver, link, before = found[0]._process.driver, mesh._links[peer], mesh.connection(peer)
        arrived = driver.arrived

        def fail_once(*_: Any, **__: Any) -> None:
            driver.arrived = arrived  # type: ignore[method-assign]
            raise RuntimeError("a fault of our own")

        driver.arrived = fail_once  # type: ignore[method-assign]
        await groups[1].send(b"lost")
        await link.ended.wait()
        assert mesh.connection(peer) != before
        await until(lambda: mesh.connection(peer) is not None)
        assert [str(failure) for failure in failures] == ["a fault of our own"]


# A session by itself


class Wire:
    """A connection that records the written bytes."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, sealed: bytes) -> None:
        self.written.append(sealed)

    def write_all(self, frames: list[bytes]) -> None:
        self.written += frames


def session(wire: Wire) -> Session:
    made = Session(ProcessId("p2"), 0, own=3, other=5)
    made.go_on(wire, 0)  # type: ignore[arg-type]
    return made


def send(made: Session, *frames: bytes) -> None:
    for sealed in frames:
        made.send(sealed, (sealed, len(sealed)))
    made.flush()


def test_a_session_sends_again_exactly_what_was_not_received() -> None:
    first, second = Wire(), Wire()
    made = session(first)
    send(made, b"a", b"b", b"c")
    made.link = None
    send(made, b"d")
    assert first.written == [b"a", b"b", b"c"]
    made.go_on(second, 1)  # type: ignore[arg-type]
    send(made, b"e")
    assert second.written == [b"b", b"c", b"d", b"e"]


def test_acknowledged_frames_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_KEPT_BYTES_MAX", 4)
    made = session(Wire())
    send(made, b"a", b"b", b"c")
    made.acknowledged(2)
    assert not made.can_go_on_from(1)
    assert made.can_go_on_from(2)
    assert made.can_go_on_from(3)
    assert not made.can_go_on_from(4)
    send(made, b"123", b"456")
    assert not made.can_go_on_from(3)  # beyond the limit, the oldest go


def test_less_is_kept_for_a_peer_that_is_no_member_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_KEPT_BYTES_MAX", 2)
    made = session(Wire())
    made.trust()
    send(made, b"a", b"b", b"c")
    assert made.can_go_on_from(0)
    made.distrust()
    assert not made.can_go_on_from(0)
    assert made.can_go_on_from(1)


def test_more_than_was_sent_cannot_be_acknowledged() -> None:
    made = session(Wire())
    send(made, b"a")
    with pytest.raises(ProtocolViolation, match="2 frames are acknowledged, but only 1 were sent"):
        made.acknowledged(2)


def test_acknowledgments_leave_after_many_frames_or_bytes() -> None:
    wire = Wire()
    made = session(wire)
    assert not made.took(255, 1000)
    made.flush()
    assert wire.written == []
    assert made.took(1, 1)
    made.flush()
    assert [count_in(sealed) for sealed in wire.written] == [256]
    assert made.took(1, 1 << 14)
    made.flush()
    made.flush()
    assert [count_in(sealed) for sealed in wire.written] == [256, 257]
    made.trust()  # the peer keeps more for us now
    assert not made.took(1, 1 << 18)
    assert made.took(1, 1 << 18)


def test_a_large_frame_is_kept_before_it_is_encoded_and_sent_again_with_the_same_bytes() -> None:
    first, second = Wire(), Wire()
    made = session(first)
    frame = BlockFrame(GroupId("g"), ProcessId("p1"), 7, 6, 5, (bytes(20_000), b"x"), 3)
    made.send(encode(frame), (frame, len(encode(frame))))
    send(made, b"a")
    made.go_on(second, 0)  # type: ignore[arg-type]
    assert second.written == [encode(frame), b"a"] == first.written
    made.acknowledged(2)
    assert not made.can_go_on_from(1)


class Heard:
    """A mesh that records which frames reach it together."""

    def __init__(self) -> None:
        self.together: list[list[bytes]] = []

    def arrived(self, link: Link, sealed: list[Sealed]) -> None:
        self.together.append([bytes(each) for each in sealed])


def test_an_acknowledgment_does_not_separate_the_frames_around_it() -> None:
    """Two calls would cost the core two turns."""
    heard = Heard()
    link = Link(heard, called=True)  # type: ignore[arg-type]
    link.peer, link.session = ProcessId("p2"), session(Wire())
    send(link.session, b"a")
    frames = [encode(BlockFrame(GroupId("g"), link.peer, number, number - 1, 0)) for number in (1, 2)]
    read = frames[0] + seal(RECEIVED, (1).to_bytes(8)) + frames[1]
    link.get_buffer(-1)[: len(read)] = read
    link.buffer_updated(len(read))
    assert heard.together == [frames]
    assert not link.session.can_go_on_from(0)  # the acknowledgment counts


class Called(Wire):
    """A connection that records whether it was aborted."""

    def __init__(self, made: Sessions, token: int) -> None:
        super().__init__()
        self.peer = ProcessId("p2")
        self.session: Session | None = None
        self.aborted = False
        self.offer = made.offer(self.peer, token)

    def abort(self) -> None:
        self.aborted = True


@on_loopback
async def test_a_session_that_ends_between_the_two_offers_is_not_replaced_on_the_same_connection() -> None:
    """The other end goes on with the old session; a new one here would miss the frames that we still owe."""

    async def call(_: ProcessId) -> Answer:
        return Answer.OTHER

    made = Sessions(call, lambda _: 0)
    first, second, third = Called(made, 3), Called(made, 4), Called(made, 5)
    assert made.offered(first, Offer(7, 0, 0))  # type: ignore[arg-type]
    second.offer = made.offer(second.peer, 4)
    assert second.offer == Offer(3, 7, 0)
    made.give_up([second.peer])  # as its timer does
    assert not made.offered(second, Offer(7, 3, 0))  # type: ignore[arg-type]
    assert second.aborted
    assert second.session is None
    assert not made.open
    third.offer = made.offer(third.peer, 5)
    assert third.offer == Offer(5, 0, 0)
    assert made.offered(third, Offer(7, 3, 0))  # type: ignore[arg-type]
    assert not third.aborted


def test_both_ends_come_to_the_same_answer() -> None:
    assert Offer(3, 5, 10).is_met_by(Offer(5, 3, 7))
    for mine, theirs in (
        (Offer(3, 5, 1), Offer(6, 3, 1)),
        (Offer(3, 5, 1), Offer(5, 0, 0)),
        (Offer(4, 0, 0), Offer(5, 3, 1)),
    ):
        assert not mine.is_met_by(theirs)
        assert not theirs.is_met_by(mine)


def test_offers_and_acknowledgments_are_read_as_written_and_nothing_else() -> None:
    assert offer_in(Offer(1, 2, 3).sealed()) == Offer(1, 2, 3)
    for sealed in (seal(RECEIVED, bytes(24)), seal(66, bytes(23))):
        with pytest.raises(ProtocolViolation):
            offer_in(sealed)
    with pytest.raises(ProtocolViolation):
        count_in(seal(RECEIVED, bytes(9)))


def test_only_a_refusal_by_all_addresses_of_a_host_counts() -> None:
    assert is_refusal(ConnectionRefusedError(111, "Connect call failed"))
    assert is_refusal(OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect"))
    assert not is_refusal(OSError("Multiple exceptions: [Errno 99] Cannot assign, [Errno 111] Connect call failed"))
    assert not is_refusal(TimeoutError())
    assert not is_refusal(OSError(113, "No route to host"))
