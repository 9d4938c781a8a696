"""Tracing changes nothing: in virtual time the same seed gives the same frames at the same moments, traced or not."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antiphon import FlowBlocked, Group, Message, Reset, Total
from antiphon.core.effects import Frame
from antiphon.testing import Cluster, cluster, run
from antiphon.testing.network import Port
from antiphon.types import ProcessId
from tests.support.traced import judged

Sent = tuple[float, ProcessId, tuple[ProcessId, ...], bytes]
"""A frame on the test network: when, from where, to where, and its bytes."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """All frames that leave from now on."""
    frames: list[Sent] = []
    send = Port.send

    def watched(port: Port, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:
        to = tuple(peers)
        frames.append((asyncio.get_running_loop().time(), port.id, to, bytes(sealed)))
        send(port, sealed, to, frame)

    monkeypatch.setattr(Port, "send", watched)
    return frames


class Application:
    """Keeps all that it has read, and hands it over as its state, in pieces or as a whole."""

    def __init__(self, *, in_pieces: bool) -> None:
        self._in_pieces = in_pieces
        self.seen: list[bytes] = []

    def snapshot(self) -> bytes | Iterator[bytes]:
        return iter([*self.seen]) if self._in_pieces else b"".join(self.seen)

    async def read(self, group: Group) -> None:
        async for event in group:
            if isinstance(event, Message):
                self.seen.append(event.payload)
            elif isinstance(event, Reset):
                self.seen = [b"".join(event.states)]


async def turbulence(seed: int, trace: Path | None) -> None:
    """Bursts and pauses of load, a crash, a restart, a partition, a paused member, and a leave with a return."""
    chance = random.Random(seed)
    applications = [Application(in_pieces=place == 1) for place in range(3)]
    snapshots = [each.snapshot for each in applications]
    async with (
        asyncio.TaskGroup() as tasks,
        cluster(3, seed=seed, snapshots=snapshots, trace=trace, window=8, suspect_after=0.2) as members,
    ):
        for place in range(3):
            tasks.create_task(applications[place].read(members[place]))
        await _burst(members, chance, (0, 1, 2))
        await members.crash(2)
        await _burst(members, chance, (0, 1))
        await asyncio.sleep(2)
        applications[2].seen.clear()
        tasks.create_task(applications[2].read(await members.restart(2)))
        await _burst(members, chance, (0, 1, 2))
        members.partition([[0], [1, 2]])
        await _burst(members, chance, (0, 1, 2))
        await asyncio.sleep(2)
        members.heal()
        await asyncio.sleep(8)
        members.pause(1)
        await _burst(members, chance, (0, 2))
        await asyncio.sleep(2)
        members.resume(1)
        await asyncio.sleep(8)
        await members[0].leave()
        again = await members.members[0].join("group", snapshot=snapshots[0])
        tasks.create_task(applications[0].read(again))
        await again.send(b"back")
        await _burst(members, chance, (1, 2))
        await asyncio.sleep(2)


async def _burst(members: Cluster, chance: random.Random, places: tuple[int, ...]) -> None:
    for _ in range(chance.randrange(5, 60)):
        await members[chance.choice(places)].send(bytes(chance.randrange(600)))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() / 100)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"service": Total(safe=True)},
    {"service": Total(sequencer=True)},
    {"flow_control": 0},
    {"flow_control": 2, "window": 4},
]


async def neglect(seed: int, trace: Path | None) -> None:
    """Applications that stop reading, leave before they have read all, and read two groups separately."""
    chance = random.Random(seed)
    options = {"suspect_after": 0.2, **OPTIONS[seed % len(OPTIONS)]}
    async with cluster(3, seed=seed, trace=trace, **options) as members:
        groups = [*members]
        tasks = [asyncio.create_task(_read_some(group, chance.randrange(200))) for group in groups]
        for place in (0, 1):
            groups.append(await members.members[place].join("other"))
            tasks.append(asyncio.create_task(_read_some(groups[-1], 1000)))
        for _ in range(8):
            await _try_burst(groups, chance)
            place = chance.randrange(3)
            match chance.choice(("leave", "cut", "heal", "rest")):
                case "leave":
                    await groups[place].leave()
                    groups[place] = await members.members[place].join("group", found="anyway")  # it may be cut off
                    tasks.append(asyncio.create_task(_read_some(groups[place], chance.randrange(100))))
                case "cut":
                    members.partition([[place], [each for each in range(3) if each != place]])
                case "heal":
                    members.heal()
            await asyncio.sleep(chance.random() * 3)
        members.heal()
    for task in tasks:
        task.cancel()


async def _read_some(group: Group, events: int) -> None:
    async for _ in group:
        events -= 1
        if events <= 0:
            return


async def _try_burst(groups: list[Group], chance: random.Random) -> None:
    for _ in range(chance.randrange(40)):
        with suppress(FlowBlocked):
            chance.choice(groups).try_send(bytes(chance.randrange(300)))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() / 100)


@pytest.mark.parametrize("seed", range(10))
def test_neglected_groups_are_judged_by_what_was_read_of_them(seed: int, sent: list[Sent], tmp_path: Path) -> None:
    run(neglect(seed, None))
    untraced = sent.copy()
    sent.clear()
    run(neglect(seed, tmp_path / "run"))
    assert sent == untraced
    verdicts = judged(tmp_path / "run")
    assert verdicts["D1"].opportunities
    assert verdicts["L10"].outcome == "vacuous"


@pytest.mark.parametrize("seed", range(6))
def test_the_same_seed_gives_the_same_frames_with_and_without_a_trace(
    seed: int, sent: list[Sent], tmp_path: Path
) -> None:
    run(turbulence(seed, None))
    untraced = sent.copy()
    sent.clear()
    run(turbulence(seed, tmp_path / "run"))
    assert len(sent) > 100
    assert sent == untraced
    verdicts = judged(tmp_path / "run")
    assert verdicts["D12"].opportunities
    assert verdicts["D8"].opportunities
    assert verdicts["L2"].outcome == "vacuous"
