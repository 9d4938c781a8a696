"""Frames that a member keeps because another may still lack them (Macedo94 §7.2.2, Fig. 7.1: the message pool).

Frames are in rows by their number; a row is freed when its number is stable. Numbers are not consecutive (E-8), so
rows are a dict, with a heap of their numbers.
"""

from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import chain

from antiphon.protocols.newtop.frames import BlockFrame


class Retained:
    """Frames by number, freed from the smallest up. Invariant: `_numbers` is a heap of the keys of `_rows`."""

    __slots__ = ("_numbers", "_rows", "frames")

    def __init__(self) -> None:
        self.frames = 0
        """Number of frames held."""
        self._rows: dict[int, list[BlockFrame]] = defaultdict(list)
        self._numbers: list[int] = []

    @property
    def rows(self) -> int:
        """Number of different numbers held."""
        return len(self._rows)

    @property
    def smallest(self) -> int:
        """The smallest number held; there must be one."""
        return self._numbers[0]

    def hold(self, number: int, frame: BlockFrame) -> None:
        """Keep a frame until its number is stable."""
        row = self._rows[number]
        if not row:
            heappush(self._numbers, number)
        row.append(frame)
        self.frames += 1

    def free(self, stable: int) -> list[BlockFrame]:
        """Free every row that all members have."""
        numbers = self._numbers
        freed: list[BlockFrame] = []
        while numbers and numbers[0] <= stable:
            freed += self._rows.pop(heappop(numbers))
        self.frames -= len(freed)
        return freed

    def held(self) -> Iterator[BlockFrame]:
        """All held frames, in no particular order."""
        return chain.from_iterable(self._rows.values())

    def drop(self, number: int, frame: BlockFrame) -> bool:
        """Free one frame; False if it is not held."""
        row = self._rows.get(number)
        if row is None or frame not in row:
            return False
        row.remove(frame)
        self.frames -= 1
        if not row:
            del self._rows[number]
            self._numbers.remove(number)
            heapify(self._numbers)
        return True

    def evict(self) -> BlockFrame:
        """Free one frame with the smallest number: the first that arrived, so that runs are reproducible."""
        number = self._numbers[0]
        row = self._rows[number]
        frame = row.pop(0)
        if not row:
            del self._rows[heappop(self._numbers)]
        self.frames -= 1
        return frame
