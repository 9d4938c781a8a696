"""The numbers of an application's messages: 0, 1, 2 … in each group, continued over all its formations.

Frames carry the number of their first message as an opaque label. Members number their messages whether or not anything
is traced, so that tracing does not change a frame and a traced process can name the messages of one that is not.
"""

from collections import defaultdict

from antiphon.core.effects import Frame
from antiphon.trace.frames import CARRIES
from antiphon.types import GroupId, ProcessId, name_of


class Labels:
    """The labels of one process."""

    __slots__ = ("_me", "_next", "_sent")

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        self._next: defaultdict[GroupId, int] = defaultdict(int)
        self._sent: defaultdict[GroupId, int] = defaultdict(int)
        """By group: one more than the last number that a frame has taken."""

    def take(self, group: GroupId, count: int = 1) -> int:
        """The first of `count` new numbers."""
        first = self._next[group]
        self._next[group] = first + count
        return first

    def following(self, group: GroupId) -> int:
        """The number that is taken next."""
        return self._next[group]

    def transmitted(self, frame: Frame) -> None:
        """A frame with payloads leaves."""
        if frame.kind in CARRIES and frame.author == self._me:
            group, end = name_of(frame.group), frame.label + len(frame.payloads)
            if end > self._sent[group]:
                self._sent[group] = end

    def parted(self, group: GroupId) -> None:
        """The process has left the group: numbers that no frame took are used again."""
        if sent := self._sent.get(group):
            self._next[group] = sent
        else:
            self._next.pop(group, None)
