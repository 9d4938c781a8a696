"""Receivers of every service while the senders of their group change (docs/spec/intergroup.md 6.1, 6.2, 6.4)."""

import pytest

from antiphon.core.effects import Missing, Unavailable
from antiphon.protocols.intergroup.frames import DataFrame, SourceRequestFrame
from antiphon.protocols.intergroup.settings import InterGroupSettings, Service
from antiphon.types import ProcessId
from tests.support.intergroup_cluster import MS, Cluster

S1, S2, S3, R1, R2 = map(ProcessId, ("s1", "s2", "s3", "r1", "r2"))
SUSPECT = 200
QUICK = InterGroupSettings(suspect_after_ns=SUSPECT * MS)
UNRELIABLE: tuple[Service, ...] = ("unreliable", "unreliable-fifo", "unreliable-total", "framed")


@pytest.mark.parametrize("service", [*UNRELIABLE, "fifo"])
def test_views_of_a_receiver_are_private(service: Service) -> None:
    """6.1, 6.2, 6.4: they name the senders that it receives from, and say that it only receives."""
    cluster = Cluster(2, {"r1": service, "r2": service})
    cluster.run(1500)
    last, other = cluster.views[R1][-1], cluster.views[R2][-1]
    assert last.members == other.members == (S1, S2)
    assert last.id != other.id
    assert last.receives
    assert not cluster.views[S1][-1].receives


@pytest.mark.parametrize("service", UNRELIABLE)
def test_a_sender_is_in_a_private_view_from_its_first_frame_until_it_is_silent_for_two_suspicions(
    service: Service,
) -> None:
    """6.4."""
    cluster = Cluster(2, {"r1": service, "r2": "total"}, settings=QUICK)
    cluster.run(1000)
    sent = cluster.send("r2")
    cluster.run(1000)
    assert cluster.members("r1") == [(S1, S2), (R2, S1, S2)]
    assert cluster.payloads("r1") == [sent]
    cluster.cut.add(S2)
    cluster.run(2 * SUSPECT - 80)
    assert cluster.members("r1")[-1] == (R2, S1, S2)
    cluster.run(100)
    assert cluster.members("r1")[-1] == (R2, S1)
    cluster.cut.clear()
    cluster.run(1000)
    assert cluster.members("r1")[-1] == (R2, S1, S2)


def test_an_open_request_of_the_framed_service_ends_when_the_sender_is_lost() -> None:
    """6.4: nothing tells which of its messages some process still has."""
    cluster = Cluster(2, {"r1": "framed"}, settings=QUICK)
    cluster.run(500)
    cluster.cut_links.add((S1, R1))
    cluster.send("s1", name="bids/0")
    cluster.run(6)
    cluster.cut_links.clear()
    cluster.run_until(lambda: bool(cluster.missed[R1]))
    cluster.cut |= {S1, S2}  # no process answers
    cluster.run(2 * SUSPECT + 100)
    lost = [told for told in cluster.missed[R1] if told.gone]
    assert [(told.sender, told.container, told.places) for told in lost] == [(S1, b"bids", (1,))]
    assert not cluster.cores[R1].unfinished


def test_a_request_of_the_framed_service_for_a_lost_sender_is_refused_at_once() -> None:
    cluster = Cluster(2, {"r1": "framed"}, settings=QUICK)
    cluster.cut.add(S1)
    cluster.run(3 * SUSPECT)
    cluster.ask("r1", Missing(cluster.views[R1][0].group, S1, b"bids", (3,)))
    assert [(told.places, told.gone) for told in cluster.missed[R1]] == [((3,), True)]


def test_a_receiver_in_source_order_asks_a_sender_that_is_added() -> None:
    """6.2."""
    cluster = Cluster(2, {"r1": "fifo", "r2": "total"})
    cluster.run(1500)
    cluster.promote("r2")
    cluster.run(1500)
    assert cluster.members("r1")[-1] == (R2, S1, S2)
    sent = [cluster.send("r2") for _ in range(3)]
    cluster.run(500)
    assert cluster.payloads("r1") == sent


def test_a_source_that_leaves_in_order_ends_its_stream_and_is_not_asked_again() -> None:
    """6.2: its last message is its own PLeave; everything before it is delivered."""
    cluster = Cluster(3, {"r1": "fifo"})
    cluster.run(1500)
    sent = [cluster.send("s3") for _ in range(5)]
    cluster.demote("s3")
    left = cluster.now
    cluster.run(10_000)
    assert cluster.payloads("r1") == sent
    assert cluster.members("r1")[-1] == (S1, S2)
    asked = [at for at, frame in cluster.transmitted if isinstance(frame, SourceRequestFrame)]
    assert all(at < left for at in asked)
    assert not any(isinstance(notice, Unavailable) for notice in cluster.notices["r1"])


def test_a_source_that_sends_again_is_asked_again_and_its_numbers_go_on() -> None:
    """6.2, D12: its first message shows that it is a source again, and the stream begins after that."""
    cluster = Cluster(3, {"r1": "fifo"})
    cluster.run(1500)
    before = [cluster.send("s3") for _ in range(2)]
    cluster.demote("s3")
    cluster.run(1500)
    cluster.send("s3")
    cluster.run(2000)
    after = [cluster.send("s3") for _ in range(2)]
    cluster.run(500)
    assert cluster.members("r1")[-3:] == [(S1, S2, S3), (S1, S2), (S1, S2, S3)]
    assert cluster.payloads("r1") == [*before, *after]
    numbers = [
        frame.seq
        for _, frame in cluster.transmitted
        if isinstance(frame, DataFrame) and frame.sender == S3 and frame.change is None
    ]
    assert numbers == [1, 2, 4, 5, 6]  # the leave has a number too


def test_a_receiver_in_source_order_that_sends_takes_part_in_the_order_of_the_group_meanwhile() -> None:
    """D10: its application still gets source order; when it only receives again, its views are private again."""
    cluster = Cluster(2, {"r1": "fifo"})
    cluster.run(1500)
    sent = [cluster.send("r1"), cluster.send("s1")]
    cluster.run(1500)
    assert {*cluster.payloads("r1")} == {*cluster.payloads("s2")} == {*sent}
    assert cluster.views[R1][-1].id == cluster.views[S1][-1].id
    assert cluster.members("s1")[-1] == (R1, S1, S2)
    cluster.demote("r1")
    cluster.run(1500)
    assert cluster.members("s1")[-1] == (S1, S2)
    assert cluster.members("r1")[-1] == (S1, S2)
    assert cluster.views[R1][-1].receives
    later = cluster.send("s2")
    cluster.run(500)
    assert cluster.payloads("r1")[-1] == later
    assert len(cluster.payloads("r1")) == 3
