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
from antiphon.protocols.newtop.ordering.namesakes import Namesakes, age
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId


class RelativeOrder:
    """LDV per group, GBN over groups."""

    total: ClassVar[bool] = False
    crosses: ClassVar[bool] = False
    lazy: ClassVar[bool] = False
    stamps: ClassVar[bool] = True
    cut_after: ClassVar[int | None] = None

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._groups = groups
        self._delivered: dict[GroupId, list[int]] = {}  # LDV, by rank
        self._limits: dict[GroupId, list[int]] = {}
        """By rank, the last deliverable number of a failed member."""
        self._blocks: dict[GroupId, int] = {}  # GBN
        self._namesakes = Namesakes(dict.fromkeys(groups, 0))
        self._ready: list[BlockFrame] = []
        self._held: dict[tuple[GroupId, ProcessId], deque[BlockFrame]] = {}  # by stream: only the first is deliverable
        self._undelivered: dict[GroupId, Pending] = {}  # of waiting frames, by group
        for group in groups.values():
            self._begin(group)

    def _begin(self, group: NewtopGroup) -> None:
        name, size = group.view.group, len(group.roster.columns)
        self._delivered[name], self._limits[name], self._undelivered[name] = [0] * size, [BEYOND] * size, Pending()

    def opened(self, group: NewtopGroup, now: int) -> None:
        """Stamps name the group from now on, even if nothing was sent in it: older groups of its name are forgotten."""
        self._begin(group)
        self._blocks[group.view.group] = 0
        if self._namesakes.opened(group):
            self._forget_stale()
        for stream in self._held.values():
            for frame in stream:
                for name, block in self._named(frame):
                    self._groups[name].numbers.expect(block, now)

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """Frames of other groups no longer wait for this one."""
        name = group.view.group
        dropped = [frame for key in [*self._held] if key[0] == name for frame in self._held.pop(key)]
        dropped += [frame for frame in self._ready if frame.group == name]
        self._ready = [frame for frame in self._ready if frame.group != name]
        del self._delivered[name], self._limits[name], self._undelivered[name]
        if self._namesakes.closed(group):
            self._forget_stale()
        return dropped

    def drained(self, group: NewtopGroup | None, number: int) -> bool:
        """Only its own messages count: what they wait for in other groups has smaller numbers."""
        if group is None:
            return True
        own = any(frame.group == group.view.group and frame.block <= number for frame in self._ready)
        return not own and self._passed(group.view.group, number)

    @property
    def highest(self) -> int:
        """The largest waiting number."""
        return max((frame.block for stream in (self._ready, *self._held.values()) for frame in stream), default=0)

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
        if not self._namesakes.on:
            self._namesakes.look(name for name, _ in _stamp(frame).blocks)
        return [name for name, block in self._named(frame) if self._groups[name].numbers.expect(block, now)]

    def take(self, upto: int) -> list[BlockFrame]:
        """Deliver until nothing changes."""
        taken, self._ready = self._ready, []
        if taken and taken[-1].block > upto:
            self._ready = [frame for frame in taken if frame.block > upto]
            taken = [frame for frame in taken if frame.block <= upto]
        moved = bool(self._held)
        while moved:
            moved = False
            for stream in self._held.values():
                while stream and stream[0].block <= upto and self._may_go(stream[0]):
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
        if any(frame.group == group.view.group for frame in self._ready):
            return False  # a formation holds our own message back
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
        return all(self._passed(name, block) for name, block in self._named(frame))

    def _named(self, frame: BlockFrame) -> list[tuple[GroupId, int]]:
        """The blocks of our other groups that come before a frame.

        If its sender knows another group of that name, it may have forgotten ours: then all smaller numbers count.
        """
        blocks, groups = _stamp(frame).blocks, self._groups
        named = [(name, block) for name, block in blocks if name in groups and name != frame.group]
        if not self._namesakes.on:
            return named
        precise = {frame.group, *(name for name, _ in named)}
        for name, block in blocks:
            own = None if name in groups else self._namesakes.own(name)
            if own is None or own in precise:
                continue
            if age(name) > age(own):
                named.append((own, frame.block - 1))
            elif block > self._namesakes.base(own):
                named.append((own, block))
        return named

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
        namesakes = self._namesakes
        if name not in namesakes.kept and namesakes.note(name):
            self._forget_stale()
        own = namesakes.own(name) if namesakes.on else None
        if own is not None and own != name and block > max(namesakes.base(own), self._blocks.get(own, 0)):
            self._blocks[own] = block  # a member that has sent this in another group is not in ours (11.6 rule 5)
        if block > self._blocks.get(name, -1) and name in namesakes.kept:
            self._blocks[name] = block

    def _forget_stale(self) -> None:
        self._blocks = {name: block for name, block in self._blocks.items() if name in self._namesakes.kept}


def _stamp(frame: BlockFrame) -> RelativeStamp:
    assert isinstance(frame.stamp, RelativeStamp)
    return frame.stamp
