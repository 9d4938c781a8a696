"""Several members in one event loop, on TCP at the loopback address; every wait is bounded."""

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import antiphon
from antiphon import Event, Group, Member, Message, Primary, View

Result = TypeVar("Result")
DEADLINE_S = 60
"""For a whole test; a busy machine needs several times as long as an idle one."""
FAST: dict[str, Any] = {"suspect_after": 0.4, "idle_probe": 0.6, "merge_every": 0.8}
"""Short enough for tests. Long enough for a busy machine: all members share one event loop, which may stand still."""


def on_loopback(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that is a coroutine; when it is over, no task is left, and no callback has failed."""

    async def bounded() -> None:
        failed: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        async with asyncio.timeout(DEADLINE_S):
            await scenario()
            await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
        assert not failed

    @functools.wraps(scenario)
    def test() -> None:
        asyncio.run(bounded())

    return test


@asynccontextmanager
async def members(count: int, **chosen: Any) -> AsyncIterator[list[Member]]:
    """p1 … pn; all except the first know only the address of the first."""
    async with AsyncExitStack() as stack:
        found: list[Member] = []
        for number in range(1, count + 1):
            seeds = [found[0].address] if found else []
            member = Member(name=f"p{number}", peers=seeds, **{**FAST, **chosen})
            found.append(await stack.enter_async_context(member))
        yield found


async def join_all(found: list[Member], name: str = "orders") -> list[Group]:
    """All of them in one view."""
    groups = await asyncio.gather(*(member.join(name) for member in found))
    await asyncio.gather(*(group.ready(len(found)) for group in groups))
    return groups


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


async def take_until(group: Group, enough: Callable[[list[Event]], bool]) -> list[Event]:
    """Events from the group's stream, until there are enough."""
    events: list[Event] = []
    while not enough(events):
        events.append(await anext(group))
    return events


async def take_messages(group: Group, count: int) -> list[Message]:
    return messages(await take_until(group, lambda events: len(messages(events)) >= count))


async def take_each(groups: Iterable[Group], count: int) -> list[list[Message]]:
    """The same number of messages at all of them."""
    return await asyncio.gather(*(take_messages(group, count) for group in groups))


async def read_on(group: Group, seen: list[Event]) -> None:
    while events := await group.receive():
        seen += events


async def deliver_at_all(groups: list[Group], seen: list[list[Event]], payload: bytes) -> None:
    """A message of each member arrives at all of them; `seen` grows meanwhile.

    A busy machine may separate members for a while. What they send then is not for all, so they send again.
    """
    for attempt in itertools.count():
        await asyncio.gather(*(group.ready(len(groups)) for group in groups))
        views = [count_views(events) for events in seen]
        sent = {payload + b" %d of %d" % (attempt, number): group for number, group in enumerate(groups)}
        for text, group in sent.items():
            await group.send(text)
        arrived = functools.partial(_hold_all, seen, {*sent})
        await until(lambda: arrived() or views != [count_views(events) for events in seen])  # noqa: B023
        if arrived():
            return


def count_views(events: list[Event]) -> int:
    return sum(isinstance(event, View) for event in events)


def _hold_all(seen: list[list[Event]], expected: set[bytes]) -> bool:
    return all(expected <= {*payloads(events)} for events in seen)


def fill(group: Group, payload: bytes) -> int:
    """Send this until flow control says no; gives how often."""
    for count in itertools.count():
        try:
            group.try_send(payload)
        except antiphon.FlowBlocked:
            return count
    raise AssertionError


async def take_view(group: Group, holds: Callable[[View], bool] = bool) -> View:
    """The next view for which this holds."""
    async for event in group:
        if isinstance(event, View) and holds(event):
            return event
    raise AssertionError("the stream ended before that view")


async def take_primary(group: Group, view: antiphon.ViewId) -> Primary:
    """The event that says that this view is primary."""
    async for event in group:
        if isinstance(event, Primary) and event.view == view:
            assert group.primary
            return event
    raise AssertionError("the stream ended before that view was primary")


def messages(events: list[Event]) -> list[Message]:
    return [event for event in events if isinstance(event, Message)]


def payloads(events: list[Event]) -> list[bytes]:
    return [message.payload for message in messages(events)]


def name(process: antiphon.ProcessId) -> str:
    return process.partition("#")[0]


def names(processes: tuple[antiphon.ProcessId, ...]) -> list[str]:
    return [name(process) for process in processes]


async def cancel_at(step: int, work: Awaitable[Result]) -> list[Result]:
    """Run it for this many rounds of the event loop, then cancel it; returns its result, or nothing."""
    task = asyncio.ensure_future(work)
    for _ in range(step):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return [] if task.cancelled() else [task.result()]
