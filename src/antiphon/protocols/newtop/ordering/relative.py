"""The Relative causal order: precise inside a group, by whole blocks between groups (Macedo94 §5.6, corrected).

One counter serves all groups of a process (E-14). So a message waits only for smaller numbers, and no
two messages wait for each other.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar

from antiphon.core.pending import Pending
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.frames import BlockFrame, RelativeStamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId


class RelativeOrder:
    """LDV per group, GBN over groups."""

    crosses: ClassVar[bool] = False
    stamps: ClassVar[bool] = True
    forms: ClassVar[bool] = False
    cut_after: ClassVar[int | None] = None

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._groups = groups
        self._delivered = {name: [0] * len(group.roster.columns) for name, group in groups.items()}  # LDV, by rank
        self._limits = {name: [BEYOND] * len(group.roster.columns) for name, group in groups.items()}
        """By rank, the last deliverable number of a failed member."""
        self._blocks: dict[GroupId, int] = {}  # GBN
        self._ready: list[BlockFrame] = []
        self._held: dict[tuple[GroupId, ProcessId], deque[BlockFrame]] = {}  # by stream: only the first is deliverable
        self._undelivered = {name: Pending() for name in groups}  # of waiting frames, by group

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:
        """The stamp has a number for each member."""
        return isinstance(frame.stamp, RelativeStamp) and len(frame.stamp.delivered) == len(group.roster.columns)

    def stamp(self, group: NewtopGroup) -> RelativeStamp:
        """What we have sent and delivered: by member in this group, by block in others."""
        return RelativeStamp(tuple(self._delivered[group.view.group]), tuple(sorted(self._blocks.items())))

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Our own message is delivered at once."""
        self._delivered[frame.group][group.roster.my_rank] = frame.block
        self._reach(frame.group, frame.block)
        self._ready.append(frame)

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:  # noqa: ARG002
        """Keep it; blocks that it names in our other groups must complete, even if only we know them (E-63)."""
        self._held.setdefault((frame.group, frame.sender), deque()).append(frame)
        self._undelivered[frame.group].add(frame.block)
        named = [(name, block) for name, block in _stamp(frame).blocks if name in self._groups and name != frame.group]
        return [name for name, block in named if self._groups[name].numbers.expect(block, now)]

    def take(self, upto: int) -> list[BlockFrame]:  # noqa: ARG002
        """Deliver until nothing changes."""
        taken, self._ready = self._ready, []
        moved = bool(self._held)
        while moved:
            moved = False
            for stream in self._held.values():
                while stream and self._may_go(stream[0]):
                    taken.append(stream.popleft())
                    self._deliver(taken[-1])
                    moved = True
        return taken

    def passed(self, block: int) -> bool:  # noqa: ARG002
        """Numbers do not separate views here."""
        return True

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """Drop frames that depend on a lost message of the detection; they are the end of its stream (E-65)."""
        name, limits = group.view.group, self._limits[group.view.group]
        lasts = {group.roster.columns[process]: last for process, last in detection.failed}
        dropped = []
        for process, last in detection.failed:
            kept = self._held.get((name, process), deque())
            while kept and any(_stamp(kept[-1]).delivered[rank] > limit for rank, limit in lasts.items()):
                dropped.append(kept.pop())
            limits[group.roster.columns[process]] = last
        return self._forget(dropped)

    def settled(self, group: NewtopGroup) -> bool:
        """True if only frames of a later view wait."""
        streams = [stream for (name, _), stream in self._held.items() if name == group.view.group]
        return all(not stream or group.change.holds(stream[0]) for stream in streams)

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:
        """The remaining frames of removed members were sent in a view that we never install."""
        dropped: list[BlockFrame] = []
        for process in removed:
            rank, name = group.roster.columns[process], group.view.group
            dropped += self._held.pop((name, process), ())
            self._limits[name][rank] = self._delivered[name][rank]
        return self._forget(dropped)

    def _forget(self, dropped: list[BlockFrame]) -> list[BlockFrame]:
        for frame in dropped:
            self._undelivered[frame.group].remove(frame.block)
        return dropped

    def _may_go(self, frame: BlockFrame) -> bool:
        stamp, delivered, limits = _stamp(frame), self._delivered[frame.group], self._limits[frame.group]
        if self._groups[frame.group].change.holds(frame):
            return False
        if any(
            min(told, limit) > reached for told, reached, limit in zip(stamp.delivered, delivered, limits, strict=True)
        ):
            return False  # CO1: `m.ldv <= LDV`, not the reverse (E-11); of failed members, up to their last number
        return all(
            self._passed(name, block) for name, block in stamp.blocks if name in self._groups and name != frame.group
        )

    def _passed(self, name: GroupId, block: int) -> bool:
        """CO2: that block is complete, and everything of that group up to it is delivered, not just its row (E-15)."""
        smallest = self._undelivered[name].smallest
        return self._groups[name].complete_block >= block and (smallest is None or smallest > block)

    def _deliver(self, frame: BlockFrame) -> None:
        group = self._groups[frame.group]
        group.numbers.counter.witness(frame.block)
        self._undelivered[frame.group].remove(frame.block)
        self._delivered[frame.group][group.roster.columns[frame.sender]] = frame.block
        for name, block in _stamp(frame).blocks:
            if name != frame.group:
                self._reach(name, block)
        self._reach(frame.group, frame.block)

    def _reach(self, name: GroupId, block: int) -> None:
        """Raise by maximum: a message with a smaller number may be delivered later (E-15)."""
        if block > self._blocks.get(name, 0):
            self._blocks[name] = block


def _stamp(frame: BlockFrame) -> RelativeStamp:
    assert isinstance(frame.stamp, RelativeStamp)
    return frame.stamp
