"""Orders by block numbers alone: the total order and the Slow causal order (Macedo94 §4.5, §5.4)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import ClassVar, Final

from antiphon.core.newtop.frames import BlockFrame, Stamp
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId

_SENDER: Final = attrgetter("sender")


class TotalOrder:
    """Deliver what no group can still send into, in increasing (block, sender) over all groups (safe1', safe2).

    (block, sender) is unique among data: a process numbers its data messages of all groups from one counter.
    """

    crosses: ClassVar[bool] = True
    stamps: ClassVar[bool] = False
    _ahead: ClassVar[int] = 0
    """How far beyond the largest complete block a message may be delivered."""

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._rows: dict[int, list[BlockFrame]] = defaultdict(list)  # what waits, by block
        self._blocks: list[int] = []  # heap of their numbers
        self._counter = next(iter(groups.values())).counter  # one for all groups
        self._columns = [group.last_received for group in groups.values()]
        self._only_column = self._columns[0] if len(groups) == 1 else None

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:  # noqa: ARG002
        """Nothing beside the number."""
        return frame.stamp is None

    def stamp(self, group: NewtopGroup) -> Stamp | None:  # noqa: ARG002
        """The block number says all."""
        return None

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:  # noqa: ARG002
        """Keep it for its turn."""
        block = frame.block
        row = self._rows[block]
        if not row:
            heappush(self._blocks, block)
        row.append(frame)
        return ()

    sent = received
    """Our own message waits like all others."""

    def take(self) -> list[BlockFrame]:
        """Everything up to the largest block that is complete in all groups (Bmin)."""
        blocks, column = self._blocks, self._only_column
        ready: list[BlockFrame] = []
        limit = self._ahead + (column.minimum if column is not None else self._complete_everywhere())
        while blocks and blocks[0] <= limit:
            row = self._rows.pop(heappop(blocks))
            if len(row) > 1:
                row.sort(key=_SENDER)
            ready += row
        if ready:
            self._counter.witness(ready[-1].block)
        return ready

    def _complete_everywhere(self) -> int:
        return min([column.minimum for column in self._columns])


class SlowOrder(TotalOrder):
    """Causal order for the price of a number: whatever could precede m has a smaller number than m (CO1, CO2)."""

    _ahead: ClassVar[int] = 1
