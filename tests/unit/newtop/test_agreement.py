"""Agreement on failed members, rule by rule, at one member; the test plays its peers (docs/spec/newtop.md 9.3-9.5)."""

from dataclasses import replace
from typing import Any, cast

import pytest

from antiphon.core.effects import Blocked, Confirmed, Deliver, InstallView, Refuted, Scope, Suspected, Transmit
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, ConfirmedFrame, Flow, RefuteFrame, SuspectFrame
from antiphon.types import GroupId, ProcessId
from tests.support.cluster import GROUP, OMEGA_NS, SLOW_NS, Cluster, Lone, accuse, alive, confirm, data, null, refute


def detections(member: Lone) -> list[tuple[tuple[str, int], ...]]:
    return [effect.failed for effect in member.found(Confirmed)]


def suspected(member: Lone) -> list[tuple[str, int, str]]:
    return [(effect.process, effect.last_block, effect.reason) for effect in member.found(Suspected)]


def four() -> Lone:
    return Lone("me", "a", "b", "c")


def reached(member: Lone, process: str) -> int:
    return member.group.reached(ProcessId(process))


# (i) We suspect


def test_i_a_suspicion_is_told_to_the_whole_view_the_suspect_included() -> None:
    """(i): `suspect{k, lbn}` with the last number that we have, unnumbered, to all of V."""
    member = four()
    member.send(b"x")
    member.feed(data("a", 1), data("a", 2))
    member.suspect("a")
    (sent,) = [effect for effect in member.found(Transmit) if isinstance(effect.frame, SuspectFrame)]
    assert sent.to is Scope.VIEW
    assert sent.frame == SuspectFrame(GROUP, ProcessId("me"), 1, ProcessId("a"), 2)
    assert suspected(member) == [("a", 2, "injected")]


def test_i_only_once_and_only_members() -> None:
    """(i): k is another member of the view, and neither suspected nor failed already."""
    member = four()
    member.suspect("a", "a", "me", "nobody")
    assert suspected(member) == [("a", 0, "injected")]


def test_i_our_next_number_is_above_the_last_of_the_suspect() -> None:
    """E-26j: BC = max(BC, lbn) at every suspicion, so that a remove is numbered above the cut."""
    member = Lone("me", "a", "b", "c", view_change="remove")
    member.feed(null("a", 7, 0))
    member.suspect("a")
    member.feed(accuse("b", "a", 7), accuse("c", "a", 7))
    (remove,) = member.frames(BlockFrame)
    assert (remove.kind, remove.block) == ("remove", 8)


def test_i_control_frames_leave_although_the_window_is_full() -> None:
    """E-20: a dead member freezes the window; `suspect` itself must not wait for it."""
    member = Lone(
        "me", "a", "b", flow_control=2, window=3, packing=False, block_numbered=frozenset({GROUP}),
    )  # fmt: skip
    member.send(b"1", b"2", b"3", b"4", b"5")
    assert member.found(Blocked)
    member.suspect("a")
    member.feed(accuse("b", "a", 0))
    assert [type(frame) for frame in member.frames(SuspectFrame | ConfirmedFrame)] == [SuspectFrame, ConfirmedFrame]  # type: ignore[arg-type]


# (ii) Others suspect


def test_ii_votes_about_strangers_and_the_failed_are_ignored() -> None:
    """(ii): k failed or not in V."""
    member = four()
    member.feed(accuse("b", "nobody", 3))
    assert not member.group.agreement.active
    member.suspect("a")
    member.feed(accuse("b", "a", 0), accuse("c", "a", 0))
    member.feed(accuse("b", "a", 0))
    assert not member.group.agreement.active
    assert detections(member) == [(("a", 0),)]


def test_ii_a_stale_suspicion_is_refuted_at_once() -> None:
    """(ii), (iii): RV[k] > lbn; all messages of k above it go along, nulls too."""
    member = four()
    messages = [data("a", 1), null("a", 2), data("a", 3)]
    member.feed(*messages)
    member.feed(accuse("b", "a", 1))
    assert member.frames(RefuteFrame) == [refute("me", "a", 1, *messages[1:])]
    assert not member.group.agreement.active  # and nothing is kept of it (E-44)


def test_ii_a_member_that_has_more_refutes_although_it_suspects_too() -> None:
    """E-26b: with a larger number; our own suspicion stays."""
    member = four()
    messages = [data("a", 1), data("a", 2)]
    member.feed(*messages)
    member.suspect("a")
    member.feed(accuse("b", "a", 1))
    assert member.frames(RefuteFrame) == [refute("me", "a", 1, messages[1])]
    assert member.suspicions == {"a": 2}
    assert not member.found(Refuted)


def test_ii_a_suspicion_of_us_is_answered_even_if_we_suspect_its_sender() -> None:
    """E-67: a null that others can refute it with; once is enough."""
    member = four()
    member.suspect("b")
    member.feed(accuse("b", "me", 0))
    assert [(frame.kind, frame.block) for frame in member.frames(BlockFrame)] == [("null", 1)]
    member.feed(accuse("b", "me", 0))
    assert len(member.frames(BlockFrame)) == 1


def test_ii_a_stale_suspicion_of_us_is_for_others_to_refute() -> None:
    """(ii): lbn < SENT: the others have the message that refutes it."""
    member = four()
    member.send(b"x")
    member.feed(accuse("b", "me", 0))
    assert len(member.frames(BlockFrame)) == 1
    assert member.frames(RefuteFrame) == []


# (iii) A message clears a member


def test_iii_a_message_refutes_what_was_recorded_before_it() -> None:
    """(iii): not only at the accusation, also when the evidence comes later."""
    member = four()
    member.feed(accuse("b", "a", 0))
    message = data("a", 1)
    member.feed(message)
    assert member.frames(RefuteFrame) == [refute("me", "a", 0, message)]


def test_iii_a_refutation_leaves_with_the_next_drain_whatever_else_follows() -> None:
    """(iii): a null that only fills a cell of a row is evidence too."""
    member = four()
    member.send(b"x")
    member.feed(null("b", 4, 0), null("a", 3, 0))
    member.feed(accuse("b", "a", 3))
    message = null("a", 4)
    member.feed(message)
    assert member.frames(RefuteFrame) == [replace(refute("me", "a", 3, message), block=1)]


def test_iii_pending_frames_refute_nothing() -> None:
    """(iii): only messages in the block matrix are evidence; we may be about to exclude the sender."""
    member = four()
    member.suspect("a")
    member.feed(data("a", 1), accuse("b", "a", 0))
    assert member.frames(RefuteFrame) == []
    assert member.suspicions == {"a": 0}


# 9.3 Frames of suspected and failed members


def test_filter_frames_of_a_suspect_wait() -> None:
    """9.3: held, not processed; its votes do not count."""
    member = four()
    member.suspect("a", "b")
    member.feed(data("b", 1), accuse("b", "a", 0), accuse("c", "a", 0))
    assert reached(member, "b") == 0
    assert detections(member) == []


def test_filter_frames_of_failed_members_are_dropped() -> None:
    """9.3, and validity: none of its messages is delivered, and none of its votes counts."""
    member = four()
    member.suspect("a")
    member.feed(accuse("b", "a", 0), accuse("c", "a", 0))
    member.news()
    member.feed(data("a", 1), accuse("a", "b", 0), confirm("a", me=0), null("b", 1), null("c", 1))
    member.send(b"x")
    assert member.delivered() == [b"x"]
    assert [suspect for suspect, *_ in suspected(member)] == ["a"]
    assert not member.group.agreement.active


def test_filter_an_accusation_by_a_suspect_is_examined_for_refutation() -> None:
    """E-23: it is examined once and stays pending; it changes none of our votes."""
    member = four()
    message = data("c", 1)
    member.feed(message)
    member.suspect("b")
    member.feed(accuse("b", "c", 0))
    assert member.frames(RefuteFrame) == [refute("me", "c", 0, message)]
    assert member.suspicions == {"b": 0}
    member.feed(accuse("b", "c", 0))  # the same again: the answer is out
    assert len(member.frames(RefuteFrame)) == 1


def test_filter_a_pending_accusation_is_examined_again_when_its_suspect_speaks() -> None:
    """E-75: the message that refutes it may come after it; once refuted, it is left alone."""
    member = four()
    member.suspect("b")
    member.feed(accuse("b", "c", 0))
    assert member.frames(RefuteFrame) == []
    message = data("c", 1)
    member.feed(message)
    assert member.frames(RefuteFrame) == [refute("me", "c", 0, message)]
    member.feed(data("c", 2))
    assert len(member.frames(RefuteFrame)) == 1


def test_filter_a_pending_accusation_is_examined_when_a_refutation_brings_the_message() -> None:
    """E-75, by relay: the copy that c's message comes in is evidence as well."""
    member = four()
    member.suspect("b")
    member.feed(accuse("b", "c", 0))
    message = data("c", 1)
    member.feed(refute("a", "c", 0, message))
    assert member.frames(RefuteFrame) == [refute("me", "c", 0, message)]


# (iv) Refutations


def test_iv_a_refutation_withdraws_the_vote_of_its_sender() -> None:
    """E-22: even if we do not suspect the pair yet; otherwise we would count a withdrawn vote."""
    member = four()
    member.feed(accuse("b", "a", 0), refute("b", "a", 0))
    member.suspect("a")
    member.feed(accuse("c", "a", 0))
    assert detections(member) == []
    member.feed(accuse("b", "a", 0))
    assert detections(member) == [(("a", 0),)]


def test_iv_it_withdraws_votes_up_to_its_number_and_no_others() -> None:
    """E-22: from rec[(k, l)] for l <= lbn, of its sender alone."""
    member = four()
    member.feed(accuse("b", "a", 0), accuse("b", "a", 2), accuse("b", "a", 3), accuse("c", "a", 0))
    member.feed(refute("b", "a", 2))
    assert member.group.agreement._votes == {("a", 0): {"c"}, ("a", 3): {"b"}}


def test_iv_its_messages_are_taken_in_whether_or_not_we_suspect() -> None:
    """E-22: always."""
    member = four()
    member.feed(refute("b", "a", 0, data("a", 1, payload=b"1"), data("a", 2, payload=b"2")))
    assert reached(member, "a") == 2
    member.feed(
        data("a", 1, payload=b"1"), data("a", 2, payload=b"2"), data("a", 3, payload=b"3")
    )  # the late originals
    for other in "bc":
        member.feed(null(other, 3, 0))
    for _ in range(3):
        member.send(b"x")
    assert [payload for payload in member.delivered() if payload != b"x"] == [b"1", b"2", b"3"]


def test_iv_only_messages_that_follow_ours_count() -> None:
    """E-26f: `pb == RV[k]`, else there is a gap; and only messages of the suspect."""
    member = four()
    member.suspect("a")
    member.feed(refute("b", "a", 1, data("a", 2)))
    assert (reached(member, "a"), member.suspicions) == (0, {"a": 0})
    member.feed(refute("b", "a", 0, data("c", 1)))
    assert (reached(member, "c"), member.suspicions) == (0, {"a": 0})


def test_iv_a_chain_is_taken_as_far_as_it_holds() -> None:
    """E-26f: messages that we have are skipped, the following ones are accepted."""
    member = four()
    member.feed(data("a", 1))
    member.suspect("a")
    messages = [data("a", 1), data("a", 2), data("a", 3), data("a", 5, 4)]
    member.feed(refute("b", "a", 0, *messages))
    assert reached(member, "a") == 3
    assert member.suspicions == {}


def test_iv_news_take_the_suspicion_back_and_are_passed_on() -> None:
    """(iv): delete the suspicion, withdraw ourselves, multicast our own refutation, then process the pending frames."""
    member = four()
    member.suspect("a")
    first, second, third = data("a", 1), data("a", 2), data("a", 3)
    member.feed(accuse("b", "a", 0), second, third)
    member.news()
    member.feed(refute("c", "a", 0, first))
    assert [effect.process for effect in member.found(Refuted)] == ["a"]
    assert member.frames(RefuteFrame) == [refute("me", "a", 0, first)]
    assert reached(member, "a") == 3
    assert not member.group.agreement.active


def test_iv_pending_frames_are_processed_in_their_order_without_duplicates() -> None:
    """E-26e: the piggybacked messages first, then the pending frames; duplicates count once."""
    member = four()
    member.suspect("a")
    first, second = data("a", 1, payload=b"a1"), data("a", 2, payload=b"a2")
    member.feed(first, accuse("a", "b", 5), second)
    member.feed(null("b", 2, 0), null("c", 2, 0))
    member.feed(refute("c", "a", 0, first))
    assert reached(member, "a") == 2
    assert member.frames(RefuteFrame) == [refute("me", "a", 0, first)]  # pending frames are processed later
    assert member.group.agreement._votes == {("b", 5): {"a"}}
    member.send(b"me1", b"me2")
    assert member.delivered() == [b"a1", b"me1", b"a2", b"me2"]


def test_iv_pending_is_held_again_if_it_raises_new_doubts() -> None:
    """E-26e: a pending `confirmed` names us; later frames wait again, because of a second suspicion."""
    member = four()
    member.suspect("a")
    member.feed(data("a", 1), confirm("a", me=0), data("a", 2, excluded=("me",)), accuse("a", "c", 0))
    member.feed(refute("b", "a", 0, data("a", 1)))
    assert suspected(member) == [("a", 0, "injected"), ("a", 1, "parted")]
    assert member.suspicions == {"a": 1}
    assert reached(member, "a") == 1
    assert ("c", 0) not in member.group.agreement._votes


def test_iv_refutations_about_the_failed_or_about_us_bring_nothing() -> None:
    """(iv), E-26c: unless k is failed or me."""
    member = four()
    member.suspect("a")
    member.feed(accuse("b", "a", 0), accuse("c", "a", 0))
    member.news()
    member.feed(refute("b", "a", 0, data("a", 1)), refute("b", "me", 0, data("me", 1)))
    assert member.news() == []
    assert member.group.numbers.sent == 0


# (v), (vi) Agreement


def test_v_all_or_nothing() -> None:
    """(v): for every pair, all of V - suspicions - failed; then all pairs at once, with one cut."""
    member = four()
    member.feed(data("a", 1))
    member.suspect("a", "b")
    member.feed(accuse("c", "a", 1))
    assert detections(member) == []
    member.feed(accuse("c", "b", 0))
    assert detections(member) == [(("a", 1), ("b", 0))]
    assert member.found(Confirmed)[0].members == ("c", "me")
    assert member.frames(ConfirmedFrame) == [confirm("me", a=1, b=0)]


def test_v_pairs_compare_exactly() -> None:
    """E-26b: a vote for another number is another vote."""
    member = Lone("me", "a", "b")
    member.suspect("a")
    member.feed(accuse("b", "a", 2))
    assert detections(member) == []


def test_v_suspected_members_need_not_vote() -> None:
    """(v): only unsuspected members must vote; votes of suspects are pending."""
    member = four()
    member.suspect("a")
    member.feed(accuse("b", "a", 0))
    assert detections(member) == []
    member.suspect("c")
    assert detections(member) == []  # b has not voted for {c, 0}
    member.feed(accuse("b", "c", 0))
    assert detections(member) == [(("a", 0), ("c", 0))]


def test_vi_a_confirmation_of_our_suspicions_is_enough() -> None:
    """(vi): exact pairs; the member that confirmed had votes that we may never see."""
    member = four()
    member.suspect("a")
    member.feed(confirm("b", a=0))
    assert detections(member) == [(("a", 0),)]
    assert member.frames(ConfirmedFrame) == [confirm("me", a=0)]  # relayed: its sender's copy may be lost (E-20)


@pytest.mark.parametrize("failed", [{"a": 1}, {"a": 0, "c": 0}, {"c": 0}, {"nobody": 0}])
def test_vi_any_other_confirmation_is_not(failed: dict[str, int]) -> None:
    """(vi): all pairs must be ours, with the same numbers."""
    member = four()
    member.suspect("a")
    member.feed(confirm("b", **failed))
    assert detections(member) == []
    assert member.suspicions == {"a": 0}


def test_vi_other_suspicions_remain() -> None:
    """(vi): confirm Δ_j, which may be a part of our suspicions."""
    member = Lone("me", "a", "b", "c", "d")
    member.suspect("a", "c")
    member.feed(confirm("b", a=0))
    assert detections(member) == [(("a", 0),)]
    assert member.suspicions == {"c": 0}
    member.feed(accuse("b", "c", 0), accuse("d", "c", 0))
    assert detections(member) == [(("a", 0),), (("c", 0),)]


def test_vi_the_same_confirmation_again_changes_nothing() -> None:
    """9.4: about pairs already confirmed: ignored."""
    member = four()
    member.suspect("a")
    member.feed(confirm("b", a=0), confirm("c", a=0))
    assert detections(member) == [(("a", 0),)]


# (vii) The effects of a confirmation


def test_vii_nothing_of_the_failed_above_the_cut_counts() -> None:
    """(vii): a's 2 and 3 are above the last number of b, so they are discarded; 1 of a stays. Their columns are ∞."""
    member = four()
    for number in (1, 2, 3):
        member.feed(data("a", number, payload=b"a%d" % number))
    member.feed(data("b", 1, payload=b"b1"), null("c", 3, 0))
    member.suspect("a", "b")
    member.feed(accuse("c", "a", 3), accuse("c", "b", 1))
    assert detections(member) == [(("a", 3), ("b", 1))]
    member.send(b"1", b"2", b"3", b"4")
    member.feed(null("c", 9, 3))
    assert member.delivered() == [b"a1", b"b1", b"1", b"2", b"3", b"4"]
    order = [effect for effect in member.effects if isinstance(effect, InstallView | Deliver)]
    assert [isinstance(effect, InstallView) for effect in order] == [True, False, False, True, *[False] * 4]


def test_vii_numbers_owed_to_the_excluded_are_still_paid() -> None:
    """E-27, E-48: RECD never falls; a's 5 is discarded, and our null 5 leaves all the same."""
    member = Lone("me", "a", "b", "c", silence_timeout_ns=SLOW_NS)
    member.feed(data("a", 5, 0))
    member.suspect("a", "b")
    member.feed(accuse("c", "a", 5), accuse("c", "b", 0))
    assert detections(member) == [(("a", 5), ("b", 0))]
    member.wait(SLOW_NS)
    assert [(frame.kind, frame.block) for frame in member.frames(BlockFrame)] == [("null", 5)]


def test_vii_messages_from_now_on_are_marked_nulls_too() -> None:
    """E-45: the mark names excluded and confirmed members, before and after the view change."""
    member = Lone("me", "a", "b", "c", silence_timeout_ns=SLOW_NS)
    member.feed(data("a", 1), null("b", 1))
    member.send(b"before")
    member.suspect("a")
    member.feed(accuse("b", "a", 1), accuse("c", "a", 1))
    assert "a" in member.view.members  # c owes number 1
    member.send(b"between")
    member.feed(null("c", 1), data("b", 5, 1))
    assert "a" not in member.view.members
    member.wait(SLOW_NS)
    member.send(b"after")
    assert [(f.kind, f.block, f.excluded) for f in member.frames(BlockFrame)] == [
        ("data", 1, ()),
        ("data", 2, ("a",)),
        ("null", 5, ("a",)),
        ("data", 6, ("a",)),
    ]


def test_vii_a_cut_completes_in_groups_that_are_silent() -> None:
    """E-43: at confirm a null with the number of the cut in every other group that has no such number."""
    cluster = Cluster(
        groups={"x": ["1", "2", "3"], "y": ["1", "4"]}, suspect_after_ns=OMEGA_NS, silence_timeout_ns=SLOW_NS
    )
    cluster.suspect("2", "3")
    cluster.move_between("2", "3")  # 3 shows life by a null: nulls cause no nulls in other groups
    cluster.move_one_way("3", "1")
    assert [frame.block for frame in cluster.transmitted["3"]] == [1]
    assert cluster.transmitted["1"] == []
    cluster.crash("3")
    cluster.move_between("1", "2")
    cluster.suspect("1", "3")
    cluster.suspect("2", "3")
    cluster.move_between("1", "2")
    assert cluster.detections("1", "x") == [(("3", 1),)]
    assert [(frame.group, frame.block) for frame in cluster.transmitted["1"]] == [("y", 1)]
    assert cluster.views_of("1", "x") == ["1 2 3"]
    cluster.finish()
    assert cluster.views_of("1", "x") == ["1 2 3", "1 2"]
    assert cluster.views_of("1", "y") == ["1 4"]


def test_vii_the_view_tells_the_reason_and_the_accusers() -> None:
    """`Departure`: the agreed number, the reason, the accusers, how long it was silent, how long it took."""
    member = four()
    member.wait(7)
    member.feed(data("a", 1))
    member.wait(20)
    member.suspect("a")
    member.wait(30)
    member.feed(accuse("b", "a", 1), accuse("c", "a", 1))
    member.feed(null("b", 1), null("c", 1))
    member.send(b"x")
    (left,) = member.found(InstallView)[-1].left
    assert left._asdict() == {
        "process": "a",
        "last_block": 1,
        "reason": "injected",
        "accusers": ("b", "c", "me"),
        "silent_ns": 20,
        "agreed_ns": 30,
    }
    assert member.view.excluded == ("a",)
    assert member.view.primary


# (viii) Others have excluded us


def test_viii_a_confirmation_that_names_us_makes_its_sender_a_suspect() -> None:
    """(viii), E-24: at the last number that we have of it."""
    member = four()
    member.feed(data("b", 1))
    member.feed(confirm("b", a=0, me=0))
    assert suspected(member) == [("b", 1, "parted")]
    assert detections(member) == []


def test_viii_a_marked_message_is_not_accepted_and_its_sender_suspected() -> None:
    """E-45: at the number before it; all members that the mark names stop at the same message."""
    member = four()
    member.feed(data("b", 1), null("b", 2, excluded=("a", "me")))
    assert reached(member, "b") == 1
    assert suspected(member) == [("b", 1, "parted")]


def test_viii_a_message_marked_against_another_member_is_like_any_other() -> None:
    """E-45 concerns only members that the mark names."""
    member = four()
    member.feed(data("b", 1, excluded=("a",)))
    assert reached(member, "b") == 1
    assert suspected(member) == []


def test_viii_a_marked_message_refutes_nothing() -> None:
    """E-45, M6: we go on suspecting its sender and accept none of it."""
    member = four()
    member.feed(data("b", 1))
    member.suspect("b")
    member.feed(refute("c", "b", 1, data("b", 2, excluded=("me",)), data("b", 3, excluded=("me",))))
    assert member.suspicions == {"b": 1}
    assert reached(member, "b") == 1
    assert not member.found(Refuted)


def test_viii_a_relayed_marked_message_of_an_unsuspected_member_makes_it_a_suspect() -> None:
    """E-45: direct or piggybacked."""
    member = four()
    member.feed(refute("c", "b", 0, data("b", 1, excluded=("me",))))
    assert suspected(member) == [("b", 0, "parted")]


@pytest.mark.parametrize("before", [False, True])
def test_viii_a_refutation_with_unmarked_and_marked_messages(before: bool) -> None:
    """(iv) with (viii): 1 is news and is taken; 2 names us: whatever we thought before, we suspect {b,1} for sure."""
    member = four()
    if before:
        member.suspect("b")
    member.feed(refute("c", "b", 0, data("b", 1), data("b", 2, excluded=("me",))))
    assert reached(member, "b") == 1
    assert member.suspicions == {"b": 1}
    assert suspected(member)[-1] == ("b", 1, "parted")


# 9.5 Two members


def two(**settings: Any) -> Lone:
    return Lone("me", "a", **settings)


def test_two_a_timeout_is_followed_by_a_time_of_grace() -> None:
    """E-25: (v) holds at once in a view of two; any suspicion would split the pair."""
    member = two()
    member.suspect("a")
    member.wait(OMEGA_NS - 1)
    assert detections(member) == []
    member.wait(1 + OMEGA_NS // 4)
    assert detections(member) == [(("a", 0),)]
    assert member.view.members == ("me",)
    assert not member.view.primary


@pytest.mark.parametrize("frame", [alive("a"), data("a", 1), accuse("a", "me", 5), refute("a", "me", 0)])
def test_two_any_direct_frame_cancels_the_suspicion(frame: Any) -> None:
    """E-25: no other member can have used our vote."""
    member = two()
    member.suspect("a")
    member.wait(OMEGA_NS - 1)
    member.feed(frame)
    assert member.suspicions == {}
    assert [effect.process for effect in member.found(Refuted)] == ["a"]
    if isinstance(frame, BlockFrame):
        assert reached(member, "a") == 1


def test_two_in_larger_views_the_suspects_own_word_does_not_cancel() -> None:
    """E-25: another member may have counted our vote; cancelling broke agreement in simulation."""
    member = Lone("me", "a", "b")
    member.suspect("a")
    member.feed(alive("a"), data("a", 1))
    assert member.suspicions == {"a": 0}


@pytest.mark.parametrize("frame", [confirm("a", me=0), data("a", 1, excluded=("me",))])
def test_two_its_own_word_is_sure(frame: Any) -> None:
    """E-52: no grace, no cancelling: it has excluded us, whatever it sends afterwards."""
    member = two()
    member.feed(frame)
    assert detections(member) == [(("a", 0),)]
    member.feed(alive("a"))
    assert member.view.members == ("me",)
    assert not member.found(Refuted)


@pytest.mark.parametrize("frame", [confirm("a", me=0), data("a", 1, excluded=("me",))])
def test_two_its_own_word_ends_the_grace(frame: Any) -> None:
    """E-25, E-52: suspected by timeout first, then for sure."""
    member = two()
    member.suspect("a")
    member.feed(frame)
    assert detections(member) == [(("a", 0),)]
    assert reached(member, "a") > 1


def test_sure_in_a_larger_view_an_unmarked_alive_changes_nothing_when_only_two_are_left() -> None:
    """E-52: b confirmed us out; c leaves; then an `alive` of b, which knows no marks, must not cancel."""
    member = Lone("me", "b", "c")
    member.feed(null("c", 1))
    member.feed(confirm("b", me=0))
    member.suspect("c")
    assert detections(member) == [(("b", 0), ("c", 1))]
    member.feed(alive("b"))
    assert not member.found(Refuted)
    assert member.view.members == ("me",)


def test_flow_numbers_of_the_suspect_come_along() -> None:
    """(iv) with flow control: messages of a refutation fill the window like direct messages."""
    member = Lone("me", "a", "b", flow_control=2, window=3)
    member.suspect("a")
    member.feed(refute("b", "a", 0, data("a", 1, flow=Flow(1, 0, 0, 0))))
    assert member.group.flow is not None
    assert member.group.flow.largest == 1
    assert member.suspicions == {}


def test_other_groups_are_not_concerned() -> None:
    """9: one instance per group; a suspicion from outside reaches those that we share with the suspect."""
    cluster = Cluster(
        groups={"x": ["1", "2", "3"], "y": ["1", "3", "4"], "z": ["1", "4"]},
        suspect_after_ns=OMEGA_NS,
        silence_timeout_ns=SLOW_NS,
    )
    cluster.suspect("1", "2")
    assert [effect.group for effect in cluster.found("1", Suspected)] == ["x"]
    cluster.suspect("1", "4")
    assert [effect.group for effect in cluster.found("1", Suspected)] == ["x", "y", "z"]
    cluster.core("1").receive(confirm("3"), cluster.now)  # a group without members
    assert cluster.core("1")._groups[GroupId("y")].agreement.suspicions == {"4": 0}


# Bugs that a review found


@pytest.mark.parametrize("names", ["abcd", "abcde"])
def test_c_the_vote_of_a_failed_member_accuses_no_member(names: str) -> None:
    """E-81: b accuses c, which does not hear it, and dies; members that confirm b forget its votes."""
    cluster = Cluster(*names, suspect_after_ns=OMEGA_NS)
    for name in names:
        cluster.send(name, name.encode())
    cluster.finish(rounds=3, pause_ns=OMEGA_NS // 25)
    cluster.suspect("b", "c")
    cluster.channels["b", "c"].clear()
    cluster.crash("b")
    cluster.move_all()
    survivors = [name for name in names if name != "b"]
    for name in survivors:
        cluster.suspect(name, "b")
    for _ in range(24):
        cluster.move_all()
        cluster.wait(OMEGA_NS // 8)
    assert {cluster.views_of(name)[-1] for name in survivors} == {" ".join(survivors)}


def test_c_the_vote_of_a_suspected_member_accuses_no_member() -> None:
    """E-81: its accusation may be as wrong as its silence is long."""
    member = four()
    member.feed(accuse("b", "a", 0))
    member.suspect("b")
    member.wait(2 * OMEGA_NS)
    assert not any(reason == "accused" for _, _, reason in suspected(member))


def test_c_an_accusation_that_nothing_can_refute_is_made_our_own_once_in_a_suspicion_time() -> None:
    member = four()
    member.feed(accuse("b", "a", 10**9))
    for block in range(1, 40):
        member.wait(OMEGA_NS // 4)
        member.feed(refute("c", "a", block - 1, null("a", block, block - 1)))
    assert 1 <= len([effect for effect in member.found(Suspected) if effect.process == "a"]) <= 10


def test_the_last_waiting_announcement_is_kept() -> None:
    member = four()
    member.suspect("b")
    for block in range(50):
        member.feed(AliveFrame(GROUP, ProcessId("b"), block, 0))
    assert len(member.core._groups[GROUP].agreement._pending[ProcessId("b")]) == 1


def test_a_bare_sign_of_life_does_not_take_the_place_of_an_announcement() -> None:
    """A sign of life tells no completed number. If it replaced the announcement, the number would be lost."""
    member = four()
    member.suspect("b")
    for complete in (5, 0, 6, 0, 0):
        member.feed(AliveFrame(GROUP, ProcessId("b"), 6, complete))
    pending = cast("list[AliveFrame]", member.core._groups[GROUP].agreement._pending[ProcessId("b")])
    assert [frame.complete_block for frame in pending] == [6, 0]


def test_without_membership_suspicions_from_outside_are_ignored() -> None:
    cluster = Cluster("a", "b")
    cluster.core("a").suspect(ProcessId("b"), 0)
    cluster.settle("a")
    assert not cluster.found("a", Suspected)
