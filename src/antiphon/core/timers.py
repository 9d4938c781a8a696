"""The timers of one process core: one heap, lazy cancellation, the next deadline as an O(1) read.

A simulator with 10,000 processes keeps one entry per process, so a core has one deadline for all its timers. Superseded
heap entries are skipped when they reach the top. The top is always live, so reading the deadline costs nothing.
"""

from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=tuple[Any, ...])


class Timers(Generic[Key]):
    """At most one timer per key. Invariant: the heap is empty or its top is the live entry of its key."""

    __slots__ = ("_heap", "_live")

    def __init__(self) -> None:
        self._heap: list[tuple[int, Key]] = []
        self._live: dict[Key, int] = {}

    @property
    def deadline(self) -> int | None:
        """The earliest live timer, or None."""
        return self._heap[0][0] if self._heap else None

    def set(self, key: Key, when: int | None) -> None:
        """Let `key` fire at `when`, replacing its earlier setting; None cancels it."""
        live = self._live
        if live.get(key) == when:
            return
        if when is None:
            del live[key]
        else:
            live[key] = when
            heappush(self._heap, (when, key))
        self._skip_superseded()

    def due(self, now: int) -> list[Key]:
        """Remove and return every timer that is due, in (time, key) order."""
        keys = []
        while self._heap and self._heap[0][0] <= now:
            _, key = heappop(self._heap)
            del self._live[key]
            keys.append(key)
            self._skip_superseded()
        return keys

    def _skip_superseded(self) -> None:
        heap, live = self._heap, self._live
        while heap and live.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
