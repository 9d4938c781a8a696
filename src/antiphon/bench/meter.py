"""A counter of messages per second."""

import asyncio
import time
from typing import Final

WARM_UP: Final = 0.25
"""The share of a measurement that passes before counting begins."""


async def until(moment_ns: int) -> None:
    """Sleep until a time of the monotonic clock, which all processes of a machine share."""
    await asyncio.sleep(max(0, moment_ns - time.monotonic_ns()) / 1e9)


class Meter:
    """Counts the messages that arrive, and their rate."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    async def rate(self, begin_ns: int, end_ns: int) -> float:
        """Messages per second between two readings of the count; a busy loop reads late, so the time is read too."""
        await until(begin_ns + int(WARM_UP * (end_ns - begin_ns)))
        first, first_at = self.count, time.monotonic_ns()
        await until(end_ns)
        return (self.count - first) * 1e9 / (time.monotonic_ns() - first_at)
