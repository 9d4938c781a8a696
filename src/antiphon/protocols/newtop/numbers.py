"""The numbers of one group at one member: those it has sent and seen, and the answers that it owes."""

from antiphon.core.clocks import BlockCounter
from antiphon.protocols.newtop.silence import Silence


class Numbers:
    """Invariant: `sent` is our own entry of the receive vector; `received` never falls (E-48)."""

    __slots__ = ("counter", "received", "row_at", "sent", "silence", "spoke_at", "stalled")

    def __init__(self, counter: BlockCounter, silence: Silence, base: int, now: int) -> None:
        self.counter = counter
        """One for all groups of the process (rule CA1), except under E-14."""
        self.silence = silence
        self.sent = base
        """SENT: our own last number in this group."""
        self.received = base
        """RECD: the largest number received."""
        self.row_at = now
        """When a number above all others was last received or sent."""
        self.spoke_at = now
        """When we last multicast something here."""
        self.stalled = False
        """True if a null is due and flow control delays it."""

    @property
    def largest(self) -> int:
        """max(SENT, RECD)."""
        return max(self.sent, self.received)

    def raised(self, block: int, now: int) -> bool:
        """A number above `received` has arrived; True if we owe an answer to it."""
        self.received = block
        if block <= self.sent:
            return False
        self.row_at = now
        self.silence.owe(block, now)
        return True

    def expect(self, block: int, now: int) -> bool:
        """A stamp names a number of this group. Its sender may be gone: we owe an answer (E-63); False: it is old."""
        if block <= self.largest:
            return False
        self.silence.owe(block, now)
        self.received = block
        return True

    def left(self, block: int, now: int) -> None:
        """Our own message with this number has left."""
        if block > self.received:
            self.row_at = now
        self.sent = block
        self.spoke_at = now
        silence = self.silence
        if silence.deadline is not None:
            silence.spoke(block)
            self.stalled = self.stalled and silence.deadline is not None

    def spoke(self, now: int) -> None:
        """A frame without a number has left."""
        self.spoke_at = now

    def stall(self, *, stalled: bool) -> None:
        """True if flow control delays the null that is due."""
        self.stalled = stalled
