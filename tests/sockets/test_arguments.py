"""Wrong values and wrong moments are refused in one sentence, as an `AntiphonError`."""

import asyncio
import pydoc
import socket
from typing import Any

import pytest

import antiphon
from antiphon import testing
from antiphon.errors import AntiphonError, ConfigurationError
from tests.support.patience import SECONDS_MAX


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"bind": 7400}, "7400 is not an address such as '10.0.0.5:7400'"),
        ({"peers": 5}, "peers must be addresses"),
        ({"peers": [7400]}, "7400 is not an address"),
        ({"name": "x" * 300}, "is not a name for a process: a name is a text of 1 to 200 bytes"),
        ({"name": 5}, "5 is not a name for a process"),
        ({"name": "a\ud800"}, "is not a name for a process"),
        ({"name": "a\0b"}, "is not a name for a process"),
        ({"preset": []}, r"there is no preset \[\]"),
        ({"transport": 3}, "transport must be 'tcp', 'udp', or a function that makes one, not 3"),
        ({"transport": None}, "transport must be 'tcp', 'udp', or a function that makes one, not None"),
        ({"trace": 5}, "trace must be the path of a directory, not 5"),
        ({"trace": "a\0b"}, "trace must be the path of a directory"),
        ({"join_within": 10**400}, "join_within must be a number of seconds above 0"),
        ({"join_within": float("nan")}, "join_within must be a number of seconds above 0"),
        ({"suspect_after": float("inf")}, "suspect_after must be at least 0.08 seconds, and below a billion"),
        ({"idle_probe": 1e12}, "idle_probe must be a number of seconds that is not negative, and below a billion"),
        ({"advertise": "127.0.0.1:0"}, "names no port"),
        ({"bind": "127.0.0.1:\u0663"}, "is not an address such as"),
        ({"bind": "0.0.0.0:0"}, "name the one that others reach, as advertise"),
        ({"bind": "[::]:0", "transport": "udp"}, "name the one that others reach, as advertise"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        antiphon.Member(**wrong)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_port_that_is_taken_is_named(transport: str) -> None:
    async def scenario() -> None:
        kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.bind(("127.0.0.1", 0))
            if transport == "tcp":
                taken.listen()
            bind = f"127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(AntiphonError, match=bind):
                async with antiphon.Member(bind=bind, transport=transport):
                    pass

    asyncio.run(scenario())


def test_a_member_is_entered_once() -> None:
    async def scenario() -> None:
        member = antiphon.Member()
        async with member:
            with pytest.raises(ConfigurationError, match="runs already"):
                async with member:
                    pass
            group = await asyncio.wait_for(member.join("orders"), SECONDS_MAX)
            assert group.me == member.id
            assert group.address == member.address
        with pytest.raises(ConfigurationError, match="has ended: make a new Member"):
            async with member:
                pass
        assert (group.health.members, group.health.primary) == ((), False)

    asyncio.run(scenario())


def test_a_snapshot_that_is_no_function_is_refused() -> None:
    async def scenario() -> None:
        async with antiphon.Member() as member:
            with pytest.raises(ConfigurationError, match="snapshot must be a function"):
                await member.join("orders", snapshot=b"state")  # type: ignore[arg-type]
            group = await asyncio.wait_for(member.join("prices"), SECONDS_MAX)
            for wrong in ("2", None, 2.5, float("nan")):
                with pytest.raises(ConfigurationError, match="number of members to wait for"):
                    await group.ready(wrong)  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="5 is not a name for a group"):
                await member.join(5)  # type: ignore[arg-type]

    asyncio.run(scenario())


def test_a_snapshot_that_ends_the_program_does_not_stop_the_others() -> None:
    """The process leaves, another member is asked for the state, and the error is raised in the reading task."""

    async def scenario() -> None:
        def ends() -> bytes:
            raise SystemExit(3)

        async with testing.cluster(3, snapshots=[ends, lambda: b"state", lambda: b""]) as members:
            await members.crash(2)
            joining = asyncio.create_task(members.restart(2))
            readers = [asyncio.create_task(_read(members[place])) for place in range(2)]
            assert await readers[0] == 3
            joined = await joining
            while True:
                event = await anext(joined)
                if isinstance(event, antiphon.Reset):
                    assert event.states == (b"state",)
                    break
            readers[1].cancel()

    testing.run(scenario())


async def _read(group: antiphon.Group) -> object:
    """Return the exit code with which the application ends the program."""
    try:
        async for _ in group:
            pass
    except SystemExit as end:
        return end.code  # asyncio itself would end the event loop
    return None


def test_events_of_all_groups_are_read_in_order_also_after_joining() -> None:
    async def scenario() -> None:
        async with antiphon.Member() as member:
            one = await member.join("one")
            two = await member.join("two")
            for number in range(20):
                await (one if number % 3 else two).send(b"%d" % number)
                await asyncio.sleep(0)
            seen = []
            async for _, event in member.events():
                if isinstance(event, antiphon.Message):
                    seen.append(int(event.payload))
                if len(seen) == 20:
                    break
            assert seen == [*range(20)]
            with pytest.raises(ConfigurationError, match="do not read one by itself"):
                await anext(one)

    asyncio.run(scenario())


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("aborts", [True, False])
def test_the_events_of_all_groups_end_with_the_member(groups: int, aborts: bool) -> None:
    async def read(member: antiphon.Member) -> None:
        async for _ in member.events():
            pass

    async def scenario() -> None:
        async with antiphon.Member() as member:
            reading = asyncio.create_task(read(member))
            await asyncio.sleep(0)
            for number in range(groups):
                await member.join(f"g{number}")
            if aborts:
                await member.abort()
        await asyncio.wait_for(reading, SECONDS_MAX)

    asyncio.run(scenario())


def test_groups_that_are_read_one_by_one_have_no_common_stream() -> None:
    async def scenario() -> None:
        async with antiphon.Member() as member:
            group = await member.join("one")
            assert isinstance(await anext(group), antiphon.View)
            with pytest.raises(ConfigurationError, match="is read by itself already"):
                member.events()

    asyncio.run(scenario())


def test_help_shows_what_applications_use_and_nothing_else() -> None:
    public = {name for name in dir(antiphon.Member) if not name.startswith("_")}
    assert public == {"abort", "address", "events", "id", "join", "offenders", "peers", "unreached"}
    text = pydoc.plain(pydoc.render_doc(antiphon.Member))
    assert all(f" {name}" in text for name in public)
