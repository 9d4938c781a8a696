"""Views that applications accept before they begin: `Total(views="closed", accept=True)` (docs/spec/newtop.md 9.6)."""

import asyncio

import pytest

from antiphon import Blocked, Event, Excluded, Group, Message, Total, Transitional, View
from antiphon.testing import cluster, run
from tests.support.loopback import names, take_until, take_view, until

ACCEPTED = Total(views="closed", accept=True)


async def take_notice(group: Group) -> Transitional:
    """The next notice that a view is about to begin."""
    (*_, notice) = await take_until(group, lambda events: bool(events) and isinstance(events[-1], Transitional))
    assert isinstance(notice, Transitional)
    return notice


async def accept_all(group: Group, seen: list[Event]) -> None:
    """An application that reads everything and accepts every view."""
    async for event in group:
        seen.append(event)
        if isinstance(event, Transitional):
            await event.accept()


def test_a_view_begins_when_every_application_has_accepted_it() -> None:
    async def scenario() -> None:
        async with cluster(3, service=ACCEPTED) as group:
            await take_view(group[0])
            await group.crash(2)
            notices = [await take_notice(group[place]) for place in (0, 1)]
            assert [names(notice.members) for notice in notices] == [["p1", "p2"]] * 2
            sending = asyncio.create_task(group[0].send(b"in the next view"))
            await notices[0].accept()
            await asyncio.sleep(20)
            assert [len(group[place].health.members) for place in (0, 1)] == [3, 3]
            assert [names((group[place].health.blocked_by or "",)) for place in (0, 1)] == [["p2"], ["p2"]]  # type: ignore[arg-type]
            (*_, blocked) = await take_until(group[0], lambda events: bool(events) and isinstance(events[-1], Blocked))
            assert isinstance(blocked, Blocked)
            assert blocked.by == group[1].me
            await notices[1].accept()
            await notices[1].accept()  # again: nothing happens
            for place in (0, 1):
                events = await take_until(group[place], lambda seen: any(isinstance(each, Message) for each in seen))
                kinds = [type(each) for each in events if isinstance(each, View | Message)]
                assert kinds == [View, Message]
            await sending

    run(scenario(), limit_s=200)


def test_a_process_joins_only_after_the_view_before_is_accepted() -> None:
    async def scenario() -> None:
        async with cluster(3, service=ACCEPTED) as group:
            await take_view(group[0])
            await group.crash(2)
            notices = [await take_notice(group[place]) for place in (0, 1)]
            joining = asyncio.create_task(group.restart(2))
            await asyncio.sleep(20)
            assert not joining.done()
            reading = [asyncio.create_task(accept_all(group[place], [])) for place in (0, 1)]
            for notice in notices:
                await notice.accept()
            await joining
            await group[2].ready(3)
            for task in reading:
                task.cancel()

    run(scenario(), limit_s=200)


@pytest.mark.parametrize("reads", [True, False])
def test_an_application_that_never_accepts_is_excluded(reads: bool) -> None:
    """`exclude_stalled_after` counts from the agreement, whether the application reads the notice or not."""

    async def scenario() -> None:
        async with cluster(3, service=ACCEPTED, exclude_stalled_after=5) as group:
            seen: list[Event] = []
            reading = asyncio.create_task(accept_all(group[0], seen))
            await take_view(group[1], lambda view: len(view.members) == 3)
            await group.crash(2)
            if reads:
                await take_notice(group[1])
            await until(lambda: any(isinstance(each, View) and names(each.members) == ["p1"] for each in seen))
            (last,) = [each for each in seen if isinstance(each, View) and names(each.members) == ["p1"]]
            assert [(names((left.process,)), left.reason) for left in last.left if left.process != group[2].me] == [
                (["p2"], "stalled")
            ]
            with pytest.raises(Excluded, match="its application accepted no view for 5"):
                async for _ in group[1]:
                    pass
            reading.cancel()

    run(scenario(), limit_s=200)


def test_members_that_fail_one_after_the_other_are_accepted_together_or_apart() -> None:
    async def scenario() -> None:
        async with cluster(4, service=ACCEPTED) as group:
            seen: list[Event] = []
            reading = asyncio.create_task(accept_all(group[0], seen))
            await take_view(group[1], lambda view: len(view.members) == 4)
            await group.crash(3)
            await take_notice(group[1])
            await group.crash(2)
            second = await take_notice(group[1])
            assert names(second.members) == ["p1", "p2"]
            await second.accept()  # it covers the first one
            await take_view(group[1], lambda view: names(view.members) == ["p1", "p2"])
            reading.cancel()

    run(scenario(), limit_s=200)


def test_a_joiner_that_is_cut_off_before_it_has_its_state_is_not_asked() -> None:
    """Its application reads nothing before the state, and the state is lost only with the view."""

    async def scenario() -> None:
        async with cluster(2, service=ACCEPTED, snapshots=[lambda: bytes(5_000_000), bytes]) as group:
            await take_view(group[0])
            await group.crash(1)
            reading = asyncio.create_task(accept_all(group[0], []))
            again = await group.restart(1)
            assert again.health.receiving is not None
            group.partition([[0], [1]])
            await take_view(again, lambda view: names(view.members) == ["p2"])
            reading.cancel()

    run(scenario(), limit_s=200)


def test_elsewhere_there_is_nothing_to_accept() -> None:
    async def scenario() -> None:
        async with cluster(2, service=Total(views="closed")) as group:
            await group.crash(1)
            notice = await take_notice(group[0])
            await notice.accept()
            await take_view(group[0], lambda view: len(view.members) == 1)

    run(scenario(), limit_s=200)
