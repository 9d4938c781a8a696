"""When a process founds a group: in virtual time, with processes that are missing, silent, busy or cut off."""

import asyncio
import logging
from typing import Any

import pytest

from antiphon import ConfigurationError, Group, NotJoined, Total, View
from antiphon.testing import cluster, run
from tests.support.village import Village, sees_primary, village

LONG_S = 60.0
"""Many times the period after which earlier versions founded a group alone."""


async def first_view(group: Group) -> list[str]:
    async for event in group:
        if isinstance(event, View):
            return [member.partition("#")[0] for member in event.members]
    raise AssertionError("the stream ended")


async def read(group: Group) -> None:
    async for _ in group:
        pass


async def cancel(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def waits(joining: "asyncio.Task[Group]") -> None:
    """Assert that the process is in no view for a long time."""
    await asyncio.sleep(LONG_S)
    assert not joining.done()


def test_a_process_without_peers_founds_at_once_and_is_primary() -> None:
    async def scenario() -> None:
        async with village() as here:
            group = await here.join("a")
            await sees_primary(group, 1)
            assert asyncio.get_running_loop().time() < 0.1

    run(scenario())


@pytest.mark.parametrize("seed", range(5))
def test_processes_wait_for_all_and_found_one_group_together(seed: int) -> None:
    async def scenario() -> None:
        async with village(seed) as here:
            joins = [asyncio.create_task(here.join("c", "a b")), asyncio.create_task(here.join("a", "b c"))]
            await asyncio.sleep(LONG_S)
            assert not any(join.done() for join in joins)
            joins.append(asyncio.create_task(here.join("b", "a c")))
            groups = await asyncio.gather(*joins)
            assert [await first_view(group) for group in groups] == [["a", "b", "c"]] * 3
            for group in groups:
                await sees_primary(group, 3)

    run(scenario())


def test_a_process_that_is_not_interested_does_not_hold_a_founder_back() -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.start("b")
            group = await here.join("a", "b")
            assert await first_view(group) == ["a"]
            late = await here.members["b"].join("orders")  # it was given no peers, and knows one that is in the group
            assert await first_view(late) == ["a", "b"]

    run(scenario())


def test_a_group_that_exists_is_joined_although_a_peer_is_missing() -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.join("a")
            group = await here.join("c", "a b")
            assert await first_view(group) == ["a", "c"]

    run(scenario())


def test_silence_of_a_connected_process_is_no_answer() -> None:
    async def scenario() -> None:
        async with village() as here:
            first, second = await asyncio.gather(here.join("a", "b"), here.join("b", "a"))
            await sees_primary(first, 2)
            await here.start("c", "a b")
            await asyncio.sleep(0.1)
            for name in "ab":
                here.members[name].pause()
            joining = asyncio.create_task(here.members["c"].join("orders"))
            await waits(joining)
            for name in "ab":
                here.members[name].resume()
            assert {"a", "b"} & {*await first_view(await joining)}
            for group in (first, second, joining.result()):
                await sees_primary(group, 3)

    run(scenario())


@pytest.mark.parametrize("seed", range(17))
def test_a_restarted_member_never_founds_alone_while_its_peers_answer_slowly(seed: int) -> None:
    """Each peer stands still for most of the time, never long enough to be suspected."""

    async def stutter(members: Any, place: int) -> None:
        while True:
            members.pause(place)
            await asyncio.sleep(0.35)
            members.resume(place)
            await asyncio.sleep(0.02)

    async def load(group: Group) -> None:
        while True:
            await group.send(b"x" * 100)
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        async with cluster(3, seed=seed, service=Total(safe=True)) as members:
            work = [asyncio.create_task(read(members[place])) for place in (0, 1)]
            work += [asyncio.create_task(load(members[place])) for place in (0, 1)]
            await members.crash(2)
            work += [asyncio.create_task(stutter(members, place)) for place in (0, 1)]
            group = await members.restart(2)
            assert {"p1", "p2"} & {*await first_view(group)}
            await cancel(work)

    run(scenario())


@pytest.mark.parametrize("seed", range(3))
def test_a_joiner_that_arrives_during_a_state_transfer_waits_its_turn(seed: int) -> None:
    state = bytes(400_000)  # much, for the window and the network here

    async def scenario() -> None:
        async with village(seed, latency_s=(0.02, 0.05), window=8, window_bytes=8_000, frame_bytes=1_000) as here:
            first = await here.join("a", snapshot=lambda: state)
            readers = [asyncio.create_task(read(first))]
            second = await here.join("b", "a", snapshot=lambda: state)
            readers.append(asyncio.create_task(read(second)))
            begun = asyncio.get_running_loop().time()
            third = asyncio.create_task(here.join("c", "a b", snapshot=lambda: state))
            while second.health.receiving is not None:
                assert not third.done()
                await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() - begun > 2.0, "the transfer was too short to show anything"
            assert await first_view(await third) == ["a", "b", "c"]
            await cancel(readers)

    run(scenario())


def test_least_members_are_enough() -> None:
    async def scenario() -> None:
        async with village() as here:
            one = asyncio.create_task(here.join("a", "b c", least_members=2))
            await waits(one)
            two = await here.join("b", "a c", least_members=2)
            for group in (await one, two):
                assert await first_view(group) == ["a", "b"]
                await sees_primary(group, 2)

    run(scenario())


def test_least_members_are_a_minimum_too() -> None:
    async def scenario() -> None:
        async with village() as here:
            one = asyncio.create_task(here.join("a", least_members=2))
            await waits(one)
            await here.start("b", "a")
            assert await first_view(await one) == ["a"]

    run(scenario())


def test_founding_anyway_is_not_primary_before_enough_are_reached() -> None:
    async def scenario() -> None:
        async with village() as here:
            group = await here.join("a", "b", found="anyway")
            assert await first_view(group) == ["a"]
            await asyncio.sleep(LONG_S)
            assert not group.health.primary
            other = await here.join("b", "a")
            for each in (group, other):
                await sees_primary(each, 2)

    run(scenario())


def test_founding_anyway_never_happens_beside_a_group_that_is_reached() -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.join("a")
            here.members["a"].pause()
            await here.start("c", "a b", found="anyway")
            await asyncio.sleep(0.1)
            here.members["a"].resume()
            group = await here.members["c"].join("orders")
            assert await first_view(group) == ["a", "c"]

    run(scenario())


def test_founding_anyway_is_not_primary_while_a_peer_that_is_connected_does_not_answer() -> None:
    async def scenario() -> None:
        async with village() as here:
            first = await here.join("a")
            await sees_primary(first, 1)
            here.members["a"].pause()
            second = await here.join("b", "a", found="anyway")
            await asyncio.sleep(LONG_S)
            assert not second.health.primary
            here.members["a"].resume()
            for group in (first, second):
                await sees_primary(group, 2)

    run(scenario())


def test_a_side_that_was_founded_anyway_merges_into_the_primary_one() -> None:
    async def scenario() -> None:
        async with village() as here:
            here.network.partition([["a"], ["b"]])
            first = await here.join("a")
            await sees_primary(first, 1)
            second = await here.join("b", "a", found="anyway")
            await asyncio.sleep(LONG_S)
            assert not second.health.primary
            assert first.health.primary
            here.network.heal()
            for group in (first, second):
                await sees_primary(group, 2)

    run(scenario())


def test_a_process_that_never_founds_only_joins() -> None:
    async def scenario() -> None:
        async with village() as here:
            joining = asyncio.create_task(here.join("a", found="never"))
            await waits(joining)
            await here.join("b", "a")
            assert await first_view(await joining) == ["a", "b"]

    run(scenario())


def test_a_join_that_waits_by_choice_says_so() -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.start("b")
            await here.start("a", "b")
            never = await refused(here, "a", found="never", join_within=5)
            assert "no process that is reached is in the group, and found='never' forms none" in never
            few = await refused(here, "a", least_members=9, join_within=5)
            assert "processes are reached, this one included, and least_members is 9" in few

    run(scenario())


async def refused(here: Village, name: str, **policy: Any) -> str:
    with pytest.raises(NotJoined) as caught:
        await here.members[name].join("orders", **policy)
    return str(caught.value)


def test_after_a_deadline_join_says_what_is_missing() -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.start("b")
            await here.start("a", "b c")
            await asyncio.sleep(0.1)
            here.members["b"].pause()
            message = await refused(here, "a", join_within=7)
            assert "a could not join orders in 7 seconds" in message
            assert "c:0: connection refused" in message
            assert "b is connected and has not answered" in message
            assert here.members["a"].unreached == {"c:0": "connection refused"}
            here.members["b"].resume()
            group = await here.members["a"].join("orders", least_members=2, join_within=30)  # it may try again
            assert await first_view(group) == ["a"]

    run(scenario())


def test_a_process_that_waits_reports_why_but_not_too_often(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with village() as here:
            await here.start("a", "b")
            await refused(here, "a", join_within=35)
            warnings = [record for record in caplog.records if "b:0: connection refused" in record.getMessage()]
            assert [record.name for record in warnings] == ["antiphon"] * len(warnings)
            assert [record.levelno for record in warnings] == [logging.WARNING] * len(warnings)
            assert 3 <= len(warnings) <= 4

    run(scenario())


@pytest.mark.parametrize(
    "policy",
    [{"found": "soon"}, {"least_members": 0}, {"least_members": "2"}, {"join_within": 0}, {"join_within": "1"}],
)
def test_a_policy_that_cannot_be_is_refused(policy: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with village() as here:
            member = await here.start("a")
            with pytest.raises(ConfigurationError, match=next(iter(policy))):
                await member.join("orders", **policy)
            assert member._process.find("orders") is None

    run(scenario())
