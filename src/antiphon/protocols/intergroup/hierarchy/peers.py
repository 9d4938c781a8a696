"""A table of control processes, CPIs, and the distances to them (Berket00 §2.2.1, §2.4; errata H2, H3, H9).

A process has up to three: the children of its own group, the group that it has joined, and the coordinators. In the
dual role the first two exist side by side (H7).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from antiphon.protocols.intergroup.hierarchy.frames import Pair
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.settings import DISTANCE_MIN
from antiphon.types import ProcessId

PEERS_MAX: Final = 16_384
"""Entries of a table: any process may use any name."""
DISTANCE_MAX: Final = 10 * SECOND
SAMPLE_AGE_MAX: Final = 60 * SECOND
_GAIN: Final = 0.25
_SCAN_NS: Final = 5 * SECOND

FrameT = TypeVar("FrameT")


def sample(pair: Pair, timestamp: int, now: int) -> int | None:
    """The distance to a process whose message, sent at `timestamp`, arrives now with this entry about us.

    None if the times do not fit together (H3): they are of two clocks, each compared with itself only.
    """
    away, held = now - pair.sent, timestamp - pair.received
    if not 0 <= away <= SAMPLE_AGE_MAX or not 0 <= held <= SAMPLE_AGE_MAX:
        return None
    return min(max((away - held) // 2, DISTANCE_MIN), DISTANCE_MAX)


def bounded(distance: int) -> int:
    """A distance that another process tells."""
    return min(max(distance, DISTANCE_MIN), DISTANCE_MAX)


class Peer(Generic[FrameT]):
    """CPI: what is known of one control process."""

    __slots__ = ("distance", "frame", "heard", "learned", "mean", "sent", "ttl")

    def __init__(self) -> None:
        self.sent = -1
        """TP.t1: when it sent the last message that we received."""
        self.heard = 0
        """TP.t2 and lastUpdated: when we received it, or, if it is learned, when we were told."""
        self.ttl = 0
        self.distance: int | None = None
        self.mean = 0
        """Of a coordinator, the mean distance to its children (H1)."""
        self.learned = False
        """Only a third party tells of it: it is never told on (H9)."""
        self.frame: FrameT | None = None
        """Its last message, where we need what it says."""


class Peers(Generic[FrameT]):
    """Invariant: at most `PEERS_MAX` entries; a direct entry is refreshed by its own process only (H9)."""

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        self._key = (me,)
        self._peers: dict[ProcessId, Peer[FrameT]] = {}
        self._scan_at = 0
        """Nothing can expire before."""

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, process: ProcessId) -> bool:
        return process in self._peers

    def get(self, process: ProcessId) -> Peer[FrameT] | None:
        return self._peers.get(process)

    def names(self) -> Iterable[ProcessId]:
        return self._peers.keys()

    def direct(self) -> Iterator[tuple[ProcessId, Peer[FrameT]]]:
        """The processes that we hear ourselves."""
        return ((process, peer) for process, peer in self._peers.items() if not peer.learned)

    def heard(self, sender: ProcessId, timestamp: int, pairs: tuple[Pair, ...], now: int) -> Peer[FrameT] | None:
        """A message of another process arrives. None: it is late, doubled, or one too many."""
        peer = self._peers.get(sender)
        if peer is None:
            if len(self._peers) >= PEERS_MAX:
                return None
            self._peers[sender] = peer = Peer()
        if peer.learned:
            peer.learned, peer.distance = False, None  # the distance was that of a third party
        elif timestamp <= peer.sent:
            return None
        peer.sent, peer.heard = timestamp, now
        place = bisect_left(pairs, self._key)
        if place < len(pairs) and pairs[place][0] == self._me:
            self._measure(peer, pairs[place], timestamp, now)
        return peer

    def _measure(self, peer: Peer[FrameT], pair: Pair, timestamp: int, now: int) -> None:
        found = sample(pair, timestamp, now)
        if found is not None:
            known = peer.distance
            peer.distance = found if known is None else int(known + (found - known) * _GAIN)

    def told(self, process: ProcessId, distance: int, now: int, mean: int = 0) -> None:
        """A third party reports a process, at that distance from itself."""
        peer = self._peers.get(process)
        if peer is None:
            if process == self._me or len(self._peers) >= PEERS_MAX:
                return
            self._peers[process] = peer = Peer()
            peer.learned = True
        if peer.learned:
            peer.heard, peer.distance, peer.mean = now, bounded(distance), min(mean, DISTANCE_MAX)

    def remove(self, process: ProcessId) -> None:
        self._peers.pop(process, None)

    def clear(self) -> None:
        self._peers.clear()
        self._scan_at = 0

    def expire(self, now: int, timeout: int) -> list[ProcessId]:
        """Remove and return the processes that are silent for longer than the timeout (3.9)."""
        if now < self._scan_at:
            return []
        gone = [process for process, peer in self._peers.items() if now - peer.heard > timeout]
        for process in gone:
            del self._peers[process]
        # A new entry, heard from now on, cannot expire before either; but the timeout may become shorter
        oldest = min((peer.heard for peer in self._peers.values()), default=now)
        self._scan_at = min(oldest + timeout, now + _SCAN_NS)
        return gone

    def entries(self) -> list[tuple[ProcessId, Peer[FrameT]]]:
        """The entries that messages tell of."""
        return [entry for entry in self._peers.items() if self.may_tell(entry[1])]

    def may_tell(self, peer: Peer[FrameT]) -> bool:
        return not peer.learned

    def pairs(self, entries: Iterable[tuple[ProcessId, Peer[FrameT]]], now: int) -> tuple[Pair, ...]:
        """TimestampPairEntries for a message that leaves now."""
        oldest = now - SAMPLE_AGE_MAX
        return tuple(
            Pair(process, peer.sent, peer.heard) for process, peer in entries if peer.heard >= oldest and peer.sent >= 0
        )

    def mean_distance(self) -> int:
        """MeanLocalDistance (H1); 0 if no distance is known."""
        known = [peer.distance for peer in self._peers.values() if peer.distance is not None]
        return sum(known) // len(known) if known else 0

    def greatest_distance(self) -> int:
        return max((peer.distance for peer in self._peers.values() if peer.distance is not None), default=0)
