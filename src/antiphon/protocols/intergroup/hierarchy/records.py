"""Stability records: what a part of the hierarchy has delivered, and which senders are among it.

From docs/spec/intergroup.md 4.5; errata T1, T2, J17. Minimum and union are idempotent: duplicates, reordering and a
process that two coordinators count change nothing but `receivers`, which is for information.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from antiphon.types import GroupId, ProcessId, ViewId

EPOCHS_MAX: Final = 4
"""The latest epochs of a group that are passed on: its processes change their epoch one after the other."""
SLOTS_MAX: Final = 4_096
"""No epoch has more slots: that many senders, counting each process that was added again."""
RECEIVERS_MAX: Final = 1 << 32
_EMPTY: Final = b""

Slots = int
"""A set of slots: bit n is set if slot n is in it."""


class StabilityRecord(NamedTuple):
    """Some processes of a group: all of them have delivered everything with a stamp up to `ack`."""

    group: GroupId
    epoch: ViewId
    ack: int
    senders: bytes = _EMPTY
    """The slots of the senders among them, as a bitmap; the lowest slot is the last bit."""
    receivers: int = 0

    @property
    def slots(self) -> Slots:
        return int.from_bytes(self.senders)


def bitmap(slots: Slots) -> bytes:
    return slots.to_bytes((slots.bit_length() + 7) // 8)


def is_plausible(record: StabilityRecord) -> bool:
    """True if the numbers are within what a hierarchy can have."""
    return len(record.senders) <= SLOTS_MAX // 8 and record.ack >= 0 and 0 <= record.receivers <= RECEIVERS_MAX


def merged(records: Iterable[StabilityRecord]) -> tuple[StabilityRecord, ...]:
    """One record for each group and epoch, sorted; of each group, the latest epochs (T1)."""
    found: dict[tuple[GroupId, ViewId], tuple[int, Slots, int]] = {}
    for group, epoch, ack, senders, receivers in records:
        slots = int.from_bytes(senders)
        least, covered, counted = found.get((group, epoch), (ack, 0, 0))
        found[group, epoch] = min(least, ack), covered | slots, counted + receivers
    epochs: dict[GroupId, list[ViewId]] = {}
    for group, epoch in sorted(found):
        epochs.setdefault(group, []).append(epoch)
    return tuple(
        StabilityRecord(group, epoch, ack, bitmap(slots), min(receivers, RECEIVERS_MAX))
        for group, latest in epochs.items()
        for epoch in latest[-EPOCHS_MAX:]
        for ack, slots, receivers in [found[group, epoch]]
    )


class EpochSlots:
    """The slots of the senders in one epoch, as each member counts them (J17).

    Ranks in the view would shift when a process is added or leaves, and a bit would then be read as that of another.
    """

    def __init__(self, members: Iterable[ProcessId]) -> None:
        self._slots = {member: rank for rank, member in enumerate(members)}
        self._next = len(self._slots)

    def add(self, member: ProcessId) -> None:
        """The view changes: a process is added, perhaps again. No slot is used twice."""
        self._slots[member] = self._next
        self._next += 1

    def slot(self, member: ProcessId) -> int | None:
        return self._slots.get(member)

    def required(self, members: Iterable[ProcessId]) -> Slots:
        """The slots of these: the senders in the view, and those that left while their PLeave is not stable (J3)."""
        return sum(1 << self._slots[member] for member in members)


class SystemAck:
    """What one member concludes from the records that its control process passes on (T2).

    Invariant: `stable` never falls within an epoch, and every required sender has acknowledged it.
    """

    def __init__(self, group: GroupId, epoch: ViewId, stable: int) -> None:
        self._group, self._epoch, self.stable = group, epoch, stable

    def accept(self, record: StabilityRecord, required: Slots, own_ack: int) -> bool:
        """True if `stable` has risen. No ack that covers this member is above `own_ack`."""
        if (record.group, record.epoch) != (self._group, self._epoch) or not self.covers(record, required):
            return False
        if not self.stable < record.ack <= own_ack:
            return False
        self.stable = record.ack
        return True

    def covers(self, record: StabilityRecord, required: Slots) -> bool:
        """True if every required sender is in the record."""
        return required & ~record.slots == 0


class MemberReport(NamedTuple):
    """What a member of this host has told last."""

    epoch: ViewId
    ack: int
    slot: int | None
    at: int


Reports = Mapping[tuple[GroupId, ProcessId], MemberReport]


def of_members(reports: Reports) -> tuple[StabilityRecord, ...]:
    """The records of the members of one host."""
    return merged(
        StabilityRecord(group, epoch, ack, _EMPTY if slot is None else bitmap(1 << slot), int(slot is None))
        for (group, _), (epoch, ack, slot, _) in reports.items()
    )
