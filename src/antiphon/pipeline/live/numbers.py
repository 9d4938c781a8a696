"""The messages of one sender that a process has delivered: judges O1 and D2 online (docs/spec/properties.md 7.1)."""

from bisect import bisect_right
from dataclasses import dataclass

import msgspec
import numpy as np

from antiphon.pipeline.live.rows import IntArray


@dataclass(frozen=True, slots=True)
class Taken:
    """The findings on new deliveries, by their positions."""

    compared: int
    """How many were compared with the previous one of the same sender."""
    repeated: list[int]
    overtaken: list[tuple[int, int]]
    """The position of a message that came too late, and the number that was delivered before it."""


class Numbers(msgspec.Struct):
    """The numbers delivered, as stretches without gaps: usually one."""

    last: int = -1
    stretches: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """First and last number of each, in order; no two touch."""

    def take(self, numbers: IntArray) -> Taken:
        """Take more deliveries, in order."""
        first, last = int(numbers[0]), int(numbers[-1])
        compared = len(numbers) - (self.last < 0)
        if (not self.stretches or first > self.stretches[-1][1]) and bool((np.diff(numbers) == 1).all()):
            self._add(first, last)
            self.last = last
            return Taken(compared, [], [])
        return self._take_one_by_one(numbers.tolist(), compared)

    def _take_one_by_one(self, numbers: list[int], compared: int) -> Taken:
        repeated, overtaken = list[int](), list[tuple[int, int]]()
        for position, number in enumerate(numbers):
            if number in self:
                repeated.append(position)
                continue
            if number < self.last:
                overtaken.append((position, self.last))
            self._add(number, number)
            self.last = number
        return Taken(compared - len(repeated), repeated, overtaken)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.stretches, (number, np.inf)) - 1
        return at >= 0 and number <= self.stretches[at][1]

    def _add(self, first: int, last: int) -> None:
        at = bisect_right(self.stretches, (first, last))
        if at < len(self.stretches) and self.stretches[at][0] == last + 1:
            last = self.stretches.pop(at)[1]
        if at > 0 and self.stretches[at - 1][1] == first - 1:
            at -= 1
            first = self.stretches.pop(at)[0]
        self.stretches.insert(at, (first, last))
