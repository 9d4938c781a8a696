"""The settings of InterGroup, and the plan of one process in a group."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from antiphon.protocols.intergroup.repair.adaptation import SECOND, Profile
from antiphon.protocols.intergroup.sending.rate import RateSettings
from antiphon.types import ProcessId, View

Service = Literal["unreliable", "fifo", "total", "unreliable-fifo", "unreliable-total", "framed"]
"""The delivery services; the first three are UU, RSO and RGTO of Berket00."""
Role = Literal["sender", "receiver"]
Distance = Callable[[ProcessId], int]
"""The one-way distance of a process in nanoseconds; never 0, or requests would not suppress one another (H1)."""

DISTANCE_MIN: Final = SECOND // 1000
"""MIN_DISTANCE."""
ASK_EVERY_NS: Final = SECOND
"""The interval between the questions of a joiner."""
CLOCK_AHEAD_US: Final = 60_000_000
"""A clock that is further ahead than this is reported (P1)."""
STAMP_AHEAD_MAX_US: Final = 10 * 365 * 24 * 3_600 * 1_000_000
"""Ten years. A stamp or a floor further ahead of our clock is no time: the frame is ignored.

If it were merged, later stamps of ours would be beyond what a frame can carry. The limit counts from the wall clock, so
repeated frames do not move it.
"""
SOURCES_MAX: Final = 1_024
"""A receiver remembers at most this number of senders: any process may use any name."""
SOURCE_TRIES: Final = 5
"""How often a source is asked before it counts as unavailable."""


def _near(_process: ProcessId) -> int:
    return DISTANCE_MIN


@dataclass(frozen=True, slots=True)
class InterGroupSettings:
    """Equal at all processes, except for the distances."""

    keep_alive_ns: tuple[int, int] = (25_000_000, 75_000_000)
    """An idle sender transmits a keep-alive after a random time in this range."""
    report_every_ns: int = SECOND // 50
    """The mean interval between the acknowledgments of all processes that do not send, taken together."""
    suspect_after_ns: int = 2 * SECOND
    """FD_TIMEOUT (M22)."""
    hold_ns: int = 10 * SECOND
    """HOLD_TIMEOUT: how long messages are kept for a joiner that was told where to begin."""
    window: int = 256
    """The number of its own messages that may be unstable before a sender waits."""
    rate: RateSettings = field(default_factory=RateSettings)
    profile: Profile = "default"
    """How the timers of requests and repairs adapt."""
    wait_us: int = 200_000
    """MAX_WAIT: how long unreliable timestamp order waits for other senders."""
    distance: Distance = _near
    tracing: bool = False
    """Whether effects that only a trace needs are built."""

    idle_ns: int | None = None
    """IDLE_TIME: a sender without a message of its application for this time becomes a receiver; None: never."""

    @property
    def ask_ns(self) -> int:
        """How often a process that joins, or follows a change, repeats its question."""
        return self.suspect_after_ns // 2

    @property
    def repeat_ns(self) -> int:
        """JOIN_INTERVAL: how often the announcements of a repair are repeated."""
        return self.suspect_after_ns // 10

    @property
    def consensus_ns(self) -> int:
        """CONSENSUS_TIMEOUT."""
        return self.suspect_after_ns

    @property
    def recover_ns(self) -> int:
        """RECOVER_TIMEOUT."""
        return 5 * self.suspect_after_ns // 2

    @property
    def sponsor_ns(self) -> int:
        """SPONSOR_TIMEOUT."""
        return 3 * self.suspect_after_ns // 2

    @property
    def old_keep_ns(self) -> int:
        """OLD_KEEP: how long the messages of an old epoch are kept for those that still recover (J18)."""
        return 4 * self.suspect_after_ns

    @property
    def stall_ns(self) -> int:
        """RECV_STALL: a receiver without progress for this time does not count, and begins again (J13, J16)."""
        return 5 * self.suspect_after_ns


@dataclass(frozen=True, slots=True)
class InterGroupPlan:
    """What one process is in a group."""

    view: View
    """The sender group: the processes that send, and that appear in views."""
    service: Service = "total"
    sources: tuple[ProcessId, ...] | None = None
    """The senders from which a receiver in source order receives; None: all that it hears."""
    present: bool = True
    """Whether the process is in the group from the start."""
    sends: bool = False
    """Whether the process wants to be a sender when it joins; every sender of the configured view does."""
