"""Macedo94 §6.5: the causal orders when members fail; cases C1 to C5 of docs/spec/newtop.md 9.8, all ours."""

from typing import Any

import pytest

from antiphon.core.effects import Blocked, Confirmed, Deliver, Discard, InstallView, Unblocked
from antiphon.protocols.newtop.frames import BlockFrame, RefuteFrame
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder
from tests.support.cluster import Cluster
from tests.support.crossed_losses import cluster_of, crossed_losses

FLUSHING = ["causal-fast", "causal-relative", "causal-vector"]


def flushes(cluster: Cluster, name: str) -> list[tuple[tuple[str, int], ...]]:
    """The failures for which a process sent a flush, in order."""
    return [f.notice.failed for f in cluster.transmitted[name] if f.notice is not None and f.notice.kind == "flush"]


def confirmed_by_three(service: str) -> Cluster:
    """{1,2,3,4}: Δ1 = {4} is confirmed by all, and their flushes are under way, number 1 each."""
    cluster = cluster_of("1", "2", "3", "4", service=service)
    cluster.crash("4")
    for name in "123":
        cluster.suspect(name, "4")
    for sender in "123":
        for receiver in "123":
            if sender != receiver:
                cluster.move(sender, receiver)
    for name in "123":
        assert cluster.detections(name) == [(("4", 0),)]
        assert flushes(cluster, name) == [(("4", 0),)]
        assert cluster.transmitted[name][-1].block == 1
        assert cluster.views_of(name) == ["1 2 3 4"]
    return cluster


@pytest.mark.parametrize("service", FLUSHING)
def test_c1_the_flush_of_a_member_that_fails_next_is_handed_on(service: str) -> None:
    """Case C1: 3's flush reaches 1, not 2; 1 installs {1,2,3}, 2 gets the flush by refute, both V0, {1,2,3}, {1,2}."""
    cluster = confirmed_by_three(service)
    cluster.move_one_way("3", "1")
    cluster.drop("3", "2")
    cluster.crash("3")
    cluster.move_between("1", "2")
    assert cluster.views_of("1") == ["1 2 3 4", "1 2 3"]
    assert cluster.views_of("2") == ["1 2 3 4"]
    cluster.suspect("2", "3")
    cluster.move_between("1", "2")
    (refuted,) = [frame for frame in cluster.control["1"] if isinstance(frame, RefuteFrame)]
    assert (refuted.suspect, refuted.last_block) == ("3", 0)
    assert [(message.kind, message.block) for message in refuted.messages] == [("flush", 1)]
    assert cluster.views_of("2") == ["1 2 3 4", "1 2 3"]
    cluster.send("1", b"next")  # now 3 owes something
    cluster.finish(rounds=16)
    for name in "12":
        assert cluster.detections(name) == [(("4", 0),), (("3", 1),)]
        assert cluster.views_of(name) == ["1 2 3 4", "1 2 3", "1 2"]
    assert cluster.views["1"] == cluster.views["2"]
    assert cluster.story("1") == cluster.story("2")


@pytest.mark.parametrize("service", FLUSHING)
def test_c2_a_flush_that_no_survivor_has_is_not_waited_for(service: str) -> None:
    """Case C2: 3's flush reaches no survivor; both go from V0 to {1,2} directly, in one view (E-62)."""
    cluster = confirmed_by_three(service)
    for name in "12":
        cluster.drop("3", name)
    cluster.crash("3")
    cluster.finish(rounds=16)
    for name in "12":
        assert cluster.detections(name) == [(("4", 0),), (("3", 0),)]
        assert flushes(cluster, name) == cluster.detections(name)
        assert cluster.views_of(name) == ["1 2 3 4", "1 2"]
        assert [left.process for left in cluster.found(name, InstallView)[-1].left] == ["4", "3"]
    assert cluster.views["1"] == cluster.views["2"]


@pytest.mark.parametrize("service", FLUSHING)
def test_c3_a_message_that_depends_on_a_lost_one_is_discarded_by_its_stamp(service: str) -> None:
    """Case C3, M3 in these orders: m of r reached only s, which delivered it and sent m' to all; both crash."""
    cluster = cluster_of("p", "q", "r", "s", service=service)
    cluster.send("s", b"before")
    for receiver in "pq":
        cluster.move("s", receiver)
    cluster.send("r", b"m")
    cluster.move("r", "s")
    assert cluster.delivered["s"] == [b"before", b"m"]
    cluster.send("s", b"m'")
    for receiver in "pq":
        cluster.move("s", receiver)
        cluster.drop("r", receiver)
    cluster.crash("r")
    cluster.crash("s")
    cluster.finish(rounds=16)
    for name in "pq":
        assert cluster.detections(name) == [(("r", 0), ("s", 2))]
        assert cluster.story(name) == ["p q r s", b"before", "p q"]
        assert cluster.core(name).unstable(cluster.views[name][0].group) == 0


@pytest.mark.parametrize("service", FLUSHING)
def test_c4_views_of_two_groups_do_not_wait_for_one_another(service: str) -> None:
    """Case C4: p delivers m and m4; they wait for lost messages until the failure is confirmed; {p,s}, {p,t} (E-64)."""
    cluster = crossed_losses(service)
    cluster.finish(rounds=24)
    assert sorted(cluster.delivered["p"]) == [b"m", b"m4"]
    assert cluster.views_of("p", "x") == ["k1 p r1 s", "p s"]
    assert cluster.views_of("p", "y") == ["k2 p r2 t", "p t"]
    assert cluster.story("s", "x") == ["k1 p r1 s", b"m", "p s"]
    assert cluster.story("t", "y") == ["k2 p r2 t", b"m4", "p t"]
    assert cluster.detections("p", "x") == cluster.detections("s", "x") == [(("k1", 0), ("r1", 0))]
    assert cluster.detections("p", "y") == cluster.detections("t", "y") == [(("k2", 0), ("r2", 0))]
    events = [effect for effect in cluster.effects["p"] if isinstance(effect, Confirmed | Deliver)]
    for payload, lost_in in ((b"m", "y"), (b"m4", "x")):  # confirmed before m or m4 arrives, which lack a predecessor
        told = next(n for n, each in enumerate(events) if isinstance(each, Confirmed) and each.group == lost_in)
        got = next(n for n, each in enumerate(events) if isinstance(each, Deliver) and payload in each.frame.payloads)
        assert told < got


@pytest.mark.parametrize(("service", "order"), [("causal-fast", FastOrder), ("causal-relative", RelativeOrder)])
def test_c4_if_entries_are_skipped_only_from_the_view_on_p_waits_for_ever(
    service: str, order: type[FastOrder] | type[RelativeOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case C4, the rule not adopted: m waits for the view of y, which waits for m4, which waits for the view of x."""
    monkeypatch.setattr(order, "failed", lambda *_: [])
    if order is RelativeOrder:  # and a block counts as complete only when the view says so
        monkeypatch.setattr(RelativeOrder, "_passed", _passed_by_view)
    cluster = crossed_losses(service)
    cluster.finish(rounds=24)
    assert cluster.delivered["p"] == []
    assert cluster.views_of("p", "x") == ["k1 p r1 s"]
    assert cluster.views_of("p", "y") == ["k2 p r2 t"]


def _passed_by_view(self: RelativeOrder, name: Any, block: int) -> bool:
    group, smallest = self._groups[name], self._undelivered[name].smallest
    return (
        not group.agreement.failed and group.complete_block >= block and (smallest is None or smallest > block)
    )  # fmt: skip


def test_c5_slow_order_cuts_one_number_higher() -> None:
    """Case C5: {1,2,3,4} Slow, Δ = {4}, lbn_mn = 5; 1 has delivered 2's number 6, 3 has not: it does so in V0 too."""
    cluster = cluster_of("1", "2", "3", "4", service="causal-slow")
    for number in range(1, 6):
        for name in "1234":
            cluster.send(name, b"%s%d" % (name.encode(), number))
        cluster.move_all()
    assert all(len(delivered) == 20 for delivered in cluster.delivered.values())
    cluster.crash("4")
    cluster.send("2", b"26")
    cluster.move("2", "1")
    assert cluster.delivered["1"][-1] == b"26"  # D = 5: everything that could precede it is here
    for name in "123":
        cluster.suspect(name, "4")
    cluster.move_between("1", "2")
    cluster.move("1", "3")
    assert b"26" not in cluster.delivered["3"]
    cluster.move_between("1", "2", "3")
    for name in "123":
        assert cluster.detections(name) == [(("4", 5),)]
        assert cluster.story(name)[-2:] == [b"26", "1 2 3"]
        assert len(cluster.delivered[name]) == 21
    nulls = [(name, f.block) for name in "123" for f in cluster.transmitted[name] if f.kind == "null"]
    assert nulls == [("1", 6), ("3", 6)]  # at once at confirm: no other member may owe the number of the cut
    assert not any(flushes(cluster, name) for name in "123")
    assert cluster.views["1"] == cluster.views["2"] == cluster.views["3"]


def test_slow_order_keeps_messages_of_failed_members_that_may_be_delivered_elsewhere() -> None:
    """9.8 rule 2: of Δ = {(3,0),(4,2)} number 1 of 4 is kept, as a member may have delivered it; number 2 is not."""
    cluster = cluster_of("1", "2", "3", "4", service="causal-slow")
    for payload in (b"41", b"42"):
        cluster.send("4", payload)
    for receiver in "12":
        cluster.move("4", receiver)
        assert cluster.delivered[receiver] == [b"41"]
        cluster.move("4", receiver)
    cluster.crash("3")
    cluster.crash("4")
    for name in "12":
        cluster.suspect(name, "3", "4")
    cluster.finish()
    for name in "12":
        assert cluster.detections(name) == [(("3", 0), ("4", 2))]
        assert cluster.story(name) == ["1 2 3 4", b"41", "1 2"]


@pytest.mark.parametrize("service", FLUSHING)
def test_flush_senders_wait_from_the_agreement_to_the_view(service: str) -> None:
    """9.8 rule 3.2: application sends in x are blocked after a failure, and leave in the new view."""
    cluster = confirmed_by_three(service)
    cluster.send("1", b"later")
    assert [effect.by for effect in cluster.found("1", Blocked)] == ["4"]
    cluster.move_between("1", "2")
    assert [payload for frame in cluster.transmitted["1"] for payload in frame.payloads] == []
    cluster.move_between("1", "2", "3")
    assert len(cluster.found("1", Unblocked)) == 1
    for name in "123":
        assert cluster.story(name) == ["1 2 3 4", "1 2 3", b"later"]


@pytest.mark.parametrize("service", FLUSHING)
def test_flush_messages_after_a_line_wait_for_the_view(service: str) -> None:
    """9.8 rule 3.3: 1 is in the new view and sends there; 2, which lacks 3's flush, holds the message back."""
    cluster = confirmed_by_three(service)
    cluster.move_between("1", "3")
    cluster.move_one_way("2", "1", "3")
    assert cluster.views_of("1")[-1] == "1 2 3"
    cluster.send("1", b"new")
    cluster.move_one_way("1", "2")
    assert cluster.story("2") == ["1 2 3 4"]
    cluster.move_one_way("3", "2")
    assert cluster.story("2") == ["1 2 3 4", "1 2 3", b"new"]


@pytest.mark.parametrize("service", FLUSHING)
def test_flush_messages_before_a_line_are_delivered_before_the_view(service: str) -> None:
    """9.8 rule 3.5: first deliver all that is not held, then the view; sent before the flush, it belongs to V0."""
    cluster = cluster_of("1", "2", "3", "4", service=service)
    cluster.send("4", b"of 4")
    cluster.move("4", "1")
    cluster.drop("4", "2")
    cluster.crash("4")
    cluster.move("4", "3")
    cluster.send("1", b"after it")
    cluster.move("1", "2")
    assert cluster.delivered["2"] == []  # waits for the message of 4, which only a refutation brings
    cluster.finish(rounds=16)
    for name in "123":
        assert cluster.detections(name) == [(("4", 1),)]
        assert cluster.story(name) == ["1 2 3 4", b"of 4", b"after it", "1 2 3"]


@pytest.mark.parametrize("service", FLUSHING)
def test_flush_stamps_of_survivors_may_still_name_failed_members(service: str) -> None:
    """9.8 rule 3.4: stamps still name 4; entries of processes out of view are not waited for."""
    cluster = cluster_of("1", "2", "3", "4", service=service)
    cluster.send("4", b"of 4")
    for receiver in "123":
        cluster.move("4", receiver)
    cluster.crash("4")
    for name in "123":
        cluster.suspect(name, "4")
    cluster.move_between("1", "2", "3")
    for name in "123":
        cluster.send(name, b"by " + name.encode())
    cluster.finish()
    for name in "123":
        assert cluster.story(name)[:3] == ["1 2 3 4", b"of 4", "1 2 3"]
        assert sorted(cluster.delivered[name][1:]) == [b"by 1", b"by 2", b"by 3"]
        assert isinstance(cluster.transmitted[name][-1], BlockFrame)


def test_the_dropped_end_of_a_dead_stream_is_never_reported_as_stable() -> None:
    """9.8 rule 3.1: m' was discarded at confirm; no trace says that it became stable."""
    cluster = cluster_of("p", "q", "r", "s", service="causal-fast")
    cluster.send("r", b"m")
    cluster.move("r", "s")
    cluster.send("s", b"m'")
    for receiver in "pq":
        cluster.move("s", receiver)
        cluster.drop("r", receiver)
    cluster.crash("r")
    cluster.crash("s")
    cluster.finish(rounds=16)
    told = {process for name in "pq" for effect in cluster.found(name, Discard) for process, _ in effect.upto}
    assert not told & {"r", "s"}
