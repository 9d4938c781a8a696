"""Berket98 figures 1, 3 and 4, and the errata T6 and T9: every value that the paper prints.

From docs/spec/stability.md 2, 6.
"""

from antiphon.protocols.acks.frames import AckFrame
from antiphon.protocols.acks.settings import Role
from antiphon.types import ProcessId
from tools.lab.acks_cluster import NEVER_NS, UNIT, AcksCluster

ROLES: dict[str, Role] = {"s1": "sender", "s2": "sender", "r1": "receiver", "r2": "receiver"}


def vector_of(cluster: AcksCluster, name: str) -> dict[str, int]:
    """The timestamp vector of a receiver."""
    return dict(cluster.group(name).protocol._last_received._values)  # type: ignore[attr-defined]


def clocks(cluster: AcksCluster) -> dict[str, int]:
    return {name: cluster.group(name)._clock.value for name in cluster.names}


def last_ack(cluster: AcksCluster, name: str) -> AckFrame:
    frame = cluster.acked[name][-1]
    assert isinstance(frame, AckFrame)
    return frame


# Figure 3: sends at the start and at 3, acknowledgments at 2 and 5, a time unit on the way


def figure_3(clock: str, literal: tuple[str, ...] = ()) -> AcksCluster:
    return AcksCluster(
        roles=ROLES,
        clock=clock,
        literal=literal,
        send_every_ns=NEVER_NS,
        ack_every_ns=3 * UNIT,
        first_sends=dict.fromkeys(ROLES, NEVER_NS),
        first_acks=dict.fromkeys(ROLES, 2 * UNIT),
    )


def step_a(cluster: AcksCluster) -> None:
    """s1 sends five messages, then s2 one."""
    cluster.run(10)
    cluster.send("s1", 5)
    cluster.run(20)
    cluster.send("s2")
    cluster.run(2 * UNIT - 1)


def test_figure_3_logical_clocks_step_by_step() -> None:
    """(a) to (d): two rounds until the buffers are empty."""
    cluster = figure_3("logical")
    step_a(cluster)
    assert [frame.stamp for frame in cluster.spoken["s1"]] == [1, 2, 3, 4, 5]
    assert [frame.stamp for frame in cluster.spoken["s2"]] == [1]
    assert vector_of(cluster, "r1") == vector_of(cluster, "r2") == {"s1": 5, "s2": 1}
    assert clocks(cluster) == {"s1": 5, "s2": 1, "r1": 5, "r2": 5}

    cluster.run(3 * UNIT)  # (b)
    assert [(last_ack(cluster, r).value, last_ack(cluster, r).time) for r in ("r1", "r2")] == [(1, 6), (1, 6)]
    assert cluster.buffered("s1") == [2, 3, 4, 5]
    assert cluster.buffered("s2") == []
    assert clocks(cluster) == {"s1": 6, "s2": 6, "r1": 6, "r2": 6}

    cluster.send("s1")  # (c)
    cluster.send("s2")
    cluster.run(5 * UNIT - 1)
    assert [cluster.spoken[s][-1].stamp for s in ("s1", "s2")] == [7, 7]
    assert vector_of(cluster, "r1") == vector_of(cluster, "r2") == {"s1": 7, "s2": 7}

    cluster.run(7 * UNIT)  # (d)
    assert [last_ack(cluster, r).value for r in ("r1", "r2")] == [7, 7]
    assert cluster.buffered("s1") == cluster.buffered("s2") == []
    assert len(cluster.acked["r1"]) == 2  # rounds


def test_figure_3_physical_clocks_need_one_round() -> None:
    """s2's message has a later stamp than s1's fifth: the first acknowledgments empty s1's buffer."""
    cluster = figure_3("physical")
    step_a(cluster)
    assert cluster.spoken["s2"][0].stamp > cluster.spoken["s1"][4].stamp
    cluster.run(4 * UNIT)
    assert cluster.buffered("s1") == []
    assert len(cluster.acked["r1"]) == 1


def test_t9_adding_one_on_receipt_does_not_give_the_figure() -> None:
    """With it r1's clock is 7 after the six messages and its acknowledgment carries 8; the next stamps are not 7."""
    cluster = figure_3("logical", literal=("T9",))
    step_a(cluster)
    assert clocks(cluster) == {"s1": 5, "s2": 1, "r1": 7, "r2": 7}
    cluster.run(4 * UNIT)
    assert [last_ack(cluster, r).time for r in ("r1", "r2")] == [8, 8]
    assert clocks(cluster) == {"s1": 10, "s2": 10, "r1": 8, "r2": 8}  # 8, and one more for each acknowledgment
    cluster.send("s1")
    assert cluster.spoken["s1"][-1].stamp == 11


# Figure 4: nodes 1, 2, 3 are all both; a nanosecond on the way; all acknowledge at 50


def figure_4(*, section_6: bool, sources: dict[str, list[str]] | None) -> AcksCluster:
    cluster = AcksCluster(
        "n1",
        "n2",
        "n3",
        sources=sources,
        literal=() if section_6 else ("FIG-4",),
        latency=1,
        send_every_ns=NEVER_NS,
        ack_every_ns=NEVER_NS,
        first_sends={"n1": NEVER_NS, "n2": NEVER_NS, "n3": 40},
        first_acks={"n1": 50, "n2": 50, "n3": 50},
    )
    cluster.held.add(("n1", "n3"))  # frames from n1 to n3 are lost, and recovered only later
    cluster.at(22, cluster.send, "n2")  # A
    cluster.at(27, cluster.send, "n1")  # B
    cluster.at(33, cluster.send, "n2")  # C
    cluster.run(60)
    assert [frame.stamp for name in ("n2", "n1") for frame in cluster.spoken[name]] == [22, 33, 27]
    return cluster


def test_figure_4_without_section_6_a_message_is_lost() -> None:
    """Node 3 has the set {2, 3}: it acknowledges 33, node 2 27. Node 1 drops B, and node 3 never gets it."""
    cluster = figure_4(section_6=False, sources={"n3": ["n2"]})
    assert [last_ack(cluster, name).value for name in ("n2", "n3")] == [27, 33]
    assert ProcessId("n3") in cluster.group("n1").connections.receivers
    assert ("n1", "n1", 0) in cluster.stable_at
    assert cluster.buffered("n1") == []
    assert ("n3", "n1", 0) not in cluster.delivered_at


def test_figure_4_with_section_6_nothing_is_claimed_of_node_3() -> None:
    """Node 3 does not receive from node 1, so it is not in R_1; B is stable when node 2 has it."""
    cluster = figure_4(section_6=True, sources={"n3": ["n2"]})
    assert cluster.group("n1").connections.receivers == {"n2"}
    assert ("n2", "n1", 0) in cluster.delivered_at
    assert cluster.buffered("n1") == []


def test_figure_4_with_section_6_node_3_has_an_entry_for_node_1() -> None:
    """Then it acknowledges no more than it has of node 1, and B stays until it has arrived."""
    cluster = figure_4(section_6=True, sources=None)
    assert last_ack(cluster, "n3").value <= 22
    assert cluster.buffered("n1") == [27]
    cluster.release("n1", "n3")
    assert ("n3", "n1", 0) in cluster.delivered_at


# Figure 1 and T6


def test_figure_1_a_lost_acknowledgment_is_made_up_for_by_the_next() -> None:
    """A late acknowledgment changes nothing."""
    cluster = AcksCluster(roles={"s": "sender", "r": "receiver"})
    delays = iter([[], [9 * UNIT], *[[UNIT]] * 100])  # the first is lost, the second is late
    cluster.datagram = lambda *_: next(delays)
    cluster.send("s")
    cluster.run(20 * UNIT)
    assert cluster.unstable("s") == 0
    values = [frame.clock for frame in cluster.acked["r"]]
    assert values == sorted(values)
    assert cluster.group("s").protocol._acked_by["r"] == values[-2]  # type: ignore[index]


def two_messages_at_one_reading(literal: tuple[str, ...]) -> AcksCluster:
    cluster = AcksCluster(roles={"s": "sender", "r": "receiver"}, literal=literal, first_sends={"s": UNIT // 2})
    cluster.run(UNIT)
    cluster.send("s", 2)
    cluster.run(9 * UNIT)
    return cluster


def test_t6_as_printed_equal_wall_readings_lose_a_message() -> None:
    """The second message is ignored but acknowledged, and its sender frees it."""
    cluster = two_messages_at_one_reading(("T6",))
    assert cluster.delivered["r"] == [("s", 0)]
    assert cluster.unstable("s") == 0
    assert ("s", "s", 1) in cluster.stable_at


def test_t6_stamps_strictly_increase() -> None:
    cluster = two_messages_at_one_reading(())
    assert [frame.stamp for frame in cluster.spoken["s"] if frame.payloads] == [UNIT, UNIT + 1]
    assert cluster.delivered["r"] == [("s", 0), ("s", 1)]


def test_t6_a_clock_that_steps_back_loses_nothing() -> None:
    cluster = AcksCluster(roles={"s": "sender", "r": "receiver"})
    cluster.run(5 * UNIT)
    cluster.send("s")
    cluster.skews["s"] = -3 * UNIT
    cluster.send("s")
    cluster.run(20 * UNIT)
    assert cluster.delivered["r"] == [("s", 0), ("s", 1)]
    assert cluster.unstable("s") == 0
