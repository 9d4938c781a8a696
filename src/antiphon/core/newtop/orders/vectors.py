"""Orders by stamps that name the past: the Fast order, and vector-clock CBCAST, the reference (Macedo94 §5.5, §2.6.3).

Both stamp a message with a number for each (group, process) in its past, and deliver it once those of the receiver's
own groups are reached. They wait for nothing else: no other causal order delivers earlier.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar

from antiphon.core.newtop.frames import BlockFrame, MapStamp
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId

Key = tuple[GroupId, ProcessId]
Known = dict[Key, int]


class FastOrder:
    """GLDV, keyed by group and process: keyed by process alone it deadlocks (E-13).

    Invariant: a frame in `_waiting[key]` lacks that key; it is looked at again when the key rises.
    """

    crosses: ClassVar[bool] = False
    stamps: ClassVar[bool] = True

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:
        self._me = me
        self._groups = groups
        self._known: Known = {}  # GLDV: the largest number sent or delivered
        self._waiting: dict[Key, list[tuple[BlockFrame, Known]]] = {}
        self._ready: deque[tuple[BlockFrame, Known]] = deque()
        self._compressing = settings.compression
        self._told: dict[GroupId, Known] = {group: {} for group in groups}  # by our stamps so far, if compressing
        self._heard: dict[Key, Known] = {}  # by the stamps of each sender in each group, if compressing

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:  # noqa: ARG002
        """Whatever it names."""
        return isinstance(frame.stamp, MapStamp)

    def stamp(self, group: NewtopGroup) -> MapStamp:
        """Everything we know; compressed, what the group has not heard from us."""
        known = self._known
        if self._compressing:
            told = self._told[group.view.group]
            changed = {key: number for key, number in known.items() if told.get(key) != number}
            told.update(changed)
            known = changed
        return MapStamp(tuple(sorted((*key, number) for key, number in known.items())))

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Our own message is delivered at once: all of its past was sent or delivered here."""
        self._known[self._key(group.view.group, self._me)] = self._number(frame)
        self._ready.append((frame, {}))

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:  # noqa: ARG002
        """Deliver or keep."""
        self._place(frame, self._past(group, frame))
        return ()

    def take(self) -> list[BlockFrame]:
        """What is ready, and what becomes so by delivering it."""
        taken = []
        while self._ready:
            frame, past = self._ready.popleft()
            self._groups[frame.group].counter.witness(frame.block)
            taken.append(frame)
            if frame.sender != self._me:
                self._learn(frame, past)
        return taken

    def _learn(self, frame: BlockFrame, past: Known) -> None:
        """On delivery, not on receipt: merge every key, those of groups that are not ours too."""
        risen = [key for key, number in past.items() if self._raise(key, number)]
        own = self._key(frame.group, frame.sender)
        if self._raise(own, self._number(frame)):
            risen.append(own)
        for key in risen:
            for held in self._waiting.pop(key, ()):
                self._place(*held)

    def _raise(self, key: Key, number: int) -> bool:
        if number <= self._known.get(key, 0):
            return False
        self._known[key] = number
        return True

    def _place(self, frame: BlockFrame, past: Known) -> None:
        lacking = self._lacking(frame, past)
        if lacking is None:
            self._ready.append((frame, past))
        else:
            self._waiting.setdefault(lacking, []).append((frame, past))

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:  # noqa: ARG002
        """A key of our groups that is not reached yet, or None: then its turn has come."""
        known = self._known
        for key, number in past.items():
            if number > known.get(key, 0) and self._concerns(key):
                return key
        return None

    def _concerns(self, key: Key) -> bool:
        return key[0] in self._groups

    def _past(self, group: NewtopGroup, frame: BlockFrame) -> Known:
        """What the stamp says, with what the sender said before if stamps are compressed: channels are FIFO."""
        stamp = frame.stamp
        assert isinstance(stamp, MapStamp)
        past = {(name, process): number for name, process, number in stamp.entries}
        if self._compressing:
            heard = self._heard.setdefault((group.view.group, frame.sender), {})
            heard.update(past)
            past = dict(heard)
        return past

    def _key(self, group: GroupId, process: ProcessId) -> Key:
        return group, process

    def _number(self, frame: BlockFrame) -> int:
        return frame.block


class VectorOrder(FastOrder):
    """CBCAST: the same, with a count of messages in place of block numbers, and the sender's own entry raised first."""

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:
        """It counts itself."""
        own = group.view.group, frame.sender
        return isinstance(frame.stamp, MapStamp) and any(entry[:2] == own for entry in frame.stamp.entries)

    def stamp(self, group: NewtopGroup) -> MapStamp:
        """Raise our own entry, then stamp the whole vector."""
        key = group.view.group, self._me
        self._known[key] = self._known.get(key, 0) + 1
        return super().stamp(group)

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Delivered at once; its own entry was raised for the stamp."""
        self._ready.append((frame, {}))

    def _learn(self, frame: BlockFrame, past: Known) -> None:  # noqa: ARG002
        """The componentwise maximum; the sender's own entry is in the stamp."""
        for key in [key for key, number in past.items() if self._raise(key, number)]:
            for held in self._waiting.pop(key, ()):
                self._place(*held)

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:
        """The next message of its sender, and nothing else of its past missing (E-1)."""
        own, known = (frame.group, frame.sender), self._known
        if past[own] != known.get(own, 0) + 1:
            return own
        for key, number in past.items():
            if key != own and number > known.get(key, 0) and self._concerns(key):
                return key
        return None
