"""Repair: FIFO, lossless streams on a transport that loses, duplicates and reorders (docs/spec/newtop.md 4, E-66).

Every frame that a member multicasts in a group, numbered or control, has the next place in one stream. The group
above receives only the gap-free prefix of each stream. A gap is requested at once, first from its origin, then from
the other members one after the other. No gap shows the end of a stream, so the sender repeats its last place until
all members have acknowledged it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from antiphon.core.effects import Channel, Effect, Frame, Transmit
from antiphon.protocols.newtop import bounds
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
"""Maximum places in one request; if more are missing, the rest is requested later."""


_TRIES: Final = 8
"""Number of waits without progress that keep to their bound; a peer that answers none of them may be deaf."""
_DOUBLINGS_MAX: Final = 6
"""Number of doublings of the bound after that: from 125 ms to 8 s."""
_DOUBLINGS_MAX_SUSPECTED: Final = 2
"""With suspicion: a silent member must be asked often enough before it counts as deaf."""
_SETTLED_SLACK: Final = 1024
"""How far a stream may be settled beyond the places that we know of; we did not need those in between."""
_COPY_BYTES: Final = 100
"""Approximate cost of a copy in a repair besides its payloads."""


class Recovery:
    """The streams of one group at one member: its own, and one for each other member."""

    def __init__(self, me: ProcessId, view: View, settings: NewtopSettings) -> None:
        self._me = me
        self._group = view.group
        self._incoming = {other: _Incoming(other, me, view, settings) for other in view.members if other != me}
        self._outgoing = _Outgoing(frozenset(self._incoming), settings)
        self._frame_bytes_max = settings.frame_bytes_max
        self._replies: list[tuple[ProcessId, NewtopFrame]] = []

    @property
    def deadline(self) -> int | None:
        """When a request or status must be repeated."""
        times = [stream.ask_at for stream in self._incoming.values()]
        times.append(self._outgoing.tell_at)
        return min((time for time in times if time is not None), default=None)

    def outgoing(self, frame: Sequenced, now: int) -> Sequenced:
        """Assign a place in our stream to an own frame, and keep it."""
        return self._outgoing.append(frame, now)

    def receive(self, frame: NewtopFrame, now: int) -> list[SequencedFrame]:
        """A frame is received: returns the frames that are now next in their streams, in order."""
        if frame.sender not in self._incoming:
            return []
        if isinstance(frame, RepairFrame):
            self._require_requested(frame)
            return [each for copy in frame.copies for each in self._receive_copy(copy, now, relayed_by=frame.sender)]
        if isinstance(frame, StatusFrame):
            return self._status(frame, now)
        if isinstance(frame, AliveFrame) and not frame.sequence:
            return [frame]  # only a sign of life
        if isinstance(frame, AckFrame):
            self._require_sent(frame.upto)
            self._outgoing.acknowledged(frame.sender, frame.upto, now)
        elif isinstance(frame, RequestFrame):
            if frame.origin == self._me:
                self._require_sent(max(frame.missing, default=0))
            self._serve(frame)
        else:
            self._incoming[frame.sender].require_near(frame.sequence)
            return self._receive_copy(frame, now)
        return []

    def drain(self, now: int, effects: list[Effect]) -> None:
        """Send due requests, statuses and acknowledgments."""
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
        """Every member holds these frames, and all that come before them in their streams."""
        for frame in frames:
            stream = self._outgoing if frame.sender == self._me else self._incoming.get(frame.sender)
            if stream is not None:
                stream.forget(frame.sequence)

    def refuted(self, frame: BlockFrame) -> None:
        """A refutation has brought a message, whatever its place in its stream."""
        stream = self._incoming.get(frame.sender)
        if stream is not None:
            stream.refuted(frame.sequence)

    def has_skipped(self, process: ProcessId) -> bool:
        """True if it kept no copies for us: it has probably excluded us, so a gap in its numbers is no lie (E-78)."""
        stream = self._incoming.get(process)
        return stream is not None and stream.skipped

    @property
    def waits(self) -> bool:
        """True if we wait for an acknowledgment or a repair."""
        return self._outgoing.tell_at is not None or any(
            stream.ask_at is not None for stream in self._incoming.values()
        )

    def deaf_since(self, process: ProcessId) -> int | None:
        """Since when a member owes an acknowledgment or a repair; None if it owes none."""
        stream, silence = self._incoming.get(process), self._outgoing.deaf_since(process)
        gap = None if stream is None or stream.asked < _TRIES else stream.lacks_since
        return silence if gap is None else gap if silence is None else min(gap, silence)

    def fail(self, process: ProcessId) -> None:
        """It has failed: nothing more is requested from it."""
        for stream in self._incoming.values():
            stream.leave(process)

    def forget(self, process: ProcessId) -> None:
        """It is no longer in our view: nothing is kept for it (docs/spec/newtop.md 4, rule 8)."""
        self._incoming.pop(process, None)
        self._outgoing.leave(process)

    def relayed(self, process: ProcessId) -> int:
        """The number of frames in a row of that member that another member repaired."""
        stream = self._incoming.get(process)
        return 0 if stream is None else stream.relayed

    def _receive_copy(
        self, frame: SequencedFrame, now: int, relayed_by: ProcessId | None = None
    ) -> list[SequencedFrame]:
        """A copy counts as coming from its origin, not from the member that relayed it (rule 7)."""
        stream = self._incoming.get(frame.sender)
        if stream is None:
            return []
        stream.note_way(direct=relayed_by is None or relayed_by == frame.sender)
        return stream.receive(frame, now)

    def _require_sent(self, place: int) -> None:
        """Refuse an acknowledgment of, or a request for, what we have not sent."""
        if place > self._outgoing.last:
            bounds.refuse("place in our stream", place, self._outgoing.last)

    def _require_requested(self, frame: RepairFrame) -> None:
        """Refuse copies that we cannot have requested: a relayer does not tell how far a stream is."""
        for copy in frame.copies:
            stream = self._incoming.get(copy.sender)
            if stream is not None and copy.sender == frame.sender:
                stream.require_near(copy.sequence)
            elif stream is not None:
                stream.require_known(copy.sequence)

    def _status(self, frame: StatusFrame, now: int) -> list[SequencedFrame]:
        stream = self._incoming[frame.sender]
        stream.require_near(frame.last)
        stream.require_settled(frame.settled)
        ready = stream.skip(frame.settled, now) if frame.settled <= frame.last else []
        stream.forget(frame.settled)
        reached = stream.reached(
            frame.last, now
        )  # also if the answer is partial: otherwise, with heavy loss, we seem deaf
        self._replies.append((frame.sender, AckFrame(self._group, self._me, reached)))
        return ready

    def _serve(self, frame: RequestFrame) -> None:
        """Send unchanged copies of the frames that we hold, as many per frame as fit."""
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
    """The wait before the next repetition: it grows each time, until nothing is missing.

    Partial progress does not shorten it: if answers are late because lines or hosts are busy, more requests delay them
    further. For the same reason waits grow beyond their bound after several attempts without progress.
    """

    def __init__(self, settings: NewtopSettings) -> None:
        self._first_ns, self.bound_ns = settings.repair_ns, settings.repair_max_ns
        self._doublings_max = _DOUBLINGS_MAX_SUSPECTED if settings.suspect_after_ns else _DOUBLINGS_MAX
        self._waits = 0

    def reset(self) -> None:
        """Start over: nothing is missing, or everything is new."""
        self._waits = 0

    def progress(self) -> None:
        """There was progress: return to the bound, not to the beginning."""
        self._waits = min(self._waits, _TRIES // 2)

    def wait(self) -> int:
        """The current wait."""
        self._waits += 1
        if self._waits > _TRIES:
            return self.bound_ns << min(self._waits - _TRIES, self._doublings_max)
        return min(self._first_ns << (self._waits - 1), self.bound_ns)


class _Store:
    """Frames of one stream by their place, kept for members that may lack them."""

    def __init__(self) -> None:
        self._held: dict[int, SequencedFrame] = {}
        self._forgotten = 0

    @property
    def settled(self) -> int:
        """All members are known to have the stream up to this place."""
        return self._forgotten

    def copies(self, places: Iterable[int]) -> list[SequencedFrame]:
        """The requested frames that are held."""
        return [self._held[place] for place in places if place in self._held]

    def forget(self, upto: int) -> None:
        """All members have all places up to this one."""
        few = upto - self._forgotten <= len(self._held)
        for place in range(self._forgotten + 1, upto + 1) if few else [each for each in self._held if each <= upto]:
            self._drop(place)
        self._forgotten = max(self._forgotten, upto)

    def _drop(self, place: int) -> None:
        self._held.pop(place, None)


class _Incoming(_Store):
    """The stream of another member. Invariant: all places up to `_end` were passed to the group, in order."""

    def __init__(self, origin: ProcessId, me: ProcessId, view: View, settings: NewtopSettings) -> None:
        super().__init__()
        self.ask_at: int | None = None
        self.lacks_since: int | None = None
        """Since when there is a gap, and the gap-free prefix has not grown."""
        self.asked = 0
        """Number of requests since then."""
        self.relayed = 0
        """Consecutive copies from other members, since the origin itself last sent one."""
        self.skipped = False
        """Whether places that we lacked were skipped."""
        others = [member for member in view.members if member not in (origin, me)]
        self._origin = origin
        self._others = others
        self._attempt = 0
        self._end = 0
        self._known = 0  # the largest known place
        self._refuted = 0  # the largest place of a message that a refutation has brought
        self._patience = Patience(settings)

    def refuted(self, place: int) -> None:
        """A refutation has brought the message of this place."""
        self._refuted = max(self._refuted, place)

    def require_near(self, place: int) -> None:
        """Refuse a place that the stream cannot have got to."""
        if place > (most := self._known + bounds.PLACES_STEP):
            bounds.refuse(f"place in the stream of {self._origin}", place, most)

    def require_known(self, place: int) -> None:
        """Refuse a place that we have not heard of."""
        if place > self._known:
            bounds.refuse(f"place in the stream of {self._origin}", place, self._known)

    def require_settled(self, place: int) -> None:
        """Refuse a place as settled that is far beyond those that we know of (E-78).

        Places that are skipped wrongly leave a gap in the numbers, which is refused.
        """
        if place > (most := max(self._known, self._refuted) + _SETTLED_SLACK):
            bounds.refuse(f"settled place in the stream of {self._origin}", place, most)

    def receive(self, frame: SequencedFrame, now: int) -> list[SequencedFrame]:
        """Keep a frame; returns the frames that it completes. At or below the end of the chain it is a duplicate."""
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

    def note_way(self, *, direct: bool) -> None:
        """Count whether a frame came from the origin itself, or from another member."""
        self.relayed = 0 if direct else self.relayed + 1

    def forget(self, upto: int) -> None:
        """All members have the stream up to this place; we never free what we have not passed to the group."""
        super().forget(min(upto, self._end))

    def skip(self, settled: int, now: int) -> list[SequencedFrame]:
        """Its origin has settled the stream up to there, so no copies are left: skip the missing frames (E-78).

        They are numbers that a refutation has brought us, or announcements before such a number.
        """
        ready = [self._held[place] for place in sorted(self._held) if self._end < place <= settled]
        if settled > self._end:
            self.skipped = self.skipped or len(ready) < settled - self._end
            self._end, self.lacks_since, self.asked = settled, now, 0
        return ready + self._following()

    def _following(self) -> list[SequencedFrame]:
        ready = []
        while (following := self._held.get(self._end + 1)) is not None:
            self._end += 1
            ready.append(following)
        return ready

    def reached(self, last: int, now: int) -> int:
        """The end of the gap-free prefix; missing places up to `last` are requested from now on."""
        self._note(last, now)
        return min(self._end, last)

    def due(self, now: int) -> tuple[int, ...]:
        """The places to request now: all that are missing, not one at a time (rule 5)."""
        if self.ask_at is None or now < self.ask_at:
            return ()
        self.ask_at = now + self._patience.wait()
        self.asked += 1
        missing = (place for place in range(self._end + 1, self._known + 1) if place not in self._held)
        return tuple(islice(missing, _ASKED_MAX))

    def leave(self, process: ProcessId) -> None:
        """Do not ask this member any more."""
        if process in self._others:
            self._others.remove(process)

    def whom_to_ask(self) -> ProcessId:
        """The member to ask: the origin every other time, because it has all frames; otherwise the next member."""
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
        self._sent_at: dict[int, int] = {}  # when each held frame was sent, by place
        self._progress_at = dict.fromkeys(sorted(others), 0)
        self._unanswered = dict.fromkeys(sorted(others), 0)  # number of statuses since its last answer
        self._agreement: deque[int] = deque()  # places of frames of the agreement, which stability does not cover
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
        """Since when the next place that it lacks is under way without any acknowledgment, after many statuses."""
        if self._unanswered.get(member, 0) < _TRIES:
            return None
        sent_at = self._sent_at.get(self._acknowledged.get(member, self.last) + 1)
        return None if sent_at is None else max(sent_at, self._progress_at[member])

    def acknowledged(self, member: ProcessId, upto: int, now: int) -> None:
        """One member has everything up to this place; frames that all have are freed."""
        self._progress_at[member] = now
        self._unanswered[member] = 0
        if min(upto, self.last) > self._acknowledged[member]:
            self._acknowledged[member] = min(upto, self.last)
            if upto >= self.last:
                self._patience.progress()
            super().forget(min(self._acknowledged.values()))
        if self._forgotten >= self.last and self.tell_at is not None:
            self.tell_at = min(self.tell_at, now + self._patience.bound_ns)  # the check will find that no status is due

    def leave(self, process: ProcessId) -> None:
        """Stop waiting for its acknowledgments."""
        self._acknowledged.pop(process, None)
        self._progress_at.pop(process, None)
        self._unanswered.pop(process, None)
        super().forget(min(self._acknowledged.values(), default=self.last))
        if self._forgotten >= self.last:
            self.tell_at = None

    def forget(self, upto: int) -> None:
        """Stability replaces acknowledgments: all members have the frame.

        This does not cover earlier frames of the agreement: a refutation brings numbered frames only.
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
        """The members that get a status now: all that have not acknowledged our last place."""
        if self.tell_at is None or now < self.tell_at:
            return []
        behind = [member for member, place in self._acknowledged.items() if place < self.last]
        for member in behind:
            self._unanswered[member] += 1
        self.tell_at = now + self._patience.wait() if behind else None
        return behind


def _bytes(frame: Frame) -> int:
    """Approximate size of a copy in a repair."""
    stamp = frame.stamp if isinstance(frame, BlockFrame) else None
    return _COPY_BYTES + sum(map(len, frame.payloads)) + (40 * sum(map(len, stamp)) if stamp is not None else 0)


def _placed(frame: Sequenced, place: int) -> Sequenced:
    if isinstance(frame, BlockFrame):
        return frame._replace(sequence=place)
    return replace(frame, sequence=place)
