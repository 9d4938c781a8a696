"""Limits the time without delivery that a process may cost us by failed formations (docs/spec/newtop.md 11.1).

While a process takes part in a formation it delivers nothing, in any group. A peer that proposes and then says nothing,
or that asks to join and does not vote, could otherwise stop us repeatedly. So the time that such formations took
is counted like water in a leaking bucket: for each member of our views, and once for all other processes together,
which can invent names. A proposal that finds the bucket full is refused, and costs nothing.
"""

from typing import Final

from antiphon.types import ProcessId

_LEAK: Final = 4
"""One part in this many of the elapsed time is given back. So no process stops us for more than a fifth of the time."""
_MEMBERS_MAX: Final = 1024
"""Members whose buckets are remembered: the most recent ones."""
STRANGERS: Final = ProcessId("")


class Freezes:
    """Invariant: a bucket holds at most the limit and one formation."""

    __slots__ = ("_buckets", "_limit_ns")

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._buckets: dict[ProcessId, tuple[int, int]] = {}  # the level, and the time at which it was computed

    def allows(self, process: ProcessId, now: int) -> bool:
        """Whether a formation caused by this process may stop us now."""
        return self._level(process, now) < self._limit_ns

    def cost(self, process: ProcessId, spent_ns: int, now: int) -> None:
        """Charge this process for a failed formation that took this long."""
        level = self._level(process, now) + spent_ns
        self._buckets.pop(process, None)
        self._buckets[process] = level, now
        if len(self._buckets) > _MEMBERS_MAX:
            del self._buckets[next(iter(self._buckets))]

    def _level(self, process: ProcessId, now: int) -> int:
        level, at = self._buckets.get(process, (0, now))
        return max(0, level - (now - at) // _LEAK)
