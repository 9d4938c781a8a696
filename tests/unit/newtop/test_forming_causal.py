"""Orders without a common number, in groups that are formed, joined and left (docs/spec/newtop.md 11.6)."""

from collections.abc import Callable

import pytest

from antiphon.core.effects import Confirmed, Deliver
from antiphon.protocols.newtop.frames import MapStamp, ReadyFrame
from antiphon.types import GroupId
from tests.support.causal_forming import (
    told_by_one_that_refused,
    told_by_one_that_went_on,
    told_of_a_group_that_is_being_formed,
)
from tests.support.cluster import OMEGA_NS
from tests.support.forming import STATE, Forming

STAMPED = ("causal-fast", "causal-relative", "causal-vector")
SERVICES = ("causal-slow", *STAMPED, "fifo", "reliable")


def place(cluster: Forming, name: str, holds: Callable[[object], bool]) -> int:
    """Where the first such effect stands at a process."""
    return next(place for place, effect in enumerate(cluster.effects[name]) if holds(effect))


def delivers(payload: bytes) -> Callable[[object], bool]:
    return lambda effect: isinstance(effect, Deliver) and payload in effect.frame.payloads


@pytest.mark.parametrize("service", SERVICES)
def test_a_joiner_gets_the_state_and_then_what_follows(service: str) -> None:
    cluster = Forming("a", "b", strangers=["c"], service=service)
    cluster.send("a", b"1")
    cluster.move_all()
    cluster.join("c", "a")
    cluster.send("b", b"2")
    cluster.send("c", b"early")
    cluster.move_all()
    cluster.send("a", b"3")
    cluster.move_all()
    told = cluster.named("c")
    assert told[:2] == ["a b c", STATE + "0"]
    assert {*told[2:]} == {b"2", b"early", b"3"} or {*told[2:]} == {b"early", b"3"}
    assert {*cluster.states["a", GroupId("g")]} == {*cluster.states["c", GroupId("g")]} == {"1", "2", "early", "3"}


@pytest.mark.parametrize("service", SERVICES)
def test_a_member_leaves_when_all_have_what_it_sent(service: str) -> None:
    cluster = Forming("a", "b", "c", service=service)
    cluster.send("c", b"last")
    cluster.leave("c")
    assert not cluster.left["c"]
    cluster.finish()
    assert [left.graceful for left in cluster.left["c"]] == [True]
    assert all(cluster.named(name) == ["a b c", b"last", "a b"] for name in "ab")


@pytest.mark.parametrize("service", SERVICES)
def test_sides_of_a_partition_merge(service: str) -> None:
    cluster = Forming("a", "b", service=service, merge_every_ns=2 * OMEGA_NS)
    cluster.cut("a", "b")
    cluster.cut("b", "a")
    cluster.send("a", b"left")
    cluster.send("b", b"right")
    cluster.finish()
    assert [cluster.last_view(name) for name in "ab"] == ["a", "b"]
    cluster.heal()
    cluster.merge("a", "b")
    cluster.finish()
    assert cluster.last_view("a") == cluster.last_view("b") == "a b"
    assert {*cluster.states["a", GroupId("g")]} == {*cluster.states["b", GroupId("g")]} == {"left", "right"}


@pytest.mark.parametrize("service", STAMPED)
def test_e98_what_depends_on_a_member_that_refused_the_group_waits_until_it_is_excluded(service: str) -> None:
    cluster = told_by_one_that_refused(service)
    assert ReadyFrame in {type(frame) for frame in cluster.control["k"]}
    assert b"effect" not in cluster.delivered["p"]
    cluster.finish()
    assert b"cause" not in cluster.delivered["p"]
    confirmed = place(cluster, "p", lambda effect: isinstance(effect, Confirmed) and effect.failed[0][0] == "k")
    assert confirmed < place(cluster, "p", delivers(b"effect"))


@pytest.mark.parametrize("service", ["causal-fast", "causal-vector"])
def test_e97_stamps_name_the_newest_group_of_a_name(service: str) -> None:
    cluster = Forming(groups={"x": "ab", "y": "ab"}, strangers=["c", "d"], service=service)
    cluster.send("a", b"1", group="x")
    cluster.move_all()
    for joiner in "cd":
        cluster.join(joiner, "a", group="x")
        cluster.move_all()
        cluster.send(joiner, joiner.encode(), group="x")
        cluster.move_all()
    cluster.send("b", b"2", group="y")
    stamp = cluster.transmitted["b"][-1].stamp
    assert isinstance(stamp, MapStamp)
    current = cluster.core("b").current(GroupId("x"))
    assert current is not None
    assert {group for group, _, _ in stamp.entries} - {"y"} == {current.view.group}


def test_a_fifo_group_waits_for_no_other_group_and_no_number() -> None:
    cluster = Forming(groups={"x": "abc", "y": "abc"}, service="fifo")
    cluster.send("a", b"1", group="x")
    cluster.move_one_way("a", "b")
    cluster.send("b", b"2", group="y")
    cluster.move_one_way("b", "c")
    assert cluster.delivered["c"] == [b"2"]  # its cause has not arrived
    assert cluster.delivered["b"] == [b"1", b"2"]
    assert cluster.transmitted["c"] == []  # an answer waits


@pytest.mark.parametrize("service", ["fifo", "reliable"])
def test_survivors_deliver_the_same_before_a_view_and_later_messages_after_it(service: str) -> None:
    cluster = Forming("a", "b", "c", service=service)
    cluster.send("c", b"lost to b")
    cluster.move_one_way("c", "a")
    cluster.channels["c", "b"].clear()
    cluster.crash("c")
    cluster.send("a", b"unanswered")
    cluster.finish(rounds=80, pause_ns=OMEGA_NS // 20)  # answers wait, so time must pass in small steps
    cluster.send("a", b"later")
    cluster.move_all()
    first, *messages, second, last = cluster.named("b")
    assert (first, second, last) == ("a b c", "a b", b"later")
    assert {*messages} == {b"lost to b", b"unanswered"}
    assert {*cluster.named("a")} == {*cluster.named("b")}


@pytest.mark.parametrize("service", STAMPED)
def test_e97_a_member_of_an_older_group_waits_for_complete_blocks(service: str) -> None:
    cluster = told_by_one_that_went_on(service)
    assert cluster.delivered["r"] == []
    cluster.move_one_way("b", "r")
    assert cluster.delivered["r"][:1] == [b"cause"]
    cluster.finish()
    assert cluster.delivered["r"] == [b"cause", b"effect"]


@pytest.mark.parametrize("service", STAMPED)
def test_a_message_that_names_a_new_group_waits_for_the_outcome_of_its_formation(service: str) -> None:
    cluster = told_of_a_group_that_is_being_formed(service)
    assert cluster.delivered["b"] == []
    cluster.finish()
    assert cluster.delivered["b"] == [b"cause", b"effect"]
