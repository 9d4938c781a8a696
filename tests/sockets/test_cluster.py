"""The public test kit: the same API in virtual time, and the same again with the same seed."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from antiphon import ConfigurationError, Event, Message, NotAMember, Reset, Total, View
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.testing import Cluster, cluster, run
from antiphon.types import GroupId
from antiphon.wire.codec import encode
from tests.support.loopback import take_primary

Seen = list[tuple[float, Event]]


async def read(members: Cluster, place: int, seen: list[Seen]) -> None:
    group = members[place]
    async for event in group:
        seen[place].append((asyncio.get_running_loop().time(), event))


async def turbulence(seed: int) -> list[Seen]:
    """Messages of all, a partition, a pause, a crash."""
    seen: list[Seen] = [[], [], []]
    async with asyncio.TaskGroup() as tasks, cluster(3, seed=seed) as members:
        for place in range(3):
            tasks.create_task(read(members, place, seen))
        for number in range(30):
            await members[number % 3].send(b"%d" % number)
            await asyncio.sleep(0.001)
        members.partition([[0, 1], [2]])
        for group in members:
            await group.send(b"parted")
        await asyncio.sleep(2)
        members.heal()
        await asyncio.sleep(10)
        members.pause(1)
        await members[0].send(b"paused")
        await asyncio.sleep(1)
        members.resume(1)
        await asyncio.sleep(10)
        await members.crash(2)
        await asyncio.sleep(3)
    return seen


def test_the_same_seed_gives_the_same_events_at_the_same_times() -> None:
    first, again, other = run(turbulence(5)), run(turbulence(5)), run(turbulence(6))
    assert first == again
    assert first != other
    assert messages(first[0])[:30] == messages(first[1])[:30]
    assert len(messages(first[0])) > 30


def test_the_same_seed_gives_the_same_events_in_any_interpreter() -> None:
    code = (
        "import hashlib; from antiphon.testing import run; from tests.sockets.test_cluster import turbulence;"
        "print(hashlib.blake2b(repr(run(turbulence(5))).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": salt},
            cwd=Path(__file__).parents[2],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(found) == 1


def messages(seen: Seen) -> list[bytes]:
    return [event.payload for _, event in seen if isinstance(event, Message)]


async def take_view(members: Cluster, place: int, *names: str) -> View:
    async for event in members[place]:
        if isinstance(event, View) and event.members == names:
            return event
    raise AssertionError("the stream has ended")


def test_time_passes_only_when_all_is_idle_and_costs_nothing() -> None:
    async def scenario() -> float:
        async with cluster(2):
            await asyncio.sleep(600)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert 600 < run(scenario()) < 610
    assert time.monotonic() - began < 120  # a fifth, however busy the machine is


def test_a_member_that_is_paused_while_a_partition_heals_comes_back() -> None:
    async def scenario() -> None:
        async with cluster(3) as members:
            members.partition([[0, 1], [2]])
            await take_view(members, 0, "p1", "p2")
            await take_view(members, 2, "p3")
            for place in range(3):
                members.pause(place)
            members.heal()
            for place in range(3):
                members.resume(place)
            await members[2].ready(3)

    run(scenario(), limit_s=60)


@pytest.mark.parametrize("seed", range(20))
def test_connections_that_begin_are_cut_by_a_partition_and_begin_once(seed: int) -> None:
    async def scenario() -> None:
        async with cluster(3, seed=seed, latency_s=(0, 0.05)) as members:
            for _ in range(3):
                members.partition([[0, 1], [2]])
                await asyncio.sleep(0.02)
                members.heal()
            members.heal()
            await asyncio.sleep(0.1)
            places = [member.port.connections for member in members.members]  # type: ignore[attr-defined]
            ends = [connection for each in places for connection in each.values()]
            assert len(ends) == 6
            assert len({*ends}) == 3

    run(scenario(), limit_s=60)


def test_a_partition_splits_the_group_and_healing_merges_it() -> None:
    async def scenario() -> None:
        async with cluster(3) as members:
            for place, group in enumerate(members):
                await take_primary(group, (await take_view(members, place, "p1", "p2", "p3")).id)
            members.partition([[0, 1], [2]])
            majority, alone = await take_view(members, 0, "p1", "p2"), await take_view(members, 2, "p3")
            await take_primary(members[0], majority.id)
            assert not members[2].primary
            assert {left.process for left in alone.left} == {"p1", "p2"}
            members.heal()
            assert (await take_view(members, 2, "p1", "p2", "p3")).joined == ("p1", "p2")

    run(scenario())


def test_sides_of_a_partition_get_the_states_of_all_sides() -> None:
    async def scenario() -> None:
        states = [{"start"} for _ in range(2)]

        async def follow(place: int) -> None:
            async for event in members[place]:
                if isinstance(event, Message):
                    states[place].add(event.payload.decode())
                elif isinstance(event, Reset):
                    states[place] = {entry for state in event.states for entry in json.loads(state)}

        snapshots = [lambda: json.dumps([*states[0]]).encode(), lambda: json.dumps([*states[1]]).encode()]
        async with asyncio.TaskGroup() as tasks, cluster(2, snapshots=snapshots) as members:
            for place in range(2):
                tasks.create_task(follow(place))
            members.partition([[0], [1]])
            await asyncio.sleep(3)
            await members[0].send(b"one")
            await members[1].send(b"two")
            await asyncio.sleep(3)
            assert states == [{"start", "one"}, {"start", "two"}]
            members.heal()
            await asyncio.sleep(10)
            assert states == [{"start", "one", "two"}] * 2

    run(scenario())


def test_a_crashed_member_is_excluded_and_restarts_as_a_new_incarnation() -> None:
    async def scenario() -> None:
        async with cluster(3, seed=3) as members:
            assert (await take_view(members, 0, "p1", "p2", "p3")).joined == ("p1", "p2", "p3")
            await members.crash(1)
            view = await take_view(members, 0, "p1", "p3")
            assert [left.process for left in view.left] == ["p2"]
            assert view.excluded == 1
            with pytest.raises(NotAMember):
                await members[1].send(b"from beyond")
            group = await members.restart(1)
            await group.ready(3)
            assert members.members[1].id == "p2#1"
            await take_view(members, 0, "p1", "p2#1", "p3")

    run(scenario())


def test_a_member_that_pauses_shortly_misses_nothing() -> None:
    async def scenario() -> None:
        async with cluster(2) as members:
            seen: list[Seen] = [[], []]
            readers = [asyncio.create_task(read(members, place, seen)) for place in range(2)]
            await asyncio.sleep(0.2)  # no member owes an answer any more
            members.pause(1)
            await members[0].send(b"held")
            await asyncio.sleep(0.2)
            assert messages(seen[0]) == messages(seen[1]) == []
            members.resume(1)
            await asyncio.sleep(0.1)
            assert messages(seen[0]) == messages(seen[1]) == [b"held"]
            assert members[0].health.members == ("p1", "p2")
        await asyncio.gather(*readers)

    run(scenario())


def test_members_of_a_cluster_may_be_in_more_groups() -> None:
    async def scenario() -> None:
        async with cluster(2, service=Total(safe=True)) as members:
            others = await asyncio.gather(*(member.join("other") for member in members.members))
            await others[0].ready(2)
            assert [member.id for member in members.members] == [*others[0].health.members]

    run(scenario())


def test_a_scenario_that_waits_for_ever_is_ended_by_the_limit() -> None:
    async def scenario() -> None:
        async with cluster(2) as members:
            await members[0].ready(3)

    with pytest.raises(TimeoutError, match="50 seconds of virtual time have passed"):
        run(scenario(), limit_s=50)


def test_impossible_clusters_are_refused() -> None:
    async def make(count: int = 2, latency_s: tuple[float, float] = (0, 0), **chosen: Any) -> None:
        async with cluster(count, latency_s=latency_s, **chosen) as members:
            members.partition([[0], [0, 1]])

    with pytest.raises(ConfigurationError, match="virtual time"):
        asyncio.run(make())
    for refused in (make(0), make(latency_s=(2, 1)), make(suspect_after=0.0), make()):
        with pytest.raises(ConfigurationError):
            run(refused)


@pytest.mark.parametrize("number", [1 << 50, (1 << 62) - 3, 1 << 62])
def test_a_member_that_lies_about_its_number_does_not_stop_the_others(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The frame is refused, its connection ends, and the receivers log why; the others deliver as before."""

    async def story() -> bytes:
        async with cluster(3, seed=1) as members:
            liar: Any = members.members[2]
            group = liar._process.driver.core.current(GroupId("group")).view.group
            honest = [member.id for member in members.members[:2]]
            liar.port.send(encode(BlockFrame(group, liar.id, number, number - 1, 0)), honest)
            liar.port.flush()
            await asyncio.sleep(0.1)
            await members[0].send(b"after the lie")
            async for event in members[1]:
                if isinstance(event, Message):
                    return bytes(event.payload)
            raise AssertionError("the stream of events has ended")

    assert run(story()) == b"after the lie"
    assert "is implausible: at most" in caplog.text
