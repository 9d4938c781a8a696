"""In which order an application gets messages: each receiver chooses for itself (Berket00 §4.6 to 4.9).

An order is told what has come, and gives what the application gets next. `GroupTimestamp` is what every sender runs,
whatever its application chose (D10): its gate is what the sender acknowledges (J0).
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Generic

from antiphon.protocols.intergroup.stream import Message, Stream
from antiphon.types import ProcessId


class GroupTimestamp(Generic[Message]):
    """Reliable group timestamp order: by (timestamp, sender), as far as nothing lower can still come (6.3; D5, D6)."""

    def __init__(
        self,
        me: ProcessId | None,
        members: Mapping[ProcessId, int],
        start: int,
        stream: type[Stream[Message]] = Stream,
    ) -> None:
        """`members`: of each the number of its first message that is wanted; all of them are past the stamp `start`.

        `me`, if we are one of them: our own horizon is our clock, and nobody has to tell it to us.
        """
        self._me = me
        self.streams: dict[ProcessId, Stream[Message]] = {
            member: stream(first, start) for member, first in members.items() if member != me
        }
        self.gate = start
        """Everything stamped up to here has been delivered."""
        self.delivered = {member: first - 1 for member, first in members.items()}
        """Of each member, the number of its last message that was."""
        self._ready: list[tuple[int, ProcessId, int, Message]] = []

    def own(self, message: Message) -> None:
        """A message of ours leaves."""
        assert self._me is not None
        heappush(self._ready, (message.clock, self._me, message.seq, message))

    def data(self, sender: ProcessId, message: Message) -> list[Message]:
        """A message of that member came: what is in the order of its sender now."""
        in_order = self.streams[sender].data(message)
        for following in in_order:
            heappush(self._ready, (following.clock, sender, following.seq, following))
        return in_order

    def deliverable(self, clock: int) -> list[Message]:
        """What comes next, our own clock being so far."""
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
    """Reliable source order, of the sources that were asked for and have answered (6.2)."""

    def __init__(self, stream: type[Stream[Message]] = Stream) -> None:
        self.streams: dict[ProcessId, Stream[Message]] = {}
        self._stream = stream

    def activate(self, source: ProcessId, first: int, horizon: int) -> None:
        """From that number on, inclusive (D1)."""
        self.streams[source] = self._stream(first, horizon)

    def drop(self, source: ProcessId) -> None:
        """It is lost to us."""
        self.streams.pop(source, None)

    def data(self, source: ProcessId, message: Message) -> list[Message]:
        """What comes next."""
        stream = self.streams.get(source)
        return stream.data(message) if stream else []


class UnreliableSourceOrder(Generic[Message]):
    """Whatever comes in order; what comes too late, or never, is left out (6.4)."""

    def __init__(self) -> None:
        self._last: dict[ProcessId, int] = {}

    def data(self, source: ProcessId, message: Message) -> list[Message]:
        """The message, or nothing."""
        if message.seq <= self._last.get(source, -1):
            return []
        self._last[source] = message.seq
        return [message]


class UnreliableTimestampOrder(Generic[Message]):
    """By (timestamp, sender), gaps ignored, and nobody waited for longer than a while (6.4)."""

    def __init__(self, members: Iterable[ProcessId], wait_us: int) -> None:
        self._seen = dict.fromkeys(members, 0)
        self._wait_us = wait_us
        self._ready: list[tuple[int, ProcessId, int, Message]] = []
        self._last: tuple[int, ProcessId] = (-1, ProcessId(""))

    def seen(self, sender: ProcessId, clock: int) -> None:
        """A stamp of that member, whatever bore it."""
        self._seen[sender] = max(self._seen.get(sender, 0), clock)

    def data(self, sender: ProcessId, message: Message) -> None:
        """A message came; below what was delivered it is too late."""
        if (message.clock, sender) > self._last:
            heappush(self._ready, (message.clock, sender, message.seq, message))

    def deadline(self) -> int | None:
        """Up to which wall time, in microseconds, the next message may be waited for."""
        return self._ready[0][0] + self._wait_us if self._ready else None

    def deliverable(self, wall_us: int) -> list[Message]:
        """What comes next."""
        gate, delivered = min(self._seen.values()), []
        while self._ready and (self._ready[0][0] <= gate or wall_us >= self._ready[0][0] + self._wait_us):
            clock, sender, _, message = heappop(self._ready)
            if (clock, sender) > self._last:  # a duplicate is not above
                self._last = clock, sender
                delivered.append(message)
        return delivered
