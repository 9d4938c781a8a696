"""A pause longer than `suspect_after`: the member is excluded, and need not get a state if it has missed nothing."""

import asyncio
from typing import Any

import pytest

from antiphon import ConfigurationError, Event, Member, Reset, View
from antiphon.testing import Cluster, cluster, run

SUSPECT_AFTER_S = 0.5


class Application:
    """Reads all events of a member, and counts how often its state is asked for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.snapshots = 0

    def snapshot(self) -> bytes:
        self.snapshots += 1
        return b"state"

    async def read(self, members: Cluster, place: int) -> None:
        async for event in members[place]:
            self.events.append(event)

    @property
    def resets(self) -> list[Event]:
        return [event for event in self.events if isinstance(event, Reset)]

    @property
    def sizes(self) -> list[int]:
        return [len(event.members) for event in self.events if isinstance(event, View)]


async def after_a_pause(
    pause_s: float, *, sends: bool = False, seed: int = 1, state_from: str = "messages"
) -> list[Application]:
    """Three members, the last of which is paused; if one `sends`, the others deliver a message meanwhile."""
    applications = [Application() for _ in range(3)]
    snapshots = [each.snapshot for each in applications]
    chosen: dict[str, Any] = {"suspect_after": SUSPECT_AFTER_S, "state_from": state_from}
    async with cluster(3, seed=seed, snapshots=snapshots, **chosen) as members:
        readers = [asyncio.create_task(each.read(members, place)) for place, each in enumerate(applications)]
        for place in range(3):
            await members[place].send(b"before")
        await asyncio.sleep(2)
        for each in applications:
            each.events.clear()
            each.snapshots = 0
        members.pause(2)
        await asyncio.sleep(pause_s)
        if sends:
            await members[0].send(b"meanwhile")
            await asyncio.sleep(0.1)
        members.resume(2)
        await asyncio.sleep(20)
        assert all(len(members[place].health.members) == 3 for place in range(3))
        for reader in readers:
            reader.cancel()
    return applications


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("pause_s", [0.75, 1.5, 5.0])
def test_a_member_that_has_missed_nothing_comes_back_without_a_state(pause_s: float, seed: int) -> None:
    applications = run(after_a_pause(pause_s, seed=seed))
    assert any(2 in each.sizes for each in applications)  # it was excluded
    assert [each.resets for each in applications] == [[], [], []]
    assert [each.snapshots for each in applications] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_a_member_that_has_missed_a_message_gets_the_state(seed: int) -> None:
    applications = run(after_a_pause(3.0, sends=True, seed=seed))
    assert [len(each.resets) for each in applications] == [1, 1, 1]


def test_by_default_views_may_be_part_of_the_state() -> None:
    """A lock that is released when its holder leaves has another state at each side."""
    applications = run(after_a_pause(3.0, state_from="events"))
    assert [len(each.resets) for each in applications] == [1, 1, 1]


def test_other_sources_of_the_state_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="state_from 'views' is not one of events, messages"):
        Member(state_from="views")
