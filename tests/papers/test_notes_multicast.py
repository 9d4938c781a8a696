"""The scenarios of the Notes and algorithms R, F and C (docs/spec/multicast.md 1, 2)."""

import pytest

from antiphon.core.effects import Deliver, Transmit
from antiphon.protocols.classic.frames import DataFrame, RelayFrame
from antiphon.protocols.classic.settings import Service
from tests.support.classic_cluster import SERVICES, ClassicCluster, only_to


def balances(cluster: ClassicCluster) -> list[int]:
    """An account of £1000 at each replica, after the updates in the order of their delivery."""
    results = []
    for name in cluster.survivors:
        balance = 1000
        for update in cluster.payloads(name):
            balance = balance + 100 if update == b"+100" else balance * 110 // 100
        results.append(balance)
    return results


@pytest.mark.parametrize(("service", "different"), [("causal", 2), ("total", 1)])
def test_replicas_of_an_account_agree_only_in_total_order(service: Service, different: int) -> None:
    """ "Lodge £100" and "add 10 % interest", sent at the same time, are not causally related."""
    cluster = ClassicCluster("p", "q", service=service)
    cluster.send("p", b"+100")
    cluster.send("q", b"+10%")
    cluster.move_all()
    assert len(set(balances(cluster))) == different


@pytest.mark.parametrize(("service", "understood"), [("fifo", False), ("causal", True)])
def test_network_news_can_be_understood_in_causal_order_only(service: Service, understood: bool) -> None:
    """A broadcasts an article, B a response to it. C gets B's packet first."""
    cluster = ClassicCluster("A", "B", "C", service=service)
    cluster.send("A", b"article")
    cluster.move("A", "B")
    cluster.send("B", b"response")
    cluster.move_kind("data", "B", "C")
    assert cluster.payloads("C") == ([b"article", b"response"] if understood else [b"response"])


@pytest.mark.parametrize("service", SERVICES)
def test_a_source_may_be_outside_the_group(service: Service) -> None:
    """Diagram (a) of the notes: the source is outside the group and sends to it."""
    cluster = ClassicCluster("p", "q", service=service, outside=["s"])
    cluster.send("s", b"m1")
    cluster.move_all()
    cluster.send("s", b"m2")
    cluster.move_all()
    assert cluster.payloads("p") == cluster.payloads("q") == [b"m1", b"m2"]
    assert cluster.payloads("s") == []


def test_r_relays_before_it_delivers() -> None:
    cluster = ClassicCluster("p", "q", "r", service="reliable")
    cluster.send("p", b"m")
    cluster.move("p", "q")
    match cluster.effects["q"][-2:]:
        case [Transmit(frame=RelayFrame(relayed=first)), Deliver(frame=second)]:
            assert first == second == DataFrame(first.group, first.sender, 1, (b"m",))
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("service", SERVICES[:3])
def test_agreement_when_the_originator_dies_half_way(service: Service) -> None:
    """m reached only q; q relays it before it delivers it, so r gets it too."""
    cluster = ClassicCluster("p", "q", "r", service=service)
    cluster.send("p", b"m")
    cluster.crash("p", only_to("q"))
    cluster.move("p", "q")
    assert cluster.payloads("q") == [b"m"]
    cluster.tell()
    cluster.move_all()
    assert cluster.payloads("r") == [b"m"]


def test_an_originator_that_dies_before_any_process_has_its_message_has_sent_nothing() -> None:
    """ "No process can be aware of the originator's intention and so the multicast must be aborted." """
    cluster = ClassicCluster("p", "q", "r", service="reliable")
    cluster.send("p", b"m")
    cluster.crash("p", only_to())
    cluster.tell()
    cluster.move_all()
    assert cluster.payloads("q") == cluster.payloads("r") == []


@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_r_costs_n_squared_frames(members: int) -> None:
    """n + (n-1)·n in the notes, which count the copy of each process to itself; ours does not travel.

    We count frames per receiver: (n-1) + (n-1)·(n-1) for a member. A source outside has n receivers: n + n·(n-1).
    """
    names = [f"p{i}" for i in range(members)]
    cluster = ClassicCluster(*names, service="reliable", outside=["s"])
    cluster.send("p0", b"m")
    cluster.move_all()
    assert len(cluster.travelled) == members * (members - 1)
    cluster.travelled.clear()
    cluster.send("s", b"m")
    cluster.move_all()
    assert len(cluster.travelled) == members * members


def test_f_delivers_in_the_order_of_sending() -> None:
    """The message bag: q gets 3, then 2, then 1."""
    cluster = ClassicCluster("p", "q", service="fifo")
    for payload in (b"1", b"2", b"3"):
        cluster.send("p", payload)
    cluster.move("p", "q", 2)
    cluster.move("p", "q", 1)
    assert cluster.payloads("q") == []
    cluster.move("p", "q", 0)
    assert cluster.payloads("q") == [b"1", b"2", b"3"]


def test_c_brings_the_context_along() -> None:
    """p sends a; q, after a, sends b; r gets q's packet ⟨a, b⟩ first, delivers a and b, and ignores a later."""
    cluster = ClassicCluster("p", "q", "r", service="causal")
    cluster.send("p", b"a")
    cluster.move("p", "q")
    cluster.send("q", b"b")
    packet = cluster.links["q", "r"][cluster.under_way("q", "r", "data")]
    assert [copy.payloads for copy in packet.copies] == [(b"a",)]
    cluster.move_kind("data", "q", "r")
    assert cluster.payloads("r") == [b"a", b"b"]
    cluster.move_all()
    assert cluster.payloads("r") == [b"a", b"b"]
    assert cluster.payloads("p") == cluster.payloads("q") == [b"a", b"b"]
