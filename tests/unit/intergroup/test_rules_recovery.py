"""How an epoch ends and the next one begins, one rule at a time (docs/spec/errata-intergroup.md 5, 5a)."""

from dataclasses import replace

import pytest

from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RepairFrame, RequestFrame
from antiphon.protocols.intergroup.membership.changes import CHANGES_MAX, KnownChanges
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    ProposalFrame,
    RecoveryInfoFrame,
)
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.steps import Step
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, ViewId
from tests.support.intergroup_bench import SETTINGS, B, C, Lab, RepairBench, SeatBench
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_world import GROUP, MS, SUSPECT_MS, Got

S1, S2, S3, R1 = (ProcessId(name) for name in ("s1", "s2", "s3", "r1"))


def test_m7_no_two_views_have_one_id() -> None:
    """An id names the start, the leader with its incarnation, and a number that the leader counts."""
    leaders = [ProcessId(name) for name in ("a", "a#1", "b")]
    ids = [view_id(5, Kind.CONSENSUS, leader, number) for leader in leaders for number in (1, 2)]
    assert len({*ids}) == len(ids)


def test_m8_a_message_counts_only_in_the_epoch_in_which_it_was_sent() -> None:
    """Every message carries its epoch, and is delivered in no other."""
    lab = Lab(2)
    lab.run(200)
    lab.hand("s1", DataFrame(GROUP, S2, 1, lab.now_us(), ViewId("elsewhere"), 0, (b"no",)))
    lab.run(200)
    lab.send("s2")
    lab.run(200)
    assert lab.got("s1") == [b"s2:0"]


def test_m8_a_process_that_missed_the_change_gets_it_from_another_one() -> None:
    """The change reaches one member, its leader crashes, and the other member that was ready still installs it."""
    lab = Lab(4)
    lab.run(200)
    lab.lost = lambda frame, to: isinstance(frame, ChangeFrame) and frame.sender == S1 and to == S3
    lab.crash("s4")
    while len(lab.views("s2")) < 2:
        lab.run(1)
    lab.crash("s1")
    lab.run(10 * SUSPECT_MS)
    assert lab.views("s3")[1] == lab.views("s2")[1]
    assert lab.views("s3")[1].members == ("s1", "s2", "s3")
    assert lab.members("s3") == lab.members("s2") == ("s2", "s3")
    assert faults(lab) == []


def test_m13_only_those_from_our_own_epoch_come_along() -> None:
    """The transitional set has the members whose last epoch was ours, even if our last view has others of them."""
    bench = SeatBench("abc")
    bench.effects()
    change = bench.change({"a": "own", "b": "own", "c": "other"}, {"a": 0, "b": 0, "c": 0})
    bench.seat.install(change, 0)
    (view,) = bench.shown()
    assert view.members == ("a", "b", "c")
    assert view.transitional == ("a", "b")
    assert view.classes == (("a", "b"), ("c",))


def test_m14_numbers_say_what_belongs_to_the_old_view() -> None:
    """A message that arrived, but is beyond the agreed end of its sender, is not delivered."""
    bench = SeatBench("abc")
    bench.take(*(bench.message(C, seq, 10 * seq) for seq in range(1, 6)))
    bench.seat.install(bench.change({"a": "own", "b": "own"}, {"a": 0, "b": 0, "c": 4}, start=60), 0)
    assert bench.delivered() == [b"c1", b"c2", b"c3", b"c4"]


def test_m18_senders_wait_for_no_receiver() -> None:
    """A repair goes on with the reports of receivers that are here; missing receivers do not delay it."""
    lab = Lab(3, ["r1"])
    lab.run(1_000)
    lab.lost = lambda frame, _to: isinstance(frame, CutFrame)
    lab.crash("s3")
    lab.run(SUSPECT_MS + 100)
    assert lab.frames(CutFrame)
    assert lab.members("s1") == lab.members("s2") == ("s1", "s2")


def test_m18_what_only_a_receiver_has_is_recovered_from_it() -> None:
    """The claims of receivers count when they come in time, and receivers supply what they claim."""
    lab = Lab(3, ["r1"])
    lab.run(1_000)
    lab.cut |= {("s3", "s1"), ("s3", "s2")}
    sent = lab.send("s3")
    lab.run(50)
    assert lab.got("s1") == []
    lab.lost = lambda frame, to: isinstance(frame, ProposalFrame) and to != R1 and not lab.frames(CutFrame)
    lab.crash("s3")
    lab.run(5 * SUSPECT_MS)
    assert lab.got("s1") == lab.got("s2") == lab.got("r1") == [sent]
    assert faults(lab) == []


def test_m19_what_is_sent_in_a_repair_belongs_to_the_next_view() -> None:
    """Sends wait from the start of a repair to the installation; numbers go on, and stamps are above its start."""
    lab = Lab(3)
    lab.run(200)
    first = lab.send("s1")
    lab.run(100)
    lab.crash("s3")
    while lab.standing("s1").state is not State.REPAIR:
        lab.run(1)
    lab.send("s1")
    assert [frame.payloads[0] for frame in lab.frames(DataFrame)] == [first]
    lab.run(5 * SUSPECT_MS)
    change = lab.frames(ChangeFrame)[0]
    one, other = (each for each in lab.log[S2] if isinstance(each, Got))
    assert (one.seq, other.seq) == (1, 2)
    assert dict(change.first)[S1] == other.seq
    assert other.epoch == change.epoch
    assert other.stamp > change.start


def test_m21_a_change_is_repeated_until_all_members_have_shown_that_they_have_it() -> None:
    """The leader repeats it by itself until the new view is stable, also for receivers that do not ask."""
    lab = Lab(3)
    lab.run(200)
    lab.crash("s3")
    while len(lab.views("s2")) < 2:
        lab.run(1)
    lab.lost = lambda frame, to: isinstance(frame, KeepAliveFrame) and to == S1
    lab.run(SUSPECT_MS // 2)
    assert len(lab.frames(ChangeFrame, "s1")) > 3
    lab.lost = lambda _frame, _to: False
    lab.run(SUSPECT_MS)
    told = len(lab.frames(ChangeFrame))
    lab.run(SUSPECT_MS)
    assert len(lab.frames(ChangeFrame)) == told
    assert lab.members("s2") == ("s1", "s2")


def test_m21_a_receiver_that_hears_a_new_epoch_asks_for_the_change() -> None:
    """It need not hear the leader: any process that has the change repeats it."""
    lab = Lab(3, ["r1"])
    lab.run(1_000)
    lab.lost = lambda frame, to: to == R1 and isinstance(frame, ChangeFrame | ProposalFrame)
    lab.crash("s3")
    lab.run(2 * SUSPECT_MS)
    assert lab.members("r1") == ("s1", "s2", "s3")
    lab.lost = lambda _frame, _to: False
    lab.run(SUSPECT_MS)
    assert lab.frames(ChangeRequestFrame, "r1")
    assert lab.members("r1") == ("s1", "s2")
    assert faults(lab) == []


@pytest.mark.parametrize("wait", range(0, 30, 5))
def test_m23_members_with_different_views_of_one_epoch_end_it_together(wait: int) -> None:
    """A repair right after a voluntary change compares epochs, not views: all apply the change, none is excluded."""
    lab = Lab(4, latency=(1, 9), seed=wait)
    lab.run(500)
    lab.demote("s4")
    lab.run(wait)
    lab.crash("s2")
    lab.suspect("s1", "s2")
    lab.run(150)
    assert {process for frame in lab.frames(ProposalFrame, "s1") for process in frame.failed} == {S2}
    shown, repaired = lab.views("s1"), next(view for view in lab.views("s1")[1:] if ".1." in view.id)
    upto = shown.index(repaired) + 1
    assert lab.views("s3")[:upto] == shown[:upto]
    assert {"s1", "s3"} <= {*repaired.members}
    lab.run(10 * SUSPECT_MS)
    assert faults(lab) == []


@pytest.mark.parametrize(("gate", "seen"), [(30, [("a", "b"), ("a", "b")]), (29, [("a", "b")])])
def test_j1_a_change_of_the_view_counts_at_the_end_only_if_a_gate_has_passed_it(
    gate: int, seen: list[tuple[str, ...]]
) -> None:
    """In the last messages of an epoch, a leave changes the view if and only if its stamp is at most the gate G."""
    bench = SeatBench("abc")
    bench.take(bench.message(C, 1, 30, (C, 0)))
    bench.effects()
    bench.seat.install(bench.change({"a": "own", "b": "own"}, {"a": 0, "b": 0, "c": 1}, start=60, gate=gate), 0)
    assert [view.members for view in bench.shown()] == seen


def test_j1_a_receiver_whose_view_began_after_the_gate_begins_again() -> None:
    """It shows a view that no survivor has shown."""
    bench = SeatBench("abc")
    seat = bench.seat
    change = bench.change({"a": "own", "b": "own"}, {"a": 0, "b": 0, "c": 1}, start=60, gate=29)
    assert not seat.has_delivered_beyond(change.ends[0])
    seat.epoch.leave(C, 1, 30)
    assert seat.has_delivered_beyond(change.ends[0])
    assert not seat.has_delivered_beyond(change.ends[0]._replace(gate=30))


def claimed_by_a_receiver() -> RepairBench:
    bench = RepairBench()
    bench.own = bench.own._replace(receiver_claims=((C, Claim(1, 4, 50)),))
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    bench.inform(B)
    assert bench.wanted == {(C, seq) for seq in range(1, 5)}
    return bench


def test_j5_what_only_receivers_claim_and_nobody_supplies_is_left_out() -> None:
    """There are two rounds, the second one without the claims of receivers; no survivor is accused."""
    bench = claimed_by_a_receiver()
    for _ in range(25):
        bench.later(SETTINGS.recover_ns // 25)
        bench.repair.heard(B, bench.now)
    assert bench.suspected == [(C, "")]
    info = bench.announced(RecoveryInfoFrame)[-1]
    assert (info.round, info.receiver_claims) == (1, ())
    bench.inform(B)
    assert bench.step() is Step.READY


def test_j5_a_higher_round_takes_a_process_along() -> None:
    """The first process of a higher round was not ready for the lower one, so that one cannot commit."""
    bench = claimed_by_a_receiver()
    bench.inform(B, round_=1)
    assert bench.repair._round == 1
    assert bench.step() is Step.READY


def test_j6_what_a_process_tells_does_not_change_within_a_round() -> None:
    """Recovery information is fixed when it is first sent, although more arrives meanwhile."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    (told,) = bench.announced(RecoveryInfoFrame)
    bench.own = bench.own._replace(claims=((C, Claim(1, 9, 90)),), gate=80)
    bench.later(SETTINGS.repeat_ns)
    assert [*bench.announced(RecoveryInfoFrame)][-1] == told


def test_j6_the_end_of_a_lost_sender_is_found_in_its_messages() -> None:
    """They are fetched in sequence, up to the claimed number or the first stamp above T."""
    bench = RepairBench("abcd")
    bench.own = bench.own._replace(claims=((C, Claim(1, 3, 30)), (ProcessId("d"), Claim(1, 0, 25))))
    held = SeatBench("abcd")
    bench.messages = {(C, seq): held.message(C, seq, 10 * seq) for seq in (1, 2, 3)}
    bench.repair.begin(0, failed=C)
    bench.repair.suspect(ProcessId("d"), 0, "silent")
    bench.propose(B, "abcd", "cd")
    bench.inform(B)
    assert bench.repair.ready is not None
    assert dict(bench.repair.ready.final) == {"a": 0, "b": 0, "c": 2, "d": 0}


def test_j18_messages_of_the_last_epoch_are_kept_for_a_while() -> None:
    """They are kept for four suspicion timeouts, for receivers that still recover."""
    lab = Lab(3)
    lab.run(200)
    lab.lost = lambda _frame, _to: False
    lab.split(["s1"], ["s2", "s3"])
    lab.send("s1")
    while len(lab.views("s1")) < 2:
        lab.run(1)
    asked = RequestFrame(GROUP, R1, Ticket(S1, 1))
    lab.run(3 * SUSPECT_MS)
    lab.hand("s1", asked)
    lab.run(100)
    assert [frame.message.seq for frame in lab.frames(RepairFrame)] == [1]
    lab.run(SUSPECT_MS)
    lab.hand("s1", asked)
    lab.run(100)
    assert len(lab.frames(RepairFrame)) == 1


def test_j18_the_last_five_changes_are_kept() -> None:
    """A process that asks for the change after an older epoch gets no answer."""
    bench = SeatBench("ab")
    changes = KnownChanges(bench.context, bench.outlet)
    bench.effects()
    change = bench.change({"a": "own", "b": "own"}, {"a": 0, "b": 0})
    old = [ViewId(f"epoch {number}") for number in range(CHANGES_MAX + 1)]
    assert CHANGES_MAX == 5
    for epoch in old:
        changes.add(replace(change, ends=(change.ends[0]._replace(epoch=epoch),)))
    for number, epoch in enumerate(old):
        changes.replay_after(epoch, number * 1_000 * MS)
        assert len(bench.effects()) == (number > 0)


def test_j6_the_leader_gives_up_a_process_that_contradicts_what_it_told() -> None:
    """All of one epoch compute the same ends; the leader decides without a process that differs."""
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    bench.inform(B)
    own = bench.repair.ready
    assert own is not None
    lie = replace(own, sender=B, final=(*own.final, (C, 1)), stints=(*own.stints, (C, 1)))
    for _ in range(40):
        bench.repair.readied(lie, bench.now)
        bench.later((SETTINGS.consensus_ns + SETTINGS.recover_ns) // 40)
    assert bench.suspected[-1] == (B, "mute")
    assert [change.members for change in bench.decided] == [("a",)]
