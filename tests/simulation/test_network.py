"""The simulated network by itself: its promises for streams, and its faults on datagrams."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from antiphon.core.effects import Channel, Frame, Scope, Transmit
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.scenario.model import Delay, Fixed, Latency, Lognormal, Loss, Network, Uniform
from antiphon.scenario.units import Bandwidth, Duration
from antiphon.sim.links import Break, Links
from antiphon.sim.network import Line, SimulatedNetwork, latency_source
from antiphon.sim.world import EventQueue
from antiphon.types import GroupId, ProcessId, first_view

MS = 1_000_000
GROUP = GroupId("g")


class Endpoint:
    """The part of a node that the network uses."""

    def __init__(self, name: str, network: SimulatedNetwork, queue: EventQueue) -> None:
        self.id = ProcessId(name)
        self.last_arrival: dict[ProcessId, int] = {}
        self.arrivals: list[tuple[int, int]] = []
        self.told: list[tuple[int, ProcessId]] = []
        self._network, self._queue = network, queue
        self.line = network.attach(self)

    def arrive(self, carried: object) -> None:
        self.arrivals.append((self._queue.now, self._network.frame(carried).clock))

    def severed(self, told: Break) -> None:
        self.told.append((self._queue.now, told.peer))

    def is_bound(self, frame: Frame) -> bool:
        return True

    def reconnected(self, peer: ProcessId, connection: int | None) -> None: ...


def exchange(settings: Network, frames: int, *faults: Delay | Loss, every_ns: int = MS) -> Endpoint:
    """Send frames 1, 2, … from a to b at a steady pace; gives b with its arrivals."""
    queue = EventQueue()
    network = SimulatedNetwork(settings, queue, random.Random(1), "bytes", Links(queue, random.Random(2), 0))
    a, b = Endpoint("a", network, queue), Endpoint("b", network, queue)
    channel = Channel.STREAM if settings.transport == "stream" else Channel.DATAGRAM
    network.install(a.id, first_view(GROUP, frozenset({a.id, b.id})))
    for fault in faults:
        network.disturb(fault)

    def send(frame: BlockFrame) -> None:
        network.transmit(a, Transmit(frame, Scope.VIEW, channel), queue.now)

    for number in range(1, frames + 1):
        frame = BlockFrame(GROUP, a.id, number, number - 1, 0, (b"x" * 100,))
        queue.at(number * every_ns, send, frame)
    assert queue.run(10**12)
    return b


JITTERY = Uniform(low=Duration(0), high=Duration(20 * MS))


def test_streams_are_lossless_and_fifo_whatever_the_latency() -> None:
    b = exchange(Network(latency=JITTERY), 200)
    assert [number for _, number in b.arrivals] == list(range(1, 201))


def test_datagrams_overtake_one_another() -> None:
    b = exchange(Network(transport="datagram", latency=JITTERY), 200)
    numbers = [number for _, number in b.arrivals]
    assert sorted(numbers) == list(range(1, 201))
    assert numbers != sorted(numbers)


def test_datagrams_are_lost_and_doubled_at_their_rates() -> None:
    settings = Network(transport="datagram", latency=Fixed(value=Duration(MS)), loss=0.2, duplicate=0.3)
    counts = Counter(number for _, number in exchange(settings, 4_000).arrivals)
    assert pytest.approx(sum(counts.values()), rel=0.05) == 4_000 * 1.3 * 0.8
    assert max(counts.values()) == 2


def test_reordered_datagrams_are_held_back() -> None:
    settings = Network(transport="datagram", latency=Fixed(value=Duration(2 * MS)), reorder=0.1)
    late = [number for time, number in exchange(settings, 2_000).arrivals if time > number * MS + 2 * MS]
    assert len(late) == pytest.approx(200, rel=0.3)


def test_a_loss_fault_adds_to_the_networks_own() -> None:
    settings = Network(transport="datagram", latency=Fixed(value=Duration(MS)))
    fault = Loss(at=Duration(0), rate=0.5, from_="a", to="b")
    elsewhere = Loss(at=Duration(0), rate=1.0, from_="b", to="a")
    assert len(exchange(settings, 1_000, fault, elsewhere).arrivals) == pytest.approx(500, rel=0.15)


@pytest.mark.parametrize("transport", ["stream", "datagram"])
@pytest.mark.parametrize("fault", [Delay(at=Duration(0), extra=Duration(7 * MS), process="b")])
def test_a_delay_fault_adds_its_time(transport: str, fault: Delay) -> None:
    settings = Network(transport=transport, latency=Fixed(value=Duration(2 * MS)))  # type: ignore[arg-type]
    assert exchange(settings, 3, fault).arrivals == [(10 * MS, 1), (11 * MS, 2), (12 * MS, 3)]


def test_a_line_sends_one_frame_after_the_other() -> None:
    line = Line(8_000)  # one byte a millisecond
    assert line.send(5, now=0) == 5 * MS
    assert line.send(5, now=1 * MS) == 10 * MS
    assert line.falls_to(4) == 6 * MS
    assert line.send(1, now=20 * MS) == 21 * MS


def test_bandwidth_spaces_frames_out() -> None:
    settings = Network(latency=Fixed(value=Duration(0)), bandwidth=Bandwidth(1_000_000))
    times = [time for time, _ in exchange(settings, 4, every_ns=1).arrivals]
    gaps = {later - earlier for earlier, later in pairwise(times)}
    assert len(gaps) == 1
    assert gaps.pop() > 100 * 8 * 1_000  # the payload alone takes this long


@pytest.mark.parametrize(
    ("latency", "median"),
    [
        (Fixed(value=Duration(3 * MS)), 3 * MS),
        (Uniform(low=Duration(MS), high=Duration(5 * MS)), 3 * MS),
        (Lognormal(median=Duration(3 * MS), sigma=0.7), 3 * MS),
    ],
)
def test_latencies_are_drawn_as_named(latency: Latency, median: int) -> None:
    draw = latency_source(latency, random.Random(5))
    draws = sorted(draw() for _ in range(4_001))
    assert draws[2_000] == pytest.approx(median, rel=0.06)
    assert draws[0] >= 0
    if isinstance(latency, Uniform):
        assert (draws[0] >= latency.low, draws[-1] <= latency.high) == (True, True)
