"""Turns of the driver: at once when it is idle, one turn for many frames under load."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame, Transmit
from antiphon.drive.drive import Shown
from antiphon.protocols.newtop.frames import AliveFrame
from antiphon.sockets.driver import Audience, Driver
from antiphon.sockets.transports.contract import Transport
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import encode

ME, GROUP = ProcessId("me"), GroupId("g")
MS = 1_000_000


class Desk:
    """A minimal core, transport and application, and a clock that tests set."""

    streams = False
    capabilities = Capabilities()
    deadline: int | None = None
    needs_consumed = False

    def __init__(self) -> None:
        self.now = MS
        self.fed: list[Frame] = []
        self.turns: list[int] = []
        """For each turn, the total number of frames fed so far."""
        self.answers = 0
        """Number of the next drains that return an effect."""
        self.takes_ns = 0
        """How long a frame takes to be fed."""
        self.in_drain: Callable[[], None] = lambda: None

    def receive(self, frame: Frame, _now: int) -> None:
        self.fed.append(frame)
        self.now += self.takes_ns

    def drain(self, _now: int) -> list[Effect]:
        self.in_drain()
        if not self.answers:
            return []
        self.answers -= 1
        return [Transmit(AliveFrame(GROUP, ME, 1, 0), ProcessId("p1"))]

    def collect(self) -> None:
        self.turns.append(len(self.fed))

    async def open(self, _receiver: Driver) -> None: ...
    def send(self, *_: Any) -> None: ...
    def flush(self) -> None: ...
    def turned(self) -> None: ...
    def show(self, _effect: Shown, _now: int) -> None: ...
    def met(self, _peer: ProcessId) -> None: ...


async def at_rest(desk: Desk) -> Driver:
    """A driver that had its first turn a millisecond ago."""
    driver = Driver(ME, cast("Any", desk), cast("Transport", desk), cast("Audience", desk), clock=lambda: desk.now)
    await driver.open()
    driver.begin()
    await asyncio.sleep(0)
    assert desk.turns == [0]
    desk.turns.clear()
    desk.now += MS
    return driver


def hand(driver: Driver, peer: str) -> None:
    driver.arrived(ProcessId(peer), 0, [encode(AliveFrame(GROUP, ProcessId(peer), 1, 0))])


def test_the_first_frame_after_a_rest_is_processed_at_once() -> None:
    async def scenario() -> None:
        desk = Desk()
        driver = await at_rest(desk)
        desk.answers = 1
        hand(driver, "p1")
        assert desk.turns == [1]
        await asyncio.sleep(0)
        assert desk.turns == [1]

    asyncio.run(scenario())


def test_a_frame_without_consequences_does_not_delay_the_next_one() -> None:
    async def scenario() -> None:
        desk = Desk()
        driver = await at_rest(desk)
        hand(driver, "p1")
        desk.answers = 1
        hand(driver, "p2")
        assert desk.turns == [1, 2]

    asyncio.run(scenario())


def test_frames_of_one_wake_up_share_a_turn_except_the_first() -> None:
    async def scenario() -> None:
        desk = Desk()
        driver = await at_rest(desk)
        desk.answers, desk.takes_ns = 8, 200_000
        for peer in range(8):
            hand(driver, f"p{peer}")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert desk.turns == [1, 8]

    asyncio.run(scenario())


def test_there_is_no_turn_within_a_turn() -> None:
    async def scenario() -> None:
        desk = Desk()
        driver = await at_rest(desk)
        desk.in_drain = lambda: driver.hurry(desk.now + MS)
        hand(driver, "p1")
        assert desk.turns == [1]
        desk.in_drain = lambda: None
        await asyncio.sleep(0)
        assert desk.turns == [1, 1]

    asyncio.run(scenario())
