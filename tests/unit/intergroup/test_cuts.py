"""Receivers do not matter for a repair: its frames do not grow with their number (docs/spec/intergroup.md 7.6, 7.7)."""

from functools import cache

import pytest

from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.cuts import CUTS_AT_ONCE, Cuts, CutSchedule
from antiphon.protocols.intergroup.membership.frames import CutFrame
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import GroupId, ProcessId, ViewId
from tests.support.intergroup_world import SUSPECT_MS, World

MS = 1_000_000
EVERY, LEAST = 20 * MS, 50 * MS
A, B = ProcessId("a"), ProcessId("b")
EPOCH = ViewId("epoch")


def cut(receiver: str, gate: int, **claims: int) -> CutFrame:
    found = tuple(sorted((ProcessId(name), Claim(1, seq, 100 * seq)) for name, seq in claims.items()))
    return CutFrame(GroupId("g"), ProcessId(receiver), EPOCH, gate, found)


def test_few_receivers_answer_a_proposal_at_once() -> None:
    schedule = CutSchedule(EVERY, LEAST, lambda: 0.999)
    schedule.proposed(CUTS_AT_ONCE, 7)
    assert schedule.is_due(7)
    assert not schedule.is_due(8)


def test_many_receivers_share_the_rate_of_reports() -> None:
    schedule = CutSchedule(EVERY, LEAST, lambda: 0.5)
    schedule.proposed(1_000, 0)
    due = (500 - CUTS_AT_ONCE) * EVERY
    schedule.proposed(1_000, due // 2)  # a repeated proposal does not begin anew
    assert not schedule.is_due(due - 1)
    assert schedule.is_due(due)


def test_the_next_record_of_a_receiver_waits_for_an_interval() -> None:
    schedule = CutSchedule(EVERY, LEAST, lambda: 0.0)
    schedule.proposed(1, 0)
    assert schedule.is_due(0)
    schedule.proposed(1, 1)
    assert schedule.next_at == LEAST


def test_a_record_that_adds_nothing_is_covered() -> None:
    heard = Cuts()
    assert not heard.covers(cut("me", 100, a=1, b=1))
    heard.add(cut("r1", 200, a=3, b=1))
    heard.add(cut("r2", 100, a=1, b=4))
    assert heard.covers(cut("me", 200, a=3, b=4))
    assert not heard.covers(cut("me", 201, a=3, b=4))
    assert not heard.covers(cut("me", 100, a=4))
    assert not heard.covers(cut("me", 100, c=1))


@cache
def _repaired(receivers: int) -> World:
    world = World(4, [f"r{number}" for number in range(receivers)])
    world.run(2_000)
    world.kinds.clear()
    world.crash("s4")
    world.run(2 * SUSPECT_MS)
    assert {len(world.members(f"r{number}")) for number in range(receivers)} == {3}
    return world


@pytest.mark.parametrize("kind", ["cut", "change-request", "change", "proposal"])
def test_the_frames_of_a_repair_do_not_grow_with_the_receivers(kind: str) -> None:
    assert _repaired(60).kinds[kind] <= _repaired(6).kinds[kind] + 2 * CUTS_AT_ONCE


def test_receivers_that_follow_a_change_do_not_all_report_at_once() -> None:
    seconds = 2 * SUSPECT_MS / 1000
    reports = _repaired(60).kinds["report"]
    assert reports <= 1.6 * seconds * 100  # the rate of all receivers of this world: one every 10 ms


def test_the_slowest_receiver_blocks_until_it_moves_or_stalls() -> None:
    stability = Stability(ProcessId("me"), (), 0, stall_ns=1_000, report_every_ns=1)
    stability.reported(A, 10, 0)
    stability.reported(B, 20, 0)
    assert stability.conclude(30, 0)
    assert stability.stable == 10
    assert not stability.conclude(40, 1)
    stability.reported(B, 50, 500)
    assert not stability.conclude(40, 999)
    assert stability.conclude(40, 1_000)
    assert stability.stable == 40


def test_a_change_is_with_the_members_whatever_receivers_report() -> None:
    stability = Stability(ProcessId("me"), (A, B), 0, stall_ns=1_000)
    stability.reported(ProcessId("r"), 0, 0)
    stability.told(A, 10)
    assert not stability.is_with_members(10)
    stability.told(B, 12)
    assert stability.is_with_members(10)
