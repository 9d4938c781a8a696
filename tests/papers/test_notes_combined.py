"""Notes: "FIFO or Causal Ordering can be combined with Total Ordering if required" (docs/spec/multicast.md 3.2)."""

import pytest

from antiphon.protocols.classic.settings import Service
from tests.support.classic_cluster import ClassicCluster, faults


def test_total_order_alone_does_not_keep_the_order_of_a_sender() -> None:
    """Both sites receive the second message first, and propose for it first."""
    cluster = ClassicCluster("1", "2", outside=["s"])
    cluster.send("s", b"first")
    cluster.send("s", b"second")
    for site in ("1", "2"):
        cluster.move("s", site, which=1)
        cluster.move("s", site)
    cluster.move_all()
    assert cluster.payloads("1") == cluster.payloads("2") == [b"second", b"first"]


@pytest.mark.parametrize("service", ["fifo-total", "causal-total"])
def test_the_next_message_leaves_when_the_one_before_is_committed(service: Service) -> None:
    """Every live site holds the first one by then, so a crash leaves no gap. The commit may overtake nothing."""
    cluster = ClassicCluster("1", "2", outside=["s"], service=service, clocks={"1": 15, "2": 16})
    cluster.send("s", b"first")
    cluster.send("s", b"second")
    assert [frame.kind for frame in cluster.links["s", "1"]] == ["data"]
    for site in ("1", "2"):
        cluster.move("s", site)
        cluster.move(site, "s")
    assert [frame.kind for frame in cluster.links["s", "1"]] == ["commit", "data"]
    cluster.move_kind("data", "s", "1")
    assert cluster.queue("1") == ["first 15.1u", "second 17.1u"]  # above 16.2, which it has not been told
    cluster.move_all()
    assert cluster.payloads("1") == cluster.payloads("2") == [b"first", b"second"]
    assert not faults(cluster)


@pytest.mark.parametrize(
    ("service", "proposal", "order"),
    [
        ("total", 6, [b"second", b"first"]),
        ("fifo-total", 51, [b"first", b"second"]),
        ("causal-total", 51, [b"first", b"second"]),
    ],
)
def test_a_taker_keeps_the_order_of_the_lost_sender(service: Service, proposal: int, order: list[bytes]) -> None:
    """s commits its first message under 50, the time of site 2, and crashes with site 2; site 1 completes the second.

    Only the proposal of site 1 is left. It must be above a stamp that site 1 did not know when it proposed.
    """
    cluster = ClassicCluster("1", "2", outside=["s"], service=service, clocks={"1": 5, "2": 50})
    cluster.send("s", b"first")
    cluster.move("s", "1")
    cluster.move("s", "2")
    cluster.move("1", "s")
    cluster.move("2", "s")
    cluster.send("s", b"second")
    cluster.move_kind("data", "s", "1")
    assert cluster.queue("1") == ["first 5.1u", f"second {proposal}.1u"]
    cluster.move_kind("commit", "s", "1")
    for name in ("2", "s"):
        cluster.crash(name, lambda _receiver, _frame: False)
    cluster.tell()
    cluster.move_all()
    assert cluster.payloads("1") == order


@pytest.mark.parametrize(
    ("service", "proposal", "order"),
    [
        ("total", 6, [b"answer", b"question"]),
        ("fifo-total", 6, [b"answer", b"question"]),
        ("causal-total", 51, [b"question", b"answer"]),
    ],
)
def test_a_taker_keeps_causal_order(service: Service, proposal: int, order: list[bytes]) -> None:
    """Site 3 delivers the question, answers, and crashes with site 2, whose proposal had become the stamp.

    While site 3 lives, its own proposal keeps the answer above the question in all three services.
    """
    cluster = ClassicCluster("1", "2", "3", outside=["s"], service=service, clocks={"1": 5, "2": 50, "3": 5})
    cluster.send("s", b"question")
    for site in ("1", "2", "3"):
        cluster.move("s", site)
        cluster.move(site, "s")
    cluster.move_kind("commit", "s", "3")
    assert cluster.payloads("3") == [b"question"]
    cluster.send("3", b"answer")
    cluster.move_kind("data", "3", "1")
    assert cluster.queue("1") == ["question 5.1u", f"answer {proposal}.1u"]
    for name in ("2", "3"):
        cluster.crash(name, lambda _receiver, _frame: False)
    cluster.tell()
    cluster.move_all()
    assert cluster.payloads("1") == order


@pytest.mark.parametrize("service", ["fifo-total", "causal-total"])
def test_the_combination_costs_no_frame(service: Service) -> None:
    """As in A: 3·(n-1) from inside."""
    cluster = ClassicCluster("1", "2", "3", service=service)
    for number in range(4):
        cluster.send("1", b"%d" % number)
    cluster.move_all()
    assert cluster.kinds() == {"data": 8, "proposal": 8, "commit": 8}
