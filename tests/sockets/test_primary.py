"""`group.primary` and the event `Primary`, as applications see them, in virtual time (docs/guide/api.md, Primary)."""

import asyncio

import pytest

from antiphon import ConfigurationError, Group, Member, Reset
from antiphon.testing import cluster, run
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


@pytest.mark.parametrize("wrong", ["static", 0, -3, True, 2.5])
def test_a_wrong_policy_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="primary must be 'dynamic', or the size of the group"):
        Member(primary=wrong)
