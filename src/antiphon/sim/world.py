"""Virtual time: one queue of things to happen, taken in order, and a clock that jumps to the next of them.

Ties are broken by the order of scheduling, so a run depends on nothing but its scenario: no wall clock, no hash
order, no object identity.
"""

import itertools
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any


class EventQueue:
    """What is still to happen, and the time that has been reached (integer nanoseconds)."""

    __slots__ = ("heap", "now", "ticket")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        """(time, ticket, action, argument); the network pushes here itself, it is the hottest place of a run."""
        self.ticket = itertools.count().__next__

    def at(self, time: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Let `action(argument)` happen at `time`, after everything scheduled for that time before."""
        assert time >= self.now
        heappush(self.heap, (time, self.ticket(), action, argument))

    def drop(self, unwanted: Callable[[int, Callable[[Any], None], Any], bool]) -> None:
        """Let those things never happen of which `unwanted(time, action, argument)` is true."""
        heap = self.heap
        heap[:] = [entry for entry in heap if not unwanted(entry[0], entry[2], entry[3])]
        heapify(heap)

    def run(self, until: int) -> bool:
        """Let things happen up to and including `until`; True if nothing is left, so that nothing ever will be."""
        heap = self.heap
        while heap and heap[0][0] <= until:
            self.now, _, action, argument = heappop(heap)
            action(argument)
        if not heap:
            return True
        self.now = until
        return False
