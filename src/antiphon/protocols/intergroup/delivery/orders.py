"""The orders of delivery; each receiver chooses one for itself (Berket00 §4.6 to 4.9).

An order is given what arrives, and returns what is delivered next. Every sender runs `GroupTimestamp`, whichever
service its application chose (D10), because its gate is what the sender acknowledges (J0).
Section numbers below are those of docs/spec/intergroup.md.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Generic

from antiphon.protocols.intergroup.delivery.stream import Message, Stream
from antiphon.types import ProcessId


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
        self.streams: dict[ProcessId, Stream[Message]] = {
            member: stream(first, start) for member, first in members.items() if member != me
        }
        self.gate = start
        """Everything with a stamp up to here has been delivered."""
        self.delivered = {member: first - 1 for member, first in members.items()}
        """For each member, the number of its message delivered last."""
        self._ready: list[tuple[int, ProcessId, int, Message]] = []

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

    def deliverable(self, clock: int) -> list[Message]:
        """Take out what is delivered next, given our own clock."""
        horizon = min(
            [stream.horizon for stream in self.streams.values()] + ([clock] if self._me else []), default=clock
        )
        self.gate = max(self.gate, int(horizon))
        delivered = []
        while self._ready and self._ready[0][0] <= self.gate:
            _, sender, seq, message = heappop(self._ready)
            self.delivered[sender] = seq
            delivered.append(message)
        return delivered


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
    """By (timestamp, sender); ignores gaps, and waits for no sender longer than `wait_us` (6.4)."""

    def __init__(self, members: Iterable[ProcessId], wait_us: int) -> None:
        self._seen = dict.fromkeys(members, 0)
        self._wait_us = wait_us
        self._ready: list[tuple[int, ProcessId, int, Message]] = []
        self._last: tuple[int, ProcessId] = (-1, ProcessId(""))

    def seen(self, sender: ProcessId, clock: int) -> None:
        """Some frame of that member has this stamp."""
        self._seen[sender] = max(self._seen.get(sender, 0), clock)

    def data(self, sender: ProcessId, message: Message) -> None:
        """Add a message; it is dropped if a higher one was delivered before."""
        if (message.clock, sender) > self._last:
            heappush(self._ready, (message.clock, sender, message.seq, message))

    def deadline(self) -> int | None:
        """The wall time, in microseconds, at which the next message is delivered even if others are awaited."""
        return self._ready[0][0] + self._wait_us if self._ready else None

    def deliverable(self, wall_us: int) -> list[Message]:
        """Take out what is delivered next."""
        gate, delivered = min(self._seen.values()), []
        while self._ready and (self._ready[0][0] <= gate or wall_us >= self._ready[0][0] + self._wait_us):
            clock, sender, _, message = heappop(self._ready)
            if (clock, sender) > self._last:  # a duplicate is not above
                self._last = clock, sender
                delivered.append(message)
        return delivered
