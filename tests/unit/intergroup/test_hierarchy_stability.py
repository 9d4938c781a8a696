"""Stability through the hierarchy: records, slots and what a member accepts (docs/spec/intergroup.md 4.5)."""

import pytest

from antiphon.protocols.intergroup.as_printed_hierarchy import LeastOfThoseKnown
from antiphon.protocols.intergroup.hierarchy.frames import AckReportFrame
from antiphon.protocols.intergroup.hierarchy.members import MEMBERS_MAX, Members
from antiphon.protocols.intergroup.hierarchy.records import (
    EPOCHS_MAX,
    SLOTS_MAX,
    EpochSlots,
    StabilityRecord,
    SystemAck,
    bitmap,
    is_plausible,
    merged,
)
from antiphon.types import GroupId, ProcessId, ViewId

G, H, E, LATER = GroupId("g"), GroupId("h"), ViewId("00.e"), ViewId("01.e")
A, B, C, D = (ProcessId(name) for name in "abcd")
SECOND = 1_000_000_000


def record(ack: int, *slots: int, group: GroupId = G, epoch: ViewId = E, receivers: int = 0) -> StabilityRecord:
    return StabilityRecord(group, epoch, ack, bitmap(sum(1 << slot for slot in slots)), receivers)


def test_t1_groups_do_not_block_each_other() -> None:
    assert merged([record(5, 0), record(9, 0, group=H), record(7, 1)]) == (record(5, 0, 1), record(9, 0, group=H))


def test_t2_records_are_idempotent() -> None:
    one, other = record(5, 0, 3), record(7, 1, receivers=2)
    assert merged([one, other, one]) == merged([other, one])
    assert merged(merged([one, other])) == merged([one, other])


def test_records_of_the_latest_epochs_are_kept_apart() -> None:
    epochs = [ViewId(f"{number:02d}.e") for number in range(EPOCHS_MAX + 2)]
    kept = merged(record(number, number, epoch=epoch) for number, epoch in enumerate(epochs))
    assert [each.epoch for each in kept] == epochs[2:]


def test_t2_a_system_ack_needs_every_sender_of_the_epoch() -> None:
    ack = SystemAck(G, E, 0)
    required = EpochSlots([A, B, C]).required([A, B, C])
    assert not ack.accept(record(9, 0, 2), required, 20)
    assert not ack.accept(record(9, 0, 1, 2, epoch=LATER), required, 20)
    assert not ack.accept(record(9, 0, 1, 2, group=H), required, 20)
    assert ack.accept(record(9, 0, 1, 2), required, 20)
    assert not ack.accept(record(8, 0, 1, 2), required, 20)  # it never falls
    assert not ack.accept(record(21, 0, 1, 2), required, 20)  # our own slot is in it
    assert ack.stable == 9


def hand_over(kind: type[SystemAck]) -> int:
    """B, which has acknowledged 4, moves away while A and C acknowledge 9; what A takes for stable."""
    ack = kind(G, E, 0)
    required = EpochSlots([A, B, C]).required([A, B, C])
    old_coordinator, new_coordinator = [record(9, 0)], [record(9, 2)]
    for step in ([record(4, 1)], []):  # B is a child of the old one; then of nobody
        system = merged([*merged([*old_coordinator, *step]), *merged(new_coordinator)])
        for each in system:
            ack.accept(each, required, 9)
    return ack.stable


def test_t2_a_child_that_moves_holds_stability_back() -> None:
    assert hand_over(SystemAck) == 4


def test_t2_as_printed_a_child_that_moves_is_not_waited_for() -> None:
    assert hand_over(LeastOfThoseKnown) == 9


def test_j17_slots_are_not_ranks() -> None:
    """B leaves and D is added: no slot of another process changes, and none is used again."""
    slots = EpochSlots([A, B, C])
    before = slots.slot(C)
    slots.add(D)
    assert (slots.slot(C), slots.slot(D)) == (before, 3)
    slots.add(B)
    assert slots.slot(B) == 4
    assert slots.required([A, C, D]) == 0b01101


def test_j3_the_slot_of_a_leaver_is_required_until_its_last_message_is_stable() -> None:
    slots, ack = EpochSlots([A, B]), SystemAck(G, E, 0)
    assert not ack.accept(record(5, 0), slots.required([A, B]), 9)
    assert ack.accept(record(5, 0, 1), slots.required([A, B]), 9)
    assert ack.accept(record(7, 0), slots.required([A]), 9)


def report(member: ProcessId, ack: int, slot: int | None, *, leaving: bool = False) -> AckReportFrame:
    return AckReportFrame(G, member, E, ack, slot, leaving)


def test_a_receiver_counts_without_a_slot() -> None:
    members = Members()
    members.report(report(A, 9, 2), 0)
    members.report(report(B, 5, None), 0)
    assert members.records() == (record(5, 2, receivers=1),)
    members.report(report(B, 5, None, leaving=True), 0)
    assert members.records() == (record(9, 2),)


def test_a_member_that_is_silent_or_disconnected_is_forgotten() -> None:
    members = Members()
    members.report(report(A, 9, 0), 0)
    members.report(report(B, 9, 1), 4 * SECOND)
    members.expire(6 * SECOND, 5 * SECOND)
    assert members.all() == [(G, B)]
    members.gone(B)
    assert members.records() == ()


def test_the_members_of_a_host_are_bounded() -> None:
    members = Members()
    for number in range(MEMBERS_MAX + 5):
        members.report(report(ProcessId(f"p{number}"), 1, None), 0)
    members.report(report(A, 1, SLOTS_MAX), 0)
    assert len(members.all()) == MEMBERS_MAX


@pytest.mark.parametrize(
    "wrong",
    [record(-1), StabilityRecord(G, E, 1, bytes(SLOTS_MAX // 8 + 1)), record(1, receivers=1 << 40)],
)
def test_an_impossible_record_is_not_plausible(wrong: StabilityRecord) -> None:
    assert not is_plausible(wrong)
