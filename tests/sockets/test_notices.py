"""Notices about members that delay a group, and the exclusion of a member that does not read."""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon import (
    Blocked,
    ConfigurationError,
    Degraded,
    Event,
    Excluded,
    Group,
    Member,
    Message,
    NotAMember,
    Total,
    View,
)
from antiphon.api.events import Transitional
from antiphon.api.notices import Notice, Notices
from antiphon.api.settings import settings
from antiphon.core.effects import Concern, ConcernReason
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.testing import Cluster, cluster, run
from antiphon.types import GroupId, ProcessId
from tests.support.loopback import join_all, members, on_loopback, read_on, until


@asynccontextmanager
async def read_by(groups: list[Group], seen: list[list[Event]]) -> AsyncIterator[None]:
    """Let these groups be read."""
    readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
    try:
        yield
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)


def notices(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, Blocked | Degraded)]


async def send_on(group: Group, pause_s: float = 0) -> None:
    while True:
        await group.send(b"x" * 100)
        await asyncio.sleep(pause_s)


async def read_to_the_end(group: Group, events: list[Event]) -> None:
    while more := await group.receive():
        events += more


@pytest.mark.parametrize(
    "chosen", [{}, {"service": Total(sequencer=True)}, {"flow_control": 1}, {"service": Total(safe=True)}]
)
@pytest.mark.parametrize("busy", [False, True])
def test_an_application_that_does_not_read_is_named_once_at_every_member(chosen: dict[str, Any], busy: bool) -> None:
    """Whether there is one message or an endless stream of them. The end of it is told once too."""

    async def scenario() -> None:
        async with cluster(3, seed=1, **chosen) as group_members:
            groups, stalled = [*group_members], group_members.members[2].id
            seen: list[list[Event]] = [[], [], []]
            async with read_by(groups[:2], seen[:2]):
                sender = asyncio.create_task(send_on(groups[0])) if busy else None
                await groups[1].send(b"message")
                await asyncio.sleep(20)
                assert [notices(events) for events in seen[:2]] == [[Blocked(by=stalled)]] * 2
                assert [group.health.blocked_by for group in groups] == [stalled] * 3
                if sender is not None:
                    sender.cancel()
                    await asyncio.wait([sender])
                async with read_by(groups[2:], seen[2:]):
                    await asyncio.sleep(20)
                    assert [notices(events) for events in seen] == [[Blocked(by=stalled), Blocked(by=None)]] * 3
                    assert [group.health.blocked_by for group in groups] == [None] * 3

    run(scenario())


def test_full_windows_alone_are_no_blockage() -> None:
    """All send as fast as they may, and all read: windows are full all the time, and no member blocks the group."""

    async def scenario() -> None:
        async with cluster(3, seed=2, window=2, frame_bytes=1_000, window_bytes=2_000) as group_members:
            seen: list[list[Event]] = [[], [], []]
            senders = [asyncio.create_task(send_on(group)) for group in group_members]
            async with read_by([*group_members], seen):
                await asyncio.sleep(5)
            for sender in senders:
                sender.cancel()
            await asyncio.wait(senders)
            assert len(seen[0]) > 1_000
            assert [notices(events) for events in seen] == [[], [], []]

    run(scenario())


def test_a_reader_that_died_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with cluster(3, seed=3) as group_members:
            seen: list[list[Event]] = [[], []]

            async def fragile() -> None:
                async for event in group_members[2]:
                    if isinstance(event, Message):
                        json.loads(event.payload)

            reader = asyncio.create_task(fragile())
            async with read_by([group_members[0], group_members[1]], seen):
                await group_members[0].send(b"no JSON")
                await asyncio.wait([reader])
                await group_members[0].send(b"2")
                await asyncio.sleep(3)
            health = group_members[2].health
            assert (health.reader_ended, health.unread > 0) == (True, True)
            assert health.blocked_by == group_members.members[2].id
            assert not group_members[0].health.reader_ended
            assert notices(seen[0]) == notices(seen[1]) == [Blocked(by=group_members.members[2].id)]
            assert isinstance(reader.exception(), ValueError)

    with caplog.at_level(logging.WARNING, "antiphon"):
        run(scenario())
    assert "group: the application of p3 does not read; all members wait for it; the task that read it has ended" in (
        caplog.messages
    )


def excluded(events: list[Event]) -> list[tuple[str, str]]:
    return [(each.process, each.reason) for event in events if isinstance(event, View) for each in event.left]


def test_the_setting_excludes_an_application_that_does_not_read_and_tells_it_why() -> None:
    async def scenario() -> None:
        async with cluster(3, seed=4, exclude_stalled_after=5, window=4) as group_members:
            groups, stalled = [*group_members], group_members.members[2].id
            seen: list[list[Event]] = [[], []]
            async with read_by(groups[:2], seen):
                sender = asyncio.create_task(send_on(groups[0], 0.01))
                await asyncio.sleep(4)
                assert all(len(group.health.members) == 3 for group in groups)
                await asyncio.sleep(6)
                assert [excluded(events) for events in seen] == [[(stalled, "stalled")]] * 2
                for events in seen:
                    assert [event for event in notices(events) if isinstance(event, Blocked)] == [
                        Blocked(by=stalled),
                        Blocked(by=None),
                    ]
                before = len(seen[1])
                await asyncio.sleep(0.2)
                assert len(seen[1]) > before  # the others go on
                sender.cancel()
                await asyncio.wait([sender])
            with pytest.raises(NotAMember, match="its application read nothing for"):
                await groups[2].send(b"late")
            read: list[Event] = []
            with pytest.raises(Excluded, match="this process was excluded from group: its application read nothing"):
                await read_to_the_end(groups[2], read)
            assert any(isinstance(event, Message) for event in read)  # earlier events can be read
            with pytest.raises(StopAsyncIteration):
                await anext(groups[2])
            back = await group_members.restart(2)
            await back.ready(3)

    run(scenario())


@on_loopback
async def test_on_sockets_too_a_member_that_does_not_read_is_excluded() -> None:
    async with members(3, exclude_stalled_after=0.8) as found:
        groups = await join_all(found)
        seen: list[list[Event]] = [[], []]
        async with read_by(groups[:2], seen):
            await groups[0].send(b"x")
            await until(lambda: all(excluded(events) == [(found[2].id, "stalled")] for events in seen))
        with pytest.raises(Excluded):
            await read_to_the_end(groups[2], [])


@on_loopback
async def test_where_all_groups_are_read_as_one_notices_and_the_exclusion_have_their_places() -> None:
    async with members(2, exclude_stalled_after=0.8) as found:
        everything = found[1].events()
        reading = asyncio.ensure_future(anext(everything))
        await asyncio.sleep(0)
        groups = await join_all(found)
        seen: list[list[Event]] = [[]]
        async with read_by(groups[:1], seen):
            await reading
            await groups[0].send(b"x")
            await until(lambda: excluded(seen[0]) == [(found[1].id, "stalled")])
        read: list[Event] = []

        async def read_all() -> None:
            async for _, event in everything:
                read.append(event)

        with pytest.raises(Excluded):
            await read_all()
        assert [event.payload for event in read if isinstance(event, Message)] == [b"x"]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"exclude_stalled_after": 0.2}, "at least suspect_after"),
        ({"exclude_stalled_after": -1}, "not negative"),
        ({"exclude_stalled_after": 5, "idle_probe": 0}, "needs idle_probe"),
        ({"exclude_stalled_after": 5, "flow_control": 0}, "needs idle_probe and flow_control"),
    ],
)
def test_a_limit_that_could_not_act_is_refused(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Member(**chosen)


def test_the_runtime_ends_members_that_are_heard_and_never_advance() -> None:
    """The effect is tested in `test_concerns.py`. The simulator does not set it, so campaigns see every standstill."""
    assert settings("lan", {}).core(datagrams=False, tracing=False).stuck_after_ns == 4_000_000_000
    assert NewtopSettings().stuck_after_ns == 0


# Grey failures


async def cut_one_way(seed: int) -> tuple[list[list[tuple[float, Event]]], list[tuple[Degraded, ...]], list[float]]:
    """p1 is not heard by p2 for six seconds; all send all the time."""
    loop = asyncio.get_running_loop()
    seen: list[list[tuple[float, Event]]] = [[], [], []]

    async def read(members: Cluster, place: int) -> None:
        async for event in members[place]:
            seen[place].append((round(loop.time(), 6), event))

    async with asyncio.TaskGroup() as tasks, cluster(3, seed=seed) as members:
        for place in range(3):
            tasks.create_task(read(members, place))
        members.cut(0, 1)
        for number in range(600):
            await members[number % 3].send(b"%d" % number)
            await asyncio.sleep(0.01)
        health = [group.health.degraded for group in members]
        arrivals = [at for at, event in seen[1] if isinstance(event, Message)]
        members.heal()
        await asyncio.sleep(15)
        assert [group.health.degraded for group in members] == [(), (), ()]
        await members[0].send(b"whole")
        await asyncio.sleep(1)
    return seen, health, arrivals


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_in_one_direction_is_reported_at_both_ends_and_its_end_too(seed: int) -> None:
    """Deliveries arrive in batches, because p2 gets p1's frames only through others. Earlier this was not reported."""
    seen, health, arrivals = run(cut_one_way(seed))
    assert max(later - earlier for earlier, later in itertools.pairwise(arrivals)) > 0.5
    assert Degraded(ProcessId("p2"), "deaf") in health[0]
    assert Degraded(ProcessId("p1"), "relayed") in health[1]
    assert Degraded(ProcessId("p2"), "lagging") in health[2]
    for place, member, reason in ((0, "p2", "deaf"), (1, "p1", "relayed")):
        told = [event for _, event in seen[place] if isinstance(event, Degraded) and event.reason == reason]
        assert told == [Degraded(ProcessId(member), reason), Degraded(ProcessId(member), reason, over=True)]
    for place in range(3):  # one event when it begins, one when it is over, though it comes and goes
        lags = [event for _, event in seen[place] if isinstance(event, Degraded) and event.reason == "lagging"]
        assert [event.over for event in lags] == [False, True]


def test_a_cut_in_one_direction_gives_the_same_events_with_the_same_seed() -> None:
    assert run(cut_one_way(7)) == run(cut_one_way(7))


def test_a_pause_that_is_too_short_for_a_suspicion_is_a_lag() -> None:
    async def scenario() -> None:
        async with cluster(3, seed=6, suspect_after=2) as group_members:
            seen: list[list[Event]] = [[], [], []]
            async with read_by([*group_members], seen):
                group_members.pause(2)
                await group_members[0].send(b"x")
                await asyncio.sleep(1.8)
                group_members.resume(2)
                await asyncio.sleep(15)
            lag = Degraded(group_members.members[2].id, "lagging")
            for events in seen[:2]:
                assert notices(events) == [lag, Degraded(lag.member, lag.reason, over=True)]
            assert not excluded(seen[0])

    run(scenario())


def test_only_two_members_counted_from_0_can_be_cut() -> None:
    async def scenario() -> None:
        async with cluster(2) as group_members:
            for pair in ((0, 0), (0, 2), (-1, 0)):
                with pytest.raises(ConfigurationError, match="are not two members"):
                    group_members.cut(*pair)

    run(scenario())


# Notices that wait to be read


def concern(member: str, reason: ConcernReason, *, over: bool = False) -> Concern:
    return Concern(GroupId("orders"), ProcessId(member), reason, over)


def test_an_application_that_does_not_read_finds_one_notice_of_each_kind() -> None:
    waiting: list[Notice] = []
    found = Notices("orders", waiting.append)
    for _ in range(1_000):
        for over in (False, True):
            found.note(concern("a", "stalled", over=over))
            found.note(concern("b", "deaf", over=over))
    found.note(concern("c", "stalled"))
    assert len(waiting) == 2
    assert [found.read(notice) for notice in waiting] == [Blocked(by=ProcessId("c")), None]


def test_a_blockage_by_two_members_names_one_of_them_until_it_is_over_there() -> None:
    waiting: list[Notice] = []
    found = Notices("orders", waiting.append)
    told: list[Event | None] = []
    for each in (
        concern("b", "blocking"),
        concern("a", "stalled"),
        concern("b", "stalled"),
        concern("b", "blocking", over=True),
        concern("b", "stalled", over=True),
        concern("a", "stalled", over=True),
    ):
        found.note(each)
        told += map(found.read, waiting)
        waiting.clear()
    assert told == [Blocked(by=ProcessId("b")), Blocked(by=ProcessId("a")), Blocked(by=None)]


def test_concerns_about_a_member_end_when_it_is_gone() -> None:
    waiting: list[Notice] = []
    found = Notices("orders", waiting.append)
    found.note(concern("a", "deaf"))
    found.note(concern("b", "stalled"))
    told = [*map(found.read, waiting)]
    waiting.clear()
    found.keep((ProcessId("c"),))
    assert told == [Degraded(ProcessId("a"), "deaf"), Blocked(by=ProcessId("b"))]
    ended = [*map(found.read, waiting)]
    assert ended == [Degraded(ProcessId("a"), "deaf", over=True), Blocked(by=None)]
    assert (found.blocked_by, found.degraded) == (None, ())


# A join is not a failure


@pytest.mark.parametrize("seed", range(5))
def test_a_process_that_joins_makes_no_transitional_event(seed: int) -> None:
    """Members go over to the next view one after the other: to the last one the others seem to leave."""

    async def scenario() -> None:
        async with cluster(3, seed=seed) as group_members:
            await group_members[2].leave()
            await group_members[0].ready(2)
            seen: list[list[Event]] = [[], []]
            async with read_by([group_members[0], group_members[1]], seen):
                await asyncio.sleep(1)
                begun = [len(events) for events in seen]
                late = await group_members.restart(2)
                await late.ready(3)
                await asyncio.sleep(1)
                for events, begin in zip(seen, begun, strict=True):
                    kinds = [type(event) for event in events[begin:]]
                    assert (kinds[0], kinds.count(Transitional)) == (View, 0)
                await group_members.crash(2)
                await asyncio.sleep(3)
                for events, begin in zip(seen, begun, strict=True):
                    assert [type(event) for event in events[begin:]].count(Transitional) == 1

    run(scenario())
