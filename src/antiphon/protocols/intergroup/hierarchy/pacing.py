"""How often control messages leave: the interval of RTCP, and a limit that no second exceeds.

Berket00 §2.3, Figs 2.2 and 2.3; errata H4, H14. The interval keeps the mean of a group below its bandwidth. The meter
keeps every second of this process below it.
"""

from typing import Final

from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.repair.requests import Draw

MIN_NS: Final = SECOND
"""RTCP_MIN_TIME."""
SIZE_GAIN: Final = 1 / 16
FIRST_SIZE: Final = 128.0
URGENT_NS: Final = SECOND // 5
"""The least time between two urgent messages of a loop (M18)."""
PACED: Final = 0.4
"""The loops aim at this share of the bandwidth."""
_DRAINED: Final = 0.6
"""What the bucket loses in a second, as a share of the bandwidth; with its capacity that is the bandwidth."""
_FILLED_BY_SENDING: Final = 0.75
"""A process sends only if its bucket is then not fuller than this: others may send at the same time."""
_TIMEOUT_INTERVALS: Final = 5


def mean_interval(members: int, bandwidth: float, size: float, *, initial: bool = False) -> float:
    """T of Fig. 2.2, in nanoseconds."""
    return max(size * members / bandwidth * SECOND, MIN_NS / 2 if initial else MIN_NS)


def interval(members: int, bandwidth: float, size: float, share: float, *, initial: bool = False) -> int:
    """The time until the next message of a process in a group of so many members; `share` is drawn from [0, 1)."""
    return int(mean_interval(members, bandwidth, size, initial=initial) * (0.5 + share))


class Pace:
    """One loop of Fig. 2.3: when its next message leaves."""

    def __init__(self, bandwidth: int, draw: Draw) -> None:
        self._bandwidth, self._draw = bandwidth * PACED, draw
        self.size = FIRST_SIZE
        """averagePacketSize: persistent, unlike in Fig. 2.2 (H4)."""
        self.next_at: int | None = None
        """None: the loop does not run."""
        self._last, self._share, self._mean = 0, 0.0, float(MIN_NS)
        self._urgent_at = 0
        self._fixed = True
        """True: the present interval is not reconsidered, because it is the first one or urgent."""

    def start(self, now: int) -> None:
        """Begin, with half of the least interval."""
        self._last, self._share, self._fixed = now, self._draw(), True
        self.next_at = now + interval(1, self._bandwidth, FIRST_SIZE, self._share, initial=True)

    def stop(self) -> None:
        self.next_at = None

    def hurry(self, now: int) -> None:
        """The next message is urgent."""
        if self.next_at is not None:
            self.next_at = min(self.next_at, max(now, self._urgent_at))
            self._fixed = True

    def heard(self, size: int) -> None:
        """A member of the group has sent a message."""
        self.size += (size - self.size) * SIZE_GAIN

    def has_ended(self, now: int) -> bool:
        """True if the interval is over."""
        return self.next_at is not None and now >= self.next_at

    def is_due(self, now: int, members: int) -> bool:
        """Reconsiders an interval that has ended: the group may have grown meanwhile."""
        if self._fixed:
            return True
        self.next_at = self._last + interval(members, self._bandwidth, self.size, self._share)
        return now >= self.next_at

    def wait(self, until: int, members: int) -> None:
        """There is no room until then: the message leaves later, and not when all others that wait send theirs."""
        self.next_at = until + int(self._draw() * mean_interval(members, self._bandwidth, self.size) / 8)

    def sent(self, size: int, members: int, now: int) -> None:
        """Our messages have left, with so many bytes in all."""
        self.heard(size)
        self._last, self._share, self._fixed = now, self._draw(), False
        self._urgent_at = now + URGENT_NS
        mean = mean_interval(members, self._bandwidth, self.size)
        self._mean += (mean - self._mean) * SIZE_GAIN
        self.next_at = now + int(mean * (0.5 + self._share))

    def timeout(self, members: int, least: int) -> int:
        """How long a member of the group may be silent (docs/spec/intergroup.md 3.9)."""
        mean = max(self._mean, mean_interval(members, self._bandwidth, self.size))
        return max(least, int(_TIMEOUT_INTERVALS * mean))

    def mean(self, members: int) -> int:
        """The mean interval at present."""
        return int(mean_interval(members, self._bandwidth, self.size))


class Meter:
    """What one process sends and receives in one group: a bucket that drains (H14).

    Invariant: what it has taken within any second is at most the bandwidth.
    """

    __slots__ = ("_at", "_capacity", "_level", "_rate", "refused")

    def __init__(self, bandwidth: int) -> None:
        self._capacity, self._rate = bandwidth * (1 - _DRAINED), bandwidth * _DRAINED / SECOND
        self._level, self._at = 0.0, 0
        self.refused = 0
        """Bytes that were dropped on receipt."""

    def take(self, size: int, now: int) -> bool:
        """A message has arrived; False: it must be dropped."""
        level = self._level - (now - self._at) * self._rate
        level = size if level < 0 else level + size
        if level > self._capacity:
            self.refused += size
            return False
        self._level, self._at = level, now
        return True

    def room_at(self, size: int, now: int) -> int:
        """The time from which a message of this size may leave: now, or later, but at last when the bucket is empty."""
        level = max(0.0, self._level - (now - self._at) * self._rate)
        excess = min(level, level + size - self._capacity * _FILLED_BY_SENDING)
        return now if excess <= 0 else now + int(excess / self._rate) + 1
