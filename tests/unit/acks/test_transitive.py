"""Transitive acknowledgments: lists, the graph, waiting messages, removed processes, messages listed alone (T12)."""

from antiphon.protocols.acks.acknowledging.transitive import TransitiveAcks
from antiphon.protocols.acks.settings import Role
from antiphon.types import ProcessId
from tools.lab.acks_cluster import NEVER_NS, UNIT, AcksCluster


def protocol(cluster: AcksCluster, name: str) -> TransitiveAcks:
    found = cluster.group(name).protocol
    assert isinstance(found, TransitiveAcks)
    return found


def nodes(cluster: AcksCluster, name: str) -> int:
    return sum(len(chain.nodes) for chain in protocol(cluster, name)._graph.chains.values())


def silent(*names: str, **options: object) -> AcksCluster:
    """No process transmits unless the test says so."""
    options = {"send_every_ns": NEVER_NS, "ack_every_ns": NEVER_NS, **options}
    return AcksCluster(*names, kind="transitive", first_sends=dict.fromkeys(names, NEVER_NS), **options)  # type: ignore[arg-type]


def pasts(cluster: AcksCluster, name: str) -> list[tuple[str, ...]]:
    """The list of each message of a process, by sender and number: a1 is the first of a."""
    stamps = {
        (sender, frame.stamp): n for sender in cluster.names for n, frame in enumerate(cluster.spoken[sender], start=1)
    }
    return [tuple(f"{sender}{stamps[sender, stamp]}" for sender, stamp in frame.past) for frame in cluster.spoken[name]]


def test_a_message_lists_its_direct_predecessors_only() -> None:
    """b answers a; c has both, and lists b's message, which implies a's."""
    cluster = silent("a", "b", "c")
    cluster.send("a")
    cluster.run(UNIT)
    cluster.send("b")
    cluster.run(2 * UNIT)
    cluster.send("c")
    assert [pasts(cluster, name) for name in "abc"] == [[()], [("a1",)], [("b1",)]]
    cluster.run(3 * UNIT)
    assert cluster.unstable("a") == 0  # acknowledged by b directly, by c through b
    assert cluster.unstable("b") == 1  # a has sent nothing since
    cluster.send("a")
    assert pasts(cluster, "a")[1] == ("c1",)
    cluster.run(4 * UNIT)
    assert cluster.unstable("b") == 0


def test_concurrent_messages_are_both_listed() -> None:
    cluster = silent("a", "b", "c")
    cluster.send("a")
    cluster.send("b")
    cluster.run(UNIT)
    cluster.send("c")
    assert pasts(cluster, "c") == [("a1", "b1")]


def test_a_message_that_arrives_before_its_predecessor_is_listed_after_it() -> None:
    """It is still delivered at once: the order is FIFO, not causal."""
    cluster = silent("a", "b", "c")
    cluster.held.add(("a", "c"))
    cluster.send("a")
    cluster.run(UNIT)
    cluster.send("b")
    cluster.run(2 * UNIT)
    assert cluster.delivered["c"] == [("b", 0)]
    cluster.send("c")
    assert pasts(cluster, "c") == [()]  # otherwise c would acknowledge a's message, which it lacks
    cluster.run(3 * UNIT)
    assert cluster.unstable("a") == 1
    cluster.release("a", "c")
    cluster.send("c")
    assert pasts(cluster, "c")[1] == ("b1",)
    cluster.run(4 * UNIT)
    assert cluster.unstable("a") == 0


def test_an_acknowledgment_that_arrives_before_what_it_is_about_is_not_lost() -> None:
    """a receives c's list before b's message, which lies between; when that arrives, a knows."""
    cluster = silent("a", "b", "c")
    cluster.held.add(("b", "a"))
    cluster.send("a")
    cluster.run(UNIT)
    cluster.send("b")
    cluster.run(2 * UNIT)
    cluster.send("c")
    cluster.run(3 * UNIT)
    assert cluster.unstable("a") == 1
    cluster.release("b", "a")
    assert cluster.unstable("a") == 0


def test_nodes_are_removed_when_all_have_acknowledged_them() -> None:
    cluster = AcksCluster("a", "b", "c", "d", kind="transitive")
    most = 0
    for time in range(100):
        cluster.at(time * UNIT // 3, cluster.send, "abcd"[time % 4])
    for time in range(60):
        cluster.run(time * UNIT)
        most = max(most, *(nodes(cluster, name) for name in cluster.names))
    assert most <= 40
    assert not any(cluster.unstable(name) for name in cluster.names)


def test_nodes_go_where_some_only_send_and_some_only_receive() -> None:
    """No sender waits for the acknowledgments of processes that receive nothing."""
    roles: dict[str, Role] = {"a": "sender", "b": "sender", "c": "receiver", "d": "receiver", "e": "both"}
    cluster = AcksCluster(roles=roles, kind="transitive")
    cluster.run(100 * UNIT)
    assert max(nodes(cluster, name) for name in cluster.names) <= 40
    assert all(frame.past == () for name in "ab" for frame in cluster.spoken[name])


def test_nodes_of_processes_that_left_are_removed() -> None:
    cluster = AcksCluster("a", "b", "c", kind="transitive")
    for time in range(10, 200, 10):
        cluster.at(time * UNIT, cluster.leave if time % 20 else cluster.join, "c")
    cluster.run(200 * UNIT)
    assert max(nodes(cluster, name) for name in cluster.names) <= 20


def strangers(literal: tuple[str, ...]) -> AcksCluster:
    """y is connected with s and x, but not yet with z, and the message from s to y is still in transit.

    In each unit s transmits first, then z, which lists s's message, then x, which lists z's, then y, which does not
    know z.
    """
    phases = {name: rank * UNIT // 4 for rank, name in enumerate(("s", "z", "x", "y"))}
    cluster = AcksCluster(
        *phases, kind="transitive", absent=["y"], literal=literal, latency=UNIT // 10, first_sends=phases
    )
    cluster.run(UNIT)
    cluster.held.add(("y", "z"))
    cluster.join("y")
    cluster.run(10 * UNIT)
    assert "y" in cluster.group("s").connections.receivers
    assert "z" not in cluster.group("y").links.peers
    cluster.held.add(("s", "y"))
    cluster.send("s")
    cluster.run(20 * UNIT)
    assert ("y", "s", 0) not in cluster.delivered_at
    return cluster


def test_t12_acknowledging_an_unknown_past_acknowledges_missing_messages() -> None:
    """docs/spec/stability.md 3 as printed: y lists x's message, that lists z's, and that s's: so y would have it."""
    cluster = strangers(("T12",))
    assert ("s", "s", 0) in cluster.stable_at


def test_t12_a_message_with_an_unknown_past_is_acknowledged_alone() -> None:
    cluster = strangers(())
    assert cluster.unstable("s") == 1
    assert any(frame.alone for frame in cluster.spoken["y"])
    for pair in [*cluster.held]:
        cluster.release(*pair)
    cluster.run(30 * UNIT)
    assert cluster.unstable("s") == 0
    assert ("y", "s", 0) in cluster.delivered_at
    assert not any(frame.alone for frame in cluster.spoken["y"][-5:])


def crashed_in_the_middle(literal: tuple[str, ...]) -> AcksCluster:
    """z's message lists s's. It reaches x and s, but not y, because z crashes; y learns of the crash before s."""
    cluster = silent("s", "x", "y", "z", literal=literal)
    cluster.held |= {("s", "y"), ("z", "y")}
    cluster.send("s")
    cluster.run(UNIT)
    cluster.send("z")
    cluster.run(2 * UNIT)
    cluster.crash("z")
    cluster.send("x")
    cluster.run(3 * UNIT)
    cluster.cores["y"].lost(ProcessId("z"), cluster.now)
    cluster.settle("y")
    cluster.send("y")
    cluster.run(4 * UNIT)
    assert ("y", "s", 0) not in cluster.delivered_at
    return cluster


def test_t12_the_list_of_a_crashed_process_is_not_vouched_for() -> None:
    assert ("s", "s", 0) in crashed_in_the_middle(("T12",)).stable_at
    assert crashed_in_the_middle(()).unstable("s") == 1


def test_where_all_is_watched_every_process_learns_about_all_messages() -> None:
    cluster = AcksCluster("a", "b", "c", kind="transitive", stability="all")
    cluster.send("a")
    cluster.run(10 * UNIT)
    assert {name for name, sender, _ in cluster.stable_at if sender == "a"} == {"a", "b", "c"}
