"""Containers of the framed service: many of them, and too many (docs/spec/intergroup.md 6.4)."""

from itertools import count

import pytest

from antiphon.errors import ConfigurationError
from antiphon.protocols.intergroup.delivery import containers
from antiphon.protocols.intergroup.delivery.containers import CONTAINERS_TOLD, CollectedMessages, ContainerCounts
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId
from tests.support.intergroup_cluster import MS, Cluster, LinkFaults

A = ProcessId("a")
MANY = CONTAINERS_TOLD + 8


def test_counters_are_kept_however_many_containers_there_are() -> None:
    counts = ContainerCounts()
    for turn in range(1, 4):
        assert {counts.next_place(f"c{number}/{turn}".encode()) for number in range(MANY)} == {turn}


def test_keep_alives_tell_of_all_containers_in_turn() -> None:
    counts = ContainerCounts()
    for number in range(MANY):
        counts.next_place(f"c{number}/x".encode())
    first, second, third = counts.told(), counts.told(), counts.told()
    assert len(first) == CONTAINERS_TOLD
    assert {*first, *second} == {(f"c{number}".encode(), 1) for number in range(MANY)}
    assert third == first


@pytest.mark.parametrize("pause_ms", [0, 20])
def test_a_receiver_gets_or_is_told_of_every_message_of_many_containers(pause_ms: int) -> None:
    """In one burst a sender once ended with a KeyError; sent slowly, a receiver once had 40 of 120 messages."""
    faults = LinkFaults(loss=0.2, latency=(2 * MS, 25 * MS))
    cluster = Cluster(1, {"r1": "framed", "r2": "total"}, link_faults=faults)
    cluster.run(2_500)
    sent = set()
    for number in range(120):
        sent.add(cluster.send("s1", name=f"c{number % 40}/{number}"))
        cluster.run(pause_ms)
    cluster.run(30_000)
    gone = sum(len(effect.places) for effect in cluster.missed[ProcessId("r1")] if effect.gone)
    got = cluster.payloads("r1")
    assert len(got) == len({*got}) == len(sent) - gone
    assert gone < len(sent) // 4
    assert {*cluster.payloads("r2")} == sent


def test_a_container_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "CONTAINERS_MAX", 3)
    counts = ContainerCounts()
    for number in range(3):
        counts.admit(f"c{number}/x".encode())
        counts.next_place(f"c{number}/x".encode())
    counts.admit(b"c0/y")
    with pytest.raises(ConfigurationError, match="at most 3 containers"):
        counts.admit(b"c3/x")


def test_a_receiver_keeps_no_more_containers_than_a_sender_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "CONTAINERS_MAX", 3)
    collected, places = CollectedMessages(), count(1)
    assert all(collected.add(Ticket(A, next(places), f"c{number}".encode())) for number in range(3))
    assert not collected.add(Ticket(A, 1, b"c3"))
    assert collected.newly_missing(A, b"c3", 10) == ()
    assert collected.add(Ticket(ProcessId("b"), 1, b"c3"))
