"""What every member of one group has sent and completed, as far as we know."""

from antiphon.core.vectors import BEYOND, MinVector


class Progress:
    """Invariant: `complete` and `stable` are what the vectors said when we last drew the consequences."""

    __slots__ = ("_my_rank", "complete", "completed", "received", "safe", "stable")

    def __init__(self, size: int, my_rank: int, base: int, *, safe: bool) -> None:
        self.received = MinVector(size, base)
        """LRV (RV in Macedo95): the last number of each member here, our own included."""
        self.completed = MinVector(size, base)
        """What each member said it had completed (m.lcb)."""
        self.complete = base
        """Our own claim."""
        self.stable = base
        """The largest number that all who have not failed are known to have completed."""
        self.safe = safe
        """Whether messages are delivered only when they are stable (14)."""
        self._my_rank = my_rank

    @property
    def stable_block(self) -> int:
        """S, as the vector says it now."""
        return self.completed.minimum

    @property
    def safe_block(self) -> int:
        """Messages up to this number need not wait to become stable."""
        return self.completed.minimum if self.safe else BEYOND

    @property
    def promised(self) -> int:
        """Others may have delivered up to this number because we have acknowledged it (E-96)."""
        return self.completed.values[self._my_rank] if self.safe else 0

    def acknowledged(self, rank: int) -> int:
        """What that member said it had completed."""
        return self.completed.values[rank]

    def advance(self, complete: int) -> None:
        """We have completed this number, and may say so."""
        self.complete = complete
        self.completed.raise_to(self._my_rank, complete)

    def note_complete(self, complete: int) -> None:
        """We have completed this number; `advance` enters it into the vector later."""
        self.complete = complete

    def note_stable(self, stable: int) -> None:
        """All have everything up to this number."""
        self.stable = stable

    def fail(self, rank: int) -> None:
        """Nobody waits for that member any more: it counts as having sent and completed everything."""
        self.received.raise_to(rank, BEYOND)
        self.completed.raise_to(rank, BEYOND)
