"""Asymmetric groups, rule by rule (docs/spec/newtop.md 11.3): one member numbers the messages of all."""

from typing import Any

import pytest

from antiphon.core.effects import Blocked, Deliver, InstallView, Refuted, Suspected, Transmit, Unblocked
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, NeedFrame, Ordering, SubmitFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.types import GroupId, ProcessId
from tests.support.cluster import GROUP, OMEGA_NS, Cluster, Lone, accuse

X, Y, Z = map(GroupId, "xyz")
A, B, C, D = map(ProcessId, "abcd")
ALONE = frozenset({GROUP})
OVERLAP = {"x": "abc", "y": "bc"}
"""x has the sequencer a, which is not in y."""


def single(*names: str, **settings: Any) -> Cluster:
    return Cluster(*names, asymmetric=ALONE, **settings)


def watched(*names: str, **settings: Any) -> Cluster:
    return single(*names, suspect_after_ns=OMEGA_NS, **settings)


def mixed(**settings: Any) -> Cluster:
    return Cluster(groups=OVERLAP, asymmetric=frozenset({X}), **settings)


def group_of(cluster: Cluster, name: str, group: GroupId = GROUP) -> NewtopGroup:
    own = cluster.core(name)._groups[group]
    assert own.discipline.sequenced
    return own


def sent_to_sequencer(cluster: Cluster, name: str, kind: type[SubmitFrame] | type[NeedFrame]) -> list[Any]:
    return [frame for frame in cluster.control[name] if isinstance(frame, kind)]


def ordered(frame: BlockFrame) -> Ordering:
    assert frame.ordering is not None
    return frame.ordering


# Rules 1 to 3: submit, number, deliver


def test_the_lowest_member_of_the_view_numbers_the_submitted_messages() -> None:
    cluster = single("a", "b", "c")
    cluster.send("b", b"m")
    (submission,) = sent_to_sequencer(cluster, "b", SubmitFrame)
    assert (submission.block, submission.place, submission.payloads) == (1, 1, (b"m",))
    assert not cluster.channels["b", "c"]  # to the sequencer alone
    cluster.move("b", "a")
    (frame,) = cluster.transmitted["a"]
    assert (frame.sender, frame.author, frame.orderer, frame.block) == ("a", "b", "a", 2)  # above m.c
    assert frame.payloads == (b"m",)
    cluster.move_all()
    assert cluster.delivered == {"a": [b"m"], "b": [b"m"], "c": [b"m"]}
    assert cluster.transmitted["b"] == cluster.transmitted["c"] == []  # no other member needs to speak


def test_the_sequencer_numbers_its_own_at_once() -> None:
    cluster = single("a", "b")
    cluster.send("a", b"m")
    assert cluster.delivered["a"] == [b"m"]
    (frame,) = cluster.transmitted["a"]
    assert ordered(frame) == Ordering(A, 1, 0)


def test_numbers_rise_above_what_the_origin_has_seen() -> None:
    """BC = max(BC, m.c) + 1, and the origin takes over the number when its copy comes."""
    cluster = mixed()
    cluster.send("b", b"1", group="y")
    cluster.send("b", b"2", group="y")
    cluster.send("b", b"m", group="x")
    cluster.move_all()
    numbers = [frame.block for frame in cluster.transmitted["a"] if frame.payloads]
    assert numbers[0] > 3
    assert cluster.core("b")._groups[X].numbers.counter.value >= numbers[0]


def test_a_message_is_delivered_in_one_order_whatever_the_arrivals() -> None:
    cluster = single("a", "b", "c")
    for name in "abc":
        cluster.send(name, f"{name}1".encode(), f"{name}2".encode())
    cluster.move("c", "a", 1)
    cluster.move_all()
    assert cluster.delivered["a"] == [b"a1", b"a2", b"c1", b"c2", b"b1", b"b2"]
    assert cluster.delivered["a"] == cluster.delivered["b"] == cluster.delivered["c"]


def test_pieces_of_large_messages_are_joined_by_origin() -> None:
    cluster = single("a", "b", "c", frame_bytes_max=2)
    cluster.send("b", b"bbbbbb")
    cluster.send("c", b"cccc")
    cluster.move("b", "a")
    cluster.move("c", "a")
    cluster.move_all()
    assert sorted(cluster.delivered["a"]) == [b"bbbbbb", b"cccc"]
    assert cluster.delivered["a"] == cluster.delivered["b"] == cluster.delivered["c"]


# Rule 4: turns


def test_nothing_is_sent_elsewhere_before_it_has_come_back() -> None:
    cluster = mixed()
    cluster.send("b", b"m", group="x")
    cluster.send("b", b"later", group="y")
    assert cluster.transmitted["b"] == []
    cluster.send("b", b"too", group="x")  # the same group is allowed: places keep the order
    assert len(sent_to_sequencer(cluster, "b", SubmitFrame)) == 1  # but y has waited longer
    cluster.move_all()
    assert cluster.delivered["c"] == cluster.delivered["b"] == [b"m", b"later", b"too"]


def test_in_the_same_group_messages_follow_at_once() -> None:
    cluster = mixed(packing=False)
    cluster.send("b", b"1", b"2", b"3", group="x")
    assert [frame.place for frame in sent_to_sequencer(cluster, "b", SubmitFrame)] == [1, 2, 3]


def test_two_asymmetric_groups_take_turns_too() -> None:
    cluster = Cluster(groups={"x": "abc", "z": "abc"}, asymmetric=frozenset({X, Z}))
    for payload in (b"1", b"2", b"3", b"4"):
        cluster.send("b", payload, group="x" if payload in b"13" else "z")
    assert len(sent_to_sequencer(cluster, "b", SubmitFrame)) == 1
    cluster.move_all()
    assert cluster.delivered["a"] == cluster.delivered["b"] == cluster.delivered["c"]
    assert cluster.delivered["c"] == [b"1", b"2", b"4", b"3"]  # 2 and 4 left together, in one frame


def test_without_turns_causality_breaks() -> None:
    """A-4, as its scenario tells it."""
    cluster = mixed(literal=("A-4",))
    cluster.send("c", b"first", group="x")
    cluster.move("c", "a")
    cluster.send("b", b"m", group="x")
    cluster.send("b", b"later", group="y")
    cluster.move_all()
    assert cluster.delivered["c"].index(b"later") < cluster.delivered["c"].index(b"m")


# Rule 5: needs


def test_a_number_of_another_group_is_asked_of_the_sequencer() -> None:
    cluster = mixed()
    cluster.send("b", b"m", group="y")
    (need,) = sent_to_sequencer(cluster, "b", NeedFrame)
    assert need == NeedFrame(X, B, 1)
    assert cluster.delivered["b"] == []
    cluster.move("b", "a")
    (null,) = cluster.transmitted["a"]
    assert (null.block, null.payloads) == (1, ())
    cluster.move_all()
    assert cluster.delivered["b"] == cluster.delivered["c"] == [b"m"]


def test_the_sequencer_sends_no_null_for_a_number_that_it_has_passed() -> None:
    cluster = mixed()
    cluster.send("a", b"1", b"2", group="x")
    cluster.send("a", b"3", group="x")
    cluster.send("b", b"m", group="y")
    cluster.move("b", "a")
    assert [frame.block for frame in cluster.transmitted["a"]] == [1, 2]  # 2 is enough for y's number 1


def test_no_silence_is_owed_in_an_asymmetric_group() -> None:
    cluster = single("a", "b", "c", silence_timeout_ns=1)
    cluster.send("b", b"m")
    cluster.finish()
    assert [name for name in "abc" if cluster.transmitted[name]] == ["a"]


# Rule 6.1, 6.2: evidence, detection


def test_a_suspect_that_orders_nothing_shows_life_by_a_null_of_its_own() -> None:
    cluster = watched("a", "b", "c")
    cluster.suspect("a", "c")
    cluster.move("a", "c")
    (evidence,) = cluster.transmitted["c"]
    assert (evidence.ordering, evidence.payloads, evidence.previous_block) == (None, (), 0)
    cluster.finish()
    assert cluster.found("a", Refuted)
    assert all(cluster.views_of(name) == ["a b c"] for name in "abc")


def test_evidence_completes_nothing() -> None:
    """A member's own numbers serve membership alone: D is the sequencer's."""
    cluster = watched("a", "b", "c")
    cluster.suspect("a", "c")
    cluster.move("a", "c")
    cluster.move_all()
    assert group_of(cluster, "b").complete_block == 0


def test_the_last_evidence_is_enough_whatever_was_missed() -> None:
    """b has seen only c's first null, and refutes with the last one alone."""
    cluster = watched("a", "b", "c")
    for accuser in ("a", "b"):
        cluster.suspect(accuser, "c")
        cluster.move_one_way(accuser, "c")
        cluster.move_one_way("c", "a" if accuser == "b" else "b")
    first, second = cluster.transmitted["c"]
    stored = group_of(cluster, "a").discipline.stored(C, 0)
    assert stored == () or stored[-1] in (first, second)
    cluster.finish()
    assert all(cluster.views_of(name) == ["a b c"] for name in "abc")


def test_all_say_regularly_that_they_live() -> None:
    cluster = watched("a", "b", "c")
    for _ in range(12):
        cluster.wait(OMEGA_NS // 4)
        cluster.move_all()
    for name in "abc":
        assert len([frame for frame in cluster.control[name] if isinstance(frame, AliveFrame)]) >= 6
        assert not cluster.found(name, Suspected)


def test_silence_alone_is_reason_to_suspect() -> None:
    cluster = watched("a", "b", "c")
    cluster.crash("c")
    for _ in range(8):
        cluster.wait(OMEGA_NS // 4)
        cluster.move_all()
    assert [effect.reason for effect in cluster.found("a", Suspected)] == ["silent"]
    assert all(cluster.views_of(name) == ["a b c", "a b"] for name in "ab")


def test_without_membership_idle_members_stay_silent() -> None:
    cluster = single("a", "b", "c")
    cluster.send("b", b"m")
    cluster.rest()
    assert cluster.delivered["c"] == [b"m"]
    said = {name: (len(cluster.transmitted[name]), len(cluster.control[name])) for name in "abc"}
    cluster.finish(8, OMEGA_NS)
    assert said == {name: (len(cluster.transmitted[name]), len(cluster.control[name])) for name in "abc"}


# Rule 6.3, 6.4: which cut


def test_the_sequencer_tells_where_the_view_changes() -> None:
    """d's message is numbered before a knows that d has failed, so all deliver it in the old view."""
    cluster = watched("a", "b", "c", "d")
    cluster.send("d", b"last")
    cluster.move("d", "a")
    cluster.crash("d")
    for name in "abc":
        cluster.suspect(name, "d")
    cluster.move_all()
    cluster.send("b", b"m")
    cluster.move_all()
    views = [frame for frame in cluster.transmitted["a"] if frame.kind == "view"]
    assert len(views) == 1
    for name in "abc":
        assert cluster.story(name) == ["a b c d", b"last", "a b c", b"m"]


def test_of_a_failed_origin_nothing_more_is_numbered() -> None:
    cluster = watched("a", "b", "c")
    cluster.send("c", b"too late")
    for name in "ab":
        cluster.suspect(name, "c")
    cluster.move_between("a", "b")
    cluster.move_all()
    assert cluster.views_of("b") == ["a b c", "a b"]
    assert b"too late" not in cluster.delivered["a"]
    assert cluster.story("c") == ["a b c", "c", b"too late"]


def test_when_the_sequencer_fails_the_view_changes_behind_its_last_number() -> None:
    cluster = watched("a", "b", "c")
    cluster.send("a", b"1")
    cluster.send("a", b"2")
    cluster.move("a", "b", 2)
    cluster.move("a", "c", 1)  # c lacks the second
    cluster.drop("a", "c")
    cluster.crash("a")
    cluster.suspect("b", "a")
    cluster.suspect("c", "a")
    cluster.finish(rounds=10, pause_ns=OMEGA_NS // 4)
    for name in "bc":
        assert cluster.story(name) == ["a b c", b"1", b"2", "b c"]
    assert group_of(cluster, "b").complete_block >= 2


def test_messages_of_the_new_sequencer_wait_for_the_cut() -> None:
    """c has not agreed yet when b, which is in the next view, numbers a message."""
    cluster = watched("a", "b", "c")
    cluster.send("a", b"old")
    cluster.move("a", "b")
    cluster.crash("a")
    cluster.drop("a", "c")
    for name in "bc":
        cluster.suspect(name, "a")
    cluster.finish(rounds=4, pause_ns=OMEGA_NS // 8)
    cluster.send("b", b"new")
    cluster.finish(rounds=4, pause_ns=OMEGA_NS // 8)
    assert cluster.story("b") == cluster.story("c") == ["a b c", b"old", "b c", b"new"]


def test_a_view_that_was_lost_with_its_sequencer_goes_along() -> None:
    """E-68."""
    cluster = watched("a", "b", "c", "d")
    cluster.crash("d")
    for name in "abc":
        cluster.suspect(name, "d")
    cluster.move_between("b", "c")
    cluster.move_one_way("a", "b", "c")
    cluster.move_one_way("b", "a")
    cluster.drop("a", "b")
    cluster.drop("a", "c")
    cluster.move_one_way("c", "a")
    cluster.crash("a")
    assert any(frame.kind == "view" for frame in cluster.transmitted["a"])
    for name in "bc":
        cluster.suspect(name, "a")
    cluster.finish(rounds=6, pause_ns=OMEGA_NS // 8)
    assert cluster.views_of("b") == cluster.views_of("c") == ["a b c d", "b c"]


def test_a_cut_waits_for_the_other_groups() -> None:
    """b's view of x changes behind 3, so y must get there: a null, as for any cut (E-43)."""
    cluster = mixed(suspect_after_ns=OMEGA_NS)
    for payload in (b"1", b"2", b"3"):
        cluster.send("a", payload, group="x")
    cluster.crash("a")
    for name in "bc":
        cluster.move_one_way("a", name)
        cluster.suspect(name, "a")
    cluster.move_all()
    assert cluster.views_of("b", "x") == cluster.views_of("c", "x") == ["a b c", "b c"]
    assert cluster.delivered["b"] == cluster.delivered["c"] == [b"1", b"2", b"3"]


# Rule 6.5, 6.6: a new sequencer, origins


def test_a_message_that_did_not_come_back_is_submitted_again() -> None:
    cluster = watched("a", "b", "c")
    cluster.crash("a")
    cluster.send("c", b"1", b"2")
    cluster.send("b", b"3")
    for name in "bc":
        cluster.suspect(name, "a")
    cluster.finish(rounds=6, pause_ns=OMEGA_NS // 8)
    assert cluster.story("b") == cluster.story("c") == ["a b c", "b c", b"3", b"1", b"2"]  # by origin and place


def test_while_the_sequencer_has_failed_origins_hold() -> None:
    cluster = mixed(suspect_after_ns=OMEGA_NS)
    cluster.stalled |= {"b", "c"}
    cluster.send("a", b"1", group="x")
    cluster.move("a", "b")
    cluster.move("a", "c")
    cluster.crash("a")
    group_of(cluster, "b", X).agreement.failed[A] = 1
    cluster.send("b", b"m", group="x")
    assert not sent_to_sequencer(cluster, "b", SubmitFrame)


def test_a_numbered_message_is_not_numbered_again() -> None:
    """a has numbered c's message, b has seen it, c not yet; then a fails."""
    cluster = watched("a", "b", "c")
    cluster.send("c", b"m")
    cluster.move("c", "a")
    cluster.move("a", "b")
    cluster.drop("a", "c")
    cluster.crash("a")
    for name in "bc":
        cluster.suspect(name, "a")
    cluster.finish(rounds=12, pause_ns=OMEGA_NS // 4)
    assert cluster.story("b") == cluster.story("c") == ["a b c", b"m", "b c"]
    assert not group_of(cluster, "c").discipline.awaits_return


def test_a_submission_that_comes_early_waits_for_its_sequencer() -> None:
    """b has not installed the view yet in which it numbers the message of c."""
    lone = Lone("b", "a", "c", asymmetric=ALONE)
    early = SubmitFrame(GROUP, C, 3, 1, 0, (b"early",))
    lone.feed(early, early)
    assert lone.frames(BlockFrame) == []
    lone.suspect("a")
    lone.feed(accuse("c", "a", 0))
    assert lone.view.members == (B, C)
    assert lone.delivered() == [b"early"]
    lone.feed(early)  # and once more, late
    assert lone.delivered() == [b"early"]


def test_early_submissions_of_a_failed_member_are_not_numbered() -> None:
    """c fails together with the sequencer; its submission to the next sequencer is dropped."""
    lone = Lone("b", "a", "c", "d", asymmetric=ALONE)
    lone.feed(SubmitFrame(GROUP, C, 3, 1, 0, (b"of c",)), SubmitFrame(GROUP, D, 3, 1, 0, (b"of d",)))
    lone.suspect("a", "c")
    lone.feed(accuse("d", "a", 0), accuse("d", "c", 0))
    assert lone.view.members == (B, D)
    assert lone.delivered() == [b"of d"]


def test_a_sequencer_takes_places_in_their_order() -> None:
    lone = Lone("a", "b", asymmetric=ALONE)
    first, second, third = (SubmitFrame(GROUP, B, place, place, 0, (b"%d" % place,)) for place in (1, 2, 3))
    lone.feed(third, second)
    assert lone.delivered() == []
    lone.feed(first, second)
    assert lone.delivered() == [b"1", b"2", b"3"]


def test_a_submission_of_a_member_that_excluded_more_waits_for_the_sequencer() -> None:
    """c counts stability without d; that may be wrong for a, which still has d in its view."""
    lone = Lone("a", "b", "c", "d", asymmetric=ALONE)
    lone.feed(SubmitFrame(GROUP, C, 1, 1, 0, (b"m",), excluded=(D,)))
    assert lone.frames(BlockFrame) == []


# Rule 6.7: needs are asked for again


def test_a_new_sequencer_is_asked_again() -> None:
    cluster = Cluster(groups={"x": "abcd", "y": "cd"}, asymmetric=frozenset({X}), suspect_after_ns=OMEGA_NS)
    cluster.crash("a")
    cluster.send("c", b"m", group="y")
    for name in "bcd":
        cluster.suspect(name, "a")
    cluster.move_all()
    needs = sent_to_sequencer(cluster, "c", NeedFrame)
    assert len(needs) >= 2
    assert cluster.delivered["c"] == cluster.delivered["d"] == [b"m"]


# Stability and windows


def test_members_free_messages_that_all_have() -> None:
    cluster = watched("a", "b", "c")
    cluster.send("b", b"m")
    cluster.finish()
    assert [cluster.core(name).unstable(GROUP) for name in "abc"] == [0, 0, 0]


@pytest.mark.parametrize("sender", ["a", "b"])
def test_a_window_limits_the_origins_own_messages(sender: str) -> None:
    cluster = single("a", "b", "c", flow_control=3, window=2, packing=False)
    cluster.stalled.add("c")
    cluster.send(sender, b"1", b"2", b"3", b"4")
    cluster.finish()
    assert cluster.delivered["c"] == [b"1", b"2"]
    assert [effect.by for effect in cluster.found(sender, Blocked)][-1] == "c"
    cluster.send("a" if sender == "b" else "b", b"other")  # its own window is open
    cluster.finish()
    assert cluster.delivered["c"] == [b"1", b"2", b"other"]
    cluster.wake("c")
    cluster.finish()
    assert cluster.delivered["c"] == [b"1", b"2", b"other", b"3", b"4"]
    assert cluster.found(sender, Unblocked)


def test_a_window_of_bytes_too() -> None:
    cluster = single("a", "b", flow_control=3, window_bytes=10, packing=False)
    cluster.stalled.add("a")
    cluster.send("b", b"1234567", b"8901234")
    cluster.finish()
    assert cluster.delivered["a"] == [b"1234567"]
    cluster.wake("a")
    cluster.finish()
    assert cluster.delivered["a"] == [b"1234567", b"8901234"]


@pytest.mark.parametrize("window", [{"window": 4}, {"window": 100, "window_bytes": 4, "frame_bytes_max": 4}])
def test_half_a_window_of_news_does_not_wait(window: dict[str, int]) -> None:
    cluster = single("a", "b", flow_control=3, packing=False, announce_pause_ns=OMEGA_NS, **window)
    cluster.send("a", *(b"%d" % number for number in range(20)))
    cluster.move_all()
    assert len(cluster.delivered["b"]) == 20


# On datagrams


def test_a_submission_that_is_lost_is_sent_again() -> None:
    cluster = single("a", "b", datagrams=True)
    cluster.send("b", b"m")
    cluster.channels["b", "a"].clear()
    cluster.finish()
    assert cluster.delivered["a"] == cluster.delivered["b"] == [b"m"]
    assert len(sent_to_sequencer(cluster, "b", SubmitFrame)) > 1


def test_a_need_that_is_lost_is_asked_again() -> None:
    cluster = mixed(datagrams=True)
    cluster.send("b", b"m", group="y")
    cluster.channels["b", "a"].clear()
    cluster.finish()
    assert cluster.delivered["b"] == cluster.delivered["c"] == [b"m"]


# Frames that no correct peer sends


def test_malformed_numbered_frames_are_refused() -> None:
    lone = Lone("b", "a", "c", asymmetric=ALONE)
    gap = BlockFrame(GROUP, A, 5, 3, 0, (b"gap",), ordering=Ordering(C, 1, 0))
    unordered = BlockFrame(GROUP, A, 5, 0, 0, (b"no order",))
    stranger = BlockFrame(GROUP, A, 5, 0, 0, (b"who?",), ordering=Ordering(ProcessId("z"), 1, 0))
    with pytest.raises(ProtocolViolation, match="number 5 follows 3"):
        lone.feed(gap)
    lone.feed(unordered, stranger)
    assert not lone.found(Deliver)
    lone.feed(BlockFrame(GROUP, A, 5, 0, 0, (b"m",), ordering=Ordering(C, 1, 0)))
    assert lone.delivered() == [b"m"]


def test_strangers_submit_in_vain() -> None:
    lone = Lone("a", "b", asymmetric=ALONE)
    lone.feed(SubmitFrame(GROUP, ProcessId("z"), 1, 1, 0, (b"m",)), NeedFrame(GROUP, ProcessId("z"), 7))
    assert lone.frames(BlockFrame) == []


def test_a_symmetric_group_accepts_no_submissions() -> None:
    lone = Lone("a", "b")
    lone.feed(SubmitFrame(GROUP, B, 1, 1, 0, (b"m",)), NeedFrame(GROUP, B, 7))
    lone.feed(BlockFrame(GROUP, B, 5, 0, 0, (b"m",), ordering=Ordering(B, 1, 0)))  # and no frame numbered for others
    assert not [effect for effect in lone.effects if not isinstance(effect, InstallView | Transmit)]
    assert lone.frames(BlockFrame) == []
    assert lone.group.complete_block == 0
    assert lone.group.reached(B) == 0


# Rule 7: orders that are not promised


def split_in_one_group() -> Cluster:
    """E-71: 2 leaves 1 and 3 behind in x, while it goes on with 3 in y."""
    cluster = Cluster(
        groups={"x": "123", "y": "23"}, asymmetric=frozenset({X}), suspect_after_ns=OMEGA_NS, packing=False
    )
    cluster.send("1", *(b"%d" % number for number in range(1, 11)), group="x")
    cluster.move_all()
    cluster.send("1", *(b"%d" % number for number in range(11, 16)), group="x")
    cluster.move_one_way("1", "3")
    cluster.send("2", b"m", group="x")
    cluster.move("2", "1")  # 1 gives it the number 16, which 2 never sees, and 3 later
    for other in ("1", "3"):
        cluster.core("2")._groups[X].agreement.suspect(ProcessId(other), "injected", cluster.now)
    cluster.settle("2")  # alone, 2 numbers m itself
    cluster.send("2", b"later", group="y")
    return cluster


def test_a_split_in_one_group_may_reverse_messages_of_two_groups() -> None:
    """A known limit: 2 does not know the number that 1 gives to m, and gives smaller ones to m and its successors."""
    cluster = split_in_one_group()
    numbers = {frame.payloads: frame.block for name in "12" for frame in cluster.transmitted[name]}
    assert [frame.block for frame in cluster.transmitted["1"] if frame.payloads == (b"m",)] == [16]
    assert (numbers[b"m",], numbers[b"later",]) == (12, 13)
    cluster.move_one_way("2", "3")
    assert cluster.delivered["3"][-1] == b"later"  # x is complete up to 15 there
    cluster.finish(rounds=4, pause_ns=OMEGA_NS // 8)
    assert cluster.delivered["3"][-4:] == [b"later", b"14", b"15", b"m"]
    assert cluster.views_of("3", "x") == cluster.views_of("1", "x") == ["1 2 3", "1 3"]
    assert cluster.views_of("3", "y") == ["2 3"]
