"""Services as values, one per group: on TCP, on UDP and in virtual time, each group is judged by its own promises."""

import asyncio
from pathlib import Path

import pytest

from antiphon import Causal, ConfigurationError, Fifo, Group, Service, SettingsMismatch, Total
from antiphon.api.services import require_same_kind
from antiphon.properties.judge import judge
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.testing import cluster, run
from tests.support.loopback import DEADLINE_S, until
from tests.support.mixed import mixed
from tests.support.traced import collected
from tools.lab.three_members import CARRIERS, MIXED, NAMES, ThreeMembers


async def turbulence(world: ThreeMembers) -> None:
    """A kill, a join with a state, a partition and a merge."""
    for name in NAMES:
        await world.start(name)
    await world.talk("p1 p2 p3")
    await world.kill("p3")
    await world.talk("p1 p2")
    await world.start("p3")
    await world.talk("p1 p2 p3")
    world.part("p1 p2", "p3")
    await world.talk("p1 p2", "p3")
    world.part()
    await world.talk("p1 p2 p3")
    for (name, group), replica in world.replicas.items():
        assert sorted(replica.words) == sorted(world.replicas["p1", group].words), (name, group)
    await world.stop()


def verdicts(trace: Path) -> dict[tuple[str, str | None], Verdict]:
    """By property and group; none is a violation."""
    found = judge(collected(trace))
    violated = [each for each in found if each.violations]
    assert not violated, [
        f"{each.property} {each.group}: {each.example and each.example.sentence}" for each in violated
    ]
    return {(each.property, each.group): each for each in found}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("chosen", MIXED)
def test_each_group_has_its_own_service(tmp_path: Path, carrier: str, chosen: str) -> None:
    services = MIXED[chosen]

    async def scenario() -> None:
        world = ThreeMembers(carrier, services, next(iter(services.values())), tmp_path / "run")
        async with asyncio.timeout(DEADLINE_S if carrier != "kit" else 1_000):
            await turbulence(world)

    run(scenario()) if carrier == "kit" else asyncio.run(scenario())
    found = verdicts(tmp_path / "run")
    for group, service in services.items():
        safe = isinstance(service, Total) and service.safe
        closed = isinstance(service, Total) and service.views == "closed"
        assert (found["S3", group].outcome == "not promised") is not safe
        assert (found["D6", group].outcome == "not promised") is not closed
        assert found["D9", group].opportunities


OTHERS: list[tuple[Service, str, str, str]] = [
    (Total(safe=True), "service", "total", "total-safe"),
    (Total(sequencer=True), "sequencer", "no", "yes"),
    (Total(views="remove"), "views", "cut", "remove"),
    (Total(views="closed"), "views", "cut", "closed"),
    (Total(views="closed", accept=True), "views", "cut", "closed-accepted"),
]
"""A service, and how it differs from `Total()`."""


@pytest.mark.parametrize(("other", "setting", "ours", "theirs"), OTHERS)
def test_a_joiner_with_another_service_is_refused_and_both_ends_know_why(
    other: Service, setting: str, ours: str, theirs: str
) -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {})) as (one, two):
            group = await one.join("orders")
            with pytest.raises(SettingsMismatch, match=f"{setting} is {theirs} here and {ours} there") as caught:
                await two.join("orders", service=other)
            assert caught.value.differences == ((setting, theirs, ours),)
            (refused,) = group.health.refused
            assert refused.reason == f"{setting} is {ours} here and {theirs} there"
            again = await two.join("orders")  # the wrong one was not remembered
            await again.ready(2)
            assert again.service == group.service == Total()
            await two.join("another", service=other)  # a service is of one group

    run(scenario())


def test_founders_of_one_group_with_different_services_are_told() -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {})) as (one, two):
            joining = [
                asyncio.create_task(one.join("orders", service=Total(views="closed"))),
                asyncio.create_task(two.join("orders", service=Total(views="remove"))),
            ]
            found = await asyncio.gather(*joining, return_exceptions=True)
            assert {type(each) for each in found} <= {SettingsMismatch, Group}
            assert any(isinstance(each, SettingsMismatch) for each in found)

    run(scenario())


def test_sides_of_different_services_do_not_merge() -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {})) as (one, two):
            groups = [
                await one._process.form("orders", (one.id,), service=Total(safe=True)),
                await two._process.form("orders", (two.id,)),
            ]
            one._process.look_for("orders", (two.id,))
            await until(lambda: all(group.health.refused for group in groups))
            assert [len(group.health.members) for group in groups] == [1, 1]

    run(scenario())


def test_a_service_of_another_kind_is_refused_at_join() -> None:
    async def scenario() -> None:
        async with cluster(1) as members:
            with pytest.raises(ConfigurationError, match="join it with another Member"):
                await members.members[0].join("other", service=Causal("fast"))

    run(scenario())


def test_the_kind_of_a_member_is_explained() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"orders cannot have Fifo\(\) here: this member has Total\(\), and the groups of a member share one "
        r"order; join it with another Member\(service=Fifo\(\)\)",
    ):
        require_same_kind(Fifo(), Total(), "orders")
    assert require_same_kind(Total(safe=True), Total(), "orders") == Total(safe=True)


@pytest.mark.parametrize("first", [Total(sequencer=True), Total(views="closed")])
def test_a_sequencer_and_late_views_do_not_go_together(first: Service) -> None:
    second = Total(views="remove") if first == Total(sequencer=True) else Total(sequencer=True)

    async def scenario() -> None:
        async with cluster(1, service=first) as members:
            with pytest.raises(ConfigurationError, match="with a sequencer all groups of a member have views='cut'"):
                await members.members[0].join("other", service=second)
            await members[0].leave()
            await members.members[0].join("other", service=second)

    run(scenario())


def test_a_sequencer_is_refused_where_flow_control_does_not_know_it() -> None:
    async def scenario() -> None:
        async with cluster(1, flow_control=2) as members:
            with pytest.raises(ConfigurationError, match="needs flow_control 3 or 0, not 2"):
                await members.members[0].join("other", service=Total(sequencer=True))

    run(scenario())
