"""Recipes: consensus, barrier and migration, in virtual time with members that fail, and on sockets."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon import Causal, ConfigurationError, Event, Group, Member, NotAMember, Reset, Total
from antiphon.recipes import Barrier, Consensus, Movable
from antiphon.testing import Cluster, cluster, run
from tests.support.loopback import DEADLINE_S, join_all, members

SEEDS = 3


class Both:
    """Two recipes that share a group."""

    def __init__(self, group: Group) -> None:
        self.consensus, self.barrier = Consensus(group), Barrier(group)

    def take(self, event: Event) -> bool:
        return self.consensus.take(event) or self.barrier.take(event)

    def restore(self, reset: Reset) -> None:
        raise AssertionError(reset)


Recipe = Consensus | Barrier | Both


async def feed(group: Group, recipe: Recipe) -> None:
    async for event in group:
        if isinstance(event, Reset):
            recipe.restore(event)
        recipe.take(event)


@asynccontextmanager
async def fed(groups: list[Group], make: Callable[[Group], Recipe]) -> AsyncIterator[list[Any]]:
    recipes = [make(group) for group in groups]
    tasks = [asyncio.create_task(feed(*each)) for each in zip(groups, recipes, strict=True)]
    yield recipes
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_all_decide_the_value_that_was_delivered_first(first: int) -> None:
    async def scenario() -> None:
        async with cluster(3, seed=first, service=Total(safe=True)) as found, fed([*found], Consensus) as parts:
            began = asyncio.create_task(parts[first].propose("leader", b"%d" % first))
            await asyncio.sleep(0.05)
            others = [part.propose("leader", b"%d" % place) for place, part in enumerate(parts) if place != first]
            (decision,) = {*await asyncio.gather(began, *others)}
            assert (decision.value, decision.proposer, decision.final) == (b"%d" % first, found[first].me, True)
            assert await parts[0].propose("leader", b"too late") == decision

    run(scenario())


def test_consensus_with_members_that_fail_and_sides_that_merge() -> None:
    async def scenario() -> None:
        states: list[Consensus] = []
        snapshots = [lambda place=place: states[place].state() if states else b"[]" for place in range(5)]
        async with (
            cluster(5, seed=5, service=Total(safe=True), snapshots=snapshots) as found,
            fed([*found], Consensus) as parts,
        ):
            states.extend(parts)
            await parts[0].propose("first", b"1")
            found.partition([[0, 1, 2], [3, 4]])
            waiting = asyncio.create_task(parts[3].propose("second", b"of the minority"))
            assert (await parts[0].propose("second", b"of the majority")).value == b"of the majority"
            await asyncio.sleep(10)
            assert not waiting.done()
            assert not parts[3].decisions["second"].final
            found.heal()
            assert (await waiting).value == b"of the majority"
            await found.crash(1)
            assert (await parts[4].propose("third", b"3")).final
            leaving = asyncio.create_task(parts[2].propose("fourth", b"4"))
            await found[2].leave()
            with pytest.raises(NotAMember):
                await leaving
            assert [*parts[0].decisions] == [*parts[3].decisions][: len(parts[0].decisions)]

    run(scenario())


def test_a_barrier_opens_when_all_have_arrived_or_have_failed() -> None:
    async def scenario() -> None:
        async with cluster(4, seed=2) as found, fed([*found], Barrier) as barriers:
            early = [asyncio.create_task(barrier.wait()) for barrier in barriers[:3]]
            await asyncio.sleep(1)
            assert not any(task.done() for task in early)
            assert await barriers[3].wait() == 1
            assert await asyncio.gather(*early) == [1, 1, 1]
            late = [asyncio.create_task(barrier.wait()) for barrier in barriers[:2]]
            await asyncio.sleep(1)
            await found.crash(3)
            await asyncio.sleep(3)
            assert not any(task.done() for task in late)
            await found[2].leave()
            assert await asyncio.gather(*late) == [2, 2]
            with pytest.raises(NotAMember):
                await barriers[2].wait(7)

    run(scenario())


def test_a_barrier_for_a_number_of_members() -> None:
    async def scenario() -> None:
        async with cluster(3, seed=2) as found, fed([*found], lambda group: Barrier(group, parties=2)) as barriers:
            first = asyncio.create_task(barriers[0].wait())
            await asyncio.sleep(1)
            assert not first.done()
            await barriers[1].wait()
            assert await first == 1
            while not barriers[2].passed:
                await asyncio.sleep(0.01)
            assert await barriers[2].wait(1) == 1
            assert not barriers[2]._arrived

    run(scenario())


UNREADABLE = [
    *(b"\0barrier " + body for body in (b"x", b"", b"-1", b"9" * 5_000, b"99999")),
    *(b"\0consensus " + body for body in (b"{}", b"[", b"[" * 50_000, b"7", b"\xff")),
    b'\0consensus {"topic": [], "value": ""}',
    b'\0consensus {"topic": "leader", "value": "no hex"}',
    b'\0consensus {"topic": "leader", "value": null}',
]


def test_messages_that_cannot_be_read_change_nothing() -> None:
    async def scenario() -> None:
        async with (
            cluster(2, seed=1, service=Total(safe=True)) as found,
            fed([*found], Both) as parts,
        ):
            for payload in UNREADABLE:
                await found[1].send(payload)
            proposals = (part.consensus.propose("leader", b"1") for part in parts)
            assert {each.value for each in await asyncio.gather(*proposals)} == {b"1"}
            assert await asyncio.gather(*(part.barrier.wait() for part in parts)) == [1, 1]
            assert not parts[0].barrier._arrived
            assert not found[0]._leaving_calls
            with pytest.raises(ConfigurationError, match="round 2000 is more than 1,024 after round 1"):
                await parts[0].barrier.wait(2_000)

    run(scenario())


def test_a_barrier_may_begin_after_the_application_has_read_the_view() -> None:
    async def scenario() -> None:
        async with cluster(2, seed=1) as found:
            for group in found:
                while group.view is None or len(group.view.members) < 2:
                    await group.receive()
            async with fed([*found], Barrier) as barriers:
                assert await asyncio.gather(*(barrier.wait() for barrier in barriers)) == [1, 1]

    run(scenario())


def test_what_could_only_wait_for_ever_or_differ_is_refused() -> None:
    async def scenario() -> None:
        async with cluster(1, seed=1) as (group,):
            with pytest.raises(ConfigurationError, match="a topic is a text and a value is bytes, not 7 and b'x'"):
                await Consensus(group).propose(7, b"x")  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="and a value is bytes, not 'leader' and 'x'"):
                await Consensus(group).propose("leader", "x")  # type: ignore[arg-type]
            for parties in (0, True, "2"):
                with pytest.raises(ConfigurationError, match="parties must be a whole number from 1, or None"):
                    Barrier(group, parties)  # type: ignore[arg-type]
        async with cluster(1, seed=1, service=Causal()) as found:
            for recipe in (Consensus, Barrier):
                with pytest.raises(ConfigurationError, match=f"{recipe.__name__} needs a group with service=Total"):
                    recipe(found[0])
            with pytest.raises(ConfigurationError, match=r"Movable needs a group with service=Total\(\); a has Causal"):
                await Replica(found.members[0]).service.join("a")

    run(scenario())


def test_consensus_and_a_barrier_on_sockets() -> None:
    async def scenario(**settings: Any) -> None:
        async with asyncio.timeout(DEADLINE_S), members(3, **settings) as found:
            groups = await join_all(found)
            async with fed(groups, Consensus) as parts:
                decisions = await asyncio.gather(*(part.propose("x", b"%d" % n) for n, part in enumerate(parts)))
                assert len({*decisions}) == 1
            others = await join_all(found, "others")
            async with fed(others, Barrier) as barriers:
                assert await asyncio.gather(*(barrier.wait() for barrier in barriers)) == [1, 1, 1]

    asyncio.run(scenario(service=Total(safe=True)))


# Migration


class Replica:
    """The state is the list of requests."""

    def __init__(self, member: Member) -> None:
        self.requests: list[tuple[str, str]] = []
        self.service = Movable(member, self.apply, self.snapshot, self.restore)

    def apply(self, sender: str, request: bytes) -> None:
        self.requests.append((sender, request.decode()))

    def snapshot(self) -> bytes:
        return json.dumps(self.requests).encode()

    def restore(self, state: bytes) -> None:
        self.requests = [(sender, request) for sender, request in json.loads(state)]


async def send(replica: Replica, requests: int) -> None:
    for number in range(requests):
        await replica.service.send(b"%d" % number)
        await asyncio.sleep(0.003)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def move(seed: int, trouble: Callable[[Cluster], Awaitable[None]] | None) -> None:
    """p2 and p5 send; p3 is the old replica and p4 the new one; p1, which forwards, may fail."""
    async with cluster(5, seed=seed) as found:
        replicas = [Replica(member) for member in found.members]
        await replicas[1].service.join("server", found="anyway")
        for replica in (replicas[0], replicas[2], replicas[4]):
            await replica.service.join("server", found="never")
        senders = [asyncio.create_task(send(replicas[place], 60)) for place in (1, 4)]
        arriving = asyncio.create_task(replicas[3].service.arrive("server.2"))
        moving = asyncio.create_task(replicas[1].service.move("server.2"))
        if trouble is not None:
            await asyncio.sleep(0.02)
            await trouble(found)
        await asyncio.gather(moving, arriving)
        await replicas[2].service.leave()
        await asyncio.gather(*senders)
        staying = [replicas[place] for place in (1, 3, 4)]
        await until(lambda: all(len(each.requests) >= 120 for each in staying))
        assert staying[0].requests == staying[1].requests == staying[2].requests
        for name in ("p2", "p5"):
            assert [text for sender, text in staying[1].requests if sender == name] == [str(n) for n in range(60)]
        assert staying[1].service.group.name == "server.2"


async def crash(found: Cluster) -> None:
    await found.crash(0)


@pytest.mark.parametrize("trouble", [None, crash], ids=["quiet", "crash"])
def test_no_request_is_lost_and_all_replicas_have_one_order(trouble: Any) -> None:
    for seed in range(SEEDS):
        run(move(seed, trouble))


def test_a_service_moves_twice() -> None:
    async def scenario() -> None:
        async with cluster(3, seed=4) as found:
            replicas = [Replica(member) for member in found.members]
            await replicas[0].service.join("a", found="anyway")
            await replicas[1].service.join("a", found="never")
            sending = asyncio.create_task(send(replicas[0], 100))
            await replicas[1].service.move("b")
            arriving = asyncio.create_task(replicas[2].service.arrive("c"))
            await replicas[0].service.move("c")
            await asyncio.gather(arriving, sending)
            await until(lambda: all(len(each.requests) == 100 for each in replicas))
            assert replicas[0].requests == replicas[1].requests == replicas[2].requests

    run(scenario())


def test_of_two_moves_at_once_one_fails() -> None:
    async def scenario() -> None:
        async with serving(3) as (_, replicas):
            first, second, third = (replica.service for replica in replicas)
            with pytest.raises(ConfigurationError, match="a request is bytes, not str"):
                await first.send("1")  # type: ignore[arg-type]
            told = await asyncio.gather(first.move("b"), second.move("c"), return_exceptions=True)
            (name,) = {service.group.name for service in (first, second)}
            expected = {"b": [None, ConfigurationError], "c": [ConfigurationError, None]}
            assert [None if each is None else type(each) for each in told] == expected[name]
            await third.send(b"1")
            await until(lambda: all(len(replica.requests) == 1 for replica in replicas))
            await third.move(third.group.name)

    run(scenario())


@asynccontextmanager
async def serving(size: int) -> AsyncIterator[tuple[Cluster, list[Replica]]]:
    async with cluster(size, seed=1) as found:
        replicas = [Replica(member) for member in found.members]
        await asyncio.gather(*(replica.service.join("a") for replica in replicas))
        yield found, replicas


def test_a_service_that_was_left_or_has_ended_waits_for_nothing() -> None:
    async def scenario() -> None:
        async with serving(4) as (found, replicas):
            first, second, third, _ = (replica.service for replica in replicas)
            ended = asyncio.create_task(first.ended())
            await first.leave()
            await ended
            for call in (first.send(b"1"), first.move("b"), first.arrive("b")):
                with pytest.raises(NotAMember, match="has left the service"):
                    await call
            moving = asyncio.create_task(second.move("b"))
            await asyncio.sleep(0)
            await found.crash(1)
            with pytest.raises(NotAMember, match="has ended"):
                await moving
            await third.group.leave()
            with pytest.raises(NotAMember, match="has left"):
                await third.send(b"1")

    run(scenario())


def test_an_error_of_the_application_ends_its_replica_only() -> None:
    async def scenario() -> None:
        async with serving(3) as (_, replicas):
            failing, first, second = (replica.service for replica in replicas)
            ended = asyncio.create_task(failing.ended())
            replicas[0].requests = None  # type: ignore[assignment]
            await first.send(b"1")
            for call in (ended, failing.send(b"2"), failing.move("b")):
                with pytest.raises(AttributeError, match="append"):
                    await call
            await failing.leave()
            await first.send(b"3")
            await second.move("b")
            await until(lambda: all(len(replica.requests) == 2 for replica in replicas[1:]))
            assert first.group.name == "b"

    run(scenario())


def test_messages_that_no_movable_has_sent_change_nothing() -> None:
    async def scenario() -> None:
        async with serving(2) as (_, replicas):
            first, second = (replica.service for replica in replicas)
            head = struct.Struct(">QHH").pack
            forged = [
                b"",
                b"z",
                b"f",
                b"f" + head(1, 9, 9),
                b"f" + head(1, 0, 1) + b"\xff",
                b"n",
                b"nx",
                b"n" + b"9" * 99,
            ]
            forged += [b"s", b"s" + head(0, 0, 2) + b"p1x", b"m", b"m\xff", b"m#", b"ma"]
            for payload in forged:
                await first.group.send(payload)
            with pytest.raises(ConfigurationError, match="is not a name for a group"):
                await first.move("#")
            await second.send(b"1")
            await second.move("b")
            await until(lambda: all(replica.requests == [("p2", "1")] for replica in replicas))

    run(scenario())
