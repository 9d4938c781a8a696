"""Berket98 §6 and T8, T13: joining and leaving, pair by pair (docs/spec/stability.md 4)."""

import pytest

from antiphon.protocols.acks.connections.connections import Connections
from antiphon.protocols.acks.frames import AckFrame
from antiphon.protocols.acks.settings import Role
from antiphon.types import ProcessId
from tests.support.acks_judge import Judge
from tools.lab.acks_cluster import GROUP, NEVER_NS, UNIT, AcksCluster

KINDS = ("timestamp", "vector", "explicit", "transitive")
PAIR: dict[str, Role] = {"s": "sender", "r": "receiver"}


def values(cluster: AcksCluster, name: str) -> list[int]:
    return [frame.value for frame in cluster.acked[name] if isinstance(frame, AckFrame)]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_1_to_4_in_their_order(kind: str) -> None:
    """r counts s when it acknowledges first; s counts r when it sends the next message after that."""
    cluster = AcksCluster(roles=PAIR, absent=["r"], kind=kind, first_acks={"r": 6 * UNIT})
    cluster.run(UNIT)
    cluster.join("r")  # s has the opening at 2, r the answer at 3, s its answer at 4
    cluster.run(4 * UNIT)
    if kind != "transitive":  # piggybacked acknowledgments: the answer is r's first frame
        assert cluster.group("r").connections.senders == set()
    assert cluster.group("s").connections.receivers == set()
    cluster.run(7 * UNIT)  # the first acknowledgment leaves
    assert cluster.group("r").connections.senders == {"s"}
    assert cluster.group("s").connections.receivers == set()
    cluster.run(8 * UNIT + UNIT // 2)  # it arrives, then s transmits
    assert cluster.group("s").connections.receivers == {"r"}
    cluster.send("s")
    cluster.run(20 * UNIT)
    assert cluster.delivered["r"] == [("s", 0)]
    assert cluster.unstable("s") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_acknowledgment_that_is_lost_is_repeated(kind: str) -> None:
    """The value stays, because of the new entry, until an acknowledgment arrives and a message answers it."""
    cluster = AcksCluster(roles=PAIR, absent=["r"], kind=kind)
    Judge(cluster)
    lost = [0]

    def three_get_lost(*_: str) -> list[int]:
        lost[0] += 1
        return [] if lost[0] <= 3 else [UNIT]

    cluster.datagram = three_get_lost
    cluster.run(UNIT)
    cluster.join("r")
    cluster.run(20 * UNIT)
    cluster.send("s")
    cluster.run(30 * UNIT)
    assert cluster.unstable("s") == 0
    assert cluster.delivered["r"] == [("s", 0)]
    if kind == "timestamp":
        assert len({*values(cluster, "r")[:4]}) == 1


def ahead(literal: tuple[str, ...]) -> AcksCluster:
    """A receiver with a clock fifty units ahead joins a sender that has no receivers."""
    cluster = AcksCluster(roles=PAIR, absent=["r"], skews={"r": 50 * UNIT}, literal=literal)
    cluster.run(UNIT)
    cluster.join("r")
    cluster.run(8 * UNIT)
    cluster.send("s")
    cluster.run(20 * UNIT)
    return cluster


def test_t8_a_first_acknowledgment_is_the_clock_and_is_merged() -> None:
    """The receiver has no entries, so it acknowledges its clock; the sender's next stamp is above it."""
    cluster = ahead(())
    first = values(cluster, "r")[0]
    assert 50 * UNIT < first < 60 * UNIT
    assert [frame.stamp > first for frame in cluster.spoken["s"]][-1]
    assert cluster.delivered["r"] == [("s", 0)]
    assert cluster.unstable("s") == 0


def test_t8_unmerged_a_receiver_ahead_gets_nothing_until_the_sender_has_caught_up() -> None:
    """Section 6 as printed: s adds r only when its own clock has passed the acknowledgment."""
    cluster = ahead(("T8",))
    assert cluster.delivered["r"] == []
    assert cluster.group("s").connections.receivers == set()
    cluster.run(70 * UNIT)
    assert cluster.group("s").connections.receivers == {"r"}


def test_t8_a_later_sender_gets_the_current_acknowledgment() -> None:
    """It is not the clock: acknowledgments to the others would fall, or its messages would be ignored."""
    cluster = AcksCluster(roles={"s1": "sender", "s2": "sender", "r": "receiver"}, absent=["s2"])
    cluster.run(10 * UNIT + UNIT // 2)
    cluster.join("s2")
    cluster.run(12 * UNIT - 1)
    assert cluster.group("r").connections.senders == {"s1"}
    cluster.run(12 * UNIT)
    assert cluster.group("r").connections.senders == {"s1", "s2"}
    assert cluster.group("r").protocol._last_received["s2"] == values(cluster, "r")[-1]  # type: ignore[attr-defined]
    cluster.run(40 * UNIT)
    assert values(cluster, "r") == sorted(values(cluster, "r"))
    assert values(cluster, "r")[-1] >= 36 * UNIT


@pytest.mark.parametrize("role", ["sender", "receiver", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_newcomer_keeps_acknowledgments_monotone(kind: str, role: Role) -> None:
    """In every role; its messages, and those for it, become stable like the others."""
    cluster = AcksCluster(roles={"a": "both", "b": "both", "new": role}, absent=["new"], kind=kind)
    judge = Judge(cluster)
    for time in range(30):
        cluster.at(time * UNIT // 2, cluster.send, "a")
    cluster.at(5 * UNIT, cluster.join, "new")
    if role != "receiver":
        cluster.at(11 * UNIT, cluster.send, "new")
    cluster.run(40 * UNIT)
    assert judge.settled
    assert judge.claims >= 30
    if role != "sender":
        assert ("a", 29) in cluster.delivered["new"]
        assert ("a", 0) not in cluster.delivered["new"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_that_leaves_raises_the_minimum_at_once(kind: str) -> None:
    """A message that only the leaver had not acknowledged is stable when its closing frame arrives."""
    cluster = AcksCluster(roles={"s": "sender", "r1": "receiver", "r2": "receiver"}, kind=kind)
    cluster.held.add(("s", "r2"))
    cluster.run(3 * UNIT)
    cluster.send("s")
    cluster.run(10 * UNIT)
    assert cluster.unstable("s") == 1
    cluster.leave("r2")
    cluster.run(11 * UNIT)
    assert cluster.stable_at["s", "s", 0] == 11 * UNIT
    assert cluster.group("s").connections.receivers == {"r1"}


def test_a_sender_that_leaves_raises_the_acknowledgment() -> None:
    """It was silent and delayed all others; its closing frame arrives after its last message."""
    roles: dict[str, Role] = {"fast": "sender", "slow": "sender", "r": "receiver"}
    cluster = AcksCluster(roles=roles, first_sends={"slow": NEVER_NS})
    cluster.send("fast")
    cluster.run(10 * UNIT)
    assert cluster.unstable("fast") == 1
    assert {*values(cluster, "r")} == {0}
    cluster.cores["slow"].send(GROUP, b"last", cluster.now)
    cluster.leave("slow")
    cluster.run(13 * UNIT)
    assert cluster.delivered["r"] == [("fast", 0), ("slow", 0)]
    assert values(cluster, "r")[-1] > 10 * UNIT
    assert cluster.unstable("fast") == cluster.unstable("slow") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_process_no_longer_counts(kind: str) -> None:
    cluster = AcksCluster("a", "b", "c", kind=kind)
    cluster.run(3 * UNIT)
    cluster.crash("c")
    cluster.send("a")
    cluster.run(10 * UNIT)
    assert cluster.unstable("a") == 1
    cluster.lose("c")
    cluster.run(13 * UNIT)
    assert cluster.unstable("a") == 0
    assert cluster.group("a").connections.receivers == cluster.group("a").connections.senders == {"b"}


def test_frames_of_a_lost_process_that_arrive_late_are_ignored() -> None:
    cluster = AcksCluster("a", "b")
    cluster.held.add(("b", "a"))
    cluster.send("b")
    cluster.run(5 * UNIT)
    cluster.cores["a"].lost(ProcessId("b"), cluster.now)
    cluster.settle("a")
    cluster.release("b", "a")
    assert cluster.delivered["a"] == []
    assert cluster.views["a"][-1].members == ("a",)


@pytest.mark.parametrize("kind", ["timestamp", "vector", "explicit"])
def test_a_late_acknowledgment_of_a_closed_session_does_not_reconnect(kind: str) -> None:
    cluster = AcksCluster(roles=PAIR, kind=kind, acks={("r", "s"): 30 * UNIT})
    cluster.run(5 * UNIT)
    cluster.leave("r")
    cluster.run(50 * UNIT)
    assert cluster.group("s").connections.receivers == set()
    assert not cluster.group("s").connections._candidates
    cluster.send("s")
    assert cluster.unstable("s") == 0  # no receiver is left


def come_back_with_an_old_acknowledgment_under_way(kind: str, mover: str) -> AcksCluster:
    """r or s leaves at 5, joins at 6 and is connected at 9, when an old acknowledgment arrives; the next comes late."""
    cluster = AcksCluster(roles=PAIR, kind=kind, first_acks={"r": UNIT // 2}, ack_every_ns=16 * UNIT)
    cluster.datagram = lambda *_: [9 * UNIT if cluster.now < UNIT else UNIT]
    cluster.at(5 * UNIT, cluster.leave, mover)
    cluster.at(6 * UNIT, cluster.join, mover)
    cluster.run(10 * UNIT + UNIT // 2)
    cluster.send("s")
    cluster.run(30 * UNIT)
    return cluster


@pytest.mark.parametrize("kind", ["timestamp", "vector", "explicit"])
@pytest.mark.parametrize("mover", ["r", "s"])
def test_t13_an_acknowledgment_of_an_earlier_connection_does_not_count(kind: str, mover: str) -> None:
    """It would look like the first one of the new connection; its number tells the difference."""
    cluster = come_back_with_an_old_acknowledgment_under_way(kind, mover)
    assert cluster.delivered["r"] == []  # r was not in R_s when the message was sent
    assert cluster.group("s").connections.receivers == {"r"}


def test_t13_if_it_counts_a_message_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """s takes r for a receiver that counts it; r does not, ignores the message, and acknowledges its clock (T8)."""
    monkeypatch.setattr(Connections, "is_current", lambda *_: True)
    cluster = come_back_with_an_old_acknowledgment_under_way("timestamp", "s")
    sent_to = next(view for view in cluster.views["s"] if view.receivers and view.previous is not None)
    assert sent_to.receivers == ("r",)
    assert cluster.delivered["r"] == []
    assert ("s", "s", 0) in cluster.stable_at


@pytest.mark.parametrize("kind", KINDS)
def test_sets_that_differ(kind: str) -> None:
    """Each sender waits only for the processes that receive its messages."""
    roles: dict[str, Role] = {"a": "both", "b": "both", "s": "sender", "r": "receiver", "deaf": "receiver"}
    cluster = AcksCluster(roles=roles, sources={"r": ["s", "a"], "deaf": ["b"]}, kind=kind)
    judge = Judge(cluster)
    receivers = {name: cluster.group(name).connections.receivers for name in roles}
    assert receivers == {"a": {"b", "r"}, "b": {"a", "deaf"}, "s": {"a", "b", "r"}, "r": set(), "deaf": set()}
    assert {name: cluster.group(name).connections.senders for name in roles} == {
        "a": {"b", "s"},
        "b": {"a", "s"},
        "s": set(),
        "r": {"a", "s"},
        "deaf": {"b"},
    }
    for name in ("a", "b", "s"):
        cluster.send(name, 2)
    cluster.run(10 * UNIT)
    assert judge.settled
    assert [sender for sender, _ in cluster.delivered["r"]] == ["a", "a", "s", "s"]
    assert [sender for sender, _ in cluster.delivered["deaf"]] == ["b", "b"]
    assert cluster.delivered["s"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_that_join_at_once_find_each_other(kind: str) -> None:
    cluster = AcksCluster("a", "b", "c", absent=["b", "c"], kind=kind)
    judge = Judge(cluster)
    cluster.at(UNIT, cluster.join, "b")
    cluster.at(UNIT, cluster.join, "c")
    cluster.run(12 * UNIT)
    for name in cluster.names:
        cluster.send(name)
    cluster.run(30 * UNIT)
    assert judge.settled
    assert all(len(delivered) == 3 for delivered in cluster.delivered.values())


@pytest.mark.parametrize("kind", KINDS)
def test_private_views_tell_every_change(kind: str) -> None:
    """The ids of one process sort by installation; a process that joins or leaves is in both sets of the others."""
    cluster = AcksCluster("a", "b", "c", absent=["c"], kind=kind)
    cluster.run(UNIT)
    cluster.join("c")
    cluster.run(12 * UNIT)
    cluster.leave("b")
    cluster.run(20 * UNIT)
    for name, views in cluster.views.items():
        assert [view.id for view in views] == sorted({view.id for view in views})
        assert [view.previous for view in views] == [None, *(view.id for view in views[:-1])]
        last = {"a": ("c",), "b": (), "c": ("a",)}[name]
        assert (views[-1].receivers, views[-1].senders) == (last, last)


def test_messages_asked_for_outside_the_group_wait_for_the_next_session() -> None:
    cluster = AcksCluster(roles=PAIR, absent=["s"])
    cluster.send("s")
    cluster.run(5 * UNIT)
    assert cluster.spoken["s"] == []
    cluster.join("s")
    assert len(cluster.spoken["s"]) >= 1  # no process is connected yet, so none receives it: abrupt, as section 6 says
    cluster.run(20 * UNIT)
    assert cluster.unstable("s") == 0
