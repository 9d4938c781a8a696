"""Safe delivery, rule by rule (docs/spec/newtop.md 14): nothing is delivered before all are known to have it."""

from typing import Any

import pytest

from antiphon.core.effects import Deliver, Stable, Suspected, Transitional
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Flow
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, first_view
from tests.support.cluster import GROUP, NEVER_NS, OMEGA_NS, SLOW_NS, Cluster, Lone, alive, confirm, data, null

LOOK_NS = OMEGA_NS // 4


def safe(*names: str, **settings: Any) -> Cluster:
    return Cluster(*names, **{"service": "total-safe", **settings})


def lone(*others: str, **settings: Any) -> Lone:
    """One member; the test sends every null and every announcement of the others."""
    return Lone("a", *others, **{"service": "total-safe", **settings})


# Rule 1: stable, and in one order


def test_a_complete_block_waits_until_all_have_said_that_it_is_complete_there() -> None:
    member = lone("b", "c")
    member.send(b"m")
    member.feed(null("b", 1), null("c", 1))
    assert member.group.complete_block == 1
    assert member.delivered() == []
    member.feed(alive("b", 1, 1))
    assert member.delivered() == []
    member.feed(alive("c", 1, 1))
    assert member.delivered() == [b"m"]


def test_the_word_may_ride_on_any_message() -> None:
    member = lone("b", "c")
    member.send(b"m")
    member.feed(
        null("b", 1), null("c", 1), data("b", 2, payload=b"n", complete_block=1), null("c", 2, complete_block=1)
    )
    assert member.delivered() == [b"m"]


def test_a_message_is_reported_as_stable_before_it_is_delivered() -> None:
    for flow_control in range(4):
        cluster = safe("a", "b", flow_control=flow_control)
        cluster.send("a", b"1")
        cluster.send("b", b"2")
        cluster.finish()
        for name in "ab":
            kinds = [type(effect) for effect in cluster.effects[name] if isinstance(effect, Stable | Deliver)]
            assert kinds[0] is Stable, flow_control
            reached: dict[str, int] = {}
            for effect in cluster.effects[name]:
                if isinstance(effect, Stable):
                    assert all(number > reached.get(sender, -1) for sender, number in effect.upto)
                    reached |= dict(effect.upto)
                elif isinstance(effect, Deliver):
                    assert reached[effect.frame.sender] >= effect.frame.label
            assert cluster.delivered[name] == [b"1", b"2"]


def test_alone_everything_is_stable_at_once() -> None:
    cluster = safe("a")
    cluster.send("a", b"1", b"2")
    assert cluster.delivered["a"] == [b"1", b"2"]


X, Y = "x", "y"


def overlapping(**settings: Any) -> Cluster:
    """a and b are in both groups, c only in x."""
    return safe(groups={X: ["a", "b", "c"], Y: ["a", "b"]}, silence_timeout_ns=SLOW_NS, **settings)


def unstable_below(cluster: Cluster) -> None:
    """m has number 1 in x, n has number 2 in y, where it is stable; c has not said that it has m."""
    cluster.send("a", b"m", group=X)
    cluster.send("a", b"n", group=Y)
    for _ in range(6):
        cluster.move_between("a", "b")
        cluster.move_one_way("a", "c")
        cluster.move_one_way("b", "c")
        cluster.move("c", "a", min(1, len(cluster.channels["c", "a"])) if not cluster.control["c"] else 0)
        cluster.wait(SLOW_NS)
    group = cluster.core("a")._groups
    assert group[GroupId(Y)].progress.stable_block >= 2
    assert min(each.complete_block for each in group.values()) >= 2
    assert group[GroupId(X)].progress.stable_block < 1


@pytest.mark.parametrize("merely_total", [frozenset[str](), frozenset([Y])])
def test_an_unstable_message_holds_back_larger_numbers_in_every_group(merely_total: frozenset[str]) -> None:
    """Also in a group whose own messages need not be stable: the order is one over all groups."""
    cluster = overlapping(merely_total=merely_total)
    unstable_below(cluster)
    assert cluster.delivered["a"] == []
    cluster.finish()
    assert cluster.delivered["a"] == cluster.delivered["b"] == [b"m", b"n"]
    assert cluster.delivered["c"] == [b"m"]


def test_an_unstable_message_in_total_order_holds_nothing_back() -> None:
    cluster = overlapping(merely_total=frozenset([X]))
    unstable_below(cluster)
    assert cluster.delivered["a"] == [b"m", b"n"]


def test_of_two_equal_numbers_the_stable_first_one_is_delivered_and_the_second_waits() -> None:
    """a sends 1 in x, which all have; b sends 1 in y, which no member is known to have."""
    views = {GroupId(name): first_view(GroupId(name), frozenset(map(ProcessId, each))) for name, each in PAIRS.items()}
    settings = NewtopSettings(service="total-safe", silence_timeout_ns=NEVER_NS)
    core = NewtopProcess(ProcessId("a"), views, settings)
    core.drain(0)
    core.send(GroupId(X), b"m", 0)
    core.drain(0)  # and a null numbered 1 in y
    theirs = BlockFrame(GroupId(Y), ProcessId("b"), 1, 0, 0, (b"n",))
    core.receive(theirs, 0)
    core.receive(BlockFrame(GroupId(X), ProcessId("c"), 1, 0, 0, ()), 0)
    assert not [effect for effect in core.drain(0) if isinstance(effect, Deliver)]
    core.receive(AliveFrame(GroupId(X), ProcessId("c"), 1, 1), 0)
    assert [effect.frame.payloads for effect in core.drain(0) if isinstance(effect, Deliver)] == [(b"m",)]
    core.receive(AliveFrame(GroupId(Y), ProcessId("b"), 1, 1), 0)
    assert [effect.frame.payloads for effect in core.drain(0) if isinstance(effect, Deliver)] == [(b"n",)]


PAIRS = {X: ["a", "c"], Y: ["a", "b"]}


# Rule 2: acknowledgments of members with nothing to send


@pytest.mark.parametrize("datagrams", [False, True])
@pytest.mark.parametrize("silence_ns", [0, SLOW_NS])
@pytest.mark.parametrize("flow_control", range(4))
@pytest.mark.parametrize("by_block", [False, True])
def test_the_last_message_before_a_silence_is_delivered(
    flow_control: int, silence_ns: int, datagrams: bool, by_block: bool
) -> None:
    cluster = safe(
        *"abc",
        flow_control=flow_control,
        window=3,
        silence_timeout_ns=silence_ns,
        datagrams=datagrams,
        block_numbered=frozenset([GROUP] if by_block and flow_control else []),
    )
    for name in "ab":
        cluster.send(name, *(f"{name}{number}".encode() for number in range(5)))
    cluster.finish(rounds=40)
    assert len(cluster.delivered["a"]) == 10
    assert cluster.delivered["a"] == cluster.delivered["b"] == cluster.delivered["c"]


def test_without_a_silence_timeout_the_word_leaves_at_once() -> None:
    """Three delays, and no timer."""
    cluster = safe(*"abc")
    cluster.send("a", b"m")
    cluster.move_all()
    assert cluster.now == 0
    assert cluster.delivered == {name: [b"m"] for name in "abc"}
    assert all(len(cluster.control[name]) == 1 for name in "abc")


def test_with_a_silence_timeout_the_word_leaves_after_it() -> None:
    cluster = safe(*"ab", silence_timeout_ns=SLOW_NS)
    cluster.send("a", b"m")
    cluster.send("b", b"n")
    cluster.move_all()
    assert not cluster.control["a"]
    cluster.wait(SLOW_NS)
    cluster.move_all()
    assert cluster.delivered == {name: [b"m", b"n"] for name in "ab"}
    assert len(cluster.control["a"]) == len(cluster.control["b"]) == 1


def test_nulls_alone_are_no_news_that_cannot_wait() -> None:
    member = Lone("a", "b", service="total-safe", silence_timeout_ns=0)
    member.feed(null("b", 1))
    assert member.frames(AliveFrame) == []
    member.feed(data("b", 2))
    assert [frame.complete_block for frame in member.frames(AliveFrame)] == [2]


def test_e_73_left_out_the_last_message_is_never_delivered() -> None:
    cluster = safe(*"abc", literal=("E-73",))
    cluster.send("a", b"m")
    cluster.finish()
    assert cluster.delivered == {name: [] for name in "abc"}


# Rule 3: members that owe an acknowledgment


def suspected(member: Lone) -> list[tuple[str, int, str]]:
    return [(effect.process, effect.last_block, effect.reason) for effect in member.found(Suspected)]


def owing(**settings: Any) -> Lone:
    """b has acknowledged the message, c has only answered it."""
    member = lone("b", "c", **settings)
    member.send(b"m")
    member.feed(null("b", 1), null("c", 1), alive("b", 1, 1))
    return member


def test_a_silent_member_that_owes_only_an_acknowledgment_is_suspected() -> None:
    """b is silent as well and owes nothing."""
    member = owing()
    member.wait(OMEGA_NS - 1)
    assert suspected(member) == []
    member.wait(1 + LOOK_NS)
    assert suspected(member) == [("c", 1, "unacknowledged")]


def test_a_member_that_is_heard_is_not_suspected_for_a_missing_acknowledgment() -> None:
    member = owing()
    for _ in range(12):
        member.wait(LOOK_NS)
        member.feed(alive("c", 1, 0))
    assert suspected(member) == []


def test_a_member_that_acknowledges_in_time_is_not_suspected() -> None:
    member = owing()
    member.wait(OMEGA_NS - LOOK_NS)
    member.feed(alive("c", 1, 1))
    assert member.delivered() == [b"m"]
    member.wait(8 * OMEGA_NS)
    assert suspected(member) == []
    assert member.group.suspector.at is None


def test_nulls_need_no_acknowledgment() -> None:
    """E-83: after a null with a higher number no acknowledgment follows for this one; it would be owed for ever."""
    member = lone("b", "c")
    member.feed(null("b", 1), null("c", 1))
    member.core._groups[GROUP].discipline.show_life(member.now)
    member.settle()
    assert member.group.progress.stable_block < member.group.complete_block
    assert not member.group.unacknowledged
    member.wait(8 * OMEGA_NS)
    assert suspected(member) == []


def test_in_total_order_no_member_waits_for_an_acknowledgment() -> None:
    member = owing(service="total")
    assert member.delivered() == [b"m"]
    member.wait(8 * OMEGA_NS)
    assert suspected(member) == []


def crashed_owing(**settings: Any) -> Cluster:
    """c has the message and has answered it, and crashes before it has the answer of b."""
    cluster = safe(*"abc", suspect_after_ns=OMEGA_NS, **settings)
    cluster.send("a", b"m")
    cluster.move("a", "b")
    cluster.move("a", "c")
    cluster.crash("c")
    cluster.finish(rounds=30)
    return cluster


def test_a_crashed_member_that_owes_only_an_acknowledgment_holds_nothing_back_for_ever() -> None:
    cluster = crashed_owing()
    for name in "ab":
        assert cluster.story(name) == ["a b c", b"m", "a b"]


def test_e_74_left_out_such_a_member_holds_messages_back_for_ever() -> None:
    cluster = crashed_owing(literal=("E-74",))
    for name in "ab":
        assert cluster.story(name) == ["a b c"]


# Rule 4: the cut


def test_a_view_waits_until_messages_below_the_cut_are_stable_among_the_survivors() -> None:
    """b, c and we agree that d has failed; c has not said yet that it has m, which is below the cut."""
    member = lone("b", "c", "d")
    member.send(b"m")
    member.feed(null("b", 1), null("c", 1), null("d", 1))
    member.suspect("d")
    member.feed(confirm("b", d=1))
    assert [effect.members for effect in member.found(Transitional)] == [("a", "b", "c")]
    member.feed(alive("b", 1, 1))
    assert ProcessId("d") in member.view.members
    assert member.delivered() == []
    member.feed(alive("c", 1, 1))
    assert member.delivered() == [b"m"]
    assert member.view.members == ("a", "b", "c")


# Rule 5: before and after the notice


def test_before_the_notice_the_whole_view_has_it_after_it_the_survivors_have_it() -> None:
    """m is stable in the whole view; of n, d never says that it has it."""
    member = lone("b", "c", "d")
    member.send(b"m")
    member.feed(*(null(name, 1) for name in "bcd"), *(alive(name, 1, 1) for name in "bcd"))
    member.send(b"n")
    member.feed(*(null(name, 2) for name in "bcd"), *(alive(name, 2, 2) for name in "bc"))
    member.suspect("d")
    member.feed(confirm("b", d=2))
    told = [effect for effect in member.effects if isinstance(effect, Deliver | Transitional)]
    assert [type(effect) for effect in told] == [Deliver, Transitional, Deliver]
    assert member.delivered() == [b"m", b"n"]
    assert member.view.members == ("a", "b", "c")


def test_a_message_delivered_before_a_crash_is_delivered_by_all_survivors() -> None:
    """a delivers m once all have acknowledged it, and crashes with c; b has it, and delivers it in the old view."""
    cluster = safe(*"abc", suspect_after_ns=OMEGA_NS)
    cluster.send("a", b"m")
    for pair in ("ab", "ac", "bc", "cb", "ba", "ca", "ba", "ca"):
        cluster.move(*pair)
    assert (cluster.delivered["a"], cluster.delivered["b"]) == ([b"m"], [])
    for name in "ac":
        cluster.crash(name)
        for other in "abc":
            cluster.channels[name, other].clear()
    cluster.finish(rounds=30)
    assert cluster.story("b") == ["a b c", b"m", "b"]


def test_safe_delivery_goes_with_cuts_only() -> None:
    with pytest.raises(AssertionError, match="cuts"):
        safe("a", "b", view_change="closed", suspect_after_ns=OMEGA_NS)


def test_stable_means_consumed_for_flow_control_and_received_for_safe_delivery() -> None:
    """b's application takes nothing, so that a's window stays used; a message is delivered all the same."""
    cluster = safe("a", "b", flow_control=3, window=2, packing=False)
    cluster.stalled.add("b")
    cluster.send("a", b"1", b"2", b"3")
    cluster.finish()
    assert cluster.delivered["a"] == [b"1", b"2"]
    group = cluster.core("a")._groups[GROUP]
    assert group.flow is not None
    assert group.flow.stable == 0
    assert group.progress.stable_block >= 2
    cluster.wake("b")
    cluster.finish()
    assert cluster.delivered == {name: [b"1", b"2", b"3"] for name in "ab"}


def test_an_announcement_with_a_flow_header_acknowledges_too() -> None:
    member = lone("b", flow_control=2, window=4)
    member.send(b"m")
    member.feed(null("b", 1, flow=Flow(1, 0, 0, 0)))
    assert member.delivered() == []
    member.feed(alive("b", 1, 1, Flow(1, 0, 0, 0)))
    assert member.delivered() == [b"m"]
