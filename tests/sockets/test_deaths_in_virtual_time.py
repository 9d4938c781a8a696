"""Deaths with and without evidence, and wrong evidence, through the public API in virtual time."""

import asyncio

import pytest

from antiphon import Event, Group, View
from antiphon.testing import Cluster, cluster, run
from antiphon.types import ProcessId

SUSPECT_AFTER_S = 10.0


async def left_after(members: Cluster, place: int) -> tuple[float, list[tuple[ProcessId, str]]]:
    """The time until this survivor reads a smaller view, and the reason of the departure."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(100):
        while True:
            event = await anext(members[place])
            if isinstance(event, View) and event.left:
                return loop.time() - began, [(left.process, left.reason) for left in event.left]
    raise AssertionError("no view")


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_with_evidence_is_agreed_on_without_waiting_for_silence(seed: int) -> None:
    async def scenario() -> None:
        async with cluster(3, seed=seed, suspect_after=SUSPECT_AFTER_S, merge_every=SUSPECT_AFTER_S) as members:
            await members[2].send(b"last words")
            dead = members.members[2].id
            await members.crash(2)
            for place in (0, 1):
                took_s, left = await left_after(members, place)
                assert took_s < SUSPECT_AFTER_S / 100
                assert left == [(dead, "gone")]

    run(scenario())


def test_a_silent_crash_is_found_by_silence_as_ever() -> None:
    async def scenario() -> None:
        async with cluster(3, suspect_after=SUSPECT_AFTER_S, merge_every=SUSPECT_AFTER_S) as members:
            await members.crash(2, silent=True)
            await members[0].send(b"somebody must answer this")
            took_s, ((_, reason),) = await left_after(members, 0)
            assert took_s >= SUSPECT_AFTER_S
            assert reason == "silent"

    run(scenario())


@pytest.mark.parametrize("busy", [True, False])
def test_evidence_that_others_refute_excludes_no_member(busy: bool) -> None:
    async def scenario() -> None:
        async with cluster(3, suspect_after=SUSPECT_AFTER_S, merge_every=SUSPECT_AFTER_S) as members:
            seen: list[list[Event]] = [[], [], []]
            readers = [asyncio.create_task(read(group, seen[place])) for place, group in enumerate(members)]
            await asyncio.sleep(1)
            members.members[0]._process.driver.gone(members.members[2].id)
            for number in range(20 if busy else 0):
                await members[number % 3].send(b"%d" % number)
            await asyncio.sleep(5 * SUSPECT_AFTER_S)
            for events in seen:
                assert not [view for view in events if isinstance(view, View) and view.left]
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    run(scenario())


async def read(group: Group, events: list[Event]) -> None:
    while batch := await group.receive():
        events += batch
