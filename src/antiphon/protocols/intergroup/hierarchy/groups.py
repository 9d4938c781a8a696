"""The groups of a control process: the one that it coordinates, the one that it has joined, and the coordinators.

Each part keeps the table of its group, and builds the message to it (Berket00 §2.2.2; docs/spec/intergroup.md 3.3).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from antiphon.protocols.intergroup.hierarchy.frames import (
    CoordinatorDistance,
    CoordinatorFrame,
    CutRecord,
    Distance,
    GlobalFrame,
    LocalFrame,
)
from antiphon.protocols.intergroup.hierarchy.pacing import Meter
from antiphon.protocols.intergroup.hierarchy.peers import DISTANCE_MAX, PEERS_MAX, Peer, Peers
from antiphon.protocols.intergroup.hierarchy.records import StabilityRecord, is_plausible, merged
from antiphon.protocols.intergroup.hierarchy.rules import HierarchyContext
from antiphon.protocols.intergroup.hierarchy.search import next_ring_above
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.types import ProcessId

RECORDS_MAX: Final = 64
POPULATION_MAX: Final = 1 << 24
PROMISE_NS: Final = 10 * SECOND
"""How long a coordinator reaches as far as a question that it has answered (H8)."""
MISSED_MAX: Final = 3
"""After this number of CCons without it, a child is not heard by its coordinator (H8)."""

Records = tuple[StabilityRecord, ...]
Item = TypeVar("Item")


def plausible(records: Records) -> Records:
    """The records of another process that are possible; too many are cut off."""
    return tuple(record for record in records[:RECORDS_MAX] if is_plausible(record))


class Turns(Generic[Item]):
    """Divides more items than a message may have among several messages (H13)."""

    def __init__(self, most: int) -> None:
        self._most, self._next = most, 0

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items for the next message."""
        if len(items) <= self._most:
            return items
        begin = self._next % len(items)
        self._next = begin + self._most
        return [*items[begin:], *items[:begin]][: self._most]


Entries = list[tuple[ProcessId, Peer[Any]]]


class Selection:
    """What one kind of message tells of a table and of records."""

    def __init__(self, entries_max: int) -> None:
        self._entries: Turns[tuple[ProcessId, Peer[Any]]] = Turns(entries_max)
        self._records: Turns[StabilityRecord] = Turns(RECORDS_MAX)

    def entries(self, peers: Peers[Any]) -> Entries:
        """Sorted by process."""
        return sorted(self._entries.of(peers.entries()), key=itemgetter(0))

    def records(self, records: Records) -> Records:
        return tuple(self._records.of(records))


class OwnGroup:
    """The local group of this coordinator: its children."""

    def __init__(self, context: HierarchyContext) -> None:
        self._context = context
        self.children: Peers[LocalFrame] = context.rules.peers(context.me)
        self.meter = Meter(context.settings.bandwidth)
        self._promised_ttl = self._promised_until = 0
        self._selection = Selection(context.settings.entries)

    def __len__(self) -> int:
        """NumLocals."""
        return len(self.children)

    def promise(self, ttl: int, now: int) -> None:
        """A process that far away may become our child: our messages must reach it (H8)."""
        if ttl >= self._promised_ttl or now >= self._promised_until:
            self._promised_ttl = ttl
        self._promised_until = now + PROMISE_NS

    def far_ttl(self, now: int) -> int:
        """localGroupFarTTL; 0: nobody listens."""
        promised = self._promised_ttl if now < self._promised_until else 0
        return max(promised, *(peer.ttl for _, peer in self.children.direct()), 0)

    def heard(self, frame: LocalFrame, now: int, *, admits: bool) -> bool:
        """A child has spoken; True if it is new."""
        new = frame.sender not in self.children
        if frame.leaving:
            self.children.remove(frame.sender)
            return False
        if new and not admits:
            return False
        peer = self.children.heard(frame.sender, frame.timestamp, frame.pairs, now)
        if peer is None:
            return False
        peer.ttl = min(max(frame.ttl, 1), self._context.settings.system_ttl)
        peer.frame = frame
        return new

    def records(self) -> Iterator[StabilityRecord]:
        """What the children acknowledge."""
        return chain.from_iterable(plausible(peer.frame.records) for _, peer in self.children.direct() if peer.frame)

    def frame(
        self, coordinators: "CoordinatorGroup", records: Records, cuts: tuple[CutRecord, ...], now: int
    ) -> CoordinatorFrame:
        settings = self._context.settings
        told = self._selection.entries(self.children)
        return CoordinatorFrame(
            settings.name,
            self._context.me,
            self.far_ttl(now),
            now,
            self.children.greatest_distance(),
            len(self.children),
            coordinators.number,
            coordinators.population(len(self.children)),
            self.children.pairs(told, now),
            tuple(Distance(process, peer.distance) for process, peer in told if peer.distance is not None),
            coordinators.distances(),
            self._selection.records(records),
            cuts,
        )

    def clear(self) -> None:
        self.children.clear()
        self._promised_ttl = self._promised_until = 0


class JoinedGroup:
    """The local group of our coordinator, of which we are a child."""

    def __init__(self, context: HierarchyContext, coordinator: ProcessId, ttl: int, now: int) -> None:
        self._context = context
        self.coordinator = coordinator
        self.ttl = ttl
        """coordTTL."""
        self.siblings: Peers[CoordinatorFrame] = context.rules.peers(context.me)
        """The other members of the group, with the coordinator."""
        self.meter = Meter(context.settings.bandwidth)
        self.last: CoordinatorFrame | None = None
        self._heard, self._missed = now, 0
        self._selection = Selection(context.settings.entries)

    @property
    def locals(self) -> int:
        """numLocals: its coordinator hears all of them."""
        return min(self.last.locals, PEERS_MAX) if self.last is not None else len(self.siblings)

    @property
    def numbers(self) -> tuple[int, int]:
        """The numbers of coordinators and of control processes; a child knows them from its coordinator only."""
        if self.last is None:
            return 0, 0
        return min(self.last.coordinators, PEERS_MAX), min(self.last.population, POPULATION_MAX)

    def is_lost(self, now: int, timeout: int) -> bool:
        """True if the coordinator is silent for too long."""
        return now - self._heard > timeout

    def sibling(self, frame: LocalFrame, now: int) -> None:
        if frame.leaving:
            self.siblings.remove(frame.sender)
        else:
            self.siblings.heard(frame.sender, frame.timestamp, frame.pairs, now)

    def heard(self, frame: CoordinatorFrame, now: int) -> bool:
        """A CCon of our coordinator; False if it is late or doubled."""
        if self.siblings.heard(frame.sender, frame.timestamp, frame.pairs, now) is None:
            return False
        self.last, self._heard = frame, now
        for process, distance in frame.distances:
            self.siblings.told(process, distance, now)
        is_there = any(pair.process == self._context.me for pair in frame.pairs)
        self._missed = 0 if is_there else self._missed + 1
        return True

    def reaches(self) -> bool:
        """False if our coordinator does not seem to hear us; then the TTL is raised, if that is possible (H8)."""
        last = self.last
        if last is None:
            return True
        rounds = -(-max(self.locals, 1) // max(len(last.pairs), 1))
        if self._missed < MISSED_MAX * rounds:
            return True
        self._missed = 0
        if self.ttl >= self._context.settings.system_ttl:
            return False
        self.ttl = next_ring_above(self.ttl, self._context.settings.system_ttl)
        return True

    def frame(self, records: Records, cuts: tuple[CutRecord, ...], now: int, *, leaving: bool = False) -> LocalFrame:
        settings = self._context.settings
        told = self._selection.entries(self.siblings)
        return LocalFrame(
            settings.name,
            self._context.me,
            self.coordinator,
            self.ttl,
            now,
            len(self.siblings),
            () if leaving else self.siblings.pairs(told, now),
            () if leaving else self._selection.records(records),
            cuts,
            leaving,
        )


class CoordinatorGroup:
    """The coordinators: what they say, if we are one, or what our coordinator tells of them."""

    def __init__(self, context: HierarchyContext) -> None:
        self._context = context
        self.peers: Peers[GlobalFrame] = context.rules.peers(context.me)
        self.meter = Meter(context.settings.bandwidth)
        self.leaving = False
        """True if we stop to be a coordinator."""
        self._selection = Selection(context.settings.entries)
        self._told = Selection(context.settings.entries)

    def _staying(self) -> Iterator[GlobalFrame]:
        return (peer.frame for _, peer in self.peers.direct() if peer.frame and not peer.frame.leaving)

    @property
    def number(self) -> int:
        """numCoords: all that we hear ourselves and that do not leave (H12)."""
        return sum(1 for _ in self._staying()) + (not self.leaving)

    def announced(self) -> int:
        """The number of coordinators, for a process that is none yet: the greatest that is told, or that it hears."""
        told = [min(frame.coordinators, PEERS_MAX) for frame in self._staying()]
        return max([len(told), *told])

    def population(self, children: int) -> int:
        """The number of control processes."""
        others = sum(min(frame.locals, POPULATION_MAX) + 1 for frame in self._staying())
        return min(others + children + 1, POPULATION_MAX)

    def includes_any(self, children: Peers[Any]) -> bool:
        """True if one of our children is a coordinator: it is about to join us (Fig. 2.4)."""
        return any(process in self.peers for process, _ in children.direct())

    def told_population(self) -> int:
        return max((min(frame.population, POPULATION_MAX) for frame in self._staying()), default=0)

    def nearest(self) -> int | None:
        """closeCoordDistance; None: unknown."""
        known = [
            peer.distance
            for _, peer in self.peers.direct()
            if peer.distance is not None and peer.frame and not peer.frame.leaving
        ]
        return min(known, default=None)

    def heard(self, frame: GlobalFrame, now: int) -> bool:
        """Another coordinator has spoken; False if it is late or doubled."""
        peer = self.peers.heard(frame.sender, frame.timestamp, frame.pairs, now)
        if peer is None:
            return False
        peer.frame, peer.mean = frame, min(frame.mean_distance, DISTANCE_MAX)
        return True

    def records(self) -> Iterable[StabilityRecord]:
        return chain.from_iterable(plausible(peer.frame.records) for _, peer in self.peers.direct() if peer.frame)

    def distances(self) -> tuple[CoordinatorDistance, ...]:
        """coordDistances, for our local group."""
        told = self._told.entries(self.peers)
        return tuple(
            CoordinatorDistance(process, peer.distance, peer.mean)
            for process, peer in told
            if peer.distance is not None
        )

    def frame(
        self, own: OwnGroup, records: Iterable[StabilityRecord], cuts: tuple[CutRecord, ...], now: int
    ) -> GlobalFrame:
        settings = self._context.settings
        children = len(own)
        return GlobalFrame(
            settings.name,
            self._context.me,
            now,
            children,
            self.number,
            self.population(children),
            self.peers.pairs(self._selection.entries(self.peers), now),
            own.children.mean_distance(),
            self._selection.records(merged(records)),
            cuts,
            self.leaving,
        )

    def clear(self) -> None:
        self.peers.clear()
        self.leaving = False
