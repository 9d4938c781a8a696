"""A group of InterGroup processes: a service for each receiver, repair, stability, joining and leaving."""

from typing import get_args

import pytest

from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RepairFrame
from antiphon.protocols.intergroup.settings import InterGroupSettings, Service
from antiphon.types import ProcessId
from tests.support.intergroup_cluster import GROUP, MS, Cluster, LinkFaults

ROUGH = LinkFaults(loss=0.2, duplicate=0.1, latency=(2 * MS, 25 * MS))


def busy(cluster: Cluster, senders: int, messages: int, every_ms: float = 20) -> list[bytes]:
    sent = []
    for _ in range(messages):
        for number in range(1, senders + 1):
            sent.append(cluster.send(f"s{number}"))
            cluster.run(every_ms / senders)
    return sent


def test_all_processes_deliver_the_same_messages_in_one_order() -> None:
    cluster = Cluster(3, {"r1": "total"})
    cluster.run(1500)
    sent = busy(cluster, 3, 20)
    cluster.run(1000)
    assert sorted(cluster.payloads("s1")) == sorted(sent)
    assert cluster.payloads("s1") == cluster.payloads("s2") == cluster.payloads("s3") == cluster.payloads("r1")


@pytest.mark.parametrize("seed", range(5))
def test_lost_messages_are_repaired_and_then_freed(seed: int) -> None:
    cluster = Cluster(3, {"r1": "total", "r2": "fifo"}, link_faults=ROUGH, seed=seed)
    cluster.run(10_000)  # questions and answers of joiners are lost too
    assert cluster.members("r1") == [("s1", "s2", "s3")]
    assert cluster.members("r2")[-1] == ("s1", "s2", "s3")
    sent = busy(cluster, 3, 30)
    cluster.run(20_000)
    assert sorted(cluster.payloads("s1")) == sorted(sent)
    assert cluster.payloads("s1") == cluster.payloads("s2") == cluster.payloads("s3") == cluster.payloads("r1")
    for number in range(1, 4):
        own = [payload for sender, payload in cluster.delivered[ProcessId("r2")] if sender == f"s{number}"]
        assert own == [payload for payload in sent if payload.startswith(f"s{number}:".encode())]
    assert [core.unstable(GROUP) for core in cluster.cores.values()] == [0] * 5
    assert cluster.said["repair"] > 0


def test_services_differ_from_member_to_member() -> None:
    cluster = Cluster(
        2,
        {"u": "unreliable", "v": "unreliable-fifo", "w": "unreliable-total", "t": "total"},
        link_faults=LinkFaults(loss=0.2, latency=(2 * MS, 40 * MS)),
        services={"s2": "fifo"},
    )
    cluster.run(3000)
    sent = busy(cluster, 2, 60)
    cluster.run(10_000)
    assert sorted(cluster.payloads("s1")) == sorted(cluster.payloads("s2")) == sorted(sent)
    assert 0.6 < len(cluster.payloads("u")) / len(sent) < 0.95
    for name in ("v", "w"):
        for sender in ("s1", "s2"):
            numbers = [int(p.split(b":")[1]) for origin, p in cluster.delivered[ProcessId(name)] if origin == sender]
            assert numbers == sorted(set(numbers))
            assert len(numbers) > 20


def test_a_receiver_that_comes_later_begins_where_it_is_told_and_misses_nothing_after() -> None:
    cluster = Cluster(
        3, {"r1": "total", "late": "total", "r2": "fifo"}, link_faults=ROUGH, absent=frozenset({"late", "r2"})
    )
    cluster.run(3000)
    busy(cluster, 3, 20)
    cluster.join("late")
    cluster.join("r2")
    busy(cluster, 3, 200)
    cluster.run(20_000)
    everything, late = cluster.payloads("s1"), cluster.payloads("late")
    assert late
    assert late == everything[everything.index(late[0]) :]
    for sender in ("s1", "s2", "s3"):
        own = [payload for origin, payload in cluster.delivered[ProcessId("r2")] if origin == sender]
        all_of_it = [payload for origin, payload in cluster.delivered[ProcessId("s1")] if origin == sender]
        assert own
        assert own == all_of_it[all_of_it.index(own[0]) :]
    assert [view.members for view in cluster.views[ProcessId("late")]] == [("s1", "s2", "s3")]


def test_a_receiver_that_leaves_does_not_delay_the_others() -> None:
    cluster = Cluster(2, {"r1": "total"})
    cluster.run(2000)
    busy(cluster, 2, 5)
    cluster.leave("r1")
    sent = busy(cluster, 2, 5)
    cluster.run(500)
    assert cluster.payloads("s1")[-10:] == cluster.payloads("s2")[-10:]
    assert {*sent} <= {*cluster.payloads("s1")}
    assert cluster.cores[ProcessId("s1")].unstable(GROUP) == 0


def test_a_receiver_that_stability_overtakes_is_told_and_starts_over() -> None:
    """R9, M16, J13, J16."""
    cluster = Cluster(2, {"r1": "total"}, settings=InterGroupSettings(suspect_after_ns=200 * MS))
    cluster.run(2000)
    busy(cluster, 2, 10)
    cluster.cut.add(ProcessId("r1"))
    busy(cluster, 2, 100)
    cluster.run(3000)
    assert cluster.cores[ProcessId("s1")].unstable(GROUP) == 0
    cluster.cut.clear()
    cluster.run(3000)
    sent = busy(cluster, 2, 20)
    cluster.run(3000)
    members = [view.members for view in cluster.views[ProcessId("r1")]]
    assert members == [("s1", "s2"), ("r1",), ("s1", "s2")]
    ids = [view.id for view in cluster.views[ProcessId("r1")]]
    assert ids == sorted(ids)
    assert {*sent} <= {*cluster.payloads("r1")}
    everything = cluster.payloads("s1")
    places = [everything.index(payload) for payload in cluster.payloads("r1")]
    assert places == sorted(set(places))


def test_a_full_window_stops_a_sender_until_half_of_it_is_stable() -> None:
    cluster = Cluster(2, settings=InterGroupSettings(window=8))
    sent = [cluster.send("s1") for _ in range(40)]
    assert cluster.said["data"] == 8
    cluster.run(5000)
    assert cluster.payloads("s2") == sent


@pytest.mark.parametrize("service", get_args(Service))
def test_frames_of_a_stranger_are_delivered_only_where_nothing_is_agreed(service: Service) -> None:
    """A reliable service delivers a sender that its view names, or that has told where it begins; others any sender."""
    cluster = Cluster(2, {"r1": service})
    cluster.run(1500)
    stranger, view = ProcessId("x"), cluster.views[ProcessId("s1")][0].id
    message = DataFrame(GROUP, stranger, 1, 7, view, 0, (b"?",), place=1)
    for name in ("r1", "s1"):
        for frame in (message, RepairFrame(GROUP, stranger, message), KeepAliveFrame(GROUP, stranger, 1, 9, view, 0)):
            cluster.hand(name, frame)
    sent = cluster.send("s1")
    cluster.run(1500)
    assert cluster.payloads("s1") == cluster.payloads("s2") == [sent]
    agreed = service in ("total", "fifo")
    assert cluster.payloads("r1") == ([sent] if agreed else [b"?", sent])
    assert cluster.members("r1")[-1] == (("s1", "s2") if agreed else ("s1", "s2", "x"))


QUICK = InterGroupSettings(window=8, suspect_after_ns=200 * MS)


def test_a_sender_with_a_stalled_application_blocks_all_and_nothing_is_lost() -> None:
    cluster = Cluster(2, settings=QUICK)
    cluster.stalled.add(ProcessId("s2"))
    sent = [cluster.send("s1") for _ in range(40)]
    cluster.run(5000)
    assert cluster.said["data"] == 8
    assert cluster.cores[ProcessId("s1")].unstable(GROUP) == 8
    cluster.resume("s2")
    cluster.run(5000)
    assert cluster.payloads("s1") == cluster.payloads("s2") == sent


@pytest.mark.parametrize("service", ["total", "fifo", "unreliable"])
def test_a_receiver_with_a_stalled_application_delays_others_briefly_and_starts_over(service: Service) -> None:
    """J13, J16: its queue is bounded, and the others wait for it no longer than RECV_STALL.

    A receiver of a reliable service begins again, with a view, when its application has consumed everything.
    """
    cluster = Cluster(2, {"r1": service}, settings=QUICK)
    cluster.run(2000)
    cluster.stalled.add(ProcessId("r1"))
    for _ in range(100):
        cluster.send("s1")
        cluster.run(30)
    assert len(cluster.payloads("s2")) == 100
    before = len(cluster.payloads("r1"))
    assert 0 < before < 60
    cluster.run(3000)
    assert len(cluster.payloads("r1")) == before
    cluster.resume("r1")
    cluster.run(3000)
    sent = [cluster.send("s1") for _ in range(5)]
    cluster.run(3000)
    assert cluster.payloads("r1")[before:] == sent
    members = [view.members for view in cluster.views[ProcessId("r1")]]
    assert members[-1] == ("s1", "s2")
    assert (("r1",) in members[1:-1]) == (service != "unreliable")


@pytest.mark.parametrize("skew_ms", [0, 10, 30, 100])
def test_delivery_takes_no_longer_than_the_corrected_bound(skew_ms: int) -> None:
    """X1: max over q of min(skew of q, d) + the longest silence + d, where q is behind by that much."""
    distance, silence = 30, 50
    cluster = Cluster(
        3,
        link_faults=LinkFaults(latency=(distance * MS, distance * MS)),
        settings=InterGroupSettings(keep_alive_ns=(silence * MS, silence * MS)),
        skew={"s3": -skew_ms * MS},
    )
    cluster.run(500)
    for _ in range(100):
        cluster.send("s1")
        cluster.run(37)
    cluster.run(1000)
    bound = min(skew_ms, distance) + silence + distance
    assert len(cluster.payloads("s2")) == 100
    assert max(cluster.took) <= (bound + 0.01) * MS
    assert max(cluster.took) > 0.8 * bound * MS


def test_a_framed_receiver_is_told_what_it_lacks_and_gets_what_it_requests() -> None:
    """6.4: names are counted by container; keep-alives tell the counts; every message is delivered once."""
    cluster = Cluster(2, {"r1": "framed", "r2": "total"}, link_faults=ROUGH)
    cluster.run(500)
    sent = [cluster.send(sender, name=f"{kind}/{number}") for number in range(40) for kind, sender in NAMED]
    cluster.run(20_000)
    told = cluster.missed[ProcessId("r1")]
    missed, gone = ([effect for effect in told if effect.gone is over] for over in (False, True))
    assert {effect.container for effect in missed} == {b"bids", b"asks"}
    assert len({*cluster.payloads("r1")}) == len(cluster.payloads("r1")) == len(sent) - len(gone)
    assert sum(len(effect.places) for effect in missed) > 2 * len(gone)


def test_a_stable_message_may_be_gone_when_an_application_asks_for_it_late() -> None:
    cluster = Cluster(2, {"r1": "framed"})
    cluster.wants = False
    cluster.run(500)
    cluster.cut.add(ProcessId("r1"))
    cluster.send("s1", name="bids/0")
    cluster.run(2000)
    cluster.cut.clear()
    cluster.run(500)
    told = cluster.missed[ProcessId("r1")]
    assert [(effect.sender, effect.container, effect.places) for effect in told] == [("s1", b"bids", (1,))]
    cluster.ask("r1", told[0])
    cluster.run(2000)
    assert [effect.gone for effect in told] == [False, True]
    said = cluster.said["request"]
    cluster.run(20_000)
    assert cluster.said["request"] == said
    assert cluster.payloads("r1") == []


NAMED = (("bids", "s1"), ("asks", "s1"), ("bids", "s2"))
