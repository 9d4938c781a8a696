"""News: what others may wait for that only we can say, and when to say it without a message to carry it (E-51, E-19b).

Every message says what its sender has completed. After the last one of a burst nobody would ever hear of the rest,
so it is announced when the sender has been silent for the silence timeout. Where silence is answered at once a short
pause takes its place, except that half a window of news does not wait: a sender may be blocked for it. Nor does, in
safe delivery, that we have a message: all others deliver it only then (docs/spec/newtop.md 14, rule 2).
"""

from collections import deque

from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.settings import NewtopSettings


class News:
    """What our last message in a group said, and when the next announcement is due."""

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
        """When to look whether something must be announced."""
        self.block = base
        """The largest complete block, as we said last; `complete` and `stable` are likewise flow control's."""
        self.complete = self.stable = base if settings.flow_control and by_block else 0
        self._untold: deque[tuple[int, int]] = deque()  # delivered, and not said to be complete: number, size
        self._untold_bytes = 0
        self.awaited = 0
        """The largest number of a message; kept where safe delivery asks for it."""
        self._eager = safe and not settings.silence_timeout_ns
        self._pressing, self._pressing_bytes = max(1, settings.window // 2), settings.window_bytes // 2
        if settings.silence_timeout_ns or not settings.flow_control:
            self._pressing = self._pressing_bytes = 1 << 62
        self._pause_ns = settings.silence_timeout_ns or settings.announce_pause_ns
        self._spoke_at = 0
        self._algorithm = settings.flow_control
        self._by_block = by_block

    def set_alarm(self, at: int | None) -> None:
        """Look at this time whether something must be announced."""
        self.at = at

    def await_word(self, block: int) -> None:
        """A message with this number waits for the word of every member that has it."""
        if block > self.awaited:
            self.awaited = block

    def spoken(self, complete_block: int, flow: Flow | None, now: int) -> None:
        """A message of ours left, and said this. Its alarm stays: there may be more news before it rings."""
        self._spoke_at = now
        self.block = complete_block
        if flow is not None:
            self.complete, self.stable = flow.complete, flow.stable
            while self._untold and self._untold[0][0] <= flow.complete:
                self._untold_bytes -= self._untold.popleft()[1]

    def delivered(self, number: int, size_bytes: int) -> None:
        """A message of another member, which may wait to hear that it is complete here."""
        self._untold.append((number, size_bytes))
        self._untold_bytes += size_bytes

    def presses(self, complete: int) -> bool:
        """Whether that we have completed so much, in numbers or bytes, does not wait."""
        if complete - self.complete >= self._pressing:
            return True
        if self._untold_bytes < self._pressing_bytes or complete <= self.complete:
            return False
        return sum(size for number, size in self._untold if number <= complete) >= self._pressing_bytes

    def awaits(self, complete_block: int) -> bool:
        """Whether that we have completed so much does not wait, for deliveries elsewhere do."""
        return self._eager and self.awaited > self.block < complete_block

    def weigh(self, complete_block: int, flow: FlowControl | None, now: int) -> None:
        """Set the alarm if there is something to say."""
        waiting = self.waiting(flow)
        if (waiting > 0 and self.presses(self.complete + waiting)) or self.awaits(complete_block):
            self.at = now
        elif waiting > 0 or complete_block > self.block:
            self.at = now + self._pause_ns

    def due(self, complete_block: int, flow: FlowControl | None, now: int) -> bool:
        """The alarm rang: whether it is time to speak. If we spoke meanwhile, it is not silence yet."""
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
        """How far what we could say of flow control is ahead of what we said last.

        Stability follows from what all have completed, so it is news for algorithm 1 alone, which asks who knows it.
        A flow number of others that we have not answered counts too: their completion waits for ours (E-19b). In
        block numbering nulls answer, for there they take part in flow control.
        """
        if flow is None:
            return 0
        waiting = flow.complete - self.complete
        if not self._by_block:
            waiting = max(waiting, flow.largest - flow.sent)
        return max(waiting, flow.stable - self.stable) if self._algorithm == 1 else waiting
