"""News: progress that others may wait for, and when to announce it without a message that carries it (E-51, E-19b).

Every message says what its sender has completed. After the last message of a burst no member would learn the rest,
so the sender announces it after the silence timeout. With a timeout of 0, a short pause replaces it. Two kinds of news
do not wait: half a window, because a sender may be blocked; and, in safe delivery, the receipt of a message, because
all others deliver it only then (docs/spec/newtop.md 14, rule 2).
"""

from collections import deque

from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.settings import NewtopSettings


class News:
    """The progress that our last message in a group announced, and when the next announcement is due."""

    __slots__ = (
        "_algorithm",
        "_by_block",
        "_eager",
        "_pause_ns",
        "_pressing",
        "_pressing_bytes",
        "_spoke_at",
        "_untold",
        "_untold_bytes",
        "at",
        "awaited",
        "block",
        "complete",
        "stable",
    )

    def __init__(self, settings: NewtopSettings, base: int, *, by_block: bool, safe: bool = False) -> None:
        self.at: int | None = None
        """When to check for an announcement."""
        self.block = base
        """The largest complete block that we announced last; `complete` and `stable` are those of flow control."""
        self.complete = self.stable = base if settings.flow_control and by_block else 0
        self._untold: deque[tuple[int, int]] = deque()  # delivered, and not announced as complete: number, size
        self._untold_bytes = 0
        self.awaited = 0
        """The largest number of a message; kept for safe delivery."""
        self._eager = safe and not settings.silence_timeout_ns
        self._pressing, self._pressing_bytes = max(1, settings.window // 2), settings.window_bytes // 2
        if settings.silence_timeout_ns or not settings.flow_control:
            self._pressing = self._pressing_bytes = 1 << 62
        self._pause_ns = settings.silence_timeout_ns or settings.announce_pause_ns
        self._spoke_at = 0
        self._algorithm = settings.flow_control
        self._by_block = by_block

    def set_alarm(self, at: int | None) -> None:
        """Check at this time for an announcement."""
        self.at = at

    def await_word(self, block: int) -> None:
        """A message with this number waits for the acknowledgment of every member."""
        if block > self.awaited:
            self.awaited = block

    def spoken(self, complete_block: int, flow: Flow | None, now: int) -> None:
        """A message of ours left and announced this. The alarm stays: there may be more news before it fires."""
        self._spoke_at = now
        self.block = complete_block
        if flow is not None:
            self.complete, self.stable = flow.complete, flow.stable
            while self._untold and self._untold[0][0] <= flow.complete:
                self._untold_bytes -= self._untold.popleft()[1]

    def delivered(self, number: int, size_bytes: int) -> None:
        """A message of another member, which may wait for our completion."""
        self._untold.append((number, size_bytes))
        self._untold_bytes += size_bytes

    def presses(self, complete: int) -> bool:
        """True if our progress, in numbers or bytes, must be announced at once."""
        if complete - self.complete >= self._pressing:
            return True
        if self._untold_bytes < self._pressing_bytes or complete <= self.complete:
            return False
        return sum(size for number, size in self._untold if number <= complete) >= self._pressing_bytes

    def awaits(self, complete_block: int) -> bool:
        """True if this must be announced now, because others' safe deliveries wait for it."""
        return self._eager and self.awaited > self.block < complete_block

    def weigh(self, complete_block: int, flow: FlowControl | None, now: int) -> None:
        """Set the alarm if there is something to announce."""
        waiting = self.waiting(flow)
        if (waiting > 0 and self.presses(self.complete + waiting)) or self.awaits(complete_block):
            self.at = now
        elif waiting > 0 or complete_block > self.block:
            self.at = now + self._pause_ns

    def due(self, complete_block: int, flow: FlowControl | None, now: int) -> bool:
        """The alarm fired: True if an announcement is due. If we sent something meanwhile, the silence starts again."""
        self.at = None
        waiting = self.waiting(flow)
        if waiting <= 0 and complete_block <= self.block:
            return False
        if (
            self._spoke_at + self._pause_ns > now
            and not self.presses(self.complete + waiting)
            and not self.awaits(complete_block)
        ):
            self.at = self._spoke_at + self._pause_ns
            return False
        return True

    def waiting(self, flow: FlowControl | None) -> int:
        """How far our flow-control numbers are ahead of the last announced ones.

        Stability follows from what all have completed, so it is news only for algorithm 1, which asks who knows it.
        An unanswered flow number of others counts too: their completion waits for ours (E-19b). In block numbering
        nulls answer it, because there they take part in flow control.
        """
        if flow is None:
            return 0
        waiting = flow.complete - self.complete
        if not self._by_block:
            waiting = max(waiting, flow.largest - flow.sent)
        return max(waiting, flow.stable - self.stable) if self._algorithm == 1 else waiting
