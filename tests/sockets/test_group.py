"""A group at moments that are hard to reach on sockets: driven by hand, or in virtual time."""

import asyncio
from typing import cast

import pytest

from antiphon import FlowBlocked, Message, NotAMember
from antiphon.api import outgoing as module
from antiphon.api.group import Group
from antiphon.api.process import LocalProcess
from antiphon.core import effects
from antiphon.testing import cluster, run
from antiphon.types import GroupId, ProcessId
from tests.support.loopback import cancel_at
from tools.lab.replica import Replica


class Desk:
    """The part of a member that a sending group needs; it is also the core."""

    def __init__(self) -> None:
        self.held = 0
        self.sent: list[bytes] = []
        self.draining = self.starves = False
        self.urged: list[str] = []

    @property
    def core(self) -> "Desk":
        return self

    def waiting(self, group: GroupId) -> int:
        return self.held

    def first_unstable(self, group: GroupId) -> int | None:
        return 0

    def send(self, group: GroupId, payload: bytes) -> int:
        self.sent.append(payload)
        return len(self.sent) - 1

    def send_all(self, group: GroupId, payloads: list[bytes]) -> int:
        self.sent += payloads
        return len(self.sent) - 1

    def hurry(self) -> None:
        self.urged.append("at once")

    def stir(self) -> None:
        self.urged.append("soon")


def test_an_admitted_sender_that_is_cancelled_gives_its_place_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 512)

    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        desk.held = 2
        senders = [asyncio.create_task(group.send(b"%d" % number)) for number in range(4)]
        await asyncio.sleep(0)
        desk.held = 0
        group.turned()
        for sender in senders[:2]:
            sender.cancel()
        await asyncio.wait(senders)
        assert desk.sent == [b"2", b"3"]

    run(scenario())


def test_messages_held_back_by_flow_control_cause_no_immediate_turns() -> None:
    """A turn for each message that cannot leave would cost more than the messages."""

    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        await group.send(b"1")
        group.show(effects.Blocked(GroupId("orders"), ProcessId("p2")))
        await group.send(b"2")
        group.try_send(b"3")
        group.show(effects.Unblocked(GroupId("orders")))
        await group.send(b"4")
        assert desk.sent == [b"1", b"2", b"3", b"4"]
        assert desk.urged == ["at once", "soon", "soon", "at once"]

    run(scenario())


def test_messages_sent_during_a_turn_reach_the_core_in_the_next_turn() -> None:
    """A state that is read while it leaves may send, in this group or in another; the core takes nothing meanwhile."""
    desk = Desk()
    group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
    desk.draining = True
    group.try_send(b"1")
    group.try_send(b"2")
    group.collect()
    assert desk.sent == []
    desk.draining = False
    group.try_send(b"3")
    assert desk.sent == [b"1", b"2", b"3"]


def test_messages_of_try_send_count_against_the_bound_of_send() -> None:
    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        await group.send(b"1")
        desk.held = 5_000
        with pytest.raises(FlowBlocked):
            group.try_send(b"2")
        assert await cancel_at(3, group.send(b"3")) == []
        assert desk.sent == [b"1"]

    run(scenario())


def test_many_senders_that_had_to_wait_go_on_together() -> None:
    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        desk.held = 5_000
        senders = [asyncio.create_task(group.send(b"%d" % number)) for number in range(100)]
        await asyncio.sleep(0)
        desk.held = 0
        group.turned()
        await asyncio.wait(senders)
        assert desk.sent == [b"%d" % number for number in range(100)]

    run(scenario())


class Filling(Desk):
    """Sent messages wait."""

    def send(self, group: GroupId, payload: bytes) -> int:
        self.held += 1
        return super().send(group, payload)


@pytest.mark.parametrize("size", [1, 300_000])
@pytest.mark.parametrize("cancelled", ["never", "before", "after"])
def test_a_late_sender_does_not_overtake_an_admitted_sender_that_has_not_resumed_yet(size: int, cancelled: str) -> None:
    """A task calls `send` after the turn that made room, before the woken tasks run."""

    async def scenario() -> None:
        desk = Filling()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        desk.held = 5_000
        early = [asyncio.create_task(group.send(bytes([number]) * size)) for number in range(4)]
        await asyncio.sleep(0)
        desk.held = 1
        if cancelled == "before":
            early[0].cancel()
        group.turned()
        if cancelled == "after":
            early[0].cancel()
        late = asyncio.create_task(group.send(bytes([9]) * size))
        last = asyncio.create_task(group.send(bytes([10]) * size))
        with pytest.raises(FlowBlocked):
            group.try_send(bytes([8]) * size)
        while not last.done():
            await asyncio.sleep(0)
            desk.held = 0
            group.turned()
        await asyncio.gather(*early, late, return_exceptions=True)
        group.collect()
        assert [payload[0] for payload in desk.sent] == [*range(cancelled != "never", 4), 9, 10]
        assert group._outgoing._admitted == 0

    run(scenario())


def test_a_member_that_leaves_sends_nothing_more_even_if_senders_were_admitted() -> None:
    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        desk.held = 5_000
        senders = [asyncio.create_task(group.send(b"%d" % number)) for number in range(4_000)]
        await asyncio.sleep(0)
        desk.held = 0
        group.turned()
        late = asyncio.create_task(group.send(b"late"))
        group.end()
        done = await asyncio.gather(*senders, late, return_exceptions=True)
        assert {type(each) for each in done} == {NotAMember}
        assert desk.sent == []
        assert group._outgoing._admitted == 0

    run(scenario())


def test_a_batch_ends_before_the_state_is_asked_for() -> None:
    async def scenario() -> None:
        replicas = [Replica(), Replica()]
        async with cluster(2, snapshots=[replica.snapshot for replica in replicas]) as members:
            await members.crash(1)
            while members[0].view is None or len(members[0].view.members) == 2:
                for event in await members[0].receive():
                    replicas[0].take(event)
            for word in (b"unread", b"last"):
                await members[0].send(word)
            await asyncio.sleep(1)
            restarting = asyncio.create_task(members.restart(1))
            await asyncio.sleep(5)  # messages, and then a view that asks for the state, are there to be read
            follow = asyncio.create_task(replicas[0].follow(members[0], batches=True))
            late = asyncio.create_task(replicas[1].follow(await restarting, batches=True))
            await asyncio.sleep(5)
            assert replicas[0].words == replicas[1].words == ["unread", "last"]
        await asyncio.gather(follow, late)

    run(scenario())


def test_deliveries_that_are_taken_together_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the last of them, which the application still works on, as if it had taken them one by one."""
    reported: list[int] = []
    report = LocalProcess.consumed

    def consumed(process: LocalProcess, group: GroupId, position: int) -> None:
        if process.id.startswith("p2"):
            reported.append(position)
        report(process, group, position)

    async def scenario() -> None:
        async with cluster(2) as members:
            while not members[1].primary:
                await members[1].receive()
            monkeypatch.setattr(LocalProcess, "consumed", consumed)
            for word in (b"1", b"2", b"3"):
                await members[0].send(word)
                await asyncio.sleep(0.01)  # each is delivered by itself
            taken = await members[1].receive()
            assert [each.payload for each in taken if isinstance(each, Message)] == [b"1", b"2", b"3"]
            assert reported == [2]
            await members[0].send(b"4")
            await members[1].receive()
            assert reported == [2, 3]

    run(scenario())


def test_a_member_that_leaves_without_reading_still_sends_all_waiting_messages() -> None:
    async def scenario() -> None:
        async with cluster(2, window=4, frame_bytes=100, window_bytes=400) as members:
            for number in range(2_000):
                await members[0].send(b"%d" % number)
            leaving = asyncio.create_task(members[0].leave())
            seen: list[bytes] = []
            async for event in members[1]:
                if isinstance(event, Message):
                    seen.append(event.payload)
                if len(seen) == 2_000:
                    break
            assert seen == [b"%d" % number for number in range(2_000)]
            await anext(members[1])  # done with the last one
            assert await leaving

    run(scenario())


def test_a_sender_that_never_waits_lets_the_event_loop_run() -> None:
    """Otherwise a process that only sends receives nothing, and others suspect it."""

    async def scenario() -> None:
        desk = Desk()
        group, turns = Group(cast("LocalProcess", desk), GroupId("orders"), None), 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        running = asyncio.create_task(others())
        for _ in range(1_000):
            await group.send(b"x")
            group.collect()
        assert turns == 0
        desk.starves = True
        for _ in range(1_000):
            await group.send(b"x")
            group.collect()
        assert turns >= 3
        assert desk.sent == [b"x"] * 2_000
        running.cancel()

    asyncio.run(scenario())


def test_a_long_batch_reaches_the_core_in_one_call_while_the_event_loop_has_run_lately() -> None:
    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        for _ in range(2_000):
            await group.send(b"x")
        assert desk.sent == [b"x"]  # it gave the credit
        desk.starves = True
        for _ in range(600):
            await group.send(b"x")
        assert len(desk.sent) > 2_000
        group.collect()
        assert desk.sent == [b"x"] * 2_600

    asyncio.run(scenario())


def test_a_long_batch_ends_where_the_room_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 1_000 * 256)

    async def scenario() -> None:
        desk = Desk()
        group = Group(cast("LocalProcess", desk), GroupId("orders"), None)
        desk.held = 300
        for _ in range(701):  # the first one asks for room
            await group.send(b"x")
        assert desk.sent == [b"x"]
        await group.send(b"y")  # asks again
        assert desk.sent == [b"x"] * 701 + [b"y"]

    asyncio.run(scenario())


def test_a_task_that_reads_on_after_the_end_lets_others_run() -> None:
    """Without a pause such a task would hold up the event loop, and could not be cancelled either."""

    async def scenario() -> None:
        async with cluster(2) as found:
            groups = [await member.join("orders") for member in found.members]

            async def read() -> None:
                while True:
                    await groups[0].receive()

            reader = asyncio.create_task(read())
            await groups[0].leave()
            await groups[1].send(b"the event loop runs")
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader

    run(scenario())
