"""Counting while the clock runs."""

import asyncio
import time
from typing import Final

WARM_UP: Final = 0.25
"""The share of a measurement that passes before anything is counted."""


async def until(moment_ns: int) -> None:
    """Sleep; all processes of a machine have one monotonic clock."""
    await asyncio.sleep(max(0, moment_ns - time.monotonic_ns()) / 1e9)


class Meter:
    """How many messages have come to us, and how fast."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    async def rate(self, begin_ns: int, end_ns: int) -> float:
        """Messages a second, between two looks at the count; a loop under load looks late, and knows by how much."""
        await until(begin_ns + int(WARM_UP * (end_ns - begin_ns)))
        first, first_at = self.count, time.monotonic_ns()
        await until(end_ns)
        return (self.count - first) * 1e9 / (time.monotonic_ns() - first_at)
