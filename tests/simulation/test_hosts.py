"""A node by itself: its clock, its host's CPU, its alarm."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame, InstallState
from antiphon.scenario.model import Hosts, Network
from antiphon.sim.hosts import Clock, Host
from antiphon.sim.links import Links
from antiphon.sim.network import SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.world import EventQueue
from antiphon.types import GroupId, ProcessId


def test_a_cpu_works_first_come_first_served() -> None:
    host = Host()
    assert [host.work(0, 5), host.work(2, 5), host.work(100, 5)] == [5, 10, 105]


@given(st.integers(0, 10**12), st.integers(0, 10**9), st.floats(0.001, 100), st.integers(0, 10**12))
def test_an_alarm_set_by_a_skewed_clock_rings_neither_early_nor_late(
    now: int, offset: int, rate: float, ahead: int
) -> None:
    clock = Clock()
    clock.set(now, offset, rate)
    reading = clock.read(now) + ahead
    when = clock.when(reading)
    assert clock.read(when) >= reading
    assert when == now or clock.read(when - 1) < reading


class Stubborn:
    """A core whose deadline stays in the past."""

    capabilities = Capabilities()
    deadline: int | None = 10
    needs_consumed = True

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None: ...
    def receive(self, frame: Frame, now: int) -> None: ...
    def tick(self, now: int) -> None: ...
    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        return False

    def writable(self, ready: bool, now: int) -> None: ...
    def drain(self, now: int) -> list[Effect]:
        return []

    def unstable(self, group: GroupId) -> int:
        return 0


class NoApplication:
    def taken(self, node: Node, frame: Frame) -> None: ...
    def asked(self, node: Node, frame: Frame) -> None: ...
    def state(self, node: Node, group: GroupId) -> bytes:
        return b""

    def merge(self, node: Node, effect: InstallState) -> bytes:
        return b""

    def left(self, node: Node, group: GroupId) -> None: ...


def test_an_alarm_that_stays_due_is_an_error_not_an_endless_loop() -> None:
    queue = EventQueue()
    network = SimulatedNetwork(Network(), queue, random.Random(1), "bytes", Links(queue, random.Random(2), 0))
    node = Node(
        ProcessId("p1"),
        Stubborn(),
        host=Host(),
        hosts=Hosts(),
        queue=queue,
        network=network,
        application=NoApplication(),
        recorder=None,
    )
    node.turn()
    with pytest.raises(AssertionError, match="fire forever"):
        queue.run(1_000)
