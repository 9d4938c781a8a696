"""States in pieces: read while they are transmitted, taken over by another donor, with progress at both ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon import ConfigurationError, Group, Message, Progress, Reset, Total, View
from antiphon.testing import Cluster, cluster, run
from tests.support.loopback import members as on_tcp
from tests.support.loopback import on_loopback, until

ROWS = [b"row %d of a table; " % number * 5 for number in range(2_000)]
WHOLE = b"".join(ROWS)
SMALL: dict[str, Any] = {"frame_bytes": 1_000, "window_bytes": 4_000}
"""So that a state takes many rounds."""


class Table:
    """An application that hands over its state row by row; `at` maps a row to an action of the test."""

    def __init__(self) -> None:
        self.state = b""
        self.messages: list[bytes] = []
        self.at: dict[int, Callable[[], object]] = {}
        self.asked = self.begun = self.ended = 0
        self.error: BaseException | None = None
        self.resets: list[Reset] = []
        self.reading: asyncio.Task[None] | None = None

    def rows(self) -> Iterator[bytes]:
        self.begun += 1
        try:
            for number, row in enumerate(ROWS):
                if number in self.at:
                    self.at.pop(number)()
                self.asked += 1
                yield row
        finally:
            self.ended += 1

    async def follow(self, group: Group) -> None:
        try:
            while events := await group.receive():
                for event in events:
                    if isinstance(event, Reset):
                        self.resets.append(event)
                        self.state = b"".join(event.states)
                    elif isinstance(event, Message):
                        self.messages.append(event.payload)
        except (RuntimeError, ConfigurationError) as error:
            self.error = error


@asynccontextmanager
async def three(tables: list[Table], **chosen: Any) -> AsyncIterator[Cluster]:
    """Members that read, in virtual time."""
    snapshots = [table.rows for table in tables]
    async with (
        asyncio.TaskGroup() as tasks,
        cluster(len(tables), snapshots=snapshots, **{**SMALL, **chosen}) as members,
    ):
        for group, table in zip(members, tables, strict=True):
            tasks.create_task(table.follow(group))
        yield members


async def restarted(members: Cluster, place: int) -> Table:
    """Restart a member; return the table of its new application."""
    table = Table()
    table.reading = asyncio.create_task(table.follow(await members.restart(place)))
    return table


def soon(work: Any) -> Callable[[], None]:
    """Return a function that starts the coroutine as a task."""
    begun: set[asyncio.Task[None]] = set()
    return lambda: begun.add(asyncio.get_running_loop().create_task(work()))


@pytest.mark.parametrize(
    "chosen",
    [{}, {"service": Total(safe=True)}, {"service": Total(sequencer=True)}, {"flow_control": 0}, {"flow_control": 1}],
    ids=str,
)
def test_a_state_in_pieces_is_told_by_one_member_and_complete_at_the_joiner(chosen: dict[str, Any]) -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(3)]
        async with three(tables, **chosen) as members:
            joiner = await restarted(members, 2)
            for number in range(20):
                await members[1].send(b"%d" % number)
                await asyncio.sleep(0.01)
            await until(lambda: joiner.state == WHOLE)
            await until(lambda: len(tables[0].messages) == 20)
            assert [table.begun for table in tables[:2]] == [1, 0]
            assert tables[0].ended == 1
            assert joiner.messages == tables[0].messages

    run(scenario())


def test_both_ends_know_how_far_a_state_is() -> None:
    async def scenario() -> None:
        seen: dict[str, list[Progress | None]] = {"sent": [], "come": []}
        snapshots = [lambda: WHOLE] * 2
        tables = [Table() for _ in range(2)]
        async with asyncio.TaskGroup() as tasks, cluster(2, snapshots=snapshots, **SMALL) as members:
            tasks.create_task(tables[0].follow(members[0]))
            assert members[0].health.sending is members[0].health.receiving is None
            joiner = await restarted(members, 1)
            while not joiner.state:
                seen["sent"].append(members[0].health.sending)
                seen["come"].append(members[1].health.receiving)
                await asyncio.sleep(0.001)
            await until(lambda: members[0].health.sending is None)
            assert members[1].health.receiving is members[1].health.sending is None
        for progress in seen.values():
            known = [each for each in progress if each is not None and each.done]
            assert len(known) > 20
            assert {each.total for each in known} == {len(WHOLE)}
            assert known == sorted(known, key=lambda each: each.done)
            assert known[-1].done <= len(WHOLE)

    run(scenario())


def test_the_size_of_a_state_that_is_made_while_it_leaves_is_unknown() -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(2)]
        seen: list[Progress | None] = []
        async with three(tables) as members:
            tables[0].at[1_000] = lambda: seen.extend((members[0].health.sending, members[1].health.receiving))
            joiner = await restarted(members, 1)
            await until(lambda: joiner.state == WHOLE)
        sent, come = seen
        assert sent is not None
        assert come is not None
        assert sent.total is come.total is None
        assert 0 < come.done <= sent.done

    run(scenario())


@on_loopback
async def test_a_donor_reads_no_further_ahead_than_the_window() -> None:
    async with on_tcp(2, **SMALL) as (donor, late):
        ahead: list[int] = []
        read = 0

        def rows() -> Iterator[bytes]:
            nonlocal read
            for row in ROWS:
                joiner = late._process.find("orders")
                come = None if joiner is None else joiner.health.receiving
                ahead.append(read - (come.done if come is not None else 0))
                read += len(row)
                yield row

        table, joined = Table(), Table()
        async with asyncio.TaskGroup() as tasks:
            first = await donor.join("orders", snapshot=rows)
            tasks.create_task(table.follow(first))
            second = await late.join("orders", snapshot=rows)
            tasks.create_task(joined.follow(second))
            await until(lambda: joined.state == WHOLE)
            assert max(ahead) <= SMALL["window_bytes"] + 3 * SMALL["frame_bytes"]
            await first.leave()
            await second.leave()


@on_loopback
async def test_a_state_is_larger_than_any_message_while_others_send() -> None:
    async with on_tcp(3, suspect_after=2.0, merge_every=2.0) as found:
        piece, pieces = bytes(range(256)) * 1_000, 1
        tables = [Table() for _ in found]
        async with asyncio.TaskGroup() as tasks:
            groups: list[Group] = []

            async def enter(place: int) -> None:
                groups.append(await found[place].join("orders", snapshot=lambda: (piece for _ in range(pieces))))
                tasks.create_task(tables[place].follow(groups[place]))

            await enter(0)
            await enter(1)
            await until(lambda: tables[1].state == piece)  # a joiner that comes earlier has to wait
            pieces, number = 80, 0
            await enter(2)
            while not tables[2].state:
                await groups[1].send(b"%d" % number)
                await asyncio.sleep(0)
                number += 1
            await groups[1].send(b"end")
            await until(lambda: all(b"end" in table.messages for table in tables))
            for group in groups:
                await group.leave()
        assert tables[2].state == piece * pieces
        assert tables[0].messages[-len(tables[2].messages) :] == tables[2].messages
        assert len(tables[0].messages) == number + 1


def test_when_the_donor_dies_in_the_middle_the_next_one_starts_over() -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(3)]
        async with three(tables) as members:
            before: list[Progress | None] = []

            def die() -> None:
                before.append(members[2].health.receiving)
                soon(lambda: members.crash(0))()

            tables[0].at[1_000] = die
            joiner = await restarted(members, 2)
            await until(lambda: joiner.state == WHOLE)
            assert before[0] is not None
            assert before[0].done > 0
            assert tables[0].asked < len(ROWS)
            assert tables[0].ended == 1
            assert tables[1].asked == len(ROWS)
            assert len(joiner.resets) == 1

    run(scenario())


def test_when_the_joiner_dies_in_the_middle_the_donor_goes_on_and_the_next_joiner_is_told() -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(3)]
        async with three(tables) as members:
            tables[0].at[1_000] = soon(lambda: members.crash(2))
            await restarted(members, 2)
            await members[0].send(b"after it")
            await until(lambda: tables[0].messages == [b"after it"])
            assert members[0].health.sending is None
            joiner = await restarted(members, 2)
            await until(lambda: joiner.state == WHOLE)
            assert tables[0].begun == tables[0].ended == 2

    run(scenario())


def test_a_donor_whose_pieces_end_in_an_error_is_told_so_and_leaves_and_the_next_one_starts_over() -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(3)]

        def fail() -> None:
            raise RuntimeError("the disk is gone")

        async with three(tables) as members:
            tables[0].at[1_000] = fail
            joiner = await restarted(members, 2)
            await until(lambda: joiner.state == WHOLE)
            assert str(tables[0].error) == "the disk is gone"
            assert tables[0].asked == 1_000
            assert tables[1].asked == len(ROWS)
            await until(lambda: members[1].health.members == ("p2", "p3#1"))
            await members[1].send(b"on we go")
            await until(lambda: joiner.messages == [b"on we go"])

    run(scenario())


def test_a_snapshot_that_raises_does_so_where_the_application_reads() -> None:
    async def scenario() -> None:
        def fails() -> bytes:
            raise RuntimeError("no state today")

        async with cluster(2, snapshots=[fails, lambda: b"never asked"], **SMALL) as members:
            await members.crash(1)
            joining = asyncio.create_task(members.restart(1))
            with pytest.raises(RuntimeError, match="no state today"):
                async for _ in members[0]:
                    pass
            resets = [event async for event in until_alone(await joining) if isinstance(event, Reset)]
            assert resets == [Reset(states=(), own=None)]  # no member is left that has the state

    run(scenario())


@on_loopback
async def test_an_error_in_the_middle_reaches_a_reader_of_all_groups() -> None:
    def rows() -> Iterator[bytes]:
        yield from ROWS[:500]
        raise RuntimeError("the disk is gone")

    async def read(events: AsyncIterator[Any]) -> None:
        async for _ in events:
            pass

    async with on_tcp(2, **SMALL) as (donor, late):
        reading = asyncio.create_task(read(donor.events()))
        await asyncio.sleep(0)
        await donor.join("other", snapshot=rows)
        await donor.join("orders", snapshot=rows)
        joined = await late.join("orders", snapshot=rows)
        with pytest.raises(RuntimeError, match="the disk is gone"):
            await reading
        assert Reset(states=()) in [event async for event in until_alone(joined)]


async def until_alone(group: Group) -> AsyncIterator[Any]:
    """Its events, until it is the only member."""
    async for event in group:
        yield event
        if isinstance(event, View) and len(event.members) == 1:
            return


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["text"], "a piece of the snapshot of group must be bytes, not str"),
        (bytearray(b"state"), "must be bytes, or an iterable of bytes, not bytearray"),
        (7, "must be bytes, or an iterable of bytes, not int"),
    ],
)
def test_a_snapshot_that_is_no_state_is_refused(wrong: Any, sentence: str) -> None:
    async def scenario() -> None:
        table = Table()
        async with asyncio.TaskGroup() as tasks, cluster(2, snapshots=[lambda: wrong, bytes], **SMALL) as members:
            tasks.create_task(table.follow(members[0]))
            await restarted(members, 1)
            await until(lambda: table.error is not None)
        assert isinstance(table.error, ConfigurationError)
        assert sentence in str(table.error)

    run(scenario())


def test_an_application_that_has_joined_again_is_not_asked_for_the_state_of_its_earlier_stay() -> None:
    """It reads the view of its earlier stay late: its state is a later one by then, and nobody waits for it."""

    async def scenario() -> None:
        asked: list[str] = []

        def state(stay: str) -> Callable[[], bytes]:
            def snapshot() -> bytes:
                asked.append(stay)
                return b"state"

            return snapshot

        async with cluster(2, **SMALL) as members:
            stayed = await members.members[0].join("other", snapshot=state("earlier"))
            await members.members[1].join("other", snapshot=state("joiner"))
            await stayed.leave()
            await members.members[0].join("other", snapshot=state("later"))
            async for _ in stayed:
                pass
            assert "earlier" not in asked

    run(scenario())


def test_sides_that_merge_tell_each_other_in_pieces() -> None:
    async def scenario() -> None:
        tables = [Table() for _ in range(2)]
        async with three(tables) as members:
            members.partition([[0], [1]])
            await asyncio.sleep(3)
            await members[0].send(b"for one")  # without it both sides would have the same state
            await asyncio.sleep(1)
            members.heal()
            await until(lambda: all(table.resets for table in tables))
            await until(lambda: all(table.begun == table.ended for table in tables))
            assert [table.resets[0].states for table in tables] == [(WHOLE, WHOLE)] * 2
            assert [table.resets[0].own for table in tables] == [0, 1]
            assert [member.health.sending for member in members] == [None, None]

    run(scenario())


def test_an_application_may_send_while_its_state_is_read() -> None:
    """The pieces are read within a turn of the core, which accepts no calls then."""

    async def scenario() -> None:
        tables = [Table() for _ in range(3)]
        async with three(tables) as members:
            donor = members[0]
            for table in tables:
                table.at = {place: lambda: donor.try_send(b"meanwhile") for place in (0, 500, 1_500)}
            newcomer = await restarted(members, 2)
            while not newcomer.resets or len(tables[0].messages) < 3:
                await asyncio.sleep(0.1)
            assert newcomer.state == WHOLE
            assert tables[0].messages == [b"meanwhile"] * 3

    run(scenario())
