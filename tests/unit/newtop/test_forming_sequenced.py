"""Groups with a sequencer that are formed, joined, left and merged (docs/spec/newtop.md 11.1 to 11.3 together)."""

from typing import Any

import pytest

from antiphon.protocols.newtop.frames import BaseFrame, NeedFrame, ProposeFrame, SubmitFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.types import GroupId, ProcessId
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import STATE, Forming

SEQUENCED: dict[str, Any] = {"asymmetric": frozenset({GroupId(GROUP), GroupId("x")})}


def group_of(cluster: Forming, name: str, group: str = GROUP) -> NewtopGroup:
    found = cluster.core(name).current(GroupId(group))
    assert found is not None
    assert found.discipline.sequenced
    return found


def test_a_group_is_formed_and_its_lowest_member_numbers_messages_above_the_base() -> None:
    cluster = Forming(groups={"y": "abc"}, strangers=["d"], **SEQUENCED)
    for count in range(5):
        cluster.send("b", b"%d" % count, group="y")
    cluster.move_all()
    cluster.form("d", "b", "c", "d", group="x")
    cluster.move_all()
    base = group_of(cluster, "d", "x").complete_block
    cluster.send("d", b"m", group="x")
    cluster.send("c", b"n", group="y")
    cluster.move_all()
    assert group_of(cluster, "c", "x").view.members[0] == "b"
    assert base >= 5 < group_of(cluster, "c", "x").complete_block
    assert all(cluster.named(name, "x") == ["b c d", b"m"] for name in "bcd")
    assert cluster.delivered["b"] == cluster.delivered["c"]


@pytest.mark.parametrize("flow_control", [0, 3])
def test_under_load_of_all_members_the_history_of_a_joiner_is_that_of_its_donor(flow_control: int) -> None:
    """F4; the state is told by the lowest of its class, in pieces, through a sequencer that joined meanwhile."""
    cluster = Forming(
        "b", "c", "d", strangers=["a"], flow_control=flow_control, window=2, frame_bytes_max=16, **SEQUENCED
    )
    for count in range(6):
        for name in "bcd":
            cluster.send(name, b"%s%d" % (name.encode(), count))
        if count == 2:
            cluster.join("a", "c")
        for sender, receiver in [("b", "c"), ("a", "c"), ("c", "a"), ("d", "b"), ("b", "d"), ("c", "b"), ("b", "a")]:
            while cluster.channels[sender, receiver]:
                cluster.move(sender, receiver)
    cluster.finish()
    assert group_of(cluster, "d").view.members[0] == "a"
    assert STATE + "1" in cluster.named("a")
    states = {tuple(cluster.states[name, GroupId(GROUP)]) for name in "abcd"}
    assert len(states) == 1
    assert sorted(states.pop()) == sorted(f"{name}{count}" for name in "bcd" for count in range(6))


def test_a_message_on_its_way_to_the_old_sequencer_is_numbered_by_the_new_one() -> None:
    """E-94: c has submitted it, and b, frozen, does not number it any more; it goes over with c."""
    cluster = Forming("b", "c", strangers=["a"], **SEQUENCED)
    cluster.join("a", "b")
    cluster.move("a", "b")  # b proposes, and has stopped
    cluster.send("c", b"m")
    assert any(isinstance(frame, SubmitFrame) for frame in cluster.channels["c", "b"])
    cluster.move_all()
    assert [cluster.delivered[name] for name in "abc"] == [[b"m"]] * 3
    assert group_of(cluster, "c").view.members[0] == "a"


def test_a_message_that_only_those_left_behind_will_deliver_is_sent_again() -> None:
    """E-94: a numbers m above the base of a formation that leaves it behind; c, the sender of m, goes over."""
    cluster = Forming("a", "b", "c", **SEQUENCED)
    cluster.core("b").suspect(ProcessId("a"), cluster.now)  # so b proposes without it
    cluster.send("c", b"m")
    cluster.start("d")
    cluster.join("d", "b")
    cluster.move("d", "b")
    while any(isinstance(frame, ProposeFrame) for frame in cluster.channels["b", "c"]):
        cluster.move("b", "c")  # c has stopped below the number that a gives to m
    cluster.move("c", "a")
    cluster.move_one_way("a", "c")
    assert not group_of(cluster, "c").discipline.awaits_return
    assert cluster.delivered["a"] == [b"m"]
    for _ in range(4):
        for pair in [("b", "c"), ("c", "b"), ("b", "d"), ("d", "b"), ("c", "d"), ("d", "c")]:
            cluster.move_one_way(*pair)
    assert [cluster.named(name) for name in "bc"] == [["a b c", "b c d", b"m"]] * 2
    assert cluster.named("d") == ["b c d", STATE + "0", b"m"]
    assert cluster.named("a") == ["a b c", b"m"]


def test_a_submitted_message_comes_before_later_messages_in_other_groups() -> None:
    """Rule 4 across a formation: m was on its way in the group when c sent n in y; n must not overtake it."""
    cluster = Forming(groups={GROUP: "bc", "y": "bc"}, strangers=["a"], **SEQUENCED)
    cluster.join("a", "b")
    cluster.move("a", "b")
    cluster.send("c", b"m")
    cluster.send("c", b"n", group="y")
    cluster.finish()
    assert cluster.delivered["b"] == cluster.delivered["c"] == [b"m", b"n"]


def test_pieces_that_were_delivered_in_the_old_group_go_again_with_the_rest() -> None:
    cluster = Forming("b", "c", strangers=["a"], frame_bytes_max=4, window=2, flow_control=3, **SEQUENCED)
    cluster.send("c", b"a large message")
    cluster.move("c", "b")
    cluster.move("b", "c")  # the first piece has come back
    cluster.join("a", "b")
    cluster.finish()
    assert [cluster.delivered[name] for name in "abc"] == [[b"a large message"]] * 3


@pytest.mark.parametrize("leaver", ["a", "c"])
def test_a_leave_waits_for_what_is_on_its_way_and_the_sequencer_may_leave_too(leaver: str) -> None:
    cluster = Forming("a", "b", "c", **SEQUENCED)
    cluster.send(leaver, b"last")
    cluster.send("b", b"too")
    cluster.leave(leaver)
    assert not cluster.left[leaver]
    cluster.finish()
    assert [left.graceful for left in cluster.left[leaver]] == [True]
    stay = [name for name in "abc" if name != leaver]
    assert all(sorted(cluster.delivered[name]) == [b"last", b"too"] for name in stay)
    assert all(cluster.last_view(name) == " ".join(stay) for name in stay)


def test_two_sides_merge_and_one_sequencer_orders_for_all() -> None:
    cluster = Forming("a", "b", "c", "d", **SEQUENCED)
    cluster.cut("ab", "cd")
    cluster.send("a", b"here")
    cluster.send("c", b"there")
    cluster.finish(6)
    assert cluster.last_view("b") == "a b"
    assert cluster.last_view("d") == "c d"
    cluster.heal()
    cluster.merge("d", "a")
    cluster.finish(6)
    cluster.send("d", b"all")
    cluster.finish()
    assert len({tuple(cluster.states[name, GroupId(GROUP)]) for name in "abcd"}) == 1
    assert all(cluster.named(name)[-1] == b"all" for name in "abcd")


def test_all_get_to_the_base_by_the_sequencer_alone() -> None:
    """Step 3 with rule 5: only the sequencer sends numbers; the others ask it."""
    cluster = Forming("a", "b", "c", groups=None, strangers=["d"], **SEQUENCED)
    cluster.core("c").counter.witness(41)
    cluster.join("d", "b")
    cluster.move_all()
    asked = [frame for frame in cluster.control["c"] if isinstance(frame, NeedFrame)]
    assert [frame.number for frame in asked] == [41]
    assert any(isinstance(frame, BaseFrame) and frame.base == 41 for frame in cluster.control["b"])
    assert all(cluster.last_view(name) == "a b c d" for name in "abcd")
    assert cluster.now < OMEGA_NS
