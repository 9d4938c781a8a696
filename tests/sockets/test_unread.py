"""An application that does not read holds back formations, so that what it has not read stays bounded."""

import asyncio
import contextlib

import pytest

from antiphon import Event, FlowBlocked, Message
from antiphon.testing import Cluster, cluster, run

WINDOW_BYTES = 20_000
PAYLOAD = bytes(1_000)
FORMATIONS = 15


async def read(members: Cluster, place: int) -> None:
    async for _ in members[place]:
        pass


def send_all(members: Cluster, *places: int) -> None:
    for place in places:
        with contextlib.suppress(FlowBlocked):
            while True:
                members[place].try_send(PAYLOAD)


async def disturb(members: Cluster, kind: str) -> None:
    """Make the others form a group again, with or without p3."""
    if kind == "pause":
        members.pause(2)
        await asyncio.sleep(2)
        members.resume(2)
    else:
        members.partition([[0, 1], [2]])
        await asyncio.sleep(2)
        members.heal()


@pytest.mark.parametrize("kind", ["pause", "partition"])
def test_a_member_that_does_not_read_holds_a_bounded_number_of_messages(kind: str) -> None:
    async def scenario() -> None:
        chosen = {"window": 16, "window_bytes": WINDOW_BYTES, "frame_bytes": 4_000, "suspect_after": 0.5}
        async with cluster(3, **chosen) as members:  # type: ignore[arg-type]
            readers = [asyncio.create_task(read(members, place)) for place in (1, 2)]
            unread = []
            for _ in range(FORMATIONS):
                send_all(members, 1, 2)
                await disturb(members, kind)
                await asyncio.sleep(5)
                unread.append(members[0].health.unread)
            assert max(unread) == max(unread[: FORMATIONS // 2])  # it has stopped to grow
            seen: list[Event] = []
            while len(members[0].health.members) < 3 or members[0].health.unread:
                seen += await members[0].receive()
                await asyncio.sleep(0.01)
            assert any(isinstance(event, Message) for event in seen)
            await asyncio.gather(*(members[place].ready(3) for place in range(3)))
            for reader in readers:
                reader.cancel()

    run(scenario())
