"""The clock of a simulated process and its single alarm: set in its own time, fired in the world's time."""

from collections.abc import Callable

from antiphon.sim.hosts import Clock
from antiphon.sim.world import EventQueue


class Alarm:
    """The alarm of one process. Only the queue entry that was set last counts."""

    __slots__ = ("_armed", "_queue", "_ring", "_tick_ns", "clock", "deadline")

    def __init__(self, queue: EventQueue, tick_ns: int, ring: Callable[[int | None], None]) -> None:
        """`tick_ns`: the host's timers fire at multiples of this; 0: at any time."""
        self.deadline: int | None = None
        """The time for which it was last set, in the process's own time; None: it has fired, or must be set again."""
        self._queue = queue
        self._tick_ns = tick_ns
        self._ring = ring
        self.clock: Clock | None = None
        """The process's own clock; None while it shows the world's time. Hot paths read it here to save a call."""
        self._armed: int | None = None

    @property
    def now(self) -> int:
        """The time on this process's own clock."""
        return self._queue.now if self.clock is None else self.clock.read(self._queue.now)

    @property
    def armed(self) -> int | None:
        """World time of the entry that counts."""
        return self._armed

    def set(self, deadline: int) -> None:
        """Fire when the process's own clock shows this, unless it fires earlier."""
        self.deadline = deadline
        when = max(deadline if self.clock is None else self.clock.when(deadline), self._queue.now)
        if self._tick_ns:
            when = -(-when // self._tick_ns) * self._tick_ns
        if self._armed is None or when < self._armed:
            self._armed = when
            self._queue.at(when, self._ring, when)

    def rung(self) -> None:
        """Cancel the alarm."""
        self._armed = self.deadline = None

    def skew(self, offset_ns: int, rate: float) -> None:
        """Set the clock ahead and run it at another rate; the alarm must be set again."""
        self.clock = self.clock or Clock()
        self.clock.set(self._queue.now, offset_ns, rate)
        self.deadline = None
