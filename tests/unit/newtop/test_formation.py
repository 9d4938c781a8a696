"""Groups that are formed, joined, left and merged: the directed tests F1 to F9 of newtop.md 11.2, and the rules around.

Schedules are written down frame by frame where that matters; elsewhere all that is under way arrives.
"""

from typing import Any

import pytest

from antiphon.core.effects import Confirmed, InstallView, Left, Transitional
from antiphon.protocols.newtop.formation.attempts import Attempts
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    BlockFrame,
    FormationFrame,
    InstallFrame,
    LeavingFrame,
    ProbeFrame,
    ProposeFrame,
    ReadyFrame,
    VoteFrame,
    WantFrame,
)
from antiphon.types import EPOCH_MAX, Company, GroupId, ProcessId, ViewId, epoch_of, formed_group, name_of
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import STATE, Forming

PATIENCE_NS = 4 * OMEGA_NS


def kinds(cluster: Forming, name: str) -> list[str]:
    """The frames of formations that a process sent, in order, repetitions aside."""
    sent = [frame.kind for frame in cluster.control[name] if isinstance(frame, FormationFrame)]
    return [kind for place, kind in enumerate(sent) if place == 0 or sent[place - 1] != kind]


def formations(cluster: Forming, name: str) -> Formations:
    found = cluster.core(name)._formations
    assert found is not None
    return found


def frozen(cluster: Forming, name: str) -> bool:
    return formations(cluster, name).stage.procedure is not None


def hand_over(cluster: Forming, sender: str, receiver: str, kind: type) -> None:
    """Let frames of one channel arrive up to the first of that kind."""
    channel = cluster.channels[sender, receiver]
    count = next(place for place, frame in enumerate(channel, start=1) if isinstance(frame, kind))
    cluster.move(sender, receiver, count)


# Formation


def test_a_group_is_formed_of_processes_that_are_in_none() -> None:
    cluster = Forming(strangers=["a", "b", "c"])
    cluster.form("a", "a", "b", "c", group="x")
    cluster.move_all()
    cluster.send("c", b"1", group="x")
    cluster.move_all()
    for name in "abc":
        assert cluster.named(name, "x") == ["a b c", b"1"]
    assert kinds(cluster, "a") == ["propose", "install"]
    assert kinds(cluster, "b") == ["vote", "install"]


def test_messages_sent_before_the_join_wait_until_the_process_is_a_member() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.send("c", b"early")
    cluster.move_all()
    assert cluster.named("c") == ["a b c", STATE + "0", b"early"]
    assert cluster.named("a") == ["a b", "a b c", b"early"]


def test_f1_a_message_of_another_group_above_the_base_is_delivered_after_the_formation() -> None:
    """F1, E-54: b has it while the group is formed, a gets it afterwards; the new group must not hold it up."""
    cluster = Forming(groups={"y": "abc"})
    cluster.form("a", "a", "b", group="x")
    hand_over(cluster, "a", "b", ProposeFrame)
    cluster.send("c", b"m", group="y")
    cluster.move_one_way("c", "b")  # and not to a
    assert frozen(cluster, "b")
    cluster.move_between("a", "b")
    assert cluster.last_view("a", "x") == cluster.last_view("b", "x") == "a b"
    cluster.move_all()
    assert all(cluster.delivered[name] == [b"m"] for name in "abc")


def test_f2_a_process_that_gives_up_too_late_is_excluded_and_its_own_groups_go_on() -> None:
    cluster = Forming("a", "b", "c")
    cluster.form("a", "a", "b", "c", group="x")
    cluster.move("a", "b")
    cluster.move("a", "c")
    cluster.move("b", "a")
    cluster.move("c", "a")  # all votes: a goes over
    cluster.move("a", "b")
    assert cluster.core("b").current(GroupId("x")) is not None
    cluster.channels["a", "c"].clear()
    cluster.channels["b", "c"].clear()
    cluster.now += PATIENCE_NS + 1
    cluster.tick("c")
    assert not frozen(cluster, "c")
    assert any(isinstance(frame, AbortFrame) for frame in cluster.control["c"])
    cluster.finish()
    assert cluster.named("a", "x") == cluster.named("b", "x") == ["a b c", "a b"]
    assert cluster.named("c", "x") == []
    cluster.send("c", b"on")
    cluster.finish()
    assert all(cluster.delivered[name] == [b"on"] for name in "abc")


def test_the_notice_of_a_failure_comes_after_the_first_view() -> None:
    """An application reads the notice after the first view of the group, and before any delivery in it."""
    cluster = Forming(groups={"y": "abd"}, strangers=["c"])
    cluster.send("a", b"m", group="y")
    cluster.move_between("a", "b")
    cluster.form("a", "a", "b", "c", group="x")
    while cluster.core("b").current(GroupId("x")) is None or cluster.core("c").current(GroupId("x")) is None:
        cluster.move_between("a", "b")
        cluster.move_between("a", "c")
    for name in "ab":
        cluster.suspect(name, "c")
    cluster.move_between("a", "b")
    assert [effect.members for effect in cluster.found("a", Confirmed)] == [("a", "b")]
    assert not cluster.found("a", Transitional)
    assert not cluster.named("a", "x")  # for d has not answered in y
    cluster.move_all()
    shown = [effect for effect in cluster.effects["a"] if isinstance(effect, InstallView | Transitional)]
    told = [effect.members if isinstance(effect, Transitional) else effect.view.members for effect in shown]
    assert told[-3:] == [("a", "b", "c"), ("a", "b"), ("a", "b")]
    assert isinstance(shown[-2], Transitional)


def test_f3_overlapping_formations_succeed_one_after_the_other_and_no_process_stays_frozen() -> None:
    cluster = Forming(strangers=["a", "b", "c"])
    cluster.form("a", "a", "b", group="x")
    cluster.form("c", "b", "c", group="y")
    cluster.move("a", "b")
    cluster.move("c", "b")
    assert [frame.number for frame in cluster.control["b"] if isinstance(frame, VoteFrame)] == [0, None]
    cluster.move_all()
    assert not any(frozen(cluster, name) for name in "abc")
    assert cluster.named("a", "x") == ["a b"]
    assert cluster.named("c", "y") == []
    cluster.finish(12)
    assert cluster.named("c", "y") == cluster.named("b", "y") == ["b c"]  # c tried again


def test_while_a_process_is_frozen_it_delivers_nothing_above_its_vote_in_any_group() -> None:
    cluster = Forming(groups={"y": "ab"}, strangers=["c"])
    cluster.form("c", "a", "c", group="x")
    cluster.move("c", "a")
    cluster.send("b", b"later", group="y")
    cluster.move_between("a", "b")
    assert cluster.delivered == {"a": [], "b": [b"later"], "c": []}
    cluster.move_all()
    assert cluster.delivered["a"] == [b"later"]


def test_a_proposal_that_believes_us_elsewhere_is_refused_and_a_refusal_ends_it_for_all() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    formations(cluster, "c").steps.propose(GROUP, {ProcessId("a"): GroupId("g@5"), ProcessId("c"): None}, 0)
    cluster.settle("c")
    cluster.move_all()
    assert not frozen(cluster, "a")
    assert not frozen(cluster, "c")
    assert cluster.named("a") == ["a b"]


def test_a_process_that_does_not_vote_delays_a_formation_once_and_is_then_left_out_for_longer_each_time() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    cluster.cut(["a"], ["c"])
    cluster.cuts.discard(("c", "a"))  # c is heard, and deaf
    cluster.join("c", "a")
    asked = 0
    for _ in range(100):
        cluster.move_all()
        cluster.wait(OMEGA_NS // 2)
        asked = sum(isinstance(frame, ProposeFrame) for frame in cluster.control["a"])
    assert cluster.named("a") == ["a b"]
    assert asked < 60  # five proposals, each repeated to c; without the rule, a is frozen most of the time
    cluster.send("b", b"on")
    cluster.finish(2)
    assert cluster.delivered["a"] == [b"on"]


def test_as_long_as_votes_are_counted_a_proposal_gives_way_to_one_of_a_lower_initiator() -> None:
    """E-93: a and b both propose for the same joiner; without the rule each would refuse the other's."""
    cluster = Forming("a", "b", "c", strangers=["d"])
    cluster.join("d", "b")
    cluster.move("d", "b")  # b proposes
    cluster.move("b", "c")
    cluster.core("a").receive(ProbeFrame(GroupId(GROUP), ProcessId("d"), True), cluster.now)
    cluster.settle("a")  # and so does a
    cluster.move_all()
    assert all(cluster.last_view(name) == "a b c d" for name in "abcd")
    assert "install" in kinds(cluster, "a")
    votes = [frame for frame in cluster.control["c"] if isinstance(frame, VoteFrame)]
    assert [frame.number is not None for frame in votes] == [True, True]  # c changed its mind


def test_an_abort_that_overtakes_its_proposal_refuses_it() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.move("c", "a")
    proposal = next(frame for frame in cluster.channels["a", "b"] if isinstance(frame, ProposeFrame))
    cluster.core("b").receive(AbortFrame(proposal.group, ProcessId("a")), cluster.now)
    cluster.move("a", "b")
    assert not frozen(cluster, "b")
    assert [frame.number for frame in cluster.control["b"] if isinstance(frame, VoteFrame)] == [None]


@pytest.mark.parametrize("kind", ["abort", "install"])
def test_a_stranger_neither_ends_nor_completes_a_formation(kind: str) -> None:
    """It knows the identity of the group that is being formed, and is not invited to it."""
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.move("c", "a")
    cluster.move("a", "b")
    formation = formations(cluster, "b").stage.formation
    assert formation is not None
    companies = (Company((ProcessId("a"), ProcessId("b")), ViewId("0000.000000.0123456789abcdef"), 2, True),)
    frames = {
        "abort": AbortFrame(formation.group, ProcessId("x")),
        "install": InstallFrame(formation.group, ProcessId("x"), formation.number, companies),
    }
    cluster.core("b").receive(frames[kind], cluster.now)
    assert formations(cluster, "b").stage.formation is formation
    cluster.finish(4)
    assert cluster.last_view("b") == "a b c"


def test_a_member_does_not_install_before_it_is_ready() -> None:
    """A member that lies could otherwise make it skip what it must still deliver."""
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.move("c", "a")
    cluster.move("a", "b")
    formation = formations(cluster, "b").stage.formation
    assert formation is not None
    alone = tuple(Company((member,), None, 0, False) for member in formation.members)
    cluster.core("b").receive(InstallFrame(formation.group, ProcessId("a"), formation.number, alone), cluster.now)
    assert formations(cluster, "b").stage.formation is formation


@pytest.mark.parametrize("lacking", [True, False])
def test_a_member_that_still_lacks_the_state_takes_part_in_no_formation(lacking: bool) -> None:
    cluster = Forming("a", "b", strangers=["c", "d"])
    cluster.join("c", "a")
    cluster.finish(2)
    group = cluster.core("c").current(GROUP)
    assert group is not None
    if lacking:
        group.transfer = object()  # type: ignore[assignment]  # as if its state had not come
    cluster.join("d", "a")
    cluster.move("d", "a")
    proposal = next(frame for frame in cluster.channels["a", "c"] if isinstance(frame, ProposeFrame))
    cluster.core("c").receive(proposal, cluster.now)
    assert frozen(cluster, "c") is not lacking


def test_a_vote_with_the_largest_epoch_prevents_no_later_join() -> None:
    """A peer that lies about epochs must not use up all of them."""
    cluster = Forming("a", "b", strangers=["c"])
    own = formations(cluster, "a")
    own.receive(VoteFrame(GroupId("g@1"), ProcessId("c"), None, EPOCH_MAX), 0)
    cluster.join("c", "a")
    cluster.finish(4)
    assert not frozen(cluster, "a")
    assert cluster.last_view("a") == "a b c"
    cluster.send("b", b"on")
    cluster.finish(2)
    assert cluster.delivered["a"] == [b"on"]


def test_an_epoch_that_no_number_has_room_for_forms_nothing() -> None:
    attempts = Attempts(OMEGA_NS)
    attempts.entered(formed_group("g", EPOCH_MAX, ProcessId("a"), 1), 0)
    assert attempts.next_group(GroupId("g"), ProcessId("a"), {ProcessId("a"): None}) is None


def test_only_the_initiator_may_tell_the_base() -> None:
    cluster = Forming(groups={"y": "ab"}, strangers=["c"])
    cluster.form("c", "a", "c", group="x")
    cluster.move("c", "a")
    (group,) = {frame.group for frame in cluster.control["c"]}
    formations(cluster, "a").receive(BaseFrame(group, ProcessId("b"), 1 << 60), 0)
    cluster.settle("a")
    assert cluster.core("a").counter.value == 0


# Join and state


def test_f4_under_load_of_all_members_the_history_of_a_joiner_is_that_of_its_donor() -> None:
    cluster = Forming("a", "b", "c", strangers=["d"])
    for number in range(40):
        cluster.send("abc"[number % 3], str(number).encode())
        if number == 10:
            cluster.join("d", "b")
        for sender, receiver in (("a", "b"), ("b", "c"), ("c", "a"), ("b", "d"), ("d", "b"), ("a", "d"), ("d", "a")):
            cluster.move_one_way(sender, receiver) if number % 4 else None
    cluster.move_all()
    cluster.send("d", b"mine")
    cluster.finish(2)
    states = [cluster.states[name, GROUP] for name in "abcd"]
    assert states[0] == states[1] == states[2] == states[3]
    assert sorted(states[0]) == sorted([*map(str, range(40)), "mine"])
    assert cluster.last_view("d") == "a b c d"


@pytest.mark.parametrize("told", [False, True])
def test_f5_the_donor_crashes_before_or_after_its_state_has_reached_a_joiner(told: bool) -> None:
    cluster = Forming("a", "b", strangers=["c", "d"])
    cluster.send("b", b"1")
    cluster.move_all()
    cluster.join("c", "b")
    cluster.move_all()
    cluster.join("d", "b")
    for _ in range(50):
        group = cluster.core("d").current(GROUP)
        waiting = [pair for pair, frames in cluster.channels.items() if frames]
        if group is not None or not waiting:
            break
        for sender, receiver in waiting:
            cluster.move(sender, receiver)
    if told:
        cluster.move_one_way("a", "b", "c")
    for other in "bcd":
        cluster.drop("a", other)
    cluster.crash("a")
    cluster.send("b", b"2")
    cluster.finish(20)
    assert cluster.states["d", GROUP] == cluster.states["b", GROUP] == cluster.states["c", GROUP] == ["1", "2"]
    assert cluster.last_view("d") == "b c d"


def test_a_state_much_larger_than_the_window_reaches_a_joiner_while_members_send() -> None:
    cluster = Forming(
        "a", "b", strangers=["c"], flow_control=3, window=2, window_bytes=64, frame_bytes_max=64, message_bytes_max=200
    )
    for number in range(60):
        cluster.send("a", f"{number:08d}".encode())
        cluster.move_all()
    cluster.join("c", "a")
    for number in range(60, 90):
        cluster.send("b", f"{number:08d}".encode())
        for pair in [("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"), ("a", "b"), ("b", "a")]:
            cluster.move_one_way(*pair)
    cluster.finish(6)
    assert cluster.states["c", GROUP] == cluster.states["a", GROUP] == [f"{number:08d}" for number in range(90)]


# Merge


def test_f6_two_sides_with_different_histories_have_one_state_after_a_merge() -> None:
    cluster = Forming("a", "b", "c", "d", merge_every_ns=OMEGA_NS, idle_probe_ns=OMEGA_NS)
    cluster.cut("ab", "cd")
    cluster.finish(12)
    cluster.send("a", b"here")
    cluster.send("d", b"there")
    cluster.finish(4)
    assert cluster.last_view("a") == "a b"
    cluster.heal()
    cluster.finish(40)
    states = [cluster.states[name, GROUP] for name in "abcd"]
    assert states == [["here", "there"]] * 4
    assert {cluster.last_view(name) for name in "abcd"} == {"a b c d"}
    first = [effect.view for effect in cluster.found("a", InstallView)][-1]
    assert first.classes == (("a", "b"), ("c", "d"))
    assert first.transitional == ("a", "b")


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_a_side_whose_window_is_far_below_the_base_gets_there(algorithm: int) -> None:
    """E-90: the numbers between are those of another group, and no member here owes them."""
    flow: dict[str, Any] = {"flow_control": algorithm, "window": 3, "block_numbered": frozenset({GROUP})}
    cluster = Forming("a", "b", strangers=["c", "d"], **flow)
    cluster.form("c", "c", "d", group=GROUP)
    for _ in range(20):
        cluster.send("a", b"here")
        cluster.move_all()
    cluster.merge("c", "a")
    cluster.finish(4)
    assert {cluster.last_view(name) for name in "abcd"} == {"a b c d"}


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_a_member_beyond_the_base_of_its_new_group_takes_the_others_along(algorithm: int) -> None:
    """E-91: or its next number, which must be above all that it has sent, would be beyond the window there."""
    flow: dict[str, Any] = {"flow_control": algorithm, "window": 3, "block_numbered": frozenset({GROUP})}
    cluster = Forming("a", "b", strangers=["c"], **flow)
    cluster.join("c", "a")
    hand_over(cluster, "c", "a", ProbeFrame)
    hand_over(cluster, "a", "b", ProposeFrame)
    for _ in range(4):
        cluster.core("b")._groups[GROUP].discipline.show_life(cluster.now)
        cluster.settle("b")
        cluster.move_between("a", "b")
    cluster.move_all()
    cluster.send("a", b"1")
    cluster.move_all()
    assert {cluster.last_view(name) for name in "abc"} == {"a b c"}
    assert {tuple(cluster.states[name, GROUP]) for name in "abc"} == {("1",)}


def test_e57_views_of_one_predecessor_that_contradict_each_other_end_the_formation() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    own = formations(cluster, "c")
    own.steps.propose(GROUP, {ProcessId("a"): GROUP, ProcessId("b"): GROUP, ProcessId("c"): None}, 0)
    cluster.settle("c")
    (group,) = {frame.group for frame in cluster.control["c"]}
    for name in "ab":
        own.receive(VoteFrame(group, ProcessId(name), 0, 0), 0)
    cluster.settle("c")
    for name, view, inside in (("a", "0000.000001.x", "a"), ("b", "0000.000000.y", "ab")):
        own.receive(ReadyFrame(group, ProcessId(name), ViewId(view), tuple(map(ProcessId, inside)), True), 0)
    cluster.settle("c")
    assert not frozen(cluster, "c")
    assert any(isinstance(frame, AbortFrame) for frame in cluster.control["c"])
    assert not any(isinstance(frame, InstallFrame) for frame in cluster.control["c"])


def test_epochs_count_up_and_views_of_one_process_sort_by_installation() -> None:
    cluster = Forming("a", "b", strangers=["c"])
    for _ in range(2):
        cluster.join("c", "a")
        cluster.finish(2)
        cluster.leave("c")
        cluster.finish(6)
    views = [view for view in cluster.views["a"] if name_of(view.group) == GROUP]
    assert [epoch_of(view.group) for view in views] == [0, 1, 1, 2, 2]
    assert [view.id for view in views] == sorted(view.id for view in views)


# Leave


def test_a_leave_waits_until_all_have_the_messages_of_the_leaver() -> None:
    cluster = Forming("a", "b", "c")
    cluster.send("c", b"last")
    cluster.leave("c")
    assert not cluster.left["c"]
    assert any(isinstance(frame, WantFrame) for frame in cluster.control["c"])
    cluster.move_all()
    assert cluster.left["c"] == [Left(GROUP, True)]
    cluster.finish()
    assert cluster.named("a") == cluster.named("b") == ["a b c", b"last", "a b"]
    assert cluster.named("c") == ["a b c", b"last"]


def test_f7_leave_while_a_third_member_crashes() -> None:
    cluster = Forming("a", "b", "c")
    cluster.send("b", b"from b")
    cluster.move_one_way("b", "c")
    cluster.drop("b", "a")
    cluster.crash("b")  # only c has it
    cluster.leave("c")
    cluster.finish(20)
    assert cluster.left["c"]
    assert set(cluster.delivered["c"]) <= set(cluster.delivered["a"])
    assert cluster.last_view("a") == "a"


def test_a_leave_that_takes_too_long_is_a_crash_to_others_and_says_so() -> None:
    cluster = Forming("a", "b", "c")
    cluster.cut(["c"], ["a", "b"])
    cluster.send("c", b"lost")
    cluster.leave("c")
    cluster.now += PATIENCE_NS
    cluster.tick("c")
    assert cluster.left["c"] == [Left(GROUP, False)]


def test_in_a_view_of_two_a_leave_needs_no_grace() -> None:
    cluster = Forming("a", "b")
    cluster.leave("b")
    cluster.move_all()
    assert cluster.named("a") == ["a b", "a"]


def test_a_member_that_left_is_gone_even_if_others_refute_it() -> None:
    """E-55: c has the leaver's last null and not its farewell; b has both, and a neither."""
    cluster = Forming("a", "b", "c", "d")
    cluster.send("d", b"x")
    cluster.move_one_way("d", "b", "c")
    formations(cluster, "d").steps._host.depart(GROUP, cluster.now, graceful=False)
    cluster.settle("d")
    assert isinstance(cluster.channels["d", "b"][-1], LeavingFrame)
    cluster.move_one_way("d", "b")
    cluster.drop("d", "a")
    cluster.drop("d", "c")
    cluster.finish(20)
    assert cluster.named("a")[-1] == cluster.named("b")[-1] == cluster.named("c")[-1] == "a b c"
    assert cluster.delivered["a"] == cluster.delivered["b"] == [b"x"]


# Restart


def test_f8_a_crashed_process_joins_again_while_its_old_incarnation_is_still_in_the_view() -> None:
    cluster = Forming("a", "b", "c")
    cluster.send("c", b"old")
    cluster.move_all()
    cluster.crash("c")
    cluster.start("c#1")
    cluster.join("c#1", "a")
    cluster.send("b", b"new")
    cluster.finish(12)
    assert cluster.last_view("a") == cluster.last_view("c#1") == "a b c#1"
    assert cluster.states["c#1", GROUP] == cluster.states["a", GROUP] == ["old", "new"]


def test_f9_a_link_that_lost_frames_and_came_back_during_a_formation() -> None:
    """The first proposal is lost with the link; the frames repeated over the next connection form the group."""
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.move("c", "a")
    cluster.drop("a", "b")
    cluster.heal()
    cluster.finish(4)
    assert cluster.last_view("c") == cluster.last_view("a") == "a b c"


# On datagrams


def test_on_datagrams_lost_frames_are_repeated() -> None:
    cluster = Forming("a", "b", strangers=["c"], datagrams=True, repair_max_ns=OMEGA_NS // 4)
    cluster.send("a", b"1")
    cluster.finish(2)
    cluster.join("c", "a")
    for _ in range(60):
        for frames in cluster.channels.values():
            for place, frame in enumerate([*frames]):
                if isinstance(frame, FormationFrame | BlockFrame) and (cluster.now // 10_000_000 + place) % 3:
                    frames.remove(frame)
        cluster.move_all()
        cluster.wait(OMEGA_NS // 4)
    cluster.finish(8)
    assert cluster.last_view("c") == "a b c"
    assert cluster.states["c", GROUP] == ["1"]


# Memory of other processes


def test_only_the_last_departed_processes_are_remembered_and_none_after_our_leave() -> None:
    cluster = Forming("a", "b")
    found = formations(cluster, "a")
    found.acquaintances.know(GroupId(GROUP), tuple(ProcessId(f"guest-{number}") for number in range(5_000)))
    found.acquaintances.know(GroupId(GROUP), (ProcessId("c"),))
    known = found.acquaintances.known[GroupId(GROUP)]
    assert len(known) == 4_097
    assert known[-2:] == ["guest-4999", "c"]
    cluster.leave("a")
    cluster.finish(8)
    assert cluster.left["a"]
    assert not found.acquaintances.known


def test_a_missing_vote_of_long_ago_is_forgotten() -> None:
    cluster = Forming("a", strangers=["b", "c"])
    found = formations(cluster, "a")
    for name in ("b", "c"):
        cluster.crash(name)
        cluster.form("a", "a", name, group=f"with-{name}")
        cluster.wait(2 * OMEGA_NS)
        cluster.leave("a", group=f"with-{name}")
        assert name in found.attempts.mute
        cluster.wait(300 * OMEGA_NS)
    assert "b" not in found.attempts.mute
