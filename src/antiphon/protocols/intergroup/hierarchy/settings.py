"""The settings of the control hierarchy (docs/spec/intergroup.md 3.4)."""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, NamedTuple

from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.types import GroupId

LOCAL_ADDRESSES: Final = 64
ENTRY_BYTES: Final = 40
"""The space that one entry of an array takes, for the bound on a message."""


class Thresholds(NamedTuple):
    """Between which numbers of coordinators the hierarchy stays, and how large local groups should be."""

    low: int
    """THL."""
    high: int
    """THH."""
    local_target: int
    """LTS."""

    @property
    def start(self) -> float:
        """Up to this number of coordinators a process that starts becomes one."""
        return (self.low + self.high) / 2

    @property
    def upper(self) -> float:
        """A coordinator that has few children and another one nearby may leave above this."""
        return (self.low + 3 * self.high) / 4

    @property
    def lower(self) -> float:
        """A child far from its coordinator may become one below this."""
        return (3 * self.low + self.high) / 4


CONTROL: Final = GroupId("control")
FEW_COORDINATORS: Final = Thresholds(2, 8, 8)


@dataclass(frozen=True, slots=True)
class HierarchySettings:
    """Equal at all control processes."""

    name: GroupId = CONTROL
    """The name of the hierarchy, which its frames carry."""
    state_change_ns: tuple[int, int] = (5 * SECOND, 10 * SECOND)
    """S1 and S2: how long a process waits before it changes its role."""
    thresholds: Thresholds = FEW_COORDINATORS
    grows: bool = False
    """Whether the thresholds grow with the root of the number of control processes (3.10)."""
    expected: int = 0
    """A lower bound of the number of control processes, if it is known in advance."""
    bandwidth: int = 390_000
    """TARGET_BANDWIDTH: bytes per second that a process sends and receives in one group."""
    entries_max: int = 2_000
    """Entries of an array in one message; if there are more, they take turns (H13)."""
    boundary_ttl: int = 16
    close_ns: int = 30 * SECOND // 1000
    """COORD_CLOSENESS."""
    system_ttl: int = 127
    listen_ns: int = 3 * SECOND
    """LISTEN_TIME: how long a process that starts listens for coordinators, on average."""
    ring_wait_ns: int = SECOND // 2
    """RING_WAIT: how long each ring has to answer."""
    least_timeout_ns: int = 5 * SECOND
    """A process that is silent for this long, and for five mean intervals, is forgotten."""
    cut_keep_ns: int = 8 * SECOND
    """OLD_KEEP: how long a cut is passed on."""

    def __post_init__(self) -> None:
        low, high = self.state_change_ns
        assert 0 < low <= high, "0 < S1 <= S2 (H6)"
        assert self.thresholds.low < self.thresholds.high, "THL < THH (H6)"

    def thresholds_for(self, population: int) -> Thresholds:
        """The thresholds for this number of control processes."""
        fixed = self.thresholds
        if not self.grows:
            return fixed
        root = sqrt(max(population, self.expected))
        return Thresholds(
            max(fixed.low, ceil(root / 2)), max(fixed.high, ceil(2 * root)), max(fixed.local_target, ceil(root))
        )

    @property
    def entries(self) -> int:
        """Entries of an array that one message may have."""
        return max(1, min(self.entries_max, self.bandwidth // 16 // ENTRY_BYTES))
