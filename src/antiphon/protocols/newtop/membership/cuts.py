"""Where views change, over all groups of a process, in the order of the numbers after which they change."""

from collections.abc import Container
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.types import GroupId


class Cut(NamedTuple):
    """A view waits until everything up to its number is delivered."""

    number: int
    ticket: int
    """Cuts with one number keep the order in which they were agreed on."""
    group: GroupId
    detection: Detection | None
    """The failed members; None: the first view of a formed group."""


class Cuts:
    """Invariant: `_heap` is a heap of cuts whose views are not installed; `upto` is the number of the first."""

    __slots__ = ("_heap", "_tickets", "upto")

    def __init__(self) -> None:
        self._heap: list[Cut] = []
        self._tickets = 0
        self.upto = BEYOND
        """Nothing above this number is delivered before the next cut; a plain attribute, read at every drain."""

    @property
    def first(self) -> Cut:
        """The next cut; there is one if `upto` is below `BEYOND`."""
        return self._heap[0]

    @property
    def highest(self) -> int:
        """The largest number of a cut, or 0."""
        return max((cut.number for cut in self._heap), default=0)

    def add(self, number: int, group: GroupId, detection: Detection | None) -> None:
        """A view of that group changes after this number."""
        self._tickets += 1
        heappush(self._heap, Cut(number, self._tickets, group, detection))
        self._look()

    def pop(self) -> Cut:
        """Take the next cut."""
        cut = heappop(self._heap)
        self._look()
        return cut

    def drop(self, detections: Container[Detection | None]) -> None:
        """These are installed together with another cut."""
        self._keep([cut for cut in self._heap if cut.detection not in detections])

    def forget(self, group: GroupId) -> None:
        """We have left that group."""
        self._keep([cut for cut in self._heap if cut.group != group])

    def awaits_first_view(self, group: GroupId) -> bool:
        """True if the first view of that group is not installed yet."""
        return any(cut.group == group and cut.detection is None for cut in self._heap)

    def _keep(self, cuts: list[Cut]) -> None:
        self._heap = cuts
        heapify(self._heap)
        self._look()

    def _look(self) -> None:
        self.upto = self._heap[0].number if self._heap else BEYOND
