"""A group of members on the hosts of a hierarchy, without messages: views, acknowledgments, and what becomes stable.

It plays what `GroupMember` will do with the hierarchy: epochs, processes that are added or leave at a stamp, and
acknowledgments that lag behind. It is also the oracle of stability, because it knows every acknowledgment (T2).
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from antiphon.core.effects import Transmit
from antiphon.protocols.intergroup.hierarchy.frames import AckReportFrame, SystemFrame
from antiphon.protocols.intergroup.hierarchy.records import EpochSlots, SystemAck
from antiphon.types import GroupId, ProcessId, ViewId
from tools.lab.hierarchy_network import SECOND, Host

GROUP: Final = GroupId("g")
ACK_NS: Final = SECOND // 5


@dataclass(slots=True)
class Epoch:
    """What all members of an epoch agree on."""

    id: ViewId
    start: int
    members: tuple[ProcessId, ...]
    changes: list[tuple[int, ProcessId, bool]] = field(default_factory=list)
    """In order: a stamp, and a process that is added (True) or leaves."""
    acks: dict[ProcessId, int] = field(default_factory=dict)
    """What each process has acknowledged last in this epoch, also if it has crashed since."""

    def senders_at(self, stamp: int) -> set[ProcessId]:
        """The view after everything with a stamp up to this one."""
        view = {*self.members}
        for at, process, added in self.changes:
            if at <= stamp:
                (view.add if added else view.discard)(process)
        return view


class Member:
    """One member in one epoch."""

    def __init__(self, name: ProcessId, epoch: Epoch, kind: type[SystemAck], slots: type[EpochSlots]) -> None:
        self.name, self.epoch = name, epoch
        self.ack = epoch.start
        self.system = kind(GROUP, epoch.id, epoch.start)
        self._slots = slots(epoch.members)
        self._applied = 0
        self._view = {*epoch.members}
        self._leavers: dict[ProcessId, int] = {}
        """By process that has left, the stamp of its PLeave while it is not stable (J3)."""

    def advance(self, stamp: int) -> None:
        """Everything up to the stamp is delivered, changes of the view included (J0)."""
        self.ack = max(self.ack, stamp)
        while self._applied < len(self.epoch.changes) and self.epoch.changes[self._applied][0] <= self.ack:
            at, process, added = self.epoch.changes[self._applied]
            self._applied += 1
            if added:
                self._view.add(process)
                self._leavers.pop(process, None)
                self._slots.add(process)
            else:
                self._view.discard(process)
                self._leavers[process] = at

    @property
    def required(self) -> int:
        self._leavers = {process: at for process, at in self._leavers.items() if at > self.system.stable}
        return self._slots.required({*self._view, *self._leavers})

    def report(self) -> AckReportFrame:
        self.epoch.acks[self.name] = self.ack
        sends = self.name in self._view or self.name in self._leavers
        return AckReportFrame(GROUP, self.name, self.epoch.id, self.ack, self._slots.slot(self.name) if sends else None)


class GroupModel:
    """All members, one on each host, by the name of the host without its incarnation."""

    def __init__(self, chance: Random, kind: type[SystemAck] = SystemAck, slots: type[EpochSlots] = EpochSlots) -> None:
        self._chance, self._kind, self._slots = chance, kind, slots
        self._number = 0
        self.epoch = Epoch(ViewId("00.e"), 0, ())
        self.members: dict[ProcessId, Member] = {}
        self.frozen: dict[ProcessId, int] = {}
        """Until when a member delivers nothing."""
        self.early: list[str] = []
        self.accepted = 0

    # Changes

    def begin(self, senders: list[ProcessId], now: int) -> None:
        """The next epoch; every member enters it when it has heard of it."""
        self._number += 1
        self.epoch = Epoch(ViewId(f"{self._number:02d}.e"), now, tuple(sorted(senders)))

    def enter(self, name: ProcessId) -> None:
        """The member goes to the present epoch."""
        known = self.members.get(name)
        if known is None or known.epoch is not self.epoch:
            self.members[name] = Member(name, self.epoch, self._kind, self._slots)

    def crash(self, name: ProcessId) -> None:
        self.members.pop(name, None)

    @property
    def senders(self) -> set[ProcessId]:
        """The last view of the present epoch."""
        return self.epoch.senders_at(1 << 62)

    def change(self, process: ProcessId, now: int, *, added: bool) -> None:
        """A message that adds the process, or with which it leaves, is sent."""
        self.epoch.changes.append((now, process, added))

    # Acknowledgments

    def acknowledge(self, host: Host, now: int) -> None:
        member = self.members.get(owner(host))
        if member is None:
            return
        if self.frozen.get(member.name, 0) <= now:
            member.advance(int(now - self._chance.random() ** 4 * 3 * SECOND))
        host.core.receive(member.report(), now + host.offset)

    def told(self, host: Host, effect: Transmit) -> None:
        frame = effect.frame
        member = self.members.get(effect.to)  # type: ignore[arg-type]
        if isinstance(frame, SystemFrame) and member is not None and owner(host) == member.name:
            before = member.system.stable
            if member.system.accept(frame.record, member.required, member.ack):
                self.accepted += 1
                self._judge(member, before)

    def _judge(self, member: Member, before: int) -> None:
        """S1: nothing is stable that a sender lacks, or one that has left and whose PLeave was not stable."""
        epoch, stable = member.epoch, member.system.stable
        for process in epoch.senders_at(stable):
            if epoch.acks.get(process, epoch.start) < stable:
                self.early.append(f"{member.name} takes {stable} for stable, {process} has not acknowledged it")
        for at, process, added in epoch.changes:
            if not added and before < at <= stable and epoch.acks.get(process, epoch.start) < at:
                self.early.append(f"{member.name} takes {stable} for stable, {process} left at {at} and lacks that")


def owner(host: Host) -> ProcessId:
    """The member of a host survives its control process."""
    return ProcessId("m-" + host.name.partition("#")[0])
