"""The number up to which an asymmetric group is complete (docs/spec/newtop.md 11.3 rules 6.3 and 6.4)."""

from collections.abc import Container
from typing import NamedTuple

from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.types import ProcessId


class _Cut(NamedTuple):
    """The place of a view change because the sequencer has failed."""

    number: int
    detection: Detection


class Horizon:
    """D of an asymmetric group. Invariant: no number up to `minimum` can still arrive."""

    __slots__ = ("_cuts", "_last_cut", "minimum")

    def __init__(self, base: int) -> None:
        self.minimum = base
        self._cuts: list[_Cut] = []  # pending, in the order of their numbers
        self._last_cut = base

    def look(self, reached: int) -> None:
        """Rule 6.4; `reached` is the last number of the current sequencer."""
        if self._cuts:
            self.minimum = max(cut.number for cut in self._cuts)
        else:
            self.minimum = max(self._last_cut, reached)

    def cut(self, last: int, detection: Detection) -> int:
        """The sequencer has failed with this last number: the view changes there, or after an earlier such place."""
        number = max([last, self._last_cut, *(cut.number for cut in self._cuts)])
        self._cuts.append(_Cut(number, detection))
        return number

    def installed(self, members: Container[ProcessId]) -> None:
        """A view of these members is installed: the cuts that led to it are passed."""
        passed = [cut for cut in self._cuts if not any(process in members for process, _ in cut.detection.failed)]
        self._cuts = [cut for cut in self._cuts if cut not in passed]
        self._last_cut = max([self._last_cut, *(cut.number for cut in passed)])
