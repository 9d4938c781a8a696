"""`group.primary` and the event `Primary`, as applications see them, in virtual time (docs/guide/api.md, Primary)."""

import asyncio

import pytest

from antiphon import ConfigurationError, Group, Member, Reset
from antiphon.testing import cluster, run
from tests.planted.primary import lapsed_voters_have_the_state
from tests.support.loopback import take_primary, take_view


async def read(group: Group) -> None:
    """An application that only consumes events, because a state is taken at its position in the stream."""
    async for _ in group:
        pass


def test_the_survivor_of_two_is_primary_again_after_a_leave() -> None:
    async def scenario() -> None:
        async with cluster(2) as members:
            both = await take_view(members[0], lambda view: len(view.members) == 2)
            first = await take_primary(members[0], both.id)
            assert await members[1].leave()
            alone = await take_view(members[0], lambda view: len(view.members) == 1)
            assert not members[0].primary
            assert (await take_primary(members[0], alone.id)).number > first.number
            assert members[0].health.primary

    run(scenario())


def test_a_merge_says_which_state_is_that_of_the_primary_side() -> None:
    async def scenario() -> None:
        async with cluster(3, snapshots=[lambda: b"p1", lambda: b"p2", lambda: b"p3"]) as members:
            reading = [asyncio.create_task(read(members[place])) for place in (0, 1)]
            await asyncio.sleep(1)
            members.partition([[0, 1], [2]])
            await asyncio.sleep(3)
            assert [members[place].health.primary for place in range(3)] == [True, True, False]
            await members[0].send(b"for two")  # without it both sides would have the same state
            await asyncio.sleep(1)
            members.heal()
            async for event in members[2]:
                if isinstance(event, Reset) and len(event.states) == 2:
                    assert event.primary is not None
                    assert event.states[event.primary] == b"p1"
                    assert event.own == 1 - event.primary
                    break
            for task in reading:
                task.cancel()

    run(scenario())


@pytest.mark.parametrize("after_s", [0, 0.001, 0.002, 0.003])
def test_a_state_that_never_came_does_not_count_as_that_of_the_primary_side(after_s: float) -> None:
    """p1 is cut off again before it has got the state of p2 and p3."""
    chosen: set[bytes] = set()

    async def follow(group: Group) -> None:
        async for event in group:
            if isinstance(event, Reset) and event.primary is not None and len(event.states) == 2:
                chosen.add(event.states[event.primary])

    async def scenario() -> None:
        async with cluster(3, snapshots=[lambda: b"old", lambda: b"primary", lambda: b"primary"]) as members:
            reading = [asyncio.create_task(follow(group)) for group in members]
            await asyncio.sleep(1)
            for _ in range(2):
                members.partition([[0], [1, 2]])
                await asyncio.sleep(3)
                await members[1].send(b"for two")  # without it both sides would have the same state
                await asyncio.sleep(1)
                members.heal()
                while len(members[0].health.members) < 3:
                    await asyncio.sleep(0.0005)
                await asyncio.sleep(after_s)
            await asyncio.sleep(3)
            for task in reading:
                task.cancel()

    run(scenario())
    assert chosen == {b"primary"}


async def side_of_two_that_left() -> tuple[bool, set[bytes | None]]:
    """p1, p2 and p3 are primary, and p4 has an older state. p1 and p2 leave, each alone, and join p4 without p3.

    Returns whether they are primary then, and which states all four take for that of the last primary view, after p3 is
    reached again.
    """
    chosen: set[bytes | None] = set()

    async def follow(group: Group) -> None:
        async for event in group:
            if isinstance(event, Reset) and len(event.states) == 2:
                chosen.add(None if event.primary is None else event.states[event.primary])

    async with cluster(4, snapshots=[lambda: b"p1", lambda: b"p2", lambda: b"p3", lambda: b"p4"]) as members:
        reading = [asyncio.create_task(follow(group)) for group in members]
        await asyncio.sleep(1)
        members.partition([[0, 1, 2], [3]])
        await asyncio.sleep(3)
        assert [group.health.primary for group in members] == [True, True, True, False]
        members.partition([[0], [1], [2], [3]])
        await asyncio.sleep(3)
        for place in (0, 1):
            await members[place].leave()
        members.heal()
        members.partition([[0, 1, 3], [2]])
        joined = [await members.members[place].join("group", snapshot=lambda: b"late") for place in (0, 1)]
        reading += [asyncio.create_task(follow(group)) for group in joined]
        await members[3].ready(3)
        await asyncio.sleep(5)
        primary = any(group.health.primary for group in (*joined, members[3]))
        members.heal()
        await members[2].ready(4)
        await asyncio.sleep(5)
        assert all(group.health.primary for group in (*joined, members[2], members[3]))
        for task in reading:
            task.cancel()
    return primary, chosen


def test_members_that_left_do_not_outvote_the_one_that_has_the_state() -> None:
    assert run(side_of_two_that_left()) == (False, {b"p3"})


def test_without_the_rule_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    lapsed_voters_have_the_state(monkeypatch)
    primary, chosen = run(side_of_two_that_left())
    assert primary
    assert b"p3" not in chosen


def test_the_last_member_leaves_and_joins_again_and_is_primary() -> None:
    async def scenario() -> None:
        async with cluster(2) as members:
            assert await members[1].leave()
            await asyncio.sleep(1)
            assert members[0].health.primary
            await members[0].leave()
            again = [member.join("group") for member in members.members]
            groups = await asyncio.gather(*again)
            await groups[0].ready(2)
            await asyncio.sleep(5)
            assert [group.health.primary for group in groups] == [True, True]

    run(scenario())


@pytest.mark.parametrize("wrong", ["static", 0, -3, True, 2.5])
def test_a_wrong_policy_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="primary must be 'dynamic', or the size of the group"):
        Member(primary=wrong)
