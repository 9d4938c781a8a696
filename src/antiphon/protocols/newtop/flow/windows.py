"""Flow control: how far a member may send ahead of the slowest member (Macedo95 §3; docs/spec/flow-control.md).

All numbers here are flow numbers: those of data messages alone, counted per group, or in groups with block numbering
the block numbers. A number is *complete* here when everything up to it is received and our application consumed it,
*stable* when it is complete at every member, *super-stable* when every member knows that it is stable.
"""

from collections import deque
from typing import Final

from antiphon.core.pending import Pending
from antiphon.core.vectors import BEYOND, MinVector
from antiphon.protocols.newtop import bounds
from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.settings import NewtopSettings

_new: Final = tuple.__new__
_WINDOW_SLACK: Final = 1 << 16
"""A peer may be this far beyond our window: windows are compared when a group is formed, not here."""


class FlowControl:
    """The vectors of one member in one group, and the test that a message must pass before it leaves.

    Invariants (flow-control.md 4, I1): `stable` <= what every member has completed; `super_stable` <= every `stable`.
    """

    __slots__ = (
        "_ahead",
        "_algorithm",
        "_my_rank",
        "_settled",
        "_window",
        "_window_bytes",
        "ahead_bytes",
        "complete",
        "completed",
        "counter",
        "largest",
        "received",
        "sent",
        "stable",
        "stable_at",
        "super_stable",
        "unconsumed",
    )

    def __init__(self, size: int, my_rank: int, settings: NewtopSettings) -> None:
        self.received = MinVector(size)
        """RV: the last number of each member, our own included."""
        self.completed = MinVector(size)
        """CV: what each member said it had completed."""
        self.stable_at = MinVector(size)
        """SV: what each member said was stable. Only algorithm 1 looks at it."""
        self.complete = 0
        """C: our own entry in `completed`, as of the last `settle`."""
        self.stable = 0
        """S: the largest number that any member is known to have found stable; stability is a global fact (E-17)."""
        self.super_stable = 0
        """Σ."""
        self.counter = 0
        """FBC: the largest number sent or delivered; the next data message gets a larger one."""
        self.sent = 0
        """SENT: the last number we carried."""
        self.largest = 0
        """max(SENT, RECD): never falls."""
        self.unconsumed = Pending()
        """Numbers of received or sent data that our application has not consumed: Δ stays below them (E-18)."""
        self.ahead_bytes = 0
        """Payload bytes of our own frames above `stable`."""
        self._ahead: deque[tuple[int, int]] = deque()  # our own frames above `stable`: (number, bytes)
        self._settled = 0  # `stable` at the last `settle`
        self._my_rank = my_rank
        self._algorithm = settings.flow_control
        self._window = settings.window
        self._window_bytes = settings.window_bytes

    def begin(self, base: int) -> None:
        """Numbers of the group begin above this one, if they are block numbers."""
        for vector in (self.received, self.completed, self.stable_at):
            for rank in range(len(vector.values)):
                vector.raise_to(rank, base)
        self.complete = self.stable = self.super_stable = self.counter = self.sent = self.largest = self._settled = base

    @property
    def ahead(self) -> int:
        """Number of our own frames above `stable`."""
        return len(self._ahead)

    def require(self, flow: Flow) -> None:
        """Refuse a header that no correct member could send.

        No member can have completed what we have not sent, or know as stable what we have not completed. So its own
        number is within a window of ours.
        """
        number, complete, stable, super_stable = flow
        own = self.received.values[self._my_rank]
        if complete > own:
            bounds.refuse("completed flow number", complete, own)
        if stable > self.complete or super_stable > self.complete:
            bounds.refuse("stable flow number", max(stable, super_stable), self.complete)
        if number > own + self._window + _WINDOW_SLACK:
            bounds.refuse("flow number", number, own + self._window + _WINDOW_SLACK)

    def heard(self, rank: int, flow: Flow) -> bool:
        """Enter the header of another member's message; by maximum, because a relayed one may be old.

        True if `settle` would find something new, or an answer is owed.
        """
        number, complete, stable, super_stable = flow
        received, completed = self.received, self.completed
        if number > received.values[rank]:
            received.raise_to(rank, number)
            if number > self.largest:
                self.largest = number
        if complete > completed.values[rank]:
            completed.raise_to(rank, complete)
        if stable > self.stable:
            self.stable = stable
        if self._algorithm == 1:
            self.stable_at.raise_to(rank, stable)
            self.super_stable = max(self.super_stable, super_stable)
            return True
        return (
            self.stable != self._settled
            or self.largest > self.sent
            or completed.minimum > self.stable
            or received.minimum > self.complete
        )

    def settle(self) -> None:
        """Update our own entries and the derived numbers, after any change (Macedo95 §3.1, steps 1-3)."""
        complete, unconsumed = self.received.minimum, self.unconsumed.smallest
        if unconsumed is not None and unconsumed <= complete:
            complete = unconsumed - 1  # numbers without data count as consumed
        completed = self.completed
        if complete > self.complete:
            self.complete = complete
            completed.raise_to(self._my_rank, complete)
        if completed.minimum > self.stable:
            self.stable = completed.minimum
        if self._algorithm == 1:
            self.stable_at.raise_to(self._my_rank, completed.minimum)
            self.super_stable = max(self.super_stable, self.stable_at.minimum)
        if self.stable != self._settled:
            self._settled = self.stable
            ahead = self._ahead
            while ahead and ahead[0][0] <= self.stable:
                self.ahead_bytes -= ahead.popleft()[1]

    def header(self, number: int) -> Flow:
        """The header of a message with this number; build it before the number is entered."""
        return _new(Flow, (number, self.complete, self.stable, self.super_stable))

    def carried(self, number: int) -> None:
        """We have sent this number, in a message of any kind."""
        self.sent = number
        if number > self.largest:
            self.largest = number
        if number > self.counter:
            self.counter = number
        self.received.raise_to(self._my_rank, number)

    def delivered(self, number: int) -> None:
        """A message with this number, above `counter`, is delivered."""
        self.counter = number

    def waits_for(self, rank: int) -> bool:
        """True if that member keeps the window closed."""
        completed, stable_at = self.completed, self.stable_at
        return completed.values[rank] == completed.minimum or (
            self._algorithm == 1 and stable_at.values[rank] == stable_at.minimum
        )

    def fail(self, rank: int) -> None:
        """Stop waiting for that member."""
        for vector in (self.received, self.completed, self.stable_at):
            vector.raise_to(rank, BEYOND)

    def counted(self, number: int, size_bytes: int) -> None:
        """A message of ours that the window limits has left."""
        self._ahead.append((number, size_bytes))
        self.ahead_bytes += size_bytes

    @property
    def limit(self) -> int:
        """The largest number that a message may get now (docs/spec/flow-control.md 3)."""
        window, complete = self._window, self.complete
        if self._algorithm == 1:
            return min(self.super_stable + window, self.stable + window - 1, complete + window - 2)
        if self._algorithm == 2:
            return min(self.stable + window, complete + window - 1)
        return complete + window - 1 if len(self._ahead) < window else 0

    def permits(self, number: int, size_bytes: int) -> bool:
        """True if a message with this number may leave now."""
        if size_bytes and self._ahead and self.ahead_bytes + size_bytes > self._window_bytes:
            return False
        return number <= self.limit
