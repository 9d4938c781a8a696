"""The frames of the membership plane (docs/spec/intergroup.md 7.2; D8).

They have no place on a stream. Each announces a state of its sender and is repeated while that state lasts; of each
sender and kind, only the frame with the highest `number` counts (M29).
"""

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.intergroup.membership.claims import Claims
from antiphon.types import GroupId, ProcessId, ViewId

Numbers = tuple[tuple[ProcessId, int], ...]
"""A number for each process, sorted."""


@dataclass(frozen=True, slots=True)
class ProposalFrame(FrameDefaults):
    """PJoin: the members that its sender proposes for the next view, and which of them it takes for failed."""

    group: GroupId
    sender: ProcessId
    number: int
    run: int
    """The number of this repair among those of its sender: the same sets may be proposed in another one (M5)."""
    epoch: ViewId
    stamp: int
    processes: tuple[ProcessId, ...]
    """Sorted, with the failed ones."""
    failed: tuple[ProcessId, ...]
    """Sorted."""

    @property
    def clock(self) -> int:
        return self.stamp


@dataclass(frozen=True, slots=True)
class RecoveryInfoFrame(FrameDefaults):
    """RecInfo: what its sender has of each sender of its epoch; it does not change within a round (J6)."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    proposal: str
    round: int
    """0: with the claims of receivers; 1: without them (J5)."""
    stamp: int
    gate: int
    last: int
    stint: int
    claims: Claims
    receiver_claims: Claims
    receiver_gate: int

    @property
    def clock(self) -> int:
        return self.stamp


@dataclass(frozen=True, slots=True)
class ReadyFrame(FrameDefaults):
    """RTC: its sender has everything that it must deliver before the next view."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    proposal: str
    round: int
    stamp: int
    first: int
    """The number of its first message in the next view."""
    final: Numbers
    """For each sender of its epoch, the number of the last message that counts."""
    stints: Numbers

    @property
    def clock(self) -> int:
        return self.stamp


class EpochEnd(NamedTuple):
    """How an old epoch ends for those that survive it (M14)."""

    epoch: ViewId
    final: Numbers
    stints: Numbers
    gate: int
    """G (J1)."""


@dataclass(frozen=True, slots=True)
class ChangeFrame(FrameDefaults):
    """MC: the next view, decided by its leader."""

    group: GroupId
    sender: ProcessId
    """Whoever repeats it; the id of the view names the leader."""
    epoch: ViewId
    """The id of the new view."""
    start: int
    """timeEntered."""
    proposal: str
    round: int
    origins: tuple[tuple[ProcessId, ViewId], ...]
    """For each member of the new view, the epoch that it comes from; sorted."""
    ends: tuple[EpochEnd, ...]
    """By old epoch, sorted."""
    first: Numbers
    """For each member, the number of its first message in the new view."""

    @property
    def members(self) -> tuple[ProcessId, ...]:
        return tuple(process for process, _ in self.origins)

    @property
    def classes(self) -> tuple[tuple[ProcessId, ...], ...]:
        """The members, divided by the epoch that they come from."""
        origins = dict.fromkeys(origin for _, origin in self.origins)
        return tuple(sorted(self.together(origin) for origin in origins))

    def together(self, epoch: ViewId) -> tuple[ProcessId, ...]:
        """The members that come from that epoch."""
        return tuple(process for process, origin in self.origins if origin == epoch)

    @property
    def clock(self) -> int:
        return self.start

    def end_of(self, epoch: ViewId) -> EpochEnd | None:
        return next((end for end in self.ends if end.epoch == epoch), None)


@dataclass(frozen=True, slots=True)
class ChangeRequestFrame(FrameDefaults):
    """MCReq: its sender is in this epoch and has heard of a later one."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId


@dataclass(frozen=True, slots=True)
class CutFrame(FrameDefaults):
    """CutRecord: what a receiver of an epoch has of each sender."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    gate: int
    claims: Claims


@dataclass(frozen=True, slots=True)
class ProbeFrame(FrameDefaults):
    """To one process, which answers if it hears us (J12)."""

    group: GroupId
    sender: ProcessId


@dataclass(frozen=True, slots=True)
class ProbeAnswerFrame(FrameDefaults):
    group: GroupId
    sender: ProcessId


@dataclass(frozen=True, slots=True)
class SponsorRequestFrame(FrameDefaults):
    """To one sender: a receiver of its epoch asks to be added; its first message has the number `first`."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    first: int
