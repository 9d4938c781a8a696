"""Orders by block numbers alone: total, total and safe, Slow causal (Macedo94 §4.5, §5.4; docs/spec/newtop.md 14)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import takewhile
from operator import attrgetter
from typing import ClassVar, Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.frames import BlockFrame, Stamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId

_SENDER: Final = attrgetter("sender")


class TotalOrder:
    """Deliver blocks into which no group can still send, in increasing (block, sender) over all groups (safe1', safe2).

    (block, sender) is unique among data: a process numbers its data messages of all groups from one counter.

    In groups that ask for it nothing is delivered before it is stable (newtop.md 14, rule 1). The order stays one over
    all groups: an unstable message delays all larger ones, in every group, and the cuts.
    """

    total: ClassVar[bool] = True
    crosses: ClassVar[bool] = True
    lazy: ClassVar[bool] = False
    stamps: ClassVar[bool] = False
    cut_after: ClassVar[int | None] = 0
    _ahead: ClassVar[int] = 0
    """How far beyond the largest complete block a message may be delivered."""

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._rows: dict[int, list[BlockFrame]] = defaultdict(list)  # waiting frames, by block
        self._blocks: list[int] = []  # heap of their numbers
        self._groups = groups
        self._begin()

    def _begin(self) -> None:
        self._columns = [group.discipline.horizon for group in self._groups.values()]
        self._only_column = self._columns[0] if len(self._columns) == 1 else None
        self._any_safe = any(group.progress.safe for group in self._groups.values())
        counters = (group.numbers.counter for group in self._groups.values())
        self._counter = next(counters, BlockCounter())  # one for all groups

    def opened(self, group: NewtopGroup, now: int) -> None:  # noqa: ARG002
        """Deliveries also wait for this group."""
        self._begin()

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """Deliveries no longer wait for this group."""
        dropped = [frame for row in self._rows.values() for frame in row if frame.group == group.view.group]
        self._drop(dropped)
        self._columns = [column for column in self._columns if column is not group.discipline.horizon]
        self._only_column = self._columns[0] if len(self._columns) == 1 else None
        self._any_safe = any(other.progress.safe for other in self._groups.values() if other is not group)
        return dropped

    def drained(self, group: NewtopGroup | None, number: int) -> bool:  # noqa: ARG002
        """One order over all groups: nothing up to that number may be missing in any of them."""
        return self.passed(number)

    @property
    def highest(self) -> int:
        """The largest waiting number."""
        return max(self._blocks, default=0)

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:  # noqa: ARG002
        """No stamp: the number is enough."""
        return frame.stamp is None

    def stamp(self, group: NewtopGroup) -> Stamp | None:  # noqa: ARG002
        """Frames of this order carry no stamp."""
        return None

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:  # noqa: ARG002
        """Keep the frame until it is deliverable."""
        block = frame.block
        if self._any_safe:
            group.news.await_word(block)  # others deliver it only after our acknowledgment (rule 2)
        row = self._rows[block]
        if not row:
            heappush(self._blocks, block)
        row.append(frame)
        return ()

    sent = received
    """Our own message waits like all others."""

    def take(self, upto: int) -> list[BlockFrame]:
        """All frames up to the largest block that is complete in all groups (Bmin), as far as they may be delivered."""
        blocks, column = self._blocks, self._only_column
        if not blocks:
            return []  # the usual case under light load
        limit = self._ahead + (column.minimum if column is not None else self._complete_everywhere())
        if upto < limit:
            limit = upto
        if blocks[0] > limit:
            return []
        return self._take_stable(limit) if self._any_safe else self._take_to(limit)

    def _take_to(self, limit: int) -> list[BlockFrame]:
        """All frames up to this number, which is complete in all groups."""
        blocks = self._blocks
        ready: list[BlockFrame] = []
        while blocks and blocks[0] <= limit:
            row = self._rows.pop(heappop(blocks))
            if len(row) > 1:
                row.sort(key=_SENDER)
            ready += row
        if ready:
            self._counter.witness(ready[-1].block)
        return ready

    def _take_stable(self, limit: int) -> list[BlockFrame]:
        """All of these before the first one that a member may lack."""
        ready: list[BlockFrame] = []
        while self._blocks and self._blocks[0] <= limit:
            row = self._rows[self._blocks[0]]
            row.sort(key=_SENDER)
            stable = list(takewhile(self._stable, row))
            ready += stable
            if len(stable) < len(row):
                del row[: len(stable)]
                break
            del self._rows[heappop(self._blocks)]
        if ready:
            self._counter.witness(ready[-1].block)
        return ready

    def passed(self, block: int) -> bool:
        """True if no group can still send up to this number, and `take` has returned all of it."""
        if self._any_safe and self._blocks and self._blocks[0] <= block:
            return False  # an unstable message waits
        return self._complete_everywhere() >= block

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """After the smallest last number of the detection, no message of its members counts (M3)."""
        gone, limit = {process for process, _ in detection.failed}, detection.last + self._ahead
        above = [frame for row in self._rows.values() for frame in row if frame.block > limit]
        dropped = [frame for frame in above if frame.group == group.view.group and frame.sender in gone]
        self._drop(dropped)
        return dropped

    def settled(self, group: NewtopGroup) -> bool:  # noqa: ARG002
        """Views change by numbers here."""
        return True

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:  # noqa: ARG002
        """Nothing is left: all their messages that count are delivered."""
        return []

    def _drop(self, dropped: list[BlockFrame]) -> None:
        for frame in dropped:
            row = self._rows[frame.block]
            row.remove(frame)
            if not row:
                del self._rows[frame.block]
                self._blocks.remove(frame.block)
        heapify(self._blocks)

    def _stable(self, frame: BlockFrame) -> bool:
        return frame.block <= self._groups[frame.group].progress.safe_block

    def _complete_everywhere(self) -> int:
        return min([column.minimum for column in self._columns], default=BEYOND)


class SlowOrder(TotalOrder):
    """Causal order with only a number as stamp: every possible predecessor of m has a smaller number (CO1, CO2)."""

    total: ClassVar[bool] = False
    cut_after: ClassVar[int | None] = 1
    _ahead: ClassVar[int] = 1
