"""Total order combined with FIFO or causal order (Notes, "can be combined"; docs/spec/multicast.md 3.2).

A alone keeps neither. Two messages of one sender travel at the same time, and sites may propose for the second one
first. If a member takes over, the proposal of the lost originator does not count, although it was the one that was
above everything that the originator had delivered.

Here an originator has one uncommitted message at a time, and a message carries a *floor*: a time below every proposal
for it. A site moves its clock past the floor before it proposes. So the final stamp is above the floor, also if other
sites choose it after a crash.

    fifo-total     the floor is the stamp of the originator's previous message
    causal-total   the floor is the largest stamp that the originator knows

No message is sent before every live site holds its predecessor, because a commit needs the proposals of all. So there
are no gaps.
"""

from collections import deque

from antiphon.protocols.classic.frames import DataFrame, Stamp
from antiphon.protocols.classic.ordering.takeover import TwoPhaseWithTakeover
from antiphon.protocols.classic.ordering.two_phase import SiteClock
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class FifoTotal(TwoPhaseWithTakeover):
    """Algorithm A that keeps the order of each sender."""

    def __init__(self, site: Site, clock: SiteClock) -> None:
        super().__init__(site, clock)
        self._waiting: deque[tuple[bytes, int, int | None]] = deque()
        """Payload, label and request of messages that wait for the commit of the one before."""
        self._previous: Stamp | None = None
        """The final stamp of our last committed message."""

    @property
    def held(self) -> int:
        """Also the messages that have not left."""
        return super().held + len(self._waiting)

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """`settle` lets it leave when its turn has come."""
        self._waiting.append((payload, label, request))

    def settle(self, now: int) -> None:
        """Send the next message if no other is uncommitted; deliver from the top of the queue."""
        while self._waiting and not self._collections:
            super().send(*self._waiting.popleft())
        super().settle(now)

    def _concluded(self, stamp: Stamp) -> None:
        self._previous = stamp

    def _floor(self) -> Stamp | None:
        return None if self._previous is None else Stamp(self._previous.time, self._site.me)

    def _propose(self, frame: DataFrame, taker: ProcessId | None = None) -> Stamp:
        if frame.stamp is not None:
            self._clock.committed(frame.stamp.time)  # as if a message with that stamp had been committed here
        return super()._propose(frame, taker)


class CausalTotal(FifoTotal):
    """Algorithm A that keeps causal order."""

    def _floor(self) -> Stamp | None:
        """Our clock is above all stamps that were committed here; outside the group there are only our own."""
        previous = super()._floor()
        own = Stamp(self._clock.value - 1, self._site.me) if self._clock.value else None
        return max((each for each in (previous, own) if each is not None), default=None)
