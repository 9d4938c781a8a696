"""Agreement on the next members, one rule at a time (docs/spec/errata-intergroup.md 5)."""

from antiphon.protocols.intergroup.frames import KeepAliveFrame
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.consensus import Consensus
from antiphon.protocols.intergroup.membership.frames import ProbeFrame, ProposalFrame, RecoveryInfoFrame
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.steps import Step
from antiphon.types import ProcessId, ViewId
from tests.support.intergroup_bench import SETTINGS, A, B, C, D, E, Lab, RepairBench
from tests.support.intergroup_world import GROUP, MS, SUSPECT_MS

STRANGER = ProcessId("x")
ELSEWHERE = ViewId("elsewhere")


def waiting() -> RepairBench:
    """Process b is ready for a view that a leads; d has failed."""
    bench = RepairBench("abcd", me=B)
    bench.repair.begin(0, failed=D, reason="silent")
    for other in (A, C):
        bench.propose(other, "abcd", "d")
    for other in (A, C):
        bench.inform(other)
    assert bench.step() is Step.WAIT
    return bench


def test_m1_a_foreign_process_is_proposed_once() -> None:
    """A process outside of the view leads to a new proposal only if it is in none yet."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.reachable.add(D)
    for _ in range(3):
        bench.repair.meet(D, 0)
    assert bench.numbers == 2
    assert bench.announced(ProposalFrame)[-1].processes == (A, B, C, D)


def test_m4_a_proposal_is_repeated_and_a_process_that_never_agrees_is_given_up() -> None:
    """Proposals are repeated in every state of a repair; members that do not match in time have failed."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.transmitted()
    for _ in range(9):
        bench.later(SETTINGS.repeat_ns)
        bench.repair.heard(B, bench.now)
    assert len([each for each in bench.transmitted() if isinstance(each, ProposalFrame)]) == 9
    bench.later(SETTINGS.repeat_ns)
    assert (B, "mute") in bench.suspected


def test_m9_a_process_that_is_ready_obeys_only_the_leader() -> None:
    """In the prepared state, only the change, suspicion of the leader, or its larger proposal end the wait."""
    bench = waiting()
    bench.reachable.add(E)
    bench.propose(C, "abcde", "d")
    bench.repair.meet(E, 0)
    bench.repair.suspect(C, 0, "silent")
    assert bench.step() is Step.WAIT
    bench.propose(A, "abcde", "d")
    assert bench.step() is Step.CONSENSUS


def test_m9_suspicion_of_the_leader_ends_the_wait() -> None:
    """A process that waits for the change watches the leader."""
    bench = waiting()
    bench.later(SETTINGS.suspect_after_ns)
    assert bench.suspected[-1] == (A, "silent")
    assert bench.step() is Step.CONSENSUS


def test_m10_failed_processes_of_others_count_in_this_run_only() -> None:
    """Failed sets of others are merged; each run begins with an empty one, so only current suspicions are passed on."""
    bench = RepairBench()
    bench.repair.begin(0)
    bench.propose(B, "abc", "c")
    assert bench.announced(ProposalFrame)[-1].failed == (C,)
    assert Consensus(A, bench.epoch.id, 2, frozenset({A, B, C})).failed == set()


def test_m25_only_a_proposed_process_can_fail() -> None:
    """A suspicion of a process that is not proposed, or has failed already, changes nothing."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    for process in (C, D):
        bench.repair.suspect(process, 0, "silent")
    assert bench.numbers == 1
    assert bench.announced(ProposalFrame)[-1].processes == (A, B, C)


def test_m26_a_member_with_another_epoch_is_first_apart() -> None:
    """A member of our view that proposes from another epoch has gone elsewhere, and is failed in this run."""
    bench = RepairBench()
    bench.repair.begin(0)
    bench.repair.proposed(ProposalFrame(GROUP, B, 1, 1, ELSEWHERE, 1, (A, B), ()), 0)
    assert bench.suspected == [(B, "parted")]


def keep_alive(sender: ProcessId, epoch: ViewId, stamp: int, seq: int = 0) -> KeepAliveFrame:
    return KeepAliveFrame(GROUP, sender, seq, stamp, epoch, 0)


def settled() -> Lab:
    """Two senders, long after their last change of the view."""
    lab = Lab(3)
    lab.run(200)
    lab.crash("s3")
    lab.run(10 * SUSPECT_MS)
    assert lab.members("s1") == ("s1", "s2")
    return lab


def test_m11_frames_of_an_earlier_epoch_count_only_if_they_are_new() -> None:
    """A sender of a predecessor epoch is foreign only if its stamp is above the start of ours."""
    lab = settled()
    epoch = lab.seat("s1").epoch
    before = epoch.predecessors[-1]
    lab.hand("s1", keep_alive(STRANGER, before, epoch.entered))
    assert lab.frames(ProbeFrame) == []
    lab.hand("s1", keep_alive(STRANGER, before, epoch.entered + 1))
    assert len(lab.frames(ProbeFrame)) == 1


def test_m11_an_unknown_sender_of_our_own_epoch_has_a_grace() -> None:
    """The message that adds it is probably on its way."""
    lab = settled()
    epoch = lab.epoch("s1")
    for _ in range(9):
        lab.hand("s1", keep_alive(STRANGER, epoch, lab.now_us()))
        lab.run(SUSPECT_MS // 10)
    assert lab.frames(ProbeFrame) == []
    lab.run(SUSPECT_MS // 10)
    lab.hand("s1", keep_alive(STRANGER, epoch, lab.now_us()))
    assert len(lab.frames(ProbeFrame)) == 1


def test_m11_late_frames_of_a_process_that_left_are_not_foreign() -> None:
    """A process that left in order is no stranger with numbers up to its last one."""
    lab = settled()
    lab.demote("s2")
    lab.run(SUSPECT_MS)
    left = lab.seat("s1").epoch.left[ProcessId("s2")]
    for _ in range(20):
        lab.hand("s1", keep_alive(ProcessId("s2"), lab.epoch("s1"), lab.now_us(), left.seq))
        lab.run(SUSPECT_MS // 10)
    assert lab.frames(ProbeFrame) == []


def proposal(lab: Lab, number: int, epoch: ViewId, *failed: str) -> ProposalFrame:
    processes = tuple(sorted(ProcessId(each) for each in (STRANGER, *failed)))
    return ProposalFrame(GROUP, STRANGER, number, 1, epoch, lab.now_us(), processes, tuple(map(ProcessId, failed)))


def test_m29_an_older_proposal_of_a_process_does_not_count() -> None:
    """Only the proposal with the highest number of a process counts."""
    lab = settled()
    lab.hand("s1", proposal(lab, 5, ELSEWHERE, "s1"))
    lab.hand("s1", proposal(lab, 4, ELSEWHERE))
    assert lab.frames(ProbeFrame) == []
    lab.hand("s1", proposal(lab, 6, ELSEWHERE))
    assert len(lab.frames(ProbeFrame)) == 1


def test_m29_a_foreign_proposal_that_excludes_us_changes_nothing() -> None:
    """In a stable state, a proposal from outside the view that takes us for failed is ignored."""
    lab = settled()
    for number in range(1, 4):
        lab.hand("s1", proposal(lab, number, ELSEWHERE, "s1"))
    assert lab.frames(ProbeFrame) == []
    assert lab.standing("s1").state is State.SENDER


def test_m29_after_a_change_foreign_senders_wait() -> None:
    """For at least half a suspicion timeout after an installation, foreign senders start nothing."""
    lab = Lab(3)
    lab.run(200)
    lab.crash("s3")
    while len(lab.views("s1")) < 2:
        lab.run(1)
    for _ in range(4):
        lab.hand("s1", keep_alive(STRANGER, ELSEWHERE, lab.now_us()))
        lab.run(SUSPECT_MS // 10)
    assert lab.frames(ProbeFrame, "s1") == []
    lab.run(2 * SUSPECT_MS)
    lab.hand("s1", keep_alive(STRANGER, ELSEWHERE, lab.now_us()))
    assert lab.frames(ProbeFrame, "s1")


def test_j4_in_a_stable_state_only_frames_of_our_epoch_are_signs_of_life() -> None:
    """A member that went elsewhere and cannot hear us must not keep our view alive."""
    lab = Lab(2)
    lab.run(200)
    lab.split(["s1"], ["s2"])
    for _ in range(30):
        lab.hand("s1", keep_alive(ProcessId("s2"), ELSEWHERE, lab.now_us()))
        lab.run(SUSPECT_MS // 10)
    assert lab.members("s1") == ("s1",)


def test_j12_a_stranger_that_names_our_epoch_is_probed_before_it_counts() -> None:
    """A proposal from outside of our view starts no repair before its sender has answered a probe."""
    lab = settled()
    for number in range(1, 20):
        lab.hand("s1", proposal(lab, number, lab.epoch("s1")))
        lab.run(SUSPECT_MS // 10)
    assert lab.standing("s1").state is State.SENDER
    assert lab.frames(ProposalFrame, "s1", since=lab.now - 20 * SUSPECT_MS // 10 * MS) == []
    assert lab.frames(ProbeFrame, "s1")


def test_m17_a_survivor_that_claims_a_message_must_supply_it() -> None:
    """A proposed sender that does not supply what it claims within the recovery timeout has failed."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    bench.inform(B, c=Claim(1, 1, 50))
    assert bench.wanted == {(C, 1)}
    for _ in range(25):
        bench.later(SETTINGS.recover_ns // 25)
        bench.repair.heard(B, bench.now)
    assert bench.suspected[-1] == (B, "mute")


def test_m5_and_j6_what_was_told_for_another_proposal_does_not_count() -> None:
    """Recovery information counts only for the proposal and the round that it names."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.repair.informed(RecoveryInfoFrame(GROUP, B, bench.epoch.id, "old", 0, 1, 0, 0, 1, (), (), 0), 0)
    bench.propose(B, "abc", "c")
    assert bench.step() is Step.INFO
    bench.inform(B)
    assert bench.step() is Step.READY


def test_j23_a_later_run_of_a_member_ends_an_agreement_with_its_earlier_one() -> None:
    """The sets are the same, but nothing that was told for the earlier run will be repeated."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    agreed = bench.announced(RecoveryInfoFrame)[-1].proposal
    bench.propose(B, "abc", "c")
    assert (bench.step(), bench.numbers) == (Step.INFO, 1)
    bench.propose(B, "abc", "c", run=2)
    assert (bench.step(), bench.numbers) == (Step.INFO, 2)
    assert bench.announced(RecoveryInfoFrame)[-1].proposal != agreed
    bench.inform(B)
    assert bench.step() is Step.READY


def test_j23_a_process_that_is_ready_waits_for_its_leader_all_the_same() -> None:
    """The leader may have decided before it began again."""
    bench = waiting()
    bench.propose(A, "abcd", "d", run=2)
    assert bench.step() is Step.WAIT
