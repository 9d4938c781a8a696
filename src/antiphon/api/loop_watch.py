"""Notices that an application keeps the event loop from running, so that its process receives nothing."""

import asyncio
from collections.abc import Callable
from typing import Final

_STARVED_NS: Final = 10_000_000
"""Others suspect a process that does not answer for much longer than this."""


class LoopWatch:
    """Invariant: while a time is noted, a callback waits that removes it. If it waits long, the loop does not run."""

    __slots__ = ("_asked_at", "_clock")

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._asked_at: int | None = None

    @property
    def starves(self) -> bool:
        """Whether the event loop has not run for too long: the caller must let it run."""
        now = self._clock()
        if self._asked_at is None:
            self._asked_at = now
            asyncio.get_running_loop().call_soon(self._ran)
        return now - self._asked_at >= _STARVED_NS

    def _ran(self) -> None:
        self._asked_at = None
