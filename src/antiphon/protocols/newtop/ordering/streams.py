"""Orders by streams alone: FIFO, and reliable delivery without any order (docs/spec/newtop.md 6.5).

A message waits for no other message, and for no other group. The channel below restores the order of each stream, so a
message is deliverable when it is received. Numbers serve stability, failures and formations: nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from antiphon.protocols.newtop.frames import BlockFrame, Stamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId


class FifoOrder:
    """Each sender's messages in its order. Invariant: a frame of a later view is in `_parked`, never in `_ready`."""

    total: ClassVar[bool] = False
    crosses: ClassVar[bool] = False
    lazy: ClassVar[bool] = True
    stamps: ClassVar[bool] = False
    cut_after: ClassVar[int | None] = None

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:  # noqa: ARG002
        self._groups = groups
        self._ready: list[BlockFrame] = []
        self._parked: dict[GroupId, list[BlockFrame]] = {name: [] for name in groups}
        """Frames sent in a view that is not installed here yet."""

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:  # noqa: ARG002
        """No stamp: the place in the stream is enough."""
        return frame.stamp is None

    def stamp(self, group: NewtopGroup) -> Stamp | None:  # noqa: ARG002
        """Frames of this order carry no stamp."""
        return None

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Our own message is delivered at once."""
        self._ready.append(frame)

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:  # noqa: ARG002
        """The next frame of its stream."""
        (self._parked[frame.group] if group.change.holds(frame) else self._ready).append(frame)
        return ()

    def take(self, upto: int) -> list[BlockFrame]:
        """All frames that no formation holds back, in the order of their arrival."""
        taken, self._ready = self._ready, []
        if taken and max(frame.block for frame in taken) > upto:
            self._ready = [frame for frame in taken if frame.block > upto]
            taken = [frame for frame in taken if frame.block <= upto]
        for frame in taken:
            self._groups[frame.group].numbers.counter.witness(frame.block)
        return taken

    def passed(self, block: int) -> bool:  # noqa: ARG002
        """Numbers do not separate views here."""
        return True

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:  # noqa: ARG002
        """All survivors have the same of each failed member, and nothing of it depends on anything else."""
        return []

    def settled(self, group: NewtopGroup) -> bool:
        """True if only frames of a later view wait."""
        return not any(frame.group == group.view.group for frame in self._ready)

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:
        """The remaining frames of removed members were sent in a view that we never install. Release others."""
        name = group.view.group
        parked, self._parked[name] = self._parked[name], []
        for frame in parked:
            if frame.sender not in removed:
                self.received(group, frame, 0)
        return [frame for frame in parked if frame.sender in removed]

    def opened(self, group: NewtopGroup, now: int) -> None:  # noqa: ARG002
        """No message of another group waits for it."""
        self._parked[group.view.group] = []

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """Its frames that wait for a view or a formation are not delivered any more."""
        name = group.view.group
        dropped = self._parked.pop(name) + [frame for frame in self._ready if frame.group == name]
        self._ready = [frame for frame in self._ready if frame.group != name]
        return dropped

    def drained(self, group: NewtopGroup | None, number: int) -> bool:
        """All members have sent that number, and nothing of them up to it waits."""
        if group is None:
            return True
        waiting = (*self._ready, *self._parked[group.view.group])
        late = any(frame.group == group.view.group and frame.block <= number for frame in waiting)
        return group.complete_block >= number and not late

    @property
    def highest(self) -> int:
        """The largest waiting number."""
        parked = (frame for frames in self._parked.values() for frame in frames)
        return max((frame.block for frame in (*self._ready, *parked)), default=0)


class ReliableOrder(FifoOrder):
    """All members of a view deliver the same messages in it, in any order."""
