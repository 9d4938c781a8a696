"""Virtual time: one queue of events, taken in order, and a clock that jumps to the next event.

Ties are broken by the order of scheduling, so a run depends only on its scenario: no wall clock, no hash
order, no object identity.
"""

import itertools
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any


class EventQueue:
    """The queue of events, and the current time (integer nanoseconds)."""

    __slots__ = ("heap", "now", "ticket")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        """(time, ticket, action, argument); the network pushes here directly, because this path is hot."""
        self.ticket = itertools.count().__next__

    def at(self, time: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Schedule `action(argument)` at `time`, after everything already scheduled for that time."""
        assert time >= self.now
        heappush(self.heap, (time, self.ticket(), action, argument))

    def drop(self, unwanted: Callable[[int, Callable[[Any], None], Any], bool]) -> None:
        """Remove all entries for which `unwanted(time, action, argument)` is true."""
        heap = self.heap
        heap[:] = [entry for entry in heap if not unwanted(entry[0], entry[2], entry[3])]
        heapify(heap)

    def run(self, until: int) -> bool:
        """Run all events up to and including `until`; True if the queue is empty."""
        heap = self.heap
        while heap and heap[0][0] <= until:
            self.now, _, action, argument = heappop(heap)
            action(argument)
        if not heap:
            return True
        self.now = until
        return False
