"""Members of one loop without sockets (`sockets/transports/memory.py`)."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from antiphon import ConfigurationError, Event, Group, Member, Message, Reset, View
from antiphon.sockets.transports.memory import MemoryNetwork
from tests.support.cast import all_talk, read, until, within_deadline


async def members(stack: AsyncExitStack, network: MemoryNetwork, *names: str) -> list[Member]:
    return [
        await stack.enter_async_context(Member(name=name, transport=network.attach, preset="local")) for name in names
    ]


async def together(stack: AsyncExitStack, network: MemoryNetwork, *names: str) -> tuple[list[Member], list[Group]]:
    """All in one group; the first member founds it before the others start."""
    cast: list[Member] = []
    groups: list[Group] = []
    for name in names:
        cast += await members(stack, network, name)
        groups.append(await cast[-1].join("orders"))
    for group in groups:
        await group.ready(len(names))
    return cast, groups


def test_three_members_read_the_same_order() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            _, groups = await together(stack, MemoryNetwork(), "a", "b", "c")
            first, *others = await all_talk(groups, each=200)
            assert len(first) == 600
            assert others == [first, first]

    within_deadline(test)


def test_two_members_end_in_the_same_turn() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            cast, _ = await together(stack, MemoryNetwork(), "a", "b")
            await asyncio.gather(*(member.abort() for member in cast))

    within_deadline(test)


def test_a_joiner_gets_the_state() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            network = MemoryNetwork()
            (a,) = await members(stack, network, "a")
            donor = await a.join("orders", snapshot=lambda: b"the state")
            (b,) = await members(stack, network, "b")
            reading = asyncio.create_task(read(donor, 1))
            joiner = await b.join("orders", snapshot=lambda: b"")
            seen: list[Event] = []
            await joiner.send(b"here")
            while not any(isinstance(event, Message) for event in seen):
                seen.append(await anext(joiner))
            view, reset, _ = seen
            assert isinstance(view, View)
            assert len(view.members) == 2
            assert isinstance(reset, Reset)
            assert reset.states == (b"the state",)
            await reading

    within_deadline(test)


def test_a_cut_parts_a_pair_and_its_healing_brings_the_next_connection() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            network = MemoryNetwork()
            (a, b), groups = await together(stack, network, "a", "b")
            network.cut(a.id, b.id)
            assert not (*a.peers, *b.peers)
            await until(lambda: all(group.health.members in ((a.id,), (b.id,)) for group in groups))
            network.heal(a.id, b.id)
            assert a.peers == (b.id,)
            here, there = network.find(a.id), network.find(b.id)
            assert here is not None
            assert there is not None
            assert here.connection(b.id) == there.connection(a.id) == 1
            for group in groups:
                await group.ready(2)
            first, second = await all_talk(groups, each=10)
            assert first == second

    within_deadline(test)


def test_a_closed_member_is_gone_after_its_last_frames_have_arrived() -> None:
    async def test() -> None:
        async with AsyncExitStack() as stack:
            network = MemoryNetwork()
            (a,) = await members(stack, network, "a")
            group = await a.join("orders")
            async with Member(name="b", transport=network.attach, preset="local") as b:
                other = await b.join("orders")
                assert isinstance(await anext(other), View)
                await other.send(b"last")
                await until(lambda: not other.health.waiting)
            assert [message.payload for message in await read(group, 1)] == [b"last"]
            await until(lambda: group.health.members == (a.id,) and not a.peers)

    within_deadline(test)


def test_a_transport_of_ones_own_goes_without_addresses() -> None:
    with pytest.raises(ConfigurationError, match="leave peers"):
        Member(name="a", transport=MemoryNetwork().attach, peers=["127.0.0.1:7400"])


def test_two_processes_of_one_identity_are_refused() -> None:
    async def test() -> None:
        network = MemoryNetwork()
        async with Member(name="a", transport=network.attach) as a:
            twin = network.attach(a.id)
            with pytest.raises(ConfigurationError, match="already"):
                network.opened(twin)

    within_deadline(test)
