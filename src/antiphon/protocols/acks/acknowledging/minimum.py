"""The minimum of a vector whose entries come and go: the vectors of Berket98, one entry per connected process.

`vectors.MinVector` serves views that do not change; here entries are added and removed. The minimum comes from a heap
that is repaired only when it is read. Raising an entry costs one step. Reading costs the height of the heap for each
entry that has risen from the top since: O(n log n) for n risen entries, as Berket98 §4 counts.
"""

from collections.abc import Iterator
from heapq import heapify, heappush, heapreplace

from antiphon.types import ProcessId


class Minimum:
    """One number per process; numbers only rise.

    Invariant: the heap has one item per key, and no item is above the number of its key.
    """

    __slots__ = ("_heap", "_values", "steps")

    def __init__(self) -> None:
        self._values: dict[ProcessId, int] = {}
        self._heap: list[tuple[int, ProcessId]] = []
        self.steps = 0
        """Entries written and compared so far: the cost."""

    def __contains__(self, key: ProcessId) -> bool:
        return key in self._values

    def __getitem__(self, key: ProcessId) -> int:
        return self._values[key]

    def __iter__(self) -> Iterator[ProcessId]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, key: ProcessId, value: int) -> None:
        """Add an entry."""
        assert key not in self._values
        self._values[key] = value
        heappush(self._heap, (value, key))
        self.steps += len(self._heap).bit_length()

    def raise_to(self, key: ProcessId, value: int) -> None:
        """Raise one entry; a smaller value, from a late frame, has no effect."""
        self.steps += 1
        if value > self._values[key]:
            self._values[key] = value

    def remove(self, key: ProcessId) -> None:
        """Remove an entry. This is rare, so the heap is simply rebuilt."""
        del self._values[key]
        self._heap = [(value, other) for other, value in self._values.items()]
        heapify(self._heap)
        self.steps += len(self._heap)

    @property
    def smallest(self) -> int | None:
        """The smallest number, or None without entries."""
        heap, values = self._heap, self._values
        if not heap:
            return None
        self.steps += 1
        value, key = heap[0]
        while values[key] != value:
            heapreplace(heap, (values[key], key))
            self.steps += len(heap).bit_length()
            value, key = heap[0]
        return value
