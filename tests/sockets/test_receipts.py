"""Receipts: what became of a message, on TCP, on UDP and in virtual time."""

import asyncio
from typing import Any

import pytest

from antiphon import Causal, Fifo, Group, NotAMember, Reliable, Service, Total, Unconfirmed
from antiphon.testing import cluster, run
from tests.support.loopback import join_all, members, on_loopback, read_on, take_messages

SERVICES: list[Service] = [
    *(Total(), Total(safe=True), Total(sequencer=True), Total(views="closed")),
    *(Causal("slow"), Causal("fast"), Causal("relative"), Causal("vector"), Fifo(), Reliable()),
]


def reading(groups: Any) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(read_on(group, [])) for group in groups]


@pytest.mark.parametrize("service", SERVICES, ids=repr)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_messages_are_delivered_and_become_stable_on_sockets(transport: str, service: Service) -> None:
    @on_loopback
    async def scenario() -> None:
        async with members(3, transport=transport, service=service) as found:
            groups = await join_all(found)
            tasks = reading(groups)
            receipts = [await groups[0].send(b"%d" % number) for number in range(600)]  # more than the credit
            receipts.append(groups[0].try_send(b"last"))
            await receipts[-1].stable()
            for receipt in receipts:
                await receipt.delivered()  # at once
                await receipt.stable()
        await asyncio.gather(*tasks)

    scenario()


@pytest.mark.parametrize("service", SERVICES, ids=repr)
def test_delivered_means_that_the_message_has_its_place_here(service: Service) -> None:
    async def scenario() -> None:
        async with cluster(3, service=service) as group:
            first, second = await group[0].send(b"one"), await group[0].send(b"two")
            waiting = asyncio.create_task(second.delivered())
            await first.delivered()
            await waiting
            assert [each.payload for each in await take_messages(group[0], 2)] == [b"one", b"two"]

    run(scenario())


def test_stable_waits_for_every_member_that_is_in_the_view() -> None:
    """A paused member is waited for until it is excluded."""

    async def scenario() -> None:
        async with cluster(3) as group:
            tasks = reading(group)
            await (await group[0].send(b"for all")).stable()
            group.pause(2)
            receipt = await group[0].send(b"for two")
            waiting = asyncio.create_task(receipt.stable())
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await waiting
            for task in tasks:
                task.cancel()

    run(scenario())


def test_a_process_that_ends_before_it_knows_is_told() -> None:
    async def scenario() -> None:
        async with cluster(3) as group:
            await asyncio.sleep(1)  # the votes on the first view are over
            group.pause(1)
            group.pause(2)
            receipt = await group[0].send(b"unheard")
            waiting = [asyncio.create_task(each) for each in (receipt.delivered(), receipt.stable())]
            await asyncio.sleep(0.01)
            await group.crash(0)
            for task in waiting:
                with pytest.raises(Unconfirmed, match="this process has left group"):
                    await task
            with pytest.raises(Unconfirmed):
                await receipt.delivered()
            with pytest.raises(NotAMember):
                await group[0].send(b"too late")

    run(scenario())


def test_after_a_graceful_leave_all_that_was_delivered_is_stable() -> None:
    async def scenario() -> None:
        async with cluster(2) as group:
            tasks = reading(group)
            receipt = await group[0].send(b"goodbye")
            waiting = asyncio.create_task(receipt.stable())
            assert await group[0].leave()
            await waiting
            await receipt.stable()
            tasks[1].cancel()

    run(scenario())


@pytest.mark.parametrize("service", SERVICES, ids=repr)
def test_receipts_hold_through_a_partition_and_a_merge(service: Service) -> None:
    """A message that was sent while the group changes is confirmed in the next group of that name."""

    async def scenario() -> None:
        async with cluster(3, service=service) as group:
            tasks = reading(group)
            group.partition([[0, 1], [2]])
            receipts = [await group[place].send(b"%d" % place) for place in (0, 1, 2)]
            for receipt in receipts:
                await receipt.stable()
            group.heal()
            while len(group[2].health.members) < 3:
                await (await group[2].send(b"on")).stable()
                await asyncio.sleep(0.1)
            for receipt in receipts:
                await receipt.stable()
            for task in tasks:
                task.cancel()

    run(scenario())


def test_a_process_that_joins_again_counts_on() -> None:
    async def scenario() -> None:
        async with cluster(2) as group:
            member = group.members[0]
            before = await group[0].send(b"before")
            await before.delivered()
            await group[0].leave()
            again: Group = await member.join("group")
            await before.delivered()
            receipt = await again.send(b"again")
            waiting = asyncio.create_task(receipt.delivered())
            await asyncio.sleep(0)
            assert not waiting.done()
            await waiting

    run(scenario())


def test_messages_that_are_sent_together_share_a_receipt() -> None:
    """It speaks for the last one that was sent when it is asked; later ones of the same turn are not waited for."""

    async def scenario() -> None:
        async with cluster(2) as group:
            tasks = reading(group)
            await group[0].send(b"the first is sent by itself")
            await asyncio.sleep(1)
            group.pause(1)
            receipts = [await group[0].send(b"%d" % number) for number in range(3)]
            assert receipts[1] is receipts[2]
            early = asyncio.create_task(receipts[1].delivered())
            await asyncio.sleep(0)
            later = await group[0].send(b"later")
            assert not early.done()
            group.resume(1)
            await early
            await later.stable()
            tasks[0].cancel()
            tasks[1].cancel()

    run(scenario())


def test_waiting_for_a_receipt_may_be_cancelled() -> None:
    async def scenario() -> None:
        async with cluster(2) as group:
            tasks = reading(group)
            receipt = await group[0].send(b"x")
            waiting = [asyncio.create_task(receipt.stable()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[1].cancel()
            await waiting[0]
            await waiting[2]
            assert waiting[1].cancelled()
            for task in tasks:
                task.cancel()

    run(scenario())


def test_messages_larger_than_a_frame_have_one_receipt() -> None:
    async def scenario() -> None:
        async with cluster(2, frame_bytes=1_000) as group:
            tasks = reading([group[1]])
            small, large = await group[0].send(b"x"), await group[0].send(bytes(10_000))
            await small.stable()
            await large.stable()
            assert [len(each.payload) for each in await take_messages(group[0], 2)] == [1, 10_000]
            tasks[0].cancel()

    run(scenario())


def test_a_message_that_every_member_had_is_stable_also_after_the_end() -> None:
    """Nobody had asked before the process ended."""

    async def scenario() -> None:
        async with cluster(3) as group:
            tasks = reading(group)
            receipt = await group[1].send(b"for all")
            await asyncio.sleep(1)
            late = await group[1].send(b"unknown")
            await group.crash(1)
            await receipt.stable()
            with pytest.raises(Unconfirmed):
                await late.stable()
            for task in tasks:
                task.cancel()

    run(scenario())


def test_waiters_that_are_cancelled_are_forgotten_and_others_go_on() -> None:
    async def scenario() -> None:
        async with cluster(2) as group:
            tasks = reading(group)
            group.pause(1)
            receipt = await group[0].send(b"later")
            waiters = [asyncio.create_task(receipt.stable()) for _ in range(100)]
            await asyncio.sleep(0.1)
            for waiter in waiters[1:]:
                waiter.cancel()
            await asyncio.sleep(0.1)
            assert len(group[0]._outgoing.confirmations.waiters) < 50
            group.resume(1)
            await waiters[0]
            for task in tasks:
                task.cancel()

    run(scenario())
