"""Worked examples of Macedo94 with overlapping groups: chapters 2 and 4; numbering of cases as in the specification."""

import pytest

from antiphon.protocols.newtop.ordering.blocks import TotalOrder
from tests.support.cluster import SLOW_NS, Cluster

PQ = {"g1": ["p", "q", "r"], "g2": ["p", "q", "s"]}


def nulls(cluster: Cluster, name: str) -> list[tuple[str, int]]:
    return [(frame.group, frame.block) for frame in cluster.transmitted[name] if not frame.payloads]


def test_figure_2_3_two_groups_two_members_in_both_one_order() -> None:
    """Fig. 2.3: r sends m in g1, s sends m' in g2; p receives m, m', q receives m', m; both deliver m, m'."""
    cluster = Cluster(groups=PQ, silence_timeout_ns=SLOW_NS)
    cluster.send("r", b"m", group="g1")
    cluster.send("s", b"m'", group="g2")
    cluster.move("r", "p")
    assert nulls(cluster, "p") == [("g2", 1)]  # rule CA4: m makes p transmit in g2
    cluster.move("s", "q")
    assert nulls(cluster, "q") == [("g1", 1)]
    cluster.move_all()
    assert cluster.delivered["p"] == cluster.delivered["q"] == []  # p owes a number in g1, q one in g2
    cluster.wait(SLOW_NS)
    assert ("g1", 1) in nulls(cluster, "p")
    assert ("g2", 1) in nulls(cluster, "q")
    cluster.move_all()
    assert cluster.delivered["p"] == cluster.delivered["q"] == [b"m", b"m'"]


def test_figure_4_1_a_cause_in_one_group_precedes_its_effect_in_another() -> None:
    """Fig. 4.1: 3 delivers m1 of g1 and sends m2 in g2; 4, in both, gets m2 first and delivers m1, m2."""
    cluster = Cluster(groups={"g1": ["1", "2", "3", "4"], "g2": ["3", "4", "5", "6"]})
    cluster.send("1", b"m1", group="g1")
    while b"m1" not in cluster.delivered["3"]:
        for sender, receiver in [pair for pair, frames in cluster.channels.items() if frames and pair != ("1", "4")]:
            cluster.move(sender, receiver)
    assert cluster.delivered["4"] == []
    cluster.send("3", b"m2", group="g2")
    m1, m2 = cluster.transmitted["1"][0], cluster.transmitted["3"][-1]
    assert m2.block > m1.block
    cluster.move("3", "4", len(cluster.channels["3", "4"]))
    assert cluster.delivered["4"] == []
    cluster.finish()
    assert cluster.delivered["4"] == [b"m1", b"m2"]


def test_figure_4_2a_nothing_above_a_block_that_another_group_may_still_fill() -> None:
    """Fig. 4.2a: m1 of r and m2 of s have the same number; r goes on at once, m2 is slow."""
    cluster = Cluster(groups=PQ)
    cluster.send("r", b"m1", group="g1")
    cluster.send("r", b"m3", group="g1")
    cluster.send("r", b"m4", group="g1")
    cluster.send("s", b"m2", group="g2")
    slow = {("s", "p"), ("s", "q")}
    for _ in range(50):
        for sender, receiver in [pair for pair, frames in cluster.channels.items() if frames and pair not in slow]:
            cluster.move(sender, receiver)
    assert cluster.delivered["p"] == cluster.delivered["q"] == []
    cluster.finish()
    assert cluster.delivered["p"] == cluster.delivered["q"] == [b"m1", b"m2", b"m3", b"m4"]


def test_figure_4_2a_fails_without_the_other_groups_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with per-group delivery (safe1 in place of safe1'): the test above must be able to fail."""

    def safe1(self: TotalOrder) -> int:
        return max(column.minimum for column in self._columns)

    monkeypatch.setattr(TotalOrder, "_complete_everywhere", safe1)
    with pytest.raises(AssertionError):
        test_figure_4_2a_nothing_above_a_block_that_another_group_may_still_fill()


def test_figure_4_2a_variant_a_silent_group_does_not_stop_the_other() -> None:
    """s never sends: the null that q sends in g2 makes s answer, and m1 is delivered."""
    cluster = Cluster(groups=PQ, silence_timeout_ns=SLOW_NS)
    cluster.send("r", b"m1", group="g1")
    cluster.finish()
    assert ("g2", 1) in nulls(cluster, "q")
    assert ("g2", 1) in nulls(cluster, "s")
    assert cluster.delivered["p"] == cluster.delivered["q"] == cluster.delivered["r"] == [b"m1"]
    assert cluster.delivered["s"] == []


def test_figure_4_2b_a_cycle_of_three_groups() -> None:
    """Fig. 4.2b: m1(p,g2) -> m2(p,g1) -> m3(q,g3); r gets m3 before m1, and delivers m1, m3."""
    cluster = Cluster(groups={"g1": ["p", "q"], "g2": ["p", "r"], "g3": ["q", "r"]})
    cluster.send("p", b"m1", group="g2")
    cluster.send("p", b"m2", group="g1")
    late = ("p", "r")
    for _ in range(50):
        for sender, receiver in [pair for pair, frames in cluster.channels.items() if frames and pair != late]:
            cluster.move(sender, receiver)
    cluster.send("q", b"m3", group="g3")
    blocks = {
        frame.payloads[0]: frame.block for sent in cluster.transmitted.values() for frame in sent if frame.payloads
    }
    assert (blocks[b"m1"], blocks[b"m2"], blocks[b"m3"]) == (1, 2, 3)
    cluster.move("q", "r", len(cluster.channels["q", "r"]))
    assert ("g2", 3) in nulls(cluster, "r")
    assert cluster.delivered["r"] == []
    cluster.finish()
    assert cluster.delivered["r"] == [b"m1", b"m3"]
    assert max(frame.block for frame in cluster.transmitted["p"] if frame.group == "g2") >= 3


def test_section_4_5_2_nulls_of_one_process_may_go_down_from_group_to_group() -> None:
    """Observation 2: with BC = 0, 4 comes in x, 2 in y; the nulls are 4 in x and 2 in y, and BC stays 4.

    The numbers come in nulls, for data would cause cross-group nulls too.
    """
    cluster = Cluster(
        groups={"w": ["a", "d"], "x": ["a", "i"], "y": ["b", "i"], "z": ["b", "e"]},
        service="causal-fast",
        silence_timeout_ns=SLOW_NS,
    )
    for count, (sender, group) in ((4, ("a", "w")), (2, ("b", "z"))):
        for _ in range(count):
            cluster.send(sender, b"raise the counter", group=group)
    cluster.send("a", b"5", group="x")
    cluster.send("b", b"3", group="y")
    cluster.move("a", "i")
    cluster.move("b", "i")
    cluster.wait(SLOW_NS)
    assert nulls(cluster, "i") == [("x", 5), ("y", 3)]
    cluster.send("i", b"next", group="y")
    assert cluster.transmitted["i"][-1].block == 6


@pytest.mark.parametrize("service", ["total", "causal-slow", "causal-fast", "causal-relative", "causal-vector"])
@pytest.mark.parametrize("flow_control", [0, 1, 2, 3])
def test_a_process_in_ten_groups(service: str, flow_control: int) -> None:
    """Ten groups around one process: all messages arrive, and the middle sees each sender's in order."""
    groups = {f"g{number}": ["middle", f"p{number}", f"q{number}"] for number in range(10)}
    cluster = Cluster(groups=groups, service=service, flow_control=flow_control, window=3)
    for step in range(6):
        for number in range(10):
            cluster.send(
                "middle" if step == number % 6 else f"p{number}", b"%d:%d" % (number, step), group=f"g{number}"
            )
    cluster.finish(rounds=30)
    assert len(cluster.delivered["middle"]) == 60
    for number in range(10):
        own = [payload for payload in cluster.delivered[f"q{number}"] if payload.startswith(b"%d:" % number)]
        assert len(own) == 6
