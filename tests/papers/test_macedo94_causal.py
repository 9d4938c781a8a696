"""Worked examples of Macedo94 chapters 2 and 5: the causal orders; numbering of cases as in the specification."""

import pytest

from antiphon.protocols.newtop.frames import BlockFrame, MapStamp, RelativeStamp
from antiphon.types import GroupId, ProcessId
from tests.support.cluster import Cluster

CAUSAL = ["causal-slow", "causal-fast", "causal-relative", "causal-vector"]
EVERY = ["total", *CAUSAL]
TWO = {"g1": ["p", "r", "s"], "g2": ["q", "r", "s"]}
RING = {"g1": ["1", "2", "3", "4"], "g2": ["3", "4", "5", "6"], "g3": ["5", "6", "7", "8"], "g4": ["1", "2", "7", "8"]}


def fast(*entries: tuple[str, str, int]) -> MapStamp:
    return MapStamp(tuple((GroupId(group), ProcessId(process), number) for group, process, number in entries))


def relative(delivered: tuple[int, ...], **blocks: int) -> RelativeStamp:
    return RelativeStamp(delivered, tuple((GroupId(group), block) for group, block in blocks.items()))


def frame_of(cluster: Cluster, payload: bytes) -> BlockFrame:
    return next(frame for sent in cluster.transmitted.values() for frame in sent if payload in frame.payloads)


def move_but(cluster: Cluster, *late: tuple[str, str], until: tuple[str, bytes]) -> None:
    """Move all frames except on these channels, until some process has delivered something."""
    name, payload = until
    for _ in range(100):
        if payload in cluster.delivered[name]:
            return
        for sender, receiver in [pair for pair, frames in cluster.channels.items() if frames and pair not in late]:
            cluster.move(sender, receiver)
    raise AssertionError(f"{name} never delivers {payload!r}")


@pytest.mark.parametrize("service", EVERY)
def test_figure_2_4_a_reply_waits_for_its_cause(service: str) -> None:
    """Figs 2.4, 2.8: 2 delivers m1 and sends m2; 3 gets m2 first, and delivers m1, m2."""
    cluster = Cluster("1", "2", "3", service=service)
    cluster.send("1", b"m1")
    move_but(cluster, ("1", "3"), until=("2", b"m1"))
    cluster.send("2", b"m2")
    cluster.move("2", "3", len(cluster.channels["2", "3"]))
    assert cluster.delivered["3"] == []
    cluster.finish()
    assert all(delivered == [b"m1", b"m2"] for delivered in cluster.delivered.values())


def test_figure_2_8_the_numbers_of_the_relative_order() -> None:
    """m1.ldv = 000, m2.ldv = 100, m2.b = 2."""
    cluster = Cluster("1", "2", "3", service="causal-relative")
    cluster.send("1", b"m1")
    cluster.move("1", "2")
    cluster.send("2", b"m2")
    m1, m2 = frame_of(cluster, b"m1"), frame_of(cluster, b"m2")
    assert m1.stamp == relative((0, 0, 0))
    assert m2.stamp == relative((1, 0, 0), g=1)
    assert m2.block == 2
    cluster.finish()
    cluster.send("3", b"m3")
    assert frame_of(cluster, b"m3").stamp == relative((1, 2, 0), g=2)


def test_figure_2_8_the_numbers_of_vector_clocks() -> None:
    """The clock of 3 goes 000, 100, 110: the stamp of its next message, with its own entry raised."""
    cluster = Cluster("1", "2", "3", service="causal-vector")
    cluster.send("1", b"m1")
    cluster.move("1", "2")
    cluster.send("2", b"m2")
    assert frame_of(cluster, b"m1").stamp == fast(("g", "1", 1))
    assert frame_of(cluster, b"m2").stamp == fast(("g", "1", 1), ("g", "2", 1))
    cluster.finish()
    cluster.send("3", b"m3")
    assert frame_of(cluster, b"m3").stamp == fast(("g", "1", 1), ("g", "2", 1), ("g", "3", 1))


@pytest.mark.parametrize("service", EVERY)
def test_figure_2_5_a_chain_through_two_groups(service: str) -> None:
    """Fig. 2.5: m1(p,g1) -> m2(r,g2) -> m3(q,g2); s gets m3 first, and delivers m1, m2, m3."""
    cluster = Cluster(groups=TWO, service=service)
    cluster.send("p", b"m1", group="g1")
    move_but(cluster, ("p", "s"), until=("r", b"m1"))
    cluster.send("r", b"m2", group="g2")
    move_but(cluster, ("p", "s"), ("r", "s"), until=("q", b"m2"))
    cluster.send("q", b"m3", group="g2")
    cluster.move("q", "s", len(cluster.channels["q", "s"]))
    assert cluster.delivered["s"] == []
    cluster.finish()
    assert cluster.delivered["s"] == [b"m1", b"m2", b"m3"]


@pytest.mark.parametrize(
    ("service", "stamp"),
    [
        ("causal-fast", fast(("g1", "p", 1), ("g2", "r", 2))),
        ("causal-relative", relative((0, 2, 0), g1=1, g2=2)),
    ],
)
def test_figure_2_5_the_stamp_of_m3(service: str, stamp: MapStamp | RelativeStamp) -> None:
    """m3.b = 3; Fast: gldv = {(g1,p): 1, (g2,r): 2}; Relative: ldv = {r: 2}, gbn = {g1: 1, g2: 2}."""
    cluster = Cluster(groups=TWO, service=service)
    cluster.send("p", b"m1", group="g1")
    move_but(cluster, until=("r", b"m1"))
    cluster.send("r", b"m2", group="g2")
    move_but(cluster, until=("q", b"m2"))
    cluster.send("q", b"m3", group="g2")
    m3 = frame_of(cluster, b"m3")
    assert (m3.block, m3.stamp) == (3, stamp)


@pytest.mark.parametrize("service", EVERY)
def test_figure_5_1_a_chain_around_the_ring(service: str) -> None:
    """Fig. 5.1: m1(1,g1) -> m2(3,g2) -> m3(6,g3) -> m4(7,g4); 2 gets m4 first, and delivers m1 before m4."""
    cluster = Cluster(groups=RING, service=service)
    for sender, payload, group, next_sender in (
        ("1", b"m1", "g1", "3"),
        ("3", b"m2", "g2", "6"),
        ("6", b"m3", "g3", "7"),
    ):
        cluster.send(sender, payload, group=group)
        move_but(cluster, ("1", "2"), until=(next_sender, payload))
    cluster.send("7", b"m4", group="g4")
    cluster.move("7", "2", len(cluster.channels["7", "2"]))
    assert b"m4" not in cluster.delivered["2"]
    cluster.finish()
    assert cluster.delivered["2"] == [b"m1", b"m4"]
    assert [frame_of(cluster, payload).block for payload in (b"m1", b"m2", b"m3", b"m4")] == [1, 2, 3, 4]


def test_figure_5_1_the_stamps_at_the_end_of_the_ring() -> None:
    """m4.gbn = {g1: 1, g2: 2, g3: 3}; Fast names m1, m2 and m3; 2 tests only those of g1 and g4."""
    stamps = {}
    for service in ("causal-relative", "causal-fast"):
        cluster = Cluster(groups=RING, service=service)
        for sender, payload, group, next_sender in (
            ("1", b"m1", "g1", "3"),
            ("3", b"m2", "g2", "6"),
            ("6", b"m3", "g3", "7"),
        ):
            cluster.send(sender, payload, group=group)
            move_but(cluster, until=(next_sender, payload))
        cluster.send("7", b"m4", group="g4")
        stamps[service] = frame_of(cluster, b"m4").stamp
    assert stamps["causal-relative"] == relative((0, 0, 0, 0), g1=1, g2=2, g3=3)
    assert stamps["causal-fast"] == fast(("g1", "1", 1), ("g2", "3", 2), ("g3", "6", 3))


@pytest.mark.parametrize("compression", [False, True])
def test_compression_changes_the_size_of_stamps_and_nothing_else(compression: bool) -> None:
    """§5.5: a stamp may carry only the changes since its sender's previous message in the group."""
    cluster = Cluster(groups=TWO, service="causal-fast", compression=compression)
    for step in range(5):
        cluster.send("p", b"p%d" % step, group="g1")
        cluster.send("r", b"r%d" % step, group="g2")
        cluster.move_all()
    cluster.finish()
    sizes = [len(frame.stamp.entries) for frame in cluster.transmitted["r"] if isinstance(frame.stamp, MapStamp)]
    assert sizes == ([0, 2, 2, 2, 2])
    assert len(cluster.delivered["s"]) == 10
