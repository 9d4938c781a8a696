"""Streams, acknowledgments and clocks of a group that changes, one rule at a time (docs/spec/errata-intergroup.md)."""

from itertools import pairwise

import pytest

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import ClockAhead
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RepairFrame
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.settings import CLOCK_AHEAD_US
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import ProcessId
from tests.support.intergroup_bench import A, B, C, Lab, SeatBench
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_said import Said
from tests.support.intergroup_world import GROUP, MS, SUSPECT_MS

S1, S2, S3 = (ProcessId(name) for name in ("s1", "s2", "s3"))


def test_j0_a_process_acknowledges_what_it_has_delivered() -> None:
    """The acknowledgment is the gate: what has arrived and is not delivered does not count."""
    bench = SeatBench("ab")
    bench.context.clock.merge(50)
    bench.take(bench.message(B, 1, 30))
    assert bench.seat.log.ack(0) == 0
    bench.seat.log.advance(lambda _message: None, 0)
    bench.seat.handoff.consumed(1)
    assert bench.seat.log.ack(0) == 30


def test_j0_in_a_repair_the_acknowledgment_stands_still() -> None:
    """Delivery halts, so the gate does not move, although keep-alives go on."""
    lab = Lab(3)
    lab.run(200)
    lab.crash("s3")
    while lab.standing("s1").state is not State.REPAIR:
        lab.run(1)
    lab.lost = lambda frame, _to: frame.kind in ("ready", "proposal")
    began = lab.now
    lab.run(SUSPECT_MS - 50)
    told = [frame.ack for frame in lab.frames(KeepAliveFrame, "s1", began)]
    assert len(told) > 2
    assert len({*told}) == 1


def test_m12_others_wait_for_a_joiner_from_the_message_that_adds_it() -> None:
    """The horizon of a joiner is the stamp of that message: nothing later is delivered before the joiner speaks."""
    order: GroupTimestamp[Said] = GroupTimestamp(None, {A: 1}, 0)
    order.data(A, Said(1, 20))
    order.data(A, Said(2, 30))
    delivered = []
    for said in order.deliverable(0):
        delivered.append(said.seq)
        if said.seq == 1:
            order.add(B, 5, 20, is_me=False)
    assert delivered == [1]
    assert order.gate == 20
    order.streams[B].keep_alive(4, 31)
    assert [said.seq for said in order.deliverable(0)] == [2]


def test_m20_nothing_is_stable_without_every_member_of_the_view() -> None:
    """A member that is cut off holds stability back until a view without it is installed."""
    stability = Stability(A, [A, B, C], 0, stall_ns=1)
    stability.told(B, 50)
    for now in (0, 10**12):
        assert not stability.conclude(50, now)
    stability.begin([A, B], 60, 10**12)
    stability.told(B, 70)
    assert stability.conclude(70, 10**12)


def test_d8_membership_frames_need_no_place_on_a_stream() -> None:
    """A proposal is understood although messages of its sender are missing, and takes no number of its stream."""
    lab = Lab(3)
    lab.run(200)
    lab.lost = lambda frame, to: to == S1 and isinstance(frame, DataFrame | RepairFrame)
    lab.send("s2")
    lab.run(50)
    lab.suspect("s2", "s3")
    lab.run(20)
    assert lab.standing("s1").state is State.REPAIR
    lab.lost = lambda _frame, _to: False
    lab.run(10 * SUSPECT_MS)
    lab.send("s2")
    lab.run(100)
    assert [frame.seq for frame in lab.frames(DataFrame, "s2")] == [1, 2]
    assert lab.got("s1") == lab.got("s2") == [b"s2:0", b"s2:1"]


def test_d9_a_leaver_says_its_last_number_until_all_have_its_leave() -> None:
    """If its last message is lost, its keep-alives show that, and it is repaired."""
    lab = Lab(2)
    lab.run(200)
    lab.lost = lambda frame, _to: isinstance(frame, DataFrame)
    lab.demote("s1")
    lab.run(15)
    assert lab.members("s2") == ("s1", "s2")
    lab.run(SUSPECT_MS)
    assert lab.members("s2") == ("s2",)
    assert lab.frames(RepairFrame)
    assert lab.kinds["proposal"] == 0


@pytest.mark.parametrize("service", ["fifo", "unreliable"])
def test_d10_a_sender_agrees_on_views_whatever_its_application_gets(service: str) -> None:
    """Every sender runs the group's order; the service only decides what its application gets."""
    lab = Lab(3, services={"s1": "fifo" if service == "fifo" else "unreliable"})
    lab.run(200)
    lab.crash("s3")
    lab.run(5 * SUSPECT_MS)
    assert lab.views("s1") == lab.views("s2")
    sent = lab.send("s2")
    lab.run(1)
    assert lab.got("s2") == []
    lab.run(9)
    assert lab.got("s1")[-1] == sent


def test_d11_a_sender_is_in_each_view_that_it_installs() -> None:
    """Sender self inclusion; and a repair always ends with an installation, however wrong the suspicions were."""
    lab = Lab(4)
    lab.run(200)
    for one, other in (("s1", "s2"), ("s2", "s1"), ("s3", "s4"), ("s4", "s1")):
        lab.suspect(one, other)
    lab.run(3)
    lab.suspect("s2", "s3")
    lab.run(20 * SUSPECT_MS)
    for sender in lab.senders:
        assert all(sender in view.members for view in lab.views(sender))
        assert lab.standing(sender).state is State.SENDER
    assert len(lab.views("s1")) > 1
    assert faults(lab) == []


def test_p1_a_clock_far_ahead_is_followed_and_reported() -> None:
    """Its stamps are merged and its messages delivered, because anything else would break the order."""
    lab = Lab(2)
    lab.run(100)
    ahead = lab.now_us() + CLOCK_AHEAD_US
    core = lab.cores[S1]
    for seq, more in ((1, -1_000), (2, 1_000)):
        frame = DataFrame(GROUP, S2, seq, ahead + more, lab.epoch("s1"), 0, (b"x",))
        core.receive(frame, lab.now)
        told = [each for each in core.drain(lab.now) if isinstance(each, ClockAhead)]
        assert [each.process for each in told] == ([S2] if more > 0 else [])
    lab.send("s1")
    assert lab.frames(DataFrame, "s1")[-1].stamp > ahead


def test_p2_a_clock_that_steps_back_changes_nothing() -> None:
    """Each stamp is above the last one, whatever the wall clock says."""
    clock = TimestampClock(physical=True)
    stamps = [clock.stamp(now) for now in (100, 100, 40, 0, 90, 103, 200)]
    assert all(before < after for before, after in pairwise(stamps))
    assert stamps[-1] == 200


def test_p2_a_sender_whose_clock_steps_back_sends_rising_stamps() -> None:
    """Messages and keep-alives go on."""
    lab = Lab(2)
    lab.run(100)
    lab.send("s1")
    before = lab.frames(DataFrame, "s1")[-1].stamp
    lab.cores[S1].send(GROUP, b"later", lab.now - 90 * MS)
    lab._settle(S1)
    assert lab.frames(DataFrame, "s1")[-1].stamp > before
