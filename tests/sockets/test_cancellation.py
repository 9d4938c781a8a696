"""Every wait may be cancelled at any moment: nothing is lost, nothing doubled, no task is left behind."""

import asyncio
import gc

from antiphon import Event, Member, Message, View
from tests.support.loopback import (
    FAST,
    cancel_at,
    fill,
    join_all,
    members,
    messages,
    on_loopback,
    payloads,
    take_each,
    take_messages,
    take_until,
    take_view,
    until,
)

STEPS = range(12)
"""Rounds of the event loop after which a wait is cancelled; the longest of these waits is over by then, or blocked."""
NUMBERS = [b"%d" % number for number in range(60)]


@on_loopback
async def test_reading_one_event() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        seen: list[Event] = []
        for number, payload in enumerate(NUMBERS):
            await groups[0].send(payload)
            seen += await cancel_at(number % len(STEPS), anext(groups[0]))
        seen += await take_until(groups[0], lambda events: len(payloads(seen + events)) == len(NUMBERS))
        assert payloads(seen) == NUMBERS
        assert any(isinstance(event, View) for event in seen)


@on_loopback
async def test_reading_all_events() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        seen: list[Event] = []
        for number, payload in enumerate(NUMBERS):
            await groups[0].send(payload)
            for events in await cancel_at(number % len(STEPS), groups[0].receive()):
                seen += events
        while len(payloads(seen)) < len(NUMBERS):
            seen += await groups[0].receive()
        assert payloads(seen) == NUMBERS


@on_loopback
async def test_sending() -> None:
    async with members(2, window=4, frame_bytes=1_000, window_bytes=4_000) as found:
        sender, stalled = await join_all(found)
        fill(sender, b"filler")
        reading = asyncio.create_task(take_until(sender, lambda events: b"end" in payloads(events)))
        sent: list[bytes] = []
        seen: list[Message] = []

        async def send(payload: bytes) -> bytes:
            await sender.send(payload)
            return payload

        for number, payload in enumerate(NUMBERS):
            sent += await cancel_at(number % len(STEPS), send(payload))
            seen += await take_messages(stalled, 60)  # there may be room at any moment
        await sender.send(b"end")
        seen += messages(await take_until(stalled, lambda events: b"end" in payloads(events)))
        assert 0 < len(sent) < len(NUMBERS)
        assert [message.payload for message in seen if message.payload != b"filler"] == [*sent, b"end"]
        assert messages(await reading) == seen


@on_loopback
async def test_joining() -> None:
    async with members(2) as found:
        first = await found[0].join("orders")
        for step in STEPS:
            for group in await cancel_at(step, found[1].join("orders")):
                await group.leave()
        again = await found[1].join("orders")
        await again.ready(2)
        await first.ready(2)
        await first.send(b"one")
        seen = await take_each([first, again], 1)
        assert seen == [[Message(found[0].id, b"one")]] * 2


@on_loopback
async def test_joining_without_any_other_member() -> None:
    async with Member(peers=["127.0.0.1:1"], found="anyway", **FAST) as lonely:
        for step in STEPS:
            assert not await cancel_at(step, lonely.join("orders"))
        group = await lonely.join("orders")
        assert group.health.members == (lonely.id,)


@on_loopback
async def test_joining_while_the_member_ends() -> None:
    async with Member(peers=["127.0.0.1:1"], **FAST) as lonely:
        joining = asyncio.create_task(lonely.join("orders"))
        await asyncio.sleep(0)
    await asyncio.wait([joining])
    assert "this process has left orders" in str(joining.exception())


@on_loopback
async def test_waiting_for_members() -> None:
    async with members(2) as found:
        groups = await join_all(found)
        for step in STEPS:
            assert not await cancel_at(step, groups[0].ready(3))
            assert step == 0 or await cancel_at(step + 1, groups[0].ready(2))
        waiting = asyncio.create_task(groups[0].ready(3))
        await asyncio.sleep(0)
        await groups[0].leave()
        await asyncio.wait([waiting])
        assert "this process has left orders" in str(waiting.exception())


@on_loopback
async def test_leaving() -> None:
    async with members(2) as found:
        first, second = await join_all(found)
        reading = asyncio.create_task(take_until(first, lambda events: payloads(events).count(b"last") == len(STEPS)))
        for step in STEPS:
            await second.send(b"last")
            await cancel_at(step, second.leave())
            assert await second.leave()
            second = await found[1].join("orders")
            await second.ready(2)
        await reading
        await take_view(first, lambda view: len(view.members) == 2)


@on_loopback
async def test_starting_and_ending_a_member() -> None:
    async with members(1) as found:
        group = await found[0].join("orders")
        for step in range(2 * len(STEPS)):
            member = Member(name="p2", peers=[found[0].address], **FAST)
            for _ in await cancel_at(step, member.__aenter__()):
                joined = await member.join("orders")
                await cancel_at(max(1, step - 4), member.__aexit__())  # a task that never began would end nothing
                assert [event async for event in joined if isinstance(event, Message)] == []
        await until(lambda: not found[0].peers)
        await until(lambda: len(group.health.members) == 1)
    gc.collect()  # unclosed objects would cause warnings
