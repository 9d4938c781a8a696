"""Receivers: joining, asking to send, beginning again, one rule at a time (docs/spec/errata-intergroup.md 5, 5a)."""

from antiphon.core.effects import Reset
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    ReportFrame,
)
from antiphon.protocols.intergroup.membership.frames import SponsorRequestFrame
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.view_ids import Kind, joined_id, view_id
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import ProcessId, process_id
from tests.support.intergroup_bench import A, B, C, Lab
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_world import GROUP, MS, SUSPECT_MS

S1, S2, R1, LATE = (ProcessId(name) for name in ("s1", "s2", "r1", "late"))
HOLD_MS = 5 * SUSPECT_MS
STALL_MS = 5 * SUSPECT_MS


def resets(lab: Lab, process: str) -> list[str]:
    return [each.reason for each in lab.log[ProcessId(process)] if isinstance(each, Reset)]


def acks(lab: Lab, since: int) -> list[int]:
    return [frame.ack for frame in lab.frames(KeepAliveFrame, "s1", since)]


def asked() -> tuple[Lab, JoinInfoFrame]:
    """A process that does not exist has asked s1 where to begin."""
    lab = Lab(2)
    for _ in range(3):
        lab.send("s2")
    lab.run(300)
    lab.hand("s1", JoinRequestFrame(GROUP, LATE, 0))
    (info,) = lab.frames(JoinInfoFrame)
    return lab, info


def test_m12_a_joiner_begins_at_the_place_of_the_message_that_adds_it() -> None:
    """The message tells its first number; its first stamp is above that message, and others wait for it from there."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.send("r1")
    lab.run(SUSPECT_MS)
    add = next(frame for frame in lab.frames(DataFrame) if frame.change is not None)
    first = next(frame for frame in lab.frames(DataFrame, "r1"))
    assert add.change == (R1, first.seq)
    assert first.stamp > add.stamp
    assert lab.seat("s2").epoch.view_began == add.stamp


def test_m27_a_process_that_joins_midway_shows_an_id_of_its_own() -> None:
    """It delivers only a part of the view's messages, so its id is not that of the members."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.split(["s1", "s2"], ["r1"])
    lab.run(2 * SUSPECT_MS)
    lab.heal()
    lab.cut.add(("s2", "r1"))
    lab.run(STALL_MS + SUSPECT_MS)
    lab.heal()
    lab.run(5 * SUSPECT_MS)
    base = lab.views("s1")[0].id
    joined = [view.id for view in lab.views("r1") if view.id.endswith(base)]
    assert len({*joined}) == len(joined) == 2
    assert base not in joined
    assert all(int(each.split(".")[0]) > 0 for each in joined)


def test_m28_a_joiner_is_told_to_begin_at_what_its_contact_has_acknowledged() -> None:
    """Everything above the start is kept: the contact acknowledges no more until the joiner has begun."""
    lab, info = asked()
    since = lab.now
    assert {each for each in acks(lab, -1) if each > info.start} == set()
    lab.run(HOLD_MS - SUSPECT_MS)
    assert {*acks(lab, since)} == {info.start}
    lab.run(2 * SUSPECT_MS)
    assert acks(lab, since)[-1] > info.start


def test_j8_a_joiner_gets_the_view_that_fits_its_start() -> None:
    """The start is the gate; the first numbers follow what was delivered; those that left are listed."""
    lab = Lab(3)
    lab.send("s2")
    lab.run(100)
    lab.demote("s3")
    lab.run(300)
    lab.hand("s1", JoinRequestFrame(GROUP, LATE, 0))
    (info,) = lab.frames(JoinInfoFrame)
    assert info.start == lab.seat("s1").log.gate
    assert info.first == ((S1, 1), (S2, 2))
    assert [(process, seq) for process, _, seq in info.left] == [("s3", 1)]


def test_j8_no_joiner_begins_below_what_it_has_shown() -> None:
    """A member answers only above the floor of the asker, and merges the floor, so that it soon can."""
    lab = Lab(2)
    lab.run(300)
    floor = lab.now_us() + 1_000_000
    lab.hand("s1", JoinRequestFrame(GROUP, LATE, floor))
    assert lab.frames(JoinInfoFrame) == []
    lab.run(100)
    lab.hand("s1", JoinRequestFrame(GROUP, LATE, floor))
    assert lab.frames(JoinInfoFrame)[0].start > floor
    lab.hand("s1", JoinRequestFrame(GROUP, S2, 0))
    assert len(lab.frames(JoinInfoFrame)) == 1


def test_j9_the_first_report_of_a_joiner_ends_the_hold() -> None:
    """There is no other confirmation: a report of the joiner in this epoch is one."""
    lab, info = asked()
    lab.hand("s1", ReportFrame(GROUP, LATE, info.epoch, lab.now_us(), None))
    since = lab.now
    lab.run(100)
    assert acks(lab, since)[-1] > info.start


def test_j10_a_joined_view_is_no_view_of_the_members() -> None:
    """Its id has a kind of its own, so it differs even if it begins at the same stamp; so does that of a reset."""
    base = view_id(5, Kind.CONSENSUS, A, 1)
    ids = [base, view_id(5, Kind.CHANGE, A, 1), joined_id(5, base, LATE), view_id(5, Kind.RESET, A, 1)]
    assert sorted({*ids}) == ids


def test_j22_a_process_that_comes_back_joins_no_view_that_it_joined_before() -> None:
    """The gate of the member that it asks may not have moved in between."""
    base = view_id(5, Kind.CONSENSUS, A, 1)
    ids = [joined_id(6, base, process_id(LATE, incarnation)) for incarnation in (0, 1, 2)]
    assert sorted({*ids}) == ids


def test_j7_a_receiver_asks_to_send_only_when_all_that_it_lacks_is_stable() -> None:
    """Until everything up to its own start is stable, it asks no sponsor, and reports no cut."""
    lab = Lab(2)
    lab.run(300)
    lab.come("r1", sends=False)
    lab.run(20)
    assert lab.standing("r1").state is State.RECEIVER
    lab.hand("r1", ReportFrame(GROUP, LATE, lab.epoch("r1"), 1, None))  # it has nothing, so nothing is stable
    lab.promote("r1")
    lab.run(STALL_MS - SUSPECT_MS)
    assert lab.frames(SponsorRequestFrame) == []
    lab.run(3 * SUSPECT_MS)
    assert lab.frames(SponsorRequestFrame, "r1")
    assert lab.standing("r1").state is State.SENDER


def test_j13_a_receiver_without_progress_begins_again() -> None:
    """One rule: its gate has not moved for five suspicion timeouts, and a sender is heard."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.cut.add(("s2", "r1"))
    lab.run(STALL_MS - SUSPECT_MS)
    assert resets(lab, "r1") == []
    lab.run(2 * SUSPECT_MS)
    assert resets(lab, "r1") == ["stalled"]


def test_j13_a_receiver_that_hears_nobody_keeps_its_view() -> None:
    """There is nobody to begin with."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.split(["s1", "s2"], ["r1"])
    lab.run(2 * STALL_MS)
    assert resets(lab, "r1") == []


def test_j14_a_receiver_that_nobody_sponsors_begins_again() -> None:
    """It hears members that do not hear it: after the sponsor timeout it looks for others, or begins alone."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.cut |= {("r1", "s1"), ("r1", "s2")}
    lab.promote("r1")
    lab.run(SUSPECT_MS)
    assert resets(lab, "r1") == []
    lab.run(2 * SUSPECT_MS)
    assert resets(lab, "r1") == ["unsponsored"]


def test_j16_a_receiver_that_does_not_rise_stops_nobody() -> None:
    """Its acknowledgment counts only if it rose within the stall time."""
    stability = Stability(A, [A, B], 0, stall_ns=100)
    stability.told(B, 50)
    stability.reported(C, 10, 0)
    for now, stable in ((0, 10), (99, 10), (100, 50)):
        stability.reported(C, 10, now)
        stability.conclude(50, now)
        assert stability.stable == stable


def test_j3_a_leaver_is_a_sender_until_all_have_its_last_message() -> None:
    """It keeps alive and takes part in repairs, although it shows a view without itself."""
    lab = Lab(3)
    lab.run(200)
    lab.lost = lambda frame, to: to == S2 and frame.kind in ("leave", "repair")
    lab.demote("s1")
    lab.run(60)
    assert "s1" not in lab.members("s1")
    assert "s1" in lab.members("s2")
    assert lab.standing("s1").state is State.TO_RECEIVER
    assert lab.frames(KeepAliveFrame, "s1", lab.now - 40 * MS)
    lab.suspect("s2", "s3")
    lab.run(20)
    assert lab.standing("s1").state is State.REPAIR
    lab.lost = lambda _frame, _to: False
    lab.run(15 * SUSPECT_MS)
    assert lab.standing("s1").state is State.RECEIVER
    assert faults(lab) == []


def test_j3_nothing_that_a_leaver_may_need_becomes_stable() -> None:
    """It counts until it has acknowledged its own last message, while it is heard."""
    stability = Stability(A, [A, B, C], 0, stall_ns=1_000)
    for other in (B, C):
        stability.told(other, 10)
    stability.remove(C, upto=40, now=0)
    stability.told(B, 90)
    stability.conclude(90, 1, leaver_ns=100)
    assert stability.stable == 10
    stability.told(C, 39, 50)
    stability.conclude(90, 149, leaver_ns=100)
    assert stability.stable == 39
    stability.told(C, 40, 149)
    stability.conclude(90, 149, leaver_ns=100)
    assert stability.stable == 90
