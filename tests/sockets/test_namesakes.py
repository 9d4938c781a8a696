"""Two processes with one name: both report it, and the later one does not take the place of the one that runs."""

import asyncio
import logging
from typing import Any

import pytest

from antiphon import Group, Member, Message, NameTaken
from antiphon.testing import cluster, run
from tests.support.loopback import FAST, members, name, names, on_loopback, take_each, until
from tests.support.mixed import mixed


async def deliver_one(groups: list[Group]) -> None:
    """Assert that the groups still work."""
    await groups[0].send(b"on")
    seen = await take_each(groups, 1)
    assert all(isinstance(each[0], Message) for each in seen)


def test_a_newcomer_with_the_name_of_a_member_that_runs_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with mixed(("ann", {}), ("bob", {}), ("ann#1", {}), started=2) as (ann, bob, later):
            groups = [await ann.join("orders"), await bob.join("orders")]
            await groups[0].ready(2)
            async with later:
                with pytest.raises(NameTaken, match="another process named ann runs: ann;"):
                    await later.join("orders")
                with pytest.raises(NameTaken):  # also the next time, and at once
                    await later.join("other")
                await asyncio.sleep(30)
                assert [each.process for each in groups[0].health.refused] == ["ann#1"]
                assert "another process named ann runs: ann#1" in groups[0].health.refused[0].reason
                assert groups[0].health.members == groups[1].health.members == ("ann", "bob")
            await deliver_one(groups)
            await asyncio.sleep(1)
            assert not groups[0].health.refused  # it is gone

    with caplog.at_level(logging.WARNING, "antiphon"):
        run(scenario())
    told = [record.getMessage() for record in caplog.records if "another process" in record.getMessage()]
    assert sorted(each.partition(";")[0] for each in told) == [
        "another process named ann runs: ann",
        "another process named ann runs: ann#1",
    ]


def test_a_later_incarnation_does_not_push_out_one_that_runs_and_that_it_cannot_reach() -> None:
    """Members must not take a start for the end of an earlier one: here the two never meet."""

    async def scenario() -> None:
        async with mixed(("ann", {}), ("bob", {}), ("cem", {}), ("ann#1", {}), started=3) as found:
            groups = [await member.join("orders") for member in found[:3]]
            for group in groups:
                await group.ready(3)
            network: Any = found[0]._process._transport._network  # type: ignore[attr-defined]
            reaches = network._reaches
            network._reaches = lambda one, other: {one.id, other.id} != {"ann", "ann#1"} and reaches(one, other)
            async with found[3]:
                joining = asyncio.create_task(found[3].join("orders"))
                await asyncio.sleep(20)
                assert {group.health.members for group in groups} == {("ann", "bob", "cem")}
                joining.cancel()
                await asyncio.wait([joining])
            await deliver_one(groups)

    run(scenario())


def test_a_process_that_was_killed_comes_back_under_its_name() -> None:
    async def scenario(seed: int) -> None:
        async with cluster(3, seed=seed) as found:
            await found.crash(1)
            await found.restart(1)
            await found[0].ready(3)
            assert found[0].health.members == ("p1", "p2#1", "p3")
            assert not found[1].health.refused

    for seed in range(5):
        run(scenario(seed))


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_on_sockets_the_older_one_stays_and_both_report(transport: str) -> None:
    @on_loopback
    async def scenario() -> None:
        async with members(3, transport=transport) as found:
            groups = [await member.join("orders") for member in found]
            for group in groups:
                await group.ready(3)
            async with Member(name="p2", peers=[found[0].address], transport=transport, **FAST) as later:
                with pytest.raises(NameTaken, match=f"another process named p2 runs: {found[1].id}, started at 20"):
                    await later.join("orders")
                await until(lambda: [each.process for each in groups[1].health.refused] == [later.id])
            assert names(groups[0].health.members) == ["p1", "p2", "p3"]
            assert found[1].id in groups[0].health.members
            await deliver_one(groups)

    scenario()


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_on_sockets_a_process_that_was_killed_comes_back_elsewhere(transport: str) -> None:
    """At another port, so nothing but the name says that it is the same."""

    @on_loopback
    async def scenario() -> None:
        async with members(2, transport=transport) as found:
            first = await found[0].join("orders")
            lost = Member(name="p3", peers=[found[0].address], transport=transport, **FAST)
            await lost.__aenter__()
            await lost.join("orders")
            await first.ready(2)
            await lost.abort()
            async with Member(name="p3", peers=[found[0].address], transport=transport, **FAST) as again:
                await again.join("orders")
                await until(lambda: again.id in first.health.members and lost.id not in first.health.members)
                assert name(again.id) == name(lost.id)

    scenario()
