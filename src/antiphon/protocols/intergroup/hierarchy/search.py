"""The expanding ring search for a coordinator (Berket00 §2.6.1; errata H7, H15)."""

from typing import Final, NamedTuple

from antiphon.protocols.intergroup.hierarchy.frames import SearchResponseFrame
from antiphon.protocols.intergroup.settings import DISTANCE_MIN
from antiphon.types import ProcessId

RINGS: Final = (1, 2, 4, 8, 16, 32, 64)
LAST_RING_TRIES: Final = 3
"""One lost frame must not make a child a coordinator (H15)."""
ANSWERS_MAX: Final = 1_024


class Found(NamedTuple):
    """An answer, compared by distance in milliseconds, then by children, then by name."""

    distance: int
    locals: int
    coordinator: ProcessId
    ttl: int


class RingSearch:
    """At most one search at a time. Invariant: only answers to the present question count (H7)."""

    def __init__(self, system_ttl: int, ring_wait_ns: int) -> None:
        rings = [ring for ring in RINGS if ring < system_ttl]
        self._all_rings = (*rings, *[system_ttl] * LAST_RING_TRIES)
        self._rings = self._all_rings
        self._ring_wait_ns = ring_wait_ns
        self._asked = -1
        """The place of the present ring; -1: no search."""
        self._asked_at = 0
        self._best: Found | None = None
        self._answers = 0
        self.nonce = 0
        self.found: Found | None = None
        """The outcome of the last search that found a coordinator."""
        self.next_at: int | None = None

    @property
    def runs(self) -> bool:
        return self.next_at is not None

    def begin(self, now: int, within: int | None = None) -> None:
        """Ask ring after ring; `within`: no ring beyond that TTL."""
        self._asked, self._best, self.next_at = -1, None, now
        self._rings = tuple(ring for ring in self._all_rings if within is None or ring <= within)

    def end(self) -> None:
        self.next_at = None

    def next_ring(self, now: int) -> int | None:
        """The TTL of the next question; None: no coordinator was found in any ring."""
        self._asked += 1
        if self._asked == len(self._rings):
            self.end()
            return None
        self.nonce += 1
        self._asked_at, self._answers = now, 0
        self.next_at = now + self._ring_wait_ns
        return self._rings[self._asked]

    def answered(self, frame: SearchResponseFrame, now: int) -> None:
        """A coordinator has answered; the ring goes on until its time is over."""
        if not self.runs or frame.nonce != self.nonce or self._asked < 0 or self._answers == ANSWERS_MAX:
            return
        self._answers += 1
        distance = max(now - self._asked_at, 0) // 2 // DISTANCE_MIN
        found = Found(distance, frame.locals, frame.sender, self._rings[self._asked])
        self._best = found if self._best is None else min(self._best, found)

    def chosen(self) -> Found | None:
        """The best answer of a ring whose time is over; the search ends with it."""
        self.found = self._best
        if self.found is not None:
            self.end()
        return self.found


def next_ring_above(ttl: int, system_ttl: int) -> int:
    """The TTL to try if a coordinator does not hear us with this one (H8)."""
    return next((ring for ring in RINGS if ttl < ring < system_ttl), system_ttl)
