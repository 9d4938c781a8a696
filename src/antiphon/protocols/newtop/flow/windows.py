"""Flow control: how far ahead of the slowest member anybody may send (Macedo95 §3; docs/spec/flow-control.md).

All numbers here are flow numbers: those of data messages alone, counted per group, or in groups with block numbering
the block numbers. A number is *complete* here when everything up to it has come and our application has taken it,
*stable* when it is complete at every member, *super-stable* when every member knows that it is stable.
"""

from collections import deque

from antiphon.core.pending import Pending
from antiphon.core.vectors import BEYOND, MinVector
from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.settings import NewtopSettings


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
        """S: the largest number anybody is known to have deduced stable; stability is a global fact (E-17)."""
        self.super_stable = 0
        """Σ."""
        self.counter = 0
        """FBC: the largest number sent or delivered; the next data message gets a larger one."""
        self.sent = 0
        """SENT: the last number we carried."""
        self.largest = 0
        """max(SENT, RECD): never falls."""
        self.unconsumed = Pending()
        """Numbers of data that came or left and that our application has not taken: Δ stays below them (E-18)."""
        self.ahead_bytes = 0
        """Payload bytes of our own frames above `stable`."""
        self._ahead: deque[tuple[int, int]] = deque()  # our own frames above `stable`: (number, bytes)
        self._settled = 0  # `stable` when the last consequences were drawn
        self._my_rank = my_rank
        self._algorithm = settings.flow_control
        self._window = settings.window
        self._window_bytes = settings.window_bytes

    def begin(self, base: int) -> None:
        """Numbers of the group begin above this one, where they are those of its blocks."""
        for vector in (self.received, self.completed, self.stable_at):
            for rank in range(len(vector.values)):
                vector.raise_to(rank, base)
        self.complete = self.stable = self.super_stable = self.counter = self.sent = self.largest = self._settled = base

    @property
    def ahead(self) -> int:
        """How many of our own frames are above `stable`."""
        return len(self._ahead)

    def heard(self, rank: int, flow: Flow) -> bool:
        """Take in the header of another member's message; by maximum, for a relayed one may be old.

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
        """After any change: our own entries, and what follows from them (Macedo95 §3.1, steps 1-3)."""
        complete, unconsumed = self.received.minimum, self.unconsumed.smallest
        if unconsumed is not None and unconsumed <= complete:
            complete = unconsumed - 1  # numbers without data count as taken
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
        """What a message with this number carries; to be made before the number is entered."""
        return Flow(number, self.complete, self.stable, self.super_stable)

    def carried(self, number: int) -> None:
        """We have sent this number, in a message of any kind."""
        self.sent = number
        if number > self.largest:
            self.largest = number
        if number > self.counter:
            self.counter = number
        self.received.raise_to(self._my_rank, number)

    def delivered(self, number: int) -> None:
        """A message with this number, above `counter`, has its turn."""
        self.counter = number

    def waits_for(self, rank: int) -> bool:
        """Whether that member keeps the window from moving."""
        completed, stable_at = self.completed, self.stable_at
        return completed.values[rank] == completed.minimum or (
            self._algorithm == 1 and stable_at.values[rank] == stable_at.minimum
        )

    def fail(self, rank: int) -> None:
        """Nobody waits for that member any more."""
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
        """Whether a message that would get this number may leave now."""
        if size_bytes and self._ahead and self.ahead_bytes + size_bytes > self._window_bytes:
            return False
        return number <= self.limit
