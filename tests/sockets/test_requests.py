"""`group.ask` and `request.answer`: in virtual time, and on sockets with a trace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon import (
    All,
    AnswersLate,
    AskerLeft,
    Available,
    ConfigurationError,
    First,
    FlowBlocked,
    Group,
    Majority,
    Message,
    NotAMember,
    Request,
    RequestFailed,
    TooFewMembers,
    Total,
)
from antiphon import (
    Any as AnyOne,
)
from antiphon.api import asking
from antiphon.core import query_room
from antiphon.testing import Cluster, cluster, run
from tests.support.loopback import DEADLINE_S, join_all, members
from tests.support.traced import judged


class Service:
    """Answers requests with its name and what it was asked; notes what it got."""

    def __init__(self, group: Group, *, answers: bool = True, ordered: bool = False) -> None:
        self.group = group
        self.answers, self.ordered = answers, ordered
        self.requests: list[Request] = []
        self.messages: list[Message] = []
        self.events: list[Request | Message] = []

    async def serve(self) -> None:
        async for event in self.group:
            if isinstance(event, Request | Message):
                self.events.append(event)
            if isinstance(event, Request):
                self.requests.append(event)
                if self.answers:
                    await event.answer(self.group.me.encode() + b":" + event.payload, ordered=self.ordered)
            elif isinstance(event, Message):
                self.messages.append(event)


@asynccontextmanager
async def served(size: int = 3, seed: int = 1, **settings: Any) -> AsyncIterator[tuple[Cluster, list[Service]]]:
    async with cluster(size, seed=seed, **settings) as found:
        services = [Service(group) for group in found]
        tasks = [asyncio.create_task(service.serve()) for service in services]
        yield found, services
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def senders(answers: tuple[Any, ...]) -> list[str]:
    return sorted(answer.sender for answer in answers)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_each_number_of_answers() -> None:
    async def scenario() -> None:
        async with served() as (found, _):
            group = found[0]
            assert len(await group.ask(b"?", answers=First())) == 1
            assert len(await group.ask(b"?", answers=Majority())) >= 2
            every = await group.ask(b"?", answers=All())
            assert {(answer.sender, answer.payload) for answer in every} == {
                (each.me, each.me.encode() + b":?") for each in found
            }
            assert senders(await group.ask(b"?", answers=Available(), within=1)) == ["p1", "p2", "p3"]
            asked = {(await group.ask(b"?", answers=AnyOne()))[0].sender for _ in range(6)}
            assert asked == {"p1", "p2", "p3"}

    run(scenario())


def test_requests_and_messages_have_one_order() -> None:
    async def scenario() -> None:
        async with served() as (found, services):
            await found[1].send(b"before")
            await found[1].ask(b"?", answers=All())
            await found[1].send(b"after")
            services[2].ordered = True
            await found[0].ask(b"!", answers=All())
            await until(lambda: all(len(service.messages) == 3 for service in services))
            assert [[m.payload for m in service.messages] for service in services] == [
                [b"before", b"after", b"p3:!"]
            ] * 3
            assert {(r.sender, r.payload, r.in_order) for r in services[0].requests} == {
                ("p2", b"?", True),
                ("p1", b"!", True),
            }

    run(scenario())


def test_an_application_that_answers_nothing_costs_the_deadline() -> None:
    async def scenario() -> None:
        async with served() as (found, services):
            for service in services:
                service.answers = service is services[2]
            began = asyncio.get_running_loop().time()
            with pytest.raises(AnswersLate, match=r"1 members of group have answered within 2 seconds") as caught:
                await found[0].ask(b"?", answers=All(), within=2)
            assert asyncio.get_running_loop().time() - began == pytest.approx(2, abs=0.01)
            assert caught.value.answers == (("p3", b"p3:?"),)
            assert senders(await found[0].ask(b"?", answers=Available(), within=2)) == ["p3"]
            services[2].answers = False
            assert await found[0].ask(b"?", answers=Available(), within=2) == ()
            with pytest.raises(AnswersLate):
                await found[0].ask(b"?", answers=AnyOne(), within=2)
            await services[0].requests[0].answer(b"late")
            await services[1].requests[0].answer(b"late", ordered=True)
            await until(lambda: bool(services[0].messages))

    run(scenario())


def test_members_that_fail_leave_or_pause_end_a_request() -> None:
    async def scenario() -> None:
        async with served(5) as (found, services):
            for service in services:
                service.answers = False
            waiting = [
                asyncio.create_task(found[0].ask(b"?", answers=answers, within=60))
                for answers in (All(), Majority(), First())
            ]
            await until(lambda: all(len(service.requests) == 3 for service in services))
            await found.crash(4)
            await found[3].leave()
            await found.crash(2, silent=True)
            with pytest.raises(TooFewMembers, match="too few members of group are left"):
                await waiting[1]
            for request in services[0].requests + services[1].requests[:1]:
                await request.answer(b"here")
            assert senders(await waiting[0]) == ["p1", "p2"]
            assert senders(await waiting[2]) == ["p1"]

    run(scenario())


def test_a_partition_and_a_merge() -> None:
    async def scenario() -> None:
        async with served(5) as (found, services):
            services[4].answers = False
            lasting = asyncio.create_task(found[0].ask(b"?", answers=All(), within=60))
            await until(lambda: bool(services[4].requests))
            found.partition([[0, 1, 2], [3, 4]])
            assert senders(await lasting) == ["p1", "p2", "p3", "p4"]
            services[3].answers = services[4].answers = True
            assert senders(await found[3].ask(b"?", answers=Majority(), within=30)) == ["p4", "p5"]
            found.heal()
            await asyncio.gather(*(group.ready(5) for group in found))
            assert len(await found[4].ask(b"?", answers=All(), within=30)) == 5

    run(scenario())


def test_leaving_ends_requests_with_an_error() -> None:
    async def scenario() -> None:
        async with served() as (found, services):
            for service in services:
                service.answers = False
            waiting = asyncio.create_task(found[0].ask(b"?", answers=All()))
            await until(lambda: bool(services[1].requests))
            await found[0].leave()
            with pytest.raises(AskerLeft) as caught:
                await waiting
            assert isinstance(caught.value, NotAMember)
            assert isinstance(caught.value, RequestFailed)
            for answers in (First(), AnyOne()):
                with pytest.raises(AskerLeft, match="this process has left group"):
                    await found[0].ask(b"?", answers=answers)
            await services[1].requests[0].answer(b"too late")
            for request in services[0].requests:  # it may be in the group again when the application answers
                with pytest.raises(NotAMember):
                    await request.answer(b"of a stay that has ended")
            assert services[0].requests
            crashing = asyncio.create_task(found[1].ask(b"?", answers=All()))
            await asyncio.sleep(0)
            await found.crash(1)
            with pytest.raises(AskerLeft):
                await crashing

    run(scenario())


def test_cancelling_frees_everything() -> None:
    async def scenario() -> None:
        async with served() as (found, services):
            for service in services:
                service.answers = False
            for answers in (All(), AnyOne()):
                waiting = asyncio.create_task(found[0].ask(b"?", answers=answers))
                await asyncio.sleep(0.5)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            part = found[0]._asking
            assert not part._open
            assert not part._admitted
            core = found[0]._member.core
            assert core.withdraw(found[0]._id, 0, 0) == ()  # type: ignore[attr-defined]

    run(scenario())


def test_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "OUTSTANDING_MAX", 2)
    monkeypatch.setattr(query_room, "_COUNT_MAX", 3)

    async def scenario() -> None:
        async with cluster(2, seed=3) as found:
            waiting = [asyncio.create_task(found[0].ask(b"?", answers=AnyOne(), within=90)) for _ in range(2)]
            await asyncio.sleep(60)
            with pytest.raises(FlowBlocked, match="2 requests to group wait for answers"):
                await found[0].ask(b"?", answers=First())
            unread = [event for event in await found[1].receive() if isinstance(event, Request)]
            assert len(unread) == 3
            for request in unread:
                assert not request.in_order
                await request.answer(b"!")
            assert [senders(await each) for each in waiting] == [["p2"]] * 2

    run(scenario())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"answers": "all"}, "answers must be First"),
        ({"answers": All}, "answers must be First"),
        ({"answers": All(), "within": 0}, "within must be a number of seconds above 0"),
        ({"answers": All(), "within": True}, "within must be"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, Any], message: str) -> None:
    async def scenario() -> None:
        async with cluster(2, seed=1) as found:
            with pytest.raises(ConfigurationError, match=message):
                await found[0].ask(b"?", **wrong)
            with pytest.raises(ConfigurationError, match="a message is bytes"):
                await found[0].ask("?", answers=All())  # type: ignore[arg-type]

    run(scenario())


async def ask_on_sockets(trace: Path, **settings: Any) -> None:
    async with asyncio.timeout(DEADLINE_S), members(3, trace=trace, **settings) as found:
        groups = await join_all(found)
        services = [Service(group, ordered=group is groups[1]) for group in groups]
        tasks = [asyncio.create_task(service.serve()) for service in services]
        for group in groups:
            for answers in (First(), Majority(), All(), Available(), AnyOne()):
                assert await group.ask(b"x" * 20_000, answers=answers, within=DEADLINE_S)
        services[0].answers = services[1].answers = services[2].answers = False
        waiting = asyncio.create_task(groups[0].ask(b"?", answers=All(), within=DEADLINE_S))
        await until(lambda: all(service.requests[-1].payload == b"?" for service in services))
        await groups[2].leave()
        for service in services[:2]:
            await service.requests[-1].answer(b"!")
        assert len(await waiting) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("settings", [{}, {"transport": "udp", "service": Total(safe=True)}], ids=["tcp", "udp"])
def test_requests_on_sockets_are_judged(tmp_path: Path, settings: dict[str, Any]) -> None:
    asyncio.run(ask_on_sockets(tmp_path / "run", **settings))
    assert judged(tmp_path / "run")["D14"].opportunities >= 12


def test_what_goes_outside_the_order_is_small() -> None:
    async def scenario() -> None:
        async with served(2) as (found, services):
            for service in services:
                service.answers = False
            with pytest.raises(ConfigurationError, match=r"a request of Any\(\) with 65,537 bytes .*; use First\(\)"):
                await found[0].ask(bytes(65_537), answers=AnyOne())
            asked = asyncio.create_task(found[0].ask(bytes(65_537), answers=All()))
            await until(lambda: all(service.requests for service in services))
            with pytest.raises(ConfigurationError, match=r"an answer with 65,537 bytes .*; use ordered=True"):
                await services[0].requests[0].answer(bytes(65_537))
            await services[0].requests[0].answer(bytes(65_536))
            await services[1].requests[0].answer(bytes(65_537), ordered=True)
            assert [len(answer.payload) for answer in sorted(await asked)] == [65_536, 65_537]

    run(scenario())


def test_unread_queries_are_bounded_by_their_bytes() -> None:
    async def scenario() -> None:
        async with cluster(2, seed=1) as found:
            calls = (found[0].ask(bytes(65_536), answers=AnyOne(), within=1) for _ in range(200))
            assert {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)} == {AnswersLate}
            for group in found:
                unread = [event for event in await group.receive() if isinstance(event, Request)]
                assert sum(len(request.payload) for request in unread) == 1 << 22

    run(scenario())


def test_a_request_that_waited_for_room_keeps_its_place() -> None:
    """It is admitted in one turn and goes on in a later one; a message that is sent between comes first."""

    async def scenario() -> None:
        async with served(2) as (found, services):
            group, outgoing = found[0], found[0]._outgoing
            await group.send(b"first")
            await until(lambda: bool(services[0].messages))
            asked: asyncio.Task[Any] = asyncio.create_task(group.ask(b"?", answers=All()))
            outgoing._admitted = 1  # as if another sender came before
            await asyncio.sleep(0)
            assert outgoing._senders
            outgoing._admitted = 0
            outgoing.turned()
            outgoing.credit, outgoing.credit_bytes, outgoing.blocked_by = 1, 256, found[1].me
            await group.send(b"between")
            await asked
            await group.send(b"last")
            await until(lambda: len(services[1].messages) == 3)
            order = [event.payload for event in services[1].events]
            assert order == [b"first", b"between", b"?", b"last"]

    run(scenario())


def test_leaving_ends_a_request_that_waits_for_room() -> None:
    async def scenario() -> None:
        async with served(2) as (found, _):
            found[0]._outgoing._admitted = 1  # as if another sender came before
            asked = asyncio.create_task(found[0].ask(b"?", answers=All()))
            await asyncio.sleep(0)
            assert found[0]._outgoing._senders
            found[0].depart()
            with pytest.raises(AskerLeft):
                await asked

    run(scenario())
