"""The API as applications see it, with real members on TCP: order, views, leaving, overlap, sizes, state."""

import asyncio
import json
import socket
from typing import Any

import pytest

import antiphon
from antiphon import ConfigurationError, Group, Member, Message, NotAMember, Reset, Total, View
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.types import name_of
from tests.support.loopback import (
    FAST,
    join_all,
    members,
    messages,
    name,
    names,
    on_loopback,
    payloads,
    take_each,
    take_messages,
    take_primary,
    take_until,
    take_view,
    until,
)


@on_loopback
async def test_messages_come_in_the_same_order_everywhere() -> None:
    async with members(3) as found:
        groups = await join_all(found)

        async def send(place: int) -> None:
            for number in range(50):
                await groups[place].send(f"{place}/{number}".encode())
                if number % 7 == place:
                    await asyncio.sleep(0)

        await asyncio.gather(*map(send, range(3)))
        seen = await take_each(groups, 150)
        assert seen[0] == seen[1] == seen[2]
        for place, member in enumerate(found):
            own = [message.payload for message in seen[0] if message.sender == member.id]
            assert own == [f"{place}/{number}".encode() for number in range(50)]


@on_loopback
async def test_no_connection_waits_for_delayed_acknowledgments() -> None:
    """Accepted connections once had Nagle's algorithm on: one message in a hundred took 40 ms."""
    async with members(3) as found:
        await until(lambda: all(len(member.peers) == 2 for member in found))
        for member in found:
            mesh = member._process.driver.transport
            assert isinstance(mesh, TcpMesh)
            for link in mesh._links.values():
                assert link._transport is not None
                connected = link._transport.get_extra_info("socket")
                assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@on_loopback
async def test_one_seed_address_is_enough_for_a_full_mesh() -> None:
    async with members(4) as found:
        await until(lambda: all(len(member.peers) == 3 for member in found))
        assert {member.id for member in found} == {found[0].id, *found[0].peers}


@on_loopback
async def test_members_without_names_are_told_apart() -> None:
    async with Member(**FAST) as one, Member(peers=(address for address in [one.address]), **FAST) as other:
        groups = await join_all([one, other])
        assert one.id != other.id
        assert groups[0].health.members == tuple(sorted((one.id, other.id)))


@on_loopback
async def test_no_process_is_put_into_a_group_that_it_did_not_ask_for() -> None:
    async with members(2) as found:
        await until(lambda: len(found[0].peers) == 1)
        forming = asyncio.create_task(found[0]._process.form("club", (found[0].id, found[1].id)))
        core = found[1]._process.core
        assert isinstance(core, NewtopProcess)
        assert core._formations is not None
        refused = core._formations.attempts.refused
        await until(lambda: any(name_of(group) == "club" for group in refused))
        groups = await join_all(found)  # meanwhile it is well
        await groups[1].send(b"here")
        seen = await take_each(groups, 1)
        assert [message.payload for message in seen[0]] == [b"here"]
        assert found[1]._process.find("club") is None
        willing = await found[1].join("club")
        await willing.ready(2)
        await (await forming).ready(2)


@on_loopback
async def test_views_tell_which_members_joined_which_left_and_why() -> None:
    async with members(3) as found:
        first = await found[0].join("orders")
        alone = await take_view(first)
        assert names(alone.members) == names(alone.joined) == ["p1"]
        await take_primary(first, alone.id)
        second = await found[1].join("orders")
        both = await take_view(first, lambda view: len(view.members) == 2)
        assert names(both.joined) == ["p2"]
        assert names(both.together) == ["p1"]
        assert not both.left
        entered = await take_view(second)
        assert entered.id == both.id
        assert names(entered.joined) == ["p1", "p2"]
        third = await found[2].join("orders")
        await third.ready(3)
        assert await second.leave()
        left = await take_view(first, lambda view: bool(view.left))
        assert [(name(each.process), each.reason) for each in left.left] == [("p2", "left")]
        assert names(left.members) == ["p1", "p3"]
        assert first.view == left
        await take_primary(first, left.id)


@on_loopback
async def test_a_leave_waits_until_all_members_have_the_messages_of_the_leaver() -> None:
    async with members(3) as found:
        groups = await join_all(found)
        sent = [b"%d" % number for number in range(500)]
        for payload in sent:
            await groups[0].send(payload)
        leaving = asyncio.create_task(groups[0].leave())
        for group in groups[1:]:
            assert payloads(await take_until(group, has_left)) == sent
        assert await leaving
        assert payloads([event async for event in groups[0]]) == sent
        with pytest.raises(NotAMember):
            await groups[0].send(b"late")
        with pytest.raises(NotAMember):
            await groups[0].ready(2)


def has_left(events: list[antiphon.Event]) -> bool:
    return any(isinstance(event, View) and event.left for event in events)


@on_loopback
async def test_a_leave_completes_soon_in_a_group_with_a_sequencer() -> None:
    """All leave at once without reading more events: each waits until the others have completed the message."""
    async with members(3, service=Total(sequencer=True)) as found:
        groups = await join_all(found)
        await groups[1].send(b"last")
        await take_each(groups, 1)
        assert all(await asyncio.gather(*(group.leave() for group in groups)))  # else: it took too long


@on_loopback
async def test_a_member_that_has_left_may_join_again() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        await groups[1].leave()
        again = await found[1].join("orders")
        await again.ready(2)
        await again.send(b"back")
        seen = await take_each([groups[0], again], 1)
        assert seen == [[Message(found[1].id, b"back")]] * 2


@on_loopback
async def test_overlapping_groups_of_a_member_share_its_identity_and_one_order() -> None:
    async with members(2) as found:
        orders = await join_all(found, "orders")
        stock = await join_all(found, "stock")
        assert orders[0].health.members == stock[0].health.members == tuple(member.id for member in found)
        for group in (*orders, *stock):
            view = await take_view(group, lambda view: len(view.members) == 2)
            await take_primary(group, view.id)
        await orders[0].send(b"order")
        assert await take_messages(orders[1], 1) == [Message(found[0].id, b"order")]
        await stock[1].send(b"shipped")  # messages that its sender had delivered come first, in every group
        assert await take_messages(stock[0], 1) == [Message(found[1].id, b"shipped")]
        assert orders[0].health.unread == 1
        assert await take_messages(orders[0], 1) == [Message(found[0].id, b"order")]


@on_loopback
async def test_empty_messages_and_messages_of_sixteen_mebibytes_arrive() -> None:
    async with members(2, suspect_after=2.0, merge_every=2.0) as found:
        groups = await join_all(found)
        large = bytes(16 * 1024 * 1024)

        async def send() -> None:
            for payload in (b"", large, b""):
                await groups[0].send(payload)

        _, *seen = await asyncio.gather(send(), *(take_messages(group, 3) for group in groups))
        assert seen == [[Message(found[0].id, payload) for payload in (b"", large, b"")]] * 2
        with pytest.raises(ConfigurationError, match=r"a message of 16,777,217 bytes is larger than 16,777,216"):
            await groups[0].send(large + b"x")
        with pytest.raises(ConfigurationError, match=r"larger"):
            groups[0].try_send(large + b"x")


@on_loopback
async def test_a_joiner_may_send_before_it_reads() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        await groups[1].send(b"early")
        assert await take_messages(groups[0], 1) == [Message(found[1].id, b"early")]


class Ledger:
    """A replicated list, which is its own state."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.resets = 0

    def snapshot(self) -> bytes:
        return json.dumps(self.entries).encode()

    def take(self, event: antiphon.Event) -> None:
        if isinstance(event, Reset):
            self.resets += 1
            self.entries = [entry for state in event.states for entry in json.loads(state)]
        elif isinstance(event, Message):
            self.entries.append(event.payload.decode())


async def follow(group: Group, ledger: Ledger, *, batches: bool) -> None:
    if batches:
        while events := await group.receive():
            for event in events:
                ledger.take(event)
    else:
        async for event in group:
            ledger.take(event)


async def state_under_load(*, batches: bool) -> None:
    async with members(3) as found:
        ledgers = [Ledger() for _ in found]
        async with asyncio.TaskGroup() as tasks:
            groups: list[Group] = []

            async def enter(place: int) -> None:
                group = await found[place].join("orders", snapshot=ledgers[place].snapshot)
                groups.append(group)
                tasks.create_task(follow(group, ledgers[place], batches=batches))

            async def send(place: int) -> int:
                """Send until the joiner is a member, and some messages more."""
                number, last = 0, None
                while last is None or number < last:
                    await groups[place].send(f"{place}/{number}".encode())
                    await asyncio.sleep(0 if last is not None or number < 100 else 0.001)
                    number += 1
                    if last is None and len(groups) == 3:
                        last = number + 50
                return number

            await enter(0)
            await enter(1)
            await groups[0].ready(2)
            senders = [tasks.create_task(send(place)) for place in (0, 1)]
            await until(lambda: len(ledgers[0].entries) > 50)
            await enter(2)  # in the middle of it
            await groups[2].send(b"here")
            sent = sum(await asyncio.gather(*senders)) + 1
            await until(lambda: all(len(ledger.entries) == sent for ledger in ledgers))
            for group in groups:
                await group.leave()
        assert ledgers[0].entries == ledgers[1].entries == ledgers[2].entries
        assert len({*ledgers[0].entries}) == sent
        assert ledgers[2].resets == 1


@on_loopback
async def test_a_joiner_gets_the_state_and_every_message_after_it_once() -> None:
    await state_under_load(batches=False)


@on_loopback
async def test_a_state_holds_what_was_read_in_batches() -> None:
    await state_under_load(batches=True)


@on_loopback
async def test_a_snapshot_that_is_no_bytes_is_refused_where_it_is_asked_for() -> None:
    async with members(2) as found:
        wrong: Any = lambda: "text"  # noqa: E731
        first = await found[0].join("orders", snapshot=wrong)
        joining = asyncio.create_task(found[1].join("orders", snapshot=bytes))
        with pytest.raises(
            ConfigurationError, match="the snapshot of orders must be bytes, or an iterable of bytes, not str"
        ):
            await take_view(first, lambda view: len(view.members) == 2)
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"bind": "nowhere"}, "'nowhere' is not an address"),
        ({"bind": "127.0.0.1:99999"}, "is not an address"),
        ({"peers": ["7400"]}, "'7400' is not an address"),
        ({"peers": "7400"}, "'7400' is not an address"),
        ({"name": "a b"}, "'a b' is not a name for a process"),
        ({"name": ""}, "'' is not a name for a process"),
        ({"name": "world"}, "'world' is not a name for a process"),
        ({"preset": "moon"}, "there is no preset 'moon'"),
        ({"speed": 3}, "a member has no setting 'speed'"),
        ({"service": "total-safe"}, "service must be a value such as Total"),
        ({"suspect_after": "1s"}, "suspect_after must be a number, not '1s'"),
        ({"suspect_after": 0.01}, "suspect_after must be at least"),
        ({"suspect_after": float("nan")}, "suspect_after must be"),
        ({"merge_every": -1}, "merge_every must be"),
        ({"merge_every": 0.1}, "merge_every must be 0, or at least suspect_after"),
        ({"window": 1}, "window must be at least 2"),
        ({"window": 2.5}, "window must be a whole number"),
        ({"frame_bytes": 5_000_000}, "frame_bytes must be between"),
        ({"flow_control": 4}, "flow_control must be 0, 1, 2 or 3"),
        ({"service": Total(sequencer=True), "flow_control": 1}, "needs flow_control 3 or 0, not 1"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Member(**chosen)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@on_loopback
async def test_wrong_calls_of_a_group_are_refused_in_one_sentence() -> None:
    async with members(1) as found:
        group = await found[0].join("orders")
        with pytest.raises(ConfigurationError, match="this member is in orders already"):
            await found[0].join("orders")
        with pytest.raises(ConfigurationError, match="'a b' is not a name for a group"):
            await found[0].join("a b")
        text: Any = "text"
        with pytest.raises(ConfigurationError, match="a message is bytes, not str"):
            await group.send(text)
        await take_primary(group, (await take_view(group)).id)
        reading = asyncio.create_task(group.receive())
        await asyncio.sleep(0)
        with pytest.raises(ConfigurationError, match="two tasks read orders at once"):
            await anext(group)
        await group.send(b"one")
        assert payloads(await reading) == [b"one"]
        with pytest.raises(ConfigurationError, match="cannot listen at 127"):
            async with Member(bind=found[0].address):
                pass
    with pytest.raises(NotAMember, match="not running"):
        await found[0].join("orders")


@on_loopback
async def test_join_is_one_context_for_a_process_of_one_group() -> None:
    async with antiphon.join("orders", name="p1", **FAST) as group:
        await group.send(b"alone")
        assert (await take_messages(group, 1))[0].payload == b"alone"
    assert messages([event async for event in group]) == []
    assert not group.health.waiting
