"""The progress of every member of one group, as far as we know: sent and completed numbers."""

from antiphon.core.vectors import BEYOND, MinVector


class Progress:
    """Invariant: `complete` and `stable` are the values of the vectors at the last settle."""

    __slots__ = ("_my_rank", "complete", "completed", "received", "safe", "stable")

    def __init__(self, size: int, my_rank: int, base: int, *, safe: bool) -> None:
        self.received = MinVector(size, base)
        """LRV (RV in Macedo95): the last number of each member here, our own included."""
        self.completed = MinVector(size, base)
        """The completed number that each member announced (m.lcb)."""
        self.complete = base
        """Our own completed number."""
        self.stable = base
        """The largest number that all members that have not failed are known to have completed."""
        self.safe = safe
        """True if messages are delivered only when they are stable (14)."""
        self._my_rank = my_rank

    @property
    def stable_block(self) -> int:
        """The current S, from the vector."""
        return self.completed.minimum

    @property
    def safe_block(self) -> int:
        """Messages up to this number need not wait for stability."""
        return self.completed.minimum if self.safe else BEYOND

    @property
    def promised(self) -> int:
        """Others may have delivered up to this number because we have acknowledged it (E-96)."""
        return self.completed.values[self._my_rank] if self.safe else 0

    def acknowledged(self, rank: int) -> int:
        """The completed number that a member announced."""
        return self.completed.values[rank]

    def advance(self, complete: int) -> None:
        """We have completed this number, and may announce it."""
        self.complete = complete
        self.completed.raise_to(self._my_rank, complete)

    def note_complete(self, complete: int) -> None:
        """We have completed this number; `advance` enters it into the vector later."""
        self.complete = complete

    def note_stable(self, stable: int) -> None:
        """All members have everything up to this number."""
        self.stable = stable

    def fail(self, rank: int) -> None:
        """Stop waiting for that member: it counts as having sent and completed everything."""
        self.received.raise_to(rank, BEYOND)
        self.completed.raise_to(rank, BEYOND)
