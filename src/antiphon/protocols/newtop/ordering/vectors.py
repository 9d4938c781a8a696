"""Orders by stamps that name the past: the Fast order, and vector-clock CBCAST, the reference (Macedo94 §5.5, §2.6.3).

Both stamp a message with a number for each (group, process) in its past. The receiver delivers it when the entries of
its own groups are reached, and waits for nothing else: no other causal order delivers earlier.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar

from antiphon.protocols.newtop.frames import BlockFrame, MapStamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.ordering.namesakes import Namesakes, age
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId

Key = tuple[GroupId, ProcessId]
Known = dict[Key, int]


class FastOrder:
    """GLDV, keyed by group and process: keyed by process alone it deadlocks (E-13).

    Invariant: a frame in `_waiting[key]` lacks that key; it is tested again when the key rises. Frames in `_behind`
    wait for a complete block in a group that their senders have forgotten (docs/spec/newtop.md 11.6 rule 4).
    """

    total: ClassVar[bool] = False
    crosses: ClassVar[bool] = False
    lazy: ClassVar[bool] = False
    stamps: ClassVar[bool] = True
    cut_after: ClassVar[int | None] = None

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None:
        self._me = me
        self._groups = groups
        self._known: Known = {}  # GLDV: the largest number sent or delivered, by us or in the past of our deliveries
        self._delivered: Known = {}  # for our own groups, the largest delivered here
        self._received: Known = {}  # the same for received ones
        self._limits: Known = {}  # for failed members, the last deliverable number
        self._parked: dict[GroupId, list[tuple[BlockFrame, Known]]] = {group: [] for group in groups}
        """Frames sent in a view that is not installed here yet."""
        self._waiting: dict[Key, list[tuple[BlockFrame, Known]]] = {}
        self._ready: deque[tuple[BlockFrame, Known]] = deque()
        self._behind: list[tuple[BlockFrame, Known]] = []
        self._namesakes = Namesakes(dict.fromkeys(groups, 0))
        self._compressing = settings.compression
        self._told: dict[GroupId, Known] = {group: {} for group in groups}  # sent in our stamps so far, if compressing
        self._heard: dict[Key, Known] = {}  # received in the stamps of each sender in each group, if compressing

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:  # noqa: ARG002
        """Any stamp with keys."""
        return isinstance(frame.stamp, MapStamp)

    def stamp(self, group: NewtopGroup) -> MapStamp:
        """All our keys; compressed, those that changed since our last stamp in the group."""
        known = self._known
        if self._compressing:
            told = self._told[group.view.group]
            changed = {key: number for key, number in known.items() if told.get(key) != number}
            told.update(changed)
            known = changed
        return MapStamp(tuple(sorted((*key, number) for key, number in known.items())))

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Our own message is delivered at once: all of its past was sent or delivered here."""
        key = self._key(group.view.group, self._me)
        self._known[key] = self._delivered[key] = self._number(frame)
        self._ready.append((frame, {}))

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:
        """Deliver or keep."""
        past = self._past(group, frame)
        if not self._namesakes.on:
            self._namesakes.look(key[0] for key in past)
        self._received[self._key(frame.group, frame.sender)] = self._number(frame, past)
        self._place(frame, past)
        return self._expect(frame, past, now) if self._namesakes.on else ()

    def take(self, upto: int) -> list[BlockFrame]:
        """All deliverable frames, and those that become deliverable by delivering them."""
        taken, frozen = [], []
        if self._behind:
            self._retry()
        while self._ready:
            frame, past = self._ready.popleft()
            if frame.block > upto:
                frozen.append((frame, past))
                continue
            self._groups[frame.group].numbers.counter.witness(frame.block)
            taken.append(frame)
            if frame.sender != self._me:
                self._learn(frame, past)
            if self._behind and not self._ready:
                self._retry()
        self._ready.extend(frozen)
        return taken

    def passed(self, block: int) -> bool:  # noqa: ARG002
        """Numbers do not separate views here."""
        return True

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """Drop frames that depend on a lost message of the detection (E-65); wait for no others of it (E-64)."""
        keys = {self._key(group.view.group, process) for process, _ in detection.failed}
        lasts = {key: self._received.get(key, 0) for key in keys}

        def lost(frame: BlockFrame, past: Known) -> bool:
            own = self._key(frame.group, frame.sender)
            return own in keys and any(past.get(key, 0) > last for key, last in lasts.items() if key != own)

        dropped = self._drop(lost)
        for frame, past in dropped:
            own = self._key(frame.group, frame.sender)
            lasts[own] = min(lasts[own], self._number(frame, past) - 1)
        self._limits |= lasts
        self._look_again(keys)
        return [frame for frame, _ in dropped]

    def settled(self, group: NewtopGroup) -> bool:
        """True if only frames of a later view wait."""
        name = group.view.group
        waiting = (*self._waiting.values(), self._ready, self._behind)
        return not any(frame.group == name for held in waiting for frame, _ in held)

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:
        """Drop the rest of the removed members' frames: they belong to a view that we never install. Release others."""
        name = group.view.group
        keys = {self._key(name, process) for process in removed}
        dropped = self._drop(lambda frame, _: frame.group == name and frame.sender in removed)
        self._limits |= {key: self._delivered.get(key, 0) for key in keys}
        parked, self._parked[name] = self._parked[name], []
        for held in parked:
            self._place(*held)
        self._look_again(keys)
        return [frame for frame, _ in dropped]

    # Groups that come and go

    def opened(self, group: NewtopGroup, now: int) -> None:
        """Stamps name the group from now on, even if nothing was sent in it: older groups of its name are forgotten."""
        name = group.view.group
        self._parked[name], self._told[name] = [], {}
        self._known[name, self._me] = 0
        if self._namesakes.opened(group):
            self._forget_stale()
        self._behind += [held for held in self._ready if held[0].sender != self._me]  # they may name the new group
        self._ready = deque(held for held in self._ready if held[0].sender == self._me)
        for frame, past in self._held():
            self._expect(frame, past, now)

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """Frames of other groups no longer wait for this one: they are tested again."""
        name = group.view.group
        dropped = self._drop(lambda frame, _: frame.group == name)
        dropped += [held for held in self._ready if held[0].group == name]
        self._ready = deque(held for held in self._ready if held[0].group != name)
        del self._parked[name], self._told[name]
        for key in [key for key in self._waiting if key[0] == name]:
            self._behind += self._waiting.pop(key)
        for known in (self._delivered, self._received, self._limits):
            for key in [key for key in known if key[0] == name]:
                del known[key]
        if self._namesakes.closed(group):
            self._forget_stale()
        return [frame for frame, _ in dropped]

    def drained(self, group: NewtopGroup | None, number: int) -> bool:
        """Only its own messages count: what they wait for in other groups has smaller numbers."""
        return group is None or self._passed(group.view.group, number)

    @property
    def highest(self) -> int:
        """The largest waiting number."""
        return max((frame.block for frame, _ in self._held()), default=0)

    def _held(self) -> Iterator[tuple[BlockFrame, Known]]:
        yield from chain(self._ready, self._behind, *self._waiting.values(), *self._parked.values())

    def _passed(self, name: GroupId, block: int) -> bool:
        """That block is complete, and everything of that group up to it is delivered."""
        if self._groups[name].complete_block < block:
            return False
        return not any(frame.group == name and frame.block <= block for frame, _ in self._held())

    def _retry(self) -> None:
        behind, self._behind = self._behind, []
        for held in behind:
            self._place(*held)

    def _forgotten(self, frame: BlockFrame, past: Known) -> set[GroupId]:
        """Our groups that the sender may have forgotten, because it knew a newer group of that name."""
        precise = {frame.group, *(key[0] for key in past if key[0] in self._groups)}
        found = set()
        for name in {key[0] for key in past} - precise:
            own = self._namesakes.own(name)
            if own is not None and own not in precise and self._precedes(own, name):
                found.add(own)
        return found

    def _precedes(self, own: GroupId, other: GroupId) -> bool:
        """True if a process that knows that group forgets ours."""
        return age(own) < age(other)

    def _expect(self, frame: BlockFrame, past: Known, now: int) -> Sequence[GroupId]:
        """Our forgotten groups must complete all numbers below the frame's, even if only we know them (E-63)."""
        forgotten = sorted(self._forgotten(frame, past))
        return [name for name in forgotten if self._groups[name].numbers.expect(frame.block - 1, now)]

    def _forget_stale(self) -> None:
        self._known = {key: number for key, number in self._known.items() if key[0] in self._namesakes.kept}

    def _drop(self, unwanted: Callable[[BlockFrame, Known], bool]) -> list[tuple[BlockFrame, Known]]:
        dropped = []
        for held in [*self._waiting.values(), *self._parked.values(), self._behind]:
            dropped += [each for each in held if unwanted(*each)]
            held[:] = [each for each in held if not unwanted(*each)]
        return dropped

    def _look_again(self, keys: Iterable[Key]) -> None:
        for key in sorted(keys):
            for held in self._waiting.pop(key, ()):
                self._place(*held)

    def _learn(self, frame: BlockFrame, past: Known) -> None:
        """Merge every key, also of groups that are not ours; on delivery, not on receipt."""
        for key, number in past.items():
            self._raise(key, number)
        if self._namesakes.on:
            for key, number in self._translated(past):
                self._raise(key, number)
        own = self._key(frame.group, frame.sender)
        self._delivered[own] = number = self._number(frame, past)
        self._raise(own, number)
        self._look_again((own,))

    def _raise(self, key: Key, number: int) -> None:
        if number > self._known.get(key, -1):
            if key[0] not in self._namesakes.kept and not self._meet(key[0]):
                return
            self._known[key] = number

    def _meet(self, name: GroupId) -> bool:
        """A group that no kept entry names; true if it is the newest of its name."""
        if self._namesakes.note(name):
            self._forget_stale()
        return name in self._namesakes.kept

    def _translated(self, past: Known) -> list[tuple[Key, int]]:
        """Entries of other groups with the names of ours.

        A process that has sent such a message after our group was formed is not in it, or has left it. So nothing that
        depends on the message is delivered before we have excluded the process (docs/spec/newtop.md 11.6 rule 5).
        """
        found = []
        for (name, process), number in past.items():
            own = None if name in self._groups else self._namesakes.own(name)
            if own is not None and number > self._namesakes.base(own) and process in self._groups[own].roster.ranks:
                found.append(((own, process), number))
        return found

    def _place(self, frame: BlockFrame, past: Known) -> None:
        if self._groups[frame.group].change.holds(frame):
            self._parked[frame.group].append((frame, past))
            return
        lacking = self._lacking(frame, past)
        if lacking is None and self._namesakes.on:
            lacking = next((key for key, number in self._translated(past) if self._misses(key, number)), None)
            if lacking is None and not all(self._passed(own, frame.block - 1) for own in self._forgotten(frame, past)):
                self._behind.append((frame, past))
                return
        if lacking is None:
            self._ready.append((frame, past))
        else:
            self._waiting.setdefault(lacking, []).append((frame, past))

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:  # noqa: ARG002
        """A key of our groups that is not reached yet, or None: the frame is deliverable."""
        for key, number in past.items():
            if self._misses(key, number):
                return key
        return None

    def _misses(self, key: Key, number: int) -> bool:
        """True if a message of that stream up to this number is still undelivered here and can arrive."""
        return min(number, self._limits.get(key, number)) > self._delivered.get(key, 0) and self._concerns(key)

    def _concerns(self, key: Key) -> bool:
        return key[0] in self._groups

    def _past(self, group: NewtopGroup, frame: BlockFrame) -> Known:
        """The full stamp; if stamps are compressed, with the sender's earlier entries: channels are FIFO."""
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

    def _number(self, frame: BlockFrame, past: Known | None = None) -> int:  # noqa: ARG002
        return frame.block


class VectorOrder(FastOrder):
    """CBCAST: the same with message counts instead of block numbers, and the sender's own entry raised first."""

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:
        """The stamp includes the message itself."""
        own = group.view.group, frame.sender
        return isinstance(frame.stamp, MapStamp) and any(entry[:2] == own for entry in frame.stamp.entries)

    def stamp(self, group: NewtopGroup) -> MapStamp:
        """Raise our own entry, then stamp the whole vector."""
        key = group.view.group, self._me
        self._known[key] = self._known.get(key, 0) + 1
        return super().stamp(group)

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:  # noqa: ARG002
        """Deliver our own message at once; its entry was raised for the stamp."""
        key = group.view.group, self._me
        self._delivered[key] = self._known[key]
        self._ready.append((frame, {}))

    def _translated(self, past: Known) -> list[tuple[Key, int]]:  # noqa: ARG002
        """Counts of two groups cannot be compared; `_precedes` waits instead."""
        return []

    def _precedes(self, own: GroupId, other: GroupId) -> bool:  # noqa: ARG002
        """Always: see `_translated`."""
        return True

    def _number(self, frame: BlockFrame, past: Known | None = None) -> int:
        assert past is not None
        return past[frame.group, frame.sender]

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:
        """True if it is the next message of its sender, and its past is complete (E-1)."""
        own = frame.group, frame.sender
        if past[own] != self._delivered.get(own, 0) + 1:
            return own
        for key, number in past.items():
            if key != own and self._misses(key, number):
                return key
        return None
