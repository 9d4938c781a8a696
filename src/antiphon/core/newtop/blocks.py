"""The block matrix: which messages of which block are here, and which blocks are complete (Macedo94 §3.3-3.5).

A row is a block number, a column a member. Rows are kept in a dict, for numbers are not consecutive (E-8); columns
shrink to the receive vector, for channels are FIFO: the last number received from a member says all about it.
Block b is complete when b <= min(last_received): nobody can still send into it.
"""

from collections import deque
from heapq import heappop, heappush

from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.vectors import MinVector


class BlockMatrix:
    """Holds every frame, nulls included, from its receipt (or own sending) until it is known stable."""

    __slots__ = ("_complete", "_incomplete", "_rows", "last_received", "unstable_frames")

    def __init__(self, size: int, base: int = 0) -> None:
        self.last_received = MinVector(size, base)
        """Per member its last block number here, our own included (LRV; RV in Macedo95)."""
        self.unstable_frames = 0
        """Frames in the matrix. Bounded by flow control, once that is on."""
        self._rows: dict[int, list[BlockFrame]] = {}
        self._incomplete: list[int] = []  # heap of the row numbers not yet taken
        self._complete: deque[int] = deque()  # ascending row numbers, taken but not yet stable

    @property
    def complete_block(self) -> int:
        """The largest complete block (D)."""
        return self.last_received.minimum

    @property
    def incomplete_rows(self) -> int:
        """Existing rows above the largest complete block (E-8: rows count, not numbers)."""
        return sum(row > self.complete_block for row in self._incomplete)

    def insert(self, rank: int, frame: BlockFrame) -> None:
        """Enter the next frame of a member; its number is above all its earlier ones."""
        block = frame.block
        row = self._rows.get(block)
        if row is None:
            self._rows[block] = [frame]
            heappush(self._incomplete, block)
        else:
            row.append(frame)
        self.unstable_frames += 1
        self.last_received.raise_to(rank, block)

    def take_complete(self) -> list[list[BlockFrame]]:
        """Each complete row not yet taken, in increasing block number."""
        incomplete, complete = self._incomplete, self.last_received.minimum
        rows = []
        while incomplete and incomplete[0] <= complete:
            block = heappop(incomplete)
            self._complete.append(block)
            rows.append(self._rows[block])
        return rows

    def discard(self, stable_block: int) -> list[BlockFrame]:
        """Free the rows that every member is known to hold; what is stable was complete, hence taken, before."""
        complete = self._complete
        freed: list[BlockFrame] = []
        while complete and complete[0] <= stable_block:
            freed += self._rows.pop(complete.popleft())
        self.unstable_frames -= len(freed)
        return freed
