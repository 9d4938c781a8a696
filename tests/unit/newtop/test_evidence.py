"""Evidence of a death skips the silence, and nothing else (docs/spec/newtop.md 9.2 f; 9.5 for views of two)."""

from antiphon.core.effects import Confirmed, Suspected
from antiphon.protocols.newtop.frames import BlockFrame, RefuteFrame, SuspectFrame
from antiphon.types import ProcessId
from tests.support.cluster import OMEGA_NS, Cluster, Lone, accuse, alive, data, null, refute

LOOK_NS = OMEGA_NS // 4


def gone(member: Lone, *processes: str) -> None:
    for process in processes:
        member.core.gone(ProcessId(process), member.now)
    member.settle()


def suspected(member: Lone) -> list[tuple[str, int, str]]:
    return [(effect.process, effect.last_block, effect.reason) for effect in member.found(Suspected)]


def failed(member: Lone) -> list[str]:
    return [process for effect in member.found(Confirmed) for process, _ in effect.failed]


def test_survivors_that_have_evidence_agree_without_any_time() -> None:
    cluster = Cluster("1", "2", "3", suspect_after_ns=OMEGA_NS)
    cluster.send("3", b"last words")
    cluster.move("3", "1")
    cluster.move("3", "2")
    cluster.crashed.add("3")
    for name in "12":
        cluster.core(name).gone(ProcessId("3"), cluster.now)
        cluster.settle(name)
    cluster.move_all()
    for name in "12":
        assert cluster.views[name][-1].members == ("1", "2")
        assert cluster.delivered[name] == [b"last words"]


def test_a_refutation_with_older_frames_costs_no_time_if_the_refuter_has_evidence_too() -> None:
    """1 has fewer messages of the dead process than 2: it accepts the missing ones, and adopts the suspicion of 2."""
    member = Lone("me", "a", "b")
    gone(member, "a")
    member.feed(accuse("b", "a", 1))
    member.feed(refute("b", "a", 0, data("a", 1)))
    assert suspected(member) == [("a", 0, "gone"), ("a", 1, "gone")]
    assert failed(member) == ["a"]


def test_the_same_if_the_other_member_gets_its_evidence_after_its_refutation() -> None:
    member = Lone("me", "a", "b")
    gone(member, "a")
    member.feed(refute("b", "a", 0, data("a", 1)))
    assert not member.suspicions
    member.feed(accuse("b", "a", 1))
    assert failed(member) == ["a"]


def test_a_member_that_others_still_hear_is_not_suspected_again_and_again() -> None:
    """b refutes with a new message of a each time: only our ordinary timeouts may accuse a again."""
    member = Lone("me", "a", "b")
    gone(member, "a")
    for number in range(1, 5):
        member.feed(refute("b", "a", number - 1, data("a", number)))
        member.feed(accuse("b", "a", number - 1))  # an older vote of b: we have more
    assert suspected(member) == [("a", 0, "gone")]
    assert failed(member) == []


def test_evidence_makes_others_speak_so_that_the_process_can_be_heard() -> None:
    """In an idle group no member owes a number, so none could refute: all live members answer our new number."""
    member = Lone("me", "a", "b")
    gone(member, "a")
    assert [frame.block for frame in member.frames(BlockFrame)] == [1]
    assert len(member.frames(SuspectFrame)) == 1


def test_false_evidence_of_one_member_excludes_no_member_in_an_idle_group() -> None:
    cluster = Cluster("1", "2", "3", suspect_after_ns=OMEGA_NS)
    cluster.move_all()
    cluster.cuts = {("1", "3"), ("3", "1")}
    cluster.core("1").gone(ProcessId("3"), cluster.now)
    cluster.settle("1")
    cluster.move_all()
    assert any(isinstance(frame, RefuteFrame) for frame in cluster.control["2"])
    assert all(len(cluster.views[name][-1].members) == 3 for name in "123")
    assert not any(
        cluster.core(name)._groups[group].agreement.suspicions for name in "123" for group in cluster.core(name)._groups
    )


def test_in_a_view_of_two_a_short_time_of_grace_is_left() -> None:
    """No other member can refute it, but the peer may be back on a new connection."""
    member = Lone("me", "a")
    gone(member, "a")
    member.wait(LOOK_NS - 1)
    assert failed(member) == []
    member.wait(1)
    assert failed(member) == ["a"]


def test_in_a_view_of_two_a_message_withdraws_the_evidence() -> None:
    member = Lone("me", "a")
    gone(member, "a")
    member.feed(null("a", 1, 0))
    assert not member.suspicions
    member.wait(OMEGA_NS - 1)
    assert failed(member) == []


def test_a_frame_of_the_process_itself_withdraws_the_evidence_in_larger_views_too() -> None:
    """The suspicion stays until others refute it (9.4), but it is not renewed."""
    member = Lone("me", "a", "b")
    gone(member, "a")
    member.feed(alive("a"))
    member.feed(refute("b", "a", 0, data("a", 1)))
    member.feed(accuse("b", "a", 1))
    assert suspected(member) == [("a", 0, "gone")]


def test_evidence_about_strangers_ourselves_and_the_failed_means_nothing() -> None:
    member = Lone("me", "a", "b")
    gone(member, "nobody", "me")
    assert suspected(member) == []
    assert not member.group.agreement.wary
    gone(member, "a")
    member.feed(accuse("b", "a", 0))
    gone(member, "a")
    assert suspected(member) == [("a", 0, "gone")]
    assert not member.group.agreement.wary


def test_where_membership_is_off_evidence_means_nothing() -> None:
    member = Lone("me", "a", "b", suspect_after_ns=0, idle_probe_ns=OMEGA_NS, silence_timeout_ns=0)
    gone(member, "a")
    assert suspected(member) == []
