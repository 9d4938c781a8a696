"""The orders of delivery; each receiver chooses one for itself (Berket00 §4.6 to 4.9).

An order is given what arrives, and returns what is delivered next. Every sender runs `GroupTimestamp`, whichever
service its application chose (D10), because its gate is what the sender acknowledges (J0).
Section numbers below are those of docs/spec/intergroup.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final, Generic

from antiphon.protocols.intergroup.delivery.stream import Message, Stream
from antiphon.types import ProcessId

_SILENT_WAITS: Final = 20


class GroupTimestamp(Generic[Message]):
    """Reliable group timestamp order: by (timestamp, sender), up to where nothing lower can arrive (6.3; D5, D6)."""

    def __init__(
        self,
        me: ProcessId | None,
        members: Mapping[ProcessId, int],
        start: int,
        stream: type[Stream[Message]] = Stream,
    ) -> None:
        """`members`: for each, the number of its first message to be delivered; all of these have stamps above `start`.

        `me`: set if this process is one of the members. Then our clock is our horizon, and we have no stream of ours.
        """
        self._me = me
        self._stream = stream
        self.streams: dict[ProcessId, Stream[Message]] = {
            member: stream(first, start) for member, first in members.items() if member != me
        }
        self.gate = start
        """Everything with a stamp up to here has been delivered."""
        self.delivered = {member: first - 1 for member, first in members.items()}
        """For each process that is or was a member, the number of its message delivered last."""
        self._ready: list[tuple[int, ProcessId, int, Message]] = []
        self._last = start  # the stamp of the message delivered last
        self._has_changed = False

    def own(self, message: Message) -> None:
        """A message of ours leaves."""
        assert self._me is not None
        heappush(self._ready, (message.clock, self._me, message.seq, message))

    def data(self, sender: ProcessId, message: Message) -> list[Message]:
        """Add a message of that member; returns those that are now in the order of their sender."""
        in_order = self.streams[sender].data(message)
        for following in in_order:
            heappush(self._ready, (following.clock, sender, following.seq, following))
        return in_order

    def add(self, member: ProcessId, first: int, horizon: int, *, is_me: bool) -> None:
        """A message just delivered adds a member (PAdd); its stamps are above `horizon`."""
        self.delivered[member] = first - 1
        self._has_changed = True
        if is_me:
            self._me = member
        else:
            self.streams[member] = self._stream(first, horizon)

    def remove(self, member: ProcessId) -> None:
        """A message just delivered is the last one of a member (PLeave)."""
        self._has_changed = True
        if member == self._me:
            self._me = None
        else:
            del self.streams[member]

    def deliverable(self, clock: int) -> Iterator[Message]:
        """Take out what is delivered next, given our own clock. The caller may add and remove members after each."""
        least = self._least_horizon(clock)
        while self._ready and self._ready[0][0] <= least:
            self._last, sender, seq, message = heappop(self._ready)
            self.delivered[sender] = seq
            yield message
            if self._has_changed:
                least, self._has_changed = self._least_horizon(clock), False
        self.gate = max(self.gate, int(least))

    def _least_horizon(self, clock: int) -> float:
        horizons = [stream.horizon for stream in self.streams.values()]
        if self._me is not None:
            horizons.append(clock)
        return min(horizons, default=max(self.gate, self._last))


class SourceOrder(Generic[Message]):
    """Reliable source order, for the sources that have accepted our request (6.2)."""

    def __init__(self, stream: type[Stream[Message]] = Stream) -> None:
        self.streams: dict[ProcessId, Stream[Message]] = {}
        self._stream = stream

    def activate(self, source: ProcessId, first: int, horizon: int) -> None:
        """Deliver from number `first` on, inclusive (D1)."""
        self.streams[source] = self._stream(first, horizon)

    def drop(self, source: ProcessId) -> None:
        """The source is lost."""
        self.streams.pop(source, None)

    def data(self, source: ProcessId, message: Message) -> list[Message]:
        """Add a message; returns what is delivered next."""
        stream = self.streams.get(source)
        return stream.data(message) if stream else []


class UnreliableSourceOrder(Generic[Message]):
    """Source order without repair: what arrives after a later message is left out (6.4)."""

    def __init__(self) -> None:
        self._last: dict[ProcessId, int] = {}

    def data(self, source: ProcessId, message: Message) -> list[Message]:
        """The message, or nothing if it comes too late."""
        if message.seq <= self._last.get(source, -1):
            return []
        self._last[source] = message.seq
        return [message]


class UnreliableTimestampOrder(Generic[Message]):
    """By (timestamp, sender); ignores gaps, and waits for no sender longer than `wait_us` (6.4).

    It waits for these members at first, and for every sender that it has heard lately.
    """

    def __init__(self, members: Iterable[ProcessId], wait_us: int) -> None:
        self._seen = dict.fromkeys(members, 0)
        self._heard_us: dict[ProcessId, int] = {}
        self._fresh = {*self._seen}
        """The senders heard since the last `deliverable`, which tells the time."""
        self._wait_us = wait_us
        self._ready: list[tuple[int, ProcessId, int, Message]] = []
        self._last: tuple[int, ProcessId] = (-1, ProcessId(""))

    def seen(self, sender: ProcessId, clock: int) -> None:
        """Some frame of that sender has this stamp."""
        self._seen[sender] = max(self._seen.get(sender, 0), clock)
        self._fresh.add(sender)

    def data(self, sender: ProcessId, message: Message) -> None:
        """Add a message; it is dropped if a higher one was delivered before."""
        if (message.clock, sender) > self._last:
            heappush(self._ready, (message.clock, sender, message.seq, message))

    def deadline(self) -> int | None:
        """The wall time, in microseconds, at which the next message is delivered even if others are awaited."""
        return self._ready[0][0] + self._wait_us if self._ready else None

    def deliverable(self, wall_us: int) -> list[Message]:
        """Take out what is delivered next."""
        self._forget_silent(wall_us)
        gate, delivered = min(self._seen.values(), default=0), []
        while self._ready and (self._ready[0][0] <= gate or wall_us >= self._ready[0][0] + self._wait_us):
            clock, sender, _, message = heappop(self._ready)
            if (clock, sender) > self._last:  # a duplicate is not above
                self._last = clock, sender
                delivered.append(message)
        return delivered

    def clear(self) -> None:
        """Drop what waits."""
        self._ready.clear()

    def _forget_silent(self, wall_us: int) -> None:
        """A sender that is silent for many waits delays nothing any more."""
        for sender in self._fresh:
            self._heard_us[sender] = wall_us
        self._fresh.clear()
        for sender in [each for each, at in self._heard_us.items() if wall_us - at > _SILENT_WAITS * self._wait_us]:
            del self._heard_us[sender], self._seen[sender]
