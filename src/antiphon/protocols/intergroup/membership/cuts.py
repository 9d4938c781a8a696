"""What receivers of an epoch have told that they hold, for the repair of that epoch (docs/spec/intergroup.md 7.6)."""

from typing import Final

from antiphon.protocols.intergroup.membership.claims import Claim, Claims
from antiphon.protocols.intergroup.membership.frames import CutFrame
from antiphon.types import ProcessId, ViewId

CUTS_MAX: Final = 1_024


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

    def _of(self, epoch: ViewId) -> list[CutFrame]:
        return [frame for frame in self._cuts.values() if frame.epoch == epoch]
