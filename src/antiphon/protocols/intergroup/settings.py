"""The settings of InterGroup, and what one process is in a group: field, unit, default, one sentence."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from antiphon.protocols.intergroup.adaptation import SECOND, Profile
from antiphon.protocols.intergroup.rate import RateSettings
from antiphon.types import ProcessId, View

Service = Literal["unreliable", "fifo", "total", "unreliable-fifo", "unreliable-total", "framed"]
"""What a receiver asks for; the first three are UU, RSO and RGTO of Berket00."""
Role = Literal["sender", "receiver"]
Distance = Callable[[ProcessId], int]
"""How far away a process is, one way, in nanoseconds: never 0, or requests would not wait for one another (H1)."""

DISTANCE_MIN: Final = SECOND // 1000
"""MIN_DISTANCE."""
HOLD_NS: Final = 10 * SECOND
"""HOLD_TIMEOUT: so long a newcomer is waited for that was told where to begin."""
ASK_EVERY_NS: Final = SECOND
"""How often a newcomer asks."""
CLOCK_AHEAD_US: Final = 60_000_000
"""A clock that is further ahead than this is told of (P1)."""
SOURCE_TRIES: Final = 5
"""How often a source is asked before it counts as unavailable."""


def _near(_process: ProcessId) -> int:
    return DISTANCE_MIN


@dataclass(frozen=True, slots=True)
class InterGroupSettings:
    """The same for everybody, but for the distances."""

    keep_alive_ns: tuple[int, int] = (25_000_000, 75_000_000)
    """A sender with nothing to say sends a keep-alive after a while between these."""
    report_every_ns: int = SECOND // 5
    """How often who does not send acknowledges, on average."""
    suspect_after_ns: int = SECOND
    """FD_TIMEOUT."""
    window: int = 256
    """So many messages of its own may be unstable before a sender has to wait."""
    rate: RateSettings = field(default_factory=RateSettings)
    profile: Profile = "default"
    """How the timers of requests and repairs adapt."""
    wait_us: int = 200_000
    """MAX_WAIT: so long unreliable timestamp order waits for others."""
    distance: Distance = _near
    tracing: bool = False
    """Whether effects that only a trace wants are built."""

    @property
    def stall_ns(self) -> int:
        """RECV_STALL: a receiver that makes no progress for so long does not count, and begins anew (J13, J16)."""
        return 5 * self.suspect_after_ns


@dataclass(frozen=True, slots=True)
class InterGroupPlan:
    """What one process is in a group."""

    view: View
    """The sender group: who sends, and appears in views."""
    service: Service = "total"
    sources: tuple[ProcessId, ...] = ()
    """Whose messages a receiver in source order wants."""
    present: bool = True
    """Whether it is there from the start."""
