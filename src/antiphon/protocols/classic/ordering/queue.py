"""The message queue of a site in algorithm A: ordered by stamp, delivered from the top while it is deliverable."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from antiphon.protocols.classic.frames import DataFrame, MessageName, Stamp
from antiphon.types import ProcessId


@dataclass(slots=True)
class Entry:
    """A message from its arrival to its delivery."""

    frame: DataFrame
    stamp: Stamp
    """The proposal of this site; of a deliverable message, the final stamp."""
    deliverable: bool = False
    taker: ProcessId | None = None
    """The process that completes it in place of its lost originator, as far as we know in this epoch."""


class StampedQueue:
    """A heap of stamps. A replaced stamp stays in it until it comes to the top."""

    def __init__(self) -> None:
        self._entries: dict[MessageName, Entry] = {}
        self._heap: list[tuple[Stamp, MessageName]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[MessageName, Entry]]:
        """In the order of arrival."""
        return iter(self._entries.items())

    @property
    def contents(self) -> list[tuple[MessageName, Stamp, bool]]:
        """Message, stamp and whether it is deliverable, in queue order; for tests."""
        rows = [(message, entry.stamp, entry.deliverable) for message, entry in self]
        return sorted(rows, key=lambda row: row[1])

    def get(self, message: MessageName) -> Entry | None:
        return self._entries.get(message)

    def add(self, entry: Entry) -> None:
        name = entry.frame.name
        self._entries[name] = entry
        heappush(self._heap, (entry.stamp, name))

    def commit(self, entry: Entry, stamp: Stamp) -> None:
        """Make it deliverable under its final stamp."""
        entry.deliverable = True
        if stamp != entry.stamp:
            entry.stamp = stamp
            heappush(self._heap, (stamp, entry.frame.name))

    def take(self) -> list[DataFrame]:
        """Remove what is deliverable at the top, and return it with final stamps."""
        heap, entries, taken = self._heap, self._entries, []
        while heap:
            stamp, name = heap[0]
            entry = entries.get(name)
            current = entry is not None and entry.stamp == stamp
            if entry is not None and current:
                if not entry.deliverable:
                    break
                del entries[name]
                taken.append(entry.frame._replace(stamp=stamp))
            heappop(heap)
        return taken
