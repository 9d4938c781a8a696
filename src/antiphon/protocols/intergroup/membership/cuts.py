"""What receivers of an epoch have told that they hold, for the repair of that epoch (docs/spec/intergroup.md 7.6)."""

from typing import Final

from antiphon.protocols.intergroup.membership.claims import Claim, Claims
from antiphon.protocols.intergroup.membership.frames import CutFrame
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.types import ProcessId, ViewId

CUTS_MAX: Final = 1_024
CUTS_AT_ONCE: Final = 8
"""About this number of receivers answer a proposal at once; the others follow at the rate of reports."""


class CutSchedule:
    """When one receiver tells what it has: all receivers together send at a bounded rate, however many there are."""

    def __init__(self, every_ns: int, least_ns: int, draw: Draw) -> None:
        """`every_ns`: the mean interval between the records of all; `least_ns`: the least between two of one."""
        self._every_ns, self._least_ns, self._draw = every_ns, least_ns, draw
        self._not_before = 0
        self.next_at: int | None = None
        """None: nothing is to be told."""

    def begin(self) -> None:
        """No repair is known."""
        self.next_at, self._not_before = None, 0

    def proposed(self, receivers: int, now: int) -> None:
        """A proposal asks what we have; `receivers`: how many answer."""
        if self.next_at is None:
            wait_ns = int(max(0.0, self._draw() * receivers - CUTS_AT_ONCE) * self._every_ns)
            self.next_at = max(now + wait_ns, self._not_before)

    def is_due(self, now: int) -> bool:
        """True once for each answer."""
        if self.next_at is None or now < self.next_at:
            return False
        self.next_at, self._not_before = None, now + self._least_ns
        return True


class Cuts:
    """The last cut record of each receiver."""

    def __init__(self) -> None:
        self._cuts: dict[ProcessId, CutFrame] = {}

    def add(self, frame: CutFrame) -> None:
        if frame.sender in self._cuts or len(self._cuts) < CUTS_MAX:
            self._cuts[frame.sender] = frame

    def clear(self) -> None:
        self._cuts.clear()

    def claims(self, epoch: ViewId) -> Claims:
        """For each sender, the greatest claim of a receiver of that epoch; sorted."""
        greatest: dict[ProcessId, Claim] = {}
        for frame in self._of(epoch):
            for process, claim in frame.claims:
                greatest[process] = max(greatest.get(process, claim), claim)
        return tuple(sorted(greatest.items()))

    def gate(self, epoch: ViewId) -> int:
        return max((frame.gate for frame in self._of(epoch)), default=0)

    def covers(self, frame: CutFrame) -> bool:
        """True if the records of other receivers say at least as much."""
        known = dict(self.claims(frame.epoch))
        return self.gate(frame.epoch) >= frame.gate and all(
            process in known and known[process] >= claim for process, claim in frame.claims
        )

    def _of(self, epoch: ViewId) -> list[CutFrame]:
        return [frame for frame in self._cuts.values() if frame.epoch == epoch]
