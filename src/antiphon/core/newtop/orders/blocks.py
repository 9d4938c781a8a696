"""Orders by block numbers alone: the total order and the Slow causal order (Macedo94 §4.5, §5.4)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import ClassVar, Final

from antiphon.core.newtop.agreement import Detection
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
    cut_after: ClassVar[int | None] = 0
    _ahead: ClassVar[int] = 0
    """How far beyond the largest complete block a message may be delivered."""

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._rows: dict[int, list[BlockFrame]] = defaultdict(list)  # what waits, by block
        self._blocks: list[int] = []  # heap of their numbers
        self._counter = next(iter(groups.values())).counter  # one for all groups
        self._columns = [group.horizon for group in groups.values()]
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

    def take(self, upto: int) -> list[BlockFrame]:
        """Everything up to the largest block that is complete in all groups (Bmin)."""
        blocks, column = self._blocks, self._only_column
        ready: list[BlockFrame] = []
        limit = self._ahead + (column.minimum if column is not None else self._complete_everywhere())
        if upto < limit:
            limit = upto
        while blocks and blocks[0] <= limit:
            row = self._rows.pop(heappop(blocks))
            if len(row) > 1:
                row.sort(key=_SENDER)
            ready += row
        if ready:
            self._counter.witness(ready[-1].block)
        return ready

    def passed(self, block: int) -> bool:
        """No group can still send up to there, and `take` has given all of it."""
        return self._complete_everywhere() >= block

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """Behind the smallest last number of the detection nothing of its members counts (M3)."""
        gone, limit = {process for process, _ in detection.failed}, detection.last + self._ahead
        above = [frame for row in self._rows.values() for frame in row if frame.block > limit]
        dropped = [frame for frame in above if frame.group == group.view.group and frame.sender in gone]
        self._drop(dropped)
        return dropped

    def settled(self, group: NewtopGroup) -> bool:  # noqa: ARG002
        """Views change by numbers here."""
        return True

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:  # noqa: ARG002
        """All that counted of them is delivered."""
        return []

    def _drop(self, dropped: list[BlockFrame]) -> None:
        for frame in dropped:
            row = self._rows[frame.block]
            row.remove(frame)
            if not row:
                del self._rows[frame.block]
                self._blocks.remove(frame.block)
        heapify(self._blocks)

    def _complete_everywhere(self) -> int:
        return min([column.minimum for column in self._columns])


class SlowOrder(TotalOrder):
    """Causal order for the price of a number: whatever could precede m has a smaller number than m (CO1, CO2)."""

    cut_after: ClassVar[int | None] = 1
    _ahead: ClassVar[int] = 1
