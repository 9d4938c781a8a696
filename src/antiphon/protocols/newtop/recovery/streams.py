"""The missing-message shim: FIFO, lossless streams on a transport that loses, doubles and reorders (newtop.md 4, E-66).

Every frame that a member multicasts in a group, numbered or control, has the next place in one stream. The group
above gets the gap-free prefix of each stream and notices nothing else. A gap is asked for at once, first of its
origin, then of any member in turn; the end of a stream, which no gap can show, is told until everybody has
acknowledged it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from antiphon.core.effects import Channel, Effect, Frame, Transmit
from antiphon.protocols.newtop.frames import (
    AckFrame,
    AliveFrame,
    BlockFrame,
    MembershipFrame,
    NewtopFrame,
    RepairFrame,
    RequestFrame,
    SequencedFrame,
    StatusFrame,
)
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, View

Sequenced = TypeVar("Sequenced", bound=SequencedFrame)


_ASKED_MAX: Final = 1024
"""How many places one request names; a peer that claims to have sent more is asked again later."""


_TRIES: Final = 8
"""How many waits without progress keep to their bound; a peer that leaves as many unanswered may be deaf."""
_DOUBLINGS_MAX: Final = 6
"""How often the bound is doubled after that: 8 s from 125 ms."""
_DOUBLINGS_MAX_SUSPECTED: Final = 2
"""Where silence makes a suspect: who has not answered for long must be told often enough to be called deaf."""
_COPY_BYTES: Final = 100
"""What a copy costs in a repair beside its payloads, roughly."""


class Recovery:
    """The streams of one group at one member: its own, and one of each other member."""

    def __init__(self, me: ProcessId, view: View, settings: NewtopSettings) -> None:
        self._me = me
        self._group = view.group
        self._incoming = {other: _Incoming(other, me, view, settings) for other in view.members if other != me}
        self._outgoing = _Outgoing(frozenset(self._incoming), settings)
        self._frame_bytes_max = settings.frame_bytes_max
        self._replies: list[tuple[ProcessId, NewtopFrame]] = []

    @property
    def deadline(self) -> int | None:
        """When something must be asked or told again."""
        times = [stream.ask_at for stream in self._incoming.values()]
        times.append(self._outgoing.tell_at)
        return min((time for time in times if time is not None), default=None)

    def outgoing(self, frame: Sequenced, now: int) -> Sequenced:
        """Give a frame of our own its place in our stream, and keep it."""
        return self._outgoing.append(frame, now)

    def receive(self, frame: NewtopFrame, now: int) -> list[SequencedFrame]:
        """Something came: gives the frames that are now next in their streams, in order."""
        if frame.sender not in self._incoming:
            return []
        if isinstance(frame, RepairFrame):
            return [each for copy in frame.copies for each in self._receive_copy(copy, now)]
        if isinstance(frame, StatusFrame):
            return self._status(frame, now)
        if isinstance(frame, AliveFrame) and not frame.sequence:
            return [frame]  # a sign of life, which says nothing else
        if isinstance(frame, AckFrame):
            self._outgoing.acknowledged(frame.sender, frame.upto, now)
        elif isinstance(frame, RequestFrame):
            self._serve(frame)
        else:
            return self._receive_copy(frame, now)
        return []

    def drain(self, now: int, effects: list[Effect]) -> None:
        """Ask, tell and answer what is due."""
        replies, self._replies = self._replies, []
        for origin, stream in self._incoming.items():
            if missing := stream.due(now):
                replies.append((stream.whom_to_ask(), RequestFrame(self._group, self._me, origin, missing)))
        replies += [
            (member, StatusFrame(self._group, self._me, self._outgoing.last, self._outgoing.settled))
            for member in self._outgoing.due(now)
        ]
        effects += [Transmit(frame, to, Channel.DATAGRAM) for to, frame in replies]

    def stable(self, frames: Iterable[BlockFrame]) -> None:
        """These are held by every member, and so is all that stands before them in their streams."""
        for frame in frames:
            stream = self._outgoing if frame.sender == self._me else self._incoming.get(frame.sender)
            if stream is not None:
                stream.forget(frame.sequence)

    @property
    def waits(self) -> bool:
        """Whether an acknowledgment or a repair is waited for."""
        return self._outgoing.tell_at is not None or any(
            stream.ask_at is not None for stream in self._incoming.values()
        )

    def deaf_since(self, process: ProcessId) -> int | None:
        """Since when a member has acknowledged nothing, or filled no gap, although it should; None if it need not."""
        stream, silence = self._incoming.get(process), self._outgoing.deaf_since(process)
        gap = None if stream is None or stream.asked < _TRIES else stream.lacks_since
        return silence if gap is None else gap if silence is None else min(gap, silence)

    def fail(self, process: ProcessId) -> None:
        """It has failed: nothing more is asked of it."""
        for stream in self._incoming.values():
            stream.leave(process)

    def forget(self, process: ProcessId) -> None:
        """It is not in our view any more: nothing is kept for it (docs/spec/newtop.md 4, rule 8)."""
        self._incoming.pop(process, None)
        self._outgoing.leave(process)

    def _receive_copy(self, frame: SequencedFrame, now: int) -> list[SequencedFrame]:
        """A copy counts as coming from its origin, not from the member that relayed it (rule 7)."""
        stream = self._incoming.get(frame.sender)
        return [] if stream is None else stream.receive(frame, now)

    def _status(self, frame: StatusFrame, now: int) -> list[SequencedFrame]:
        stream = self._incoming[frame.sender]
        ready = stream.skip(frame.settled, now) if frame.settled <= frame.last else []
        stream.forget(frame.settled)
        reached = stream.reached(frame.last, now)  # also if it is not all: else where much is lost we seem deaf
        self._replies.append((frame.sender, AckFrame(self._group, self._me, reached)))
        return ready

    def _serve(self, frame: RequestFrame) -> None:
        """Send unchanged copies of what we hold, as many in a frame as fit."""
        stream = self._outgoing if frame.origin == self._me else self._incoming.get(frame.origin)
        copies: list[SequencedFrame] = []
        size = 0
        for copy in stream.copies(frame.missing) if stream is not None else ():
            payload = sum(_bytes(each) for each in (copy, *copy.copies))
            if copies and size + payload > self._frame_bytes_max:
                self._replies.append((frame.sender, RepairFrame(self._group, self._me, tuple(copies))))
                copies, size = [], 0
            copies.append(copy)
            size += payload
        if copies:
            self._replies.append((frame.sender, RepairFrame(self._group, self._me, tuple(copies))))


class Patience:
    """How long to wait before the next repetition: longer each time, until nothing is missing any more.

    Some progress is no reason to hurry: where the answer is late because lines or hosts are busy, haste makes it later.
    For the same reason waits grow on beyond their bound after several tries without any progress.
    """

    def __init__(self, settings: NewtopSettings) -> None:
        self._first_ns, self.bound_ns = settings.repair_ns, settings.repair_max_ns
        self._doublings_max = _DOUBLINGS_MAX_SUSPECTED if settings.suspect_after_ns else _DOUBLINGS_MAX
        self._waits = 0

    def reset(self) -> None:
        """Nothing is missing, or everything is new."""
        self._waits = 0

    def progress(self) -> None:
        """Something came of it: back to the bound, not to the beginning."""
        self._waits = min(self._waits, _TRIES // 2)

    def wait(self) -> int:
        """How long now."""
        self._waits += 1
        if self._waits > _TRIES:
            return self.bound_ns << min(self._waits - _TRIES, self._doublings_max)
        return min(self._first_ns << (self._waits - 1), self.bound_ns)


class _Store:
    """Frames of one stream by their place, kept for those who may lack them."""

    def __init__(self) -> None:
        self._held: dict[int, SequencedFrame] = {}
        self._forgotten = 0

    @property
    def settled(self) -> int:
        """Up to this place everybody is known to have the stream."""
        return self._forgotten

    def copies(self, places: Iterable[int]) -> list[SequencedFrame]:
        """Those of them that are held."""
        return [self._held[place] for place in places if place in self._held]

    def forget(self, upto: int) -> None:
        """Everybody has all places up to this one."""
        few = upto - self._forgotten <= len(self._held)
        for place in range(self._forgotten + 1, upto + 1) if few else [each for each in self._held if each <= upto]:
            self._drop(place)
        self._forgotten = max(self._forgotten, upto)

    def _drop(self, place: int) -> None:
        self._held.pop(place, None)


class _Incoming(_Store):
    """The stream of another member. Invariant: all places up to `_end` were handed up, in order."""

    def __init__(self, origin: ProcessId, me: ProcessId, view: View, settings: NewtopSettings) -> None:
        super().__init__()
        self.ask_at: int | None = None
        self.lacks_since: int | None = None
        """Since when there is a gap, and nothing has come that follows on what we have."""
        self.asked = 0
        """How often we have asked since."""
        others = [member for member in view.members if member not in (origin, me)]
        self._origin = origin
        self._others = others
        self._attempt = 0
        self._end = 0
        self._known = 0  # the largest place that we know to exist
        self._patience = Patience(settings)

    def receive(self, frame: SequencedFrame, now: int) -> list[SequencedFrame]:
        """Keep it; gives what it completes. At or below the end of the chain it is a duplicate."""
        place = frame.sequence
        if place <= self._end or place in self._held:
            return []
        self._held[place] = frame
        ready = self._following()
        if ready:
            self._patience.progress()
            self.lacks_since, self.asked = now, 0
        self._note(place, now)
        return ready

    def forget(self, upto: int) -> None:
        """As told by others, but never what we have not handed up ourselves."""
        super().forget(min(upto, self._end))

    def skip(self, settled: int, now: int) -> list[SequencedFrame]:
        """Its origin has settled the stream up to there, so no copies are left: what we miss is of no use (E-78).

        It is a number that a refutation has brought us, or an announcement before such a number.
        """
        ready = [self._held[place] for place in sorted(self._held) if self._end < place <= settled]
        if settled > self._end:
            self._end, self.lacks_since, self.asked = settled, now, 0
        return ready + self._following()

    def _following(self) -> list[SequencedFrame]:
        ready = []
        while (following := self._held.get(self._end + 1)) is not None:
            self._end += 1
            ready.append(following)
        return ready

    def reached(self, last: int, now: int) -> int:
        """Up to where everything is here; what is not, up to `last`, is asked for from now on."""
        self._note(last, now)
        return min(self._end, last)

    def due(self, now: int) -> tuple[int, ...]:
        """The places to ask for now: all that are missing, not one at a time (rule 5)."""
        if self.ask_at is None or now < self.ask_at:
            return ()
        self.ask_at = now + self._patience.wait()
        self.asked += 1
        missing = (place for place in range(self._end + 1, self._known + 1) if place not in self._held)
        return tuple(islice(missing, _ASKED_MAX))

    def leave(self, process: ProcessId) -> None:
        """That one is not asked any more."""
        if process in self._others:
            self._others.remove(process)

    def whom_to_ask(self) -> ProcessId:
        """The origin first, then any member in turn; the origin every other time, for it surely has what is missing."""
        attempt, others = self._attempt, self._others
        self._attempt += 1
        return others[attempt // 2 % len(others)] if attempt % 2 and others else self._origin

    def _note(self, place: int, now: int) -> None:
        self._known = max(self._known, place)
        if self._end >= self._known:
            self.ask_at = self.lacks_since = None
            self._patience.reset()
            self._attempt = 0
        elif self.ask_at is None:
            self.ask_at = self.lacks_since = now
            self.asked = 0


class _Outgoing(_Store):
    """Our own stream."""

    def __init__(self, others: frozenset[ProcessId], settings: NewtopSettings) -> None:
        super().__init__()
        self.last = 0
        self.tell_at: int | None = None
        self._acknowledged = dict.fromkeys(sorted(others), 0)
        self._sent_at: dict[int, int] = {}  # by place, of what is held
        self._progress_at = dict.fromkeys(sorted(others), 0)
        self._unanswered = dict.fromkeys(sorted(others), 0)  # how often each was told since it last answered
        self._agreement: deque[int] = deque()  # places of what agreement needs, which stability says nothing about
        self._patience = Patience(settings)

    def append(self, frame: Sequenced, now: int) -> Sequenced:
        self.last += 1
        placed = _placed(frame, self.last)
        if self._acknowledged:
            self._held[self.last] = placed
            self._sent_at[self.last] = now
            if isinstance(placed, MembershipFrame):
                self._agreement.append(self.last)
            if self.tell_at is None:
                self._patience.reset()
                self.tell_at = now + self._patience.wait()
        return placed

    def deaf_since(self, member: ProcessId) -> int | None:
        """Since when the next place that it lacks is under way, and no other was acknowledged, though often told."""
        if self._unanswered.get(member, 0) < _TRIES:
            return None
        sent_at = self._sent_at.get(self._acknowledged.get(member, self.last) + 1)
        return None if sent_at is None else max(sent_at, self._progress_at[member])

    def acknowledged(self, member: ProcessId, upto: int, now: int) -> None:
        """One member has everything up to there; what all have is not kept."""
        self._progress_at[member] = now
        self._unanswered[member] = 0
        if min(upto, self.last) > self._acknowledged[member]:
            self._acknowledged[member] = min(upto, self.last)
            if upto >= self.last:
                self._patience.progress()
            super().forget(min(self._acknowledged.values()))
        if self._forgotten >= self.last and self.tell_at is not None:
            self.tell_at = min(self.tell_at, now + self._patience.bound_ns)  # to find that there is nothing to tell

    def leave(self, process: ProcessId) -> None:
        """Nobody waits for its acknowledgments any more."""
        self._acknowledged.pop(process, None)
        self._progress_at.pop(process, None)
        self._unanswered.pop(process, None)
        super().forget(min(self._acknowledged.values(), default=self.last))
        if self._forgotten >= self.last:
            self.tell_at = None

    def forget(self, upto: int) -> None:
        """Stability says what acknowledgments would: everybody has it.

        Not of the frames of the agreement before it: a refutation brings numbers, and not what stands between them.
        """
        while self._agreement and self._agreement[0] <= self._forgotten:
            self._agreement.popleft()
        if self._agreement:
            upto = min(upto, self._agreement[0] - 1)
        for member, place in self._acknowledged.items():
            self._acknowledged[member] = max(place, upto)
        super().forget(upto)

    def _drop(self, place: int) -> None:
        super()._drop(place)
        self._sent_at.pop(place, None)

    def due(self, now: int) -> list[ProcessId]:
        """Whom to tell our last place now: everybody who has not acknowledged it."""
        if self.tell_at is None or now < self.tell_at:
            return []
        behind = [member for member, place in self._acknowledged.items() if place < self.last]
        for member in behind:
            self._unanswered[member] += 1
        self.tell_at = now + self._patience.wait() if behind else None
        return behind


def _bytes(frame: Frame) -> int:
    """Roughly what a copy takes in a repair."""
    stamp = frame.stamp if isinstance(frame, BlockFrame) else None
    return _COPY_BYTES + sum(map(len, frame.payloads)) + (40 * sum(map(len, stamp)) if stamp is not None else 0)


def _placed(frame: Sequenced, place: int) -> Sequenced:
    if isinstance(frame, BlockFrame):
        return frame._replace(sequence=place)
    return replace(frame, sequence=place)
