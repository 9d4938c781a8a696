"""The frames of the control hierarchy (docs/spec/intergroup.md 3.3 and 3.11).

The first six travel between control processes, as datagrams, with the name of the hierarchy as their group. The others
travel between a member and the control process of its host, on a reliable channel, with the group of the member.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from antiphon.core.frames import FrameDefaults
from antiphon.protocols.intergroup.hierarchy.records import StabilityRecord
from antiphon.protocols.intergroup.membership.claims import Claims
from antiphon.types import GroupId, ProcessId, ViewId, dice

HEADER_BYTES: Final = 100
"""IP and UDP headers, envelope, names and numbers of a frame, about."""
_PAIR_BYTES: Final = 18
_DISTANCE_BYTES: Final = 8
_RECORD_BYTES: Final = 70
"""With the names of a group and an epoch, and a bitmap. All frames are measured on receipt, so this is no loop."""
_CLAIM_BYTES: Final = 18


class Pair(NamedTuple):
    """A timestamp pair, TP, of the sender of the frame and a process X (H2)."""

    process: ProcessId
    """X."""
    sent: int
    """When X sent the last control message that the sender received: a time of X's clock."""
    received: int
    """When the sender received it: a time of the sender's clock."""


class Distance(NamedTuple):
    """One entry of localDistances."""

    process: ProcessId
    distance: int


class CoordinatorDistance(NamedTuple):
    """One entry of coordDistances."""

    process: ProcessId
    distance: int
    mean: int
    """The mean distance from that coordinator to its children; 0: unknown (H1)."""


class CutRecord(NamedTuple):
    """What receivers of an epoch have of each sender (docs/spec/intergroup.md 7.6)."""

    group: GroupId
    epoch: ViewId
    gate: int
    claims: Claims


class Site(NamedTuple):
    """Where a process is: its control process, and the coordinator of that, for the lookup of a distance."""

    process: ProcessId
    coordinator: ProcessId


def _size(
    name: str,
    pairs: tuple[Pair, ...],
    records: tuple[StabilityRecord, ...],
    cuts: tuple[CutRecord, ...],
    distances: int = 0,
) -> int:
    """About how many bytes a frame has on the wire. A name in it is taken to be as long as that of its sender."""
    own = len(name)
    size = HEADER_BYTES + len(pairs) * (_PAIR_BYTES + own) + distances * (_DISTANCE_BYTES + own)
    size += len(records) * _RECORD_BYTES
    for cut in cuts:
        size += _RECORD_BYTES + len(cut.claims) * (_CLAIM_BYTES + own)
    return size


class _LocalFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    coordinator: ProcessId
    ttl: int
    timestamp: int
    locals: int
    """numLocal: the processes of the local group with which the sender exchanges messages."""
    pairs: tuple[Pair, ...]
    """Sorted."""
    records: tuple[StabilityRecord, ...] = ()
    cuts: tuple[CutRecord, ...] = ()
    leaving: bool = False
    """The last message of the sender to this local group (H12)."""


class LocalFrame(_LocalFields, FrameDefaults):
    """LCon, from a child to its local group."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return _size(self.sender, self.pairs, self.records, self.cuts)


class _CoordinatorFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    ttl: int
    timestamp: int
    far_distance: int
    locals: int
    coordinators: int
    population: int
    pairs: tuple[Pair, ...]
    """Sorted."""
    distances: tuple[Distance, ...]
    coordinator_distances: tuple[CoordinatorDistance, ...]
    records: tuple[StabilityRecord, ...] = ()
    cuts: tuple[CutRecord, ...] = ()


class CoordinatorFrame(_CoordinatorFields, FrameDefaults):
    """CCon, from a coordinator to its local group."""

    __slots__ = ()

    @property
    def size(self) -> int:
        distances = len(self.distances) + len(self.coordinator_distances)
        return _size(self.sender, self.pairs, self.records, self.cuts, distances)


class _GlobalFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    timestamp: int
    locals: int
    coordinators: int
    population: int
    pairs: tuple[Pair, ...]
    """Sorted."""
    mean_distance: int
    """meanLocalDistance (H1)."""
    records: tuple[StabilityRecord, ...] = ()
    cuts: tuple[CutRecord, ...] = ()
    leaving: bool = False
    """The sender stops to be a coordinator, and does not count (H12)."""


class GlobalFrame(_GlobalFields, FrameDefaults):
    """GCon, from a coordinator to the coordinators."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return _size(self.sender, self.pairs, self.records, self.cuts)


@dataclass(frozen=True, slots=True)
class RingQueryFrame(FrameDefaults):
    """A process asks the coordinators within `ttl` hops whether it may join one of them."""

    group: GroupId
    sender: ProcessId
    ttl: int
    nonce: int

    @property
    def size(self) -> int:
        return HEADER_BYTES


@dataclass(frozen=True, slots=True)
class SearchResponseFrame(FrameDefaults):
    """A coordinator answers."""

    group: GroupId
    sender: ProcessId
    to: ProcessId
    nonce: int
    ttl: int
    locals: int

    @property
    def size(self) -> int:
        return HEADER_BYTES


@dataclass(frozen=True, slots=True)
class CoordinatorLeaveFrame(FrameDefaults):
    """CoordLeave: to its local group, that its members shall search; to the coordinators, that it is none any more."""

    group: GroupId
    sender: ProcessId
    timestamp: int

    @property
    def size(self) -> int:
        return HEADER_BYTES


HierarchyFrame = (
    LocalFrame | CoordinatorFrame | GlobalFrame | RingQueryFrame | SearchResponseFrame | CoordinatorLeaveFrame
)


# Between a member and the control process of its host


@dataclass(frozen=True, slots=True)
class AckReportFrame(FrameDefaults):
    """A member has delivered everything with a stamp up to `ack`."""

    group: GroupId
    sender: ProcessId
    epoch: ViewId
    ack: int
    slot: int | None
    """Its slot in the epoch (J17); None: it is in the receiver group."""
    leaving: bool = False
    """It leaves the group, or its control process."""


@dataclass(frozen=True, slots=True)
class SystemFrame(FrameDefaults):
    """The record of all processes that the hierarchy knows; the member decides whether it accepts it (T2)."""

    group: GroupId
    sender: ProcessId
    record: StabilityRecord
    coordinator: ProcessId
    """The coordinator of the sender: the other half of the site of the member."""


@dataclass(frozen=True, slots=True)
class DistanceQueryFrame(FrameDefaults):
    """A member asks how far away these sites are."""

    group: GroupId
    sender: ProcessId
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class DistanceAnswerFrame(FrameDefaults):
    group: GroupId
    sender: ProcessId
    distances: tuple[tuple[Site, int], ...]
    """In nanoseconds, one way."""


AnyHierarchyFrame = HierarchyFrame | AckReportFrame | SystemFrame | DistanceQueryFrame | DistanceAnswerFrame


def local_address(coordinator: ProcessId, addresses: int) -> int:
    """The number of the address of a local group: several groups may share one (docs/spec/intergroup.md 3.3)."""
    return dice(coordinator, addresses)
