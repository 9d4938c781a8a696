"""Names of messages: a path such as `bids/7`, whose last part is a leaf of its container (intergroup.md 6.4, ours).

Within a container a sender numbers its messages from 1; keep-alives tell how many there are, so that an application can
find out what it lacks and ask for it. Messages without a name have a container of their own.
"""

from typing import Final

from antiphon.protocols.intergroup.requests import Ticket
from antiphon.protocols.intergroup.stream import GAP_MAX
from antiphon.types import ProcessId

CONTAINERS_TOLD: Final = 32
"""A keep-alive tells of the containers used last, no more than these."""


UNNAMED: Final = b"."
"""The container of messages without a name."""


def container_of(name: bytes) -> bytes:
    """What comes before the leaf."""
    return name.rpartition(b"/")[0] or UNNAMED


class Given:
    """The names that one sender gives."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}  # in the order of last use

    def place(self, name: bytes) -> int:
        """The number of the next message in the container of that name."""
        container = container_of(name)
        count = self._counts.pop(container, 0) + 1
        self._counts[container] = count
        if len(self._counts) > CONTAINERS_TOLD:
            del self._counts[next(iter(self._counts))]
        return count

    def told(self) -> tuple[tuple[bytes, int], ...]:
        """How many there are in each of the containers used last."""
        return tuple(self._counts.items())


class _Places:
    """Of one container of one sender."""

    __slots__ = ("_ahead", "_prefix", "known")

    def __init__(self) -> None:
        self._prefix = self.known = 0
        self._ahead: set[int] = set()

    def take(self, place: int) -> bool:
        """It is here; whether that is new."""
        if place <= self._prefix or place in self._ahead:
            return False
        self._ahead.add(place)
        while self._prefix + 1 in self._ahead:
            self._prefix += 1
            self._ahead.remove(self._prefix)
        return True

    def lacking(self, upto: int) -> tuple[int, ...]:
        """Those of which it was not known before that they exist, and which are not here."""
        begin, upto = self.known + 1, min(upto, self.known + GAP_MAX)
        self.known = max(self.known, upto)
        return tuple(place for place in range(begin, upto + 1) if place > self._prefix and place not in self._ahead)


class Collected:
    """What a receiver has of what others have sent, by container; each of them from its first message on."""

    def __init__(self) -> None:
        self._places: dict[tuple[ProcessId, bytes], _Places] = {}

    def take(self, ticket: Ticket) -> bool:
        """A message came; whether it is new."""
        return self._of(ticket.sender, ticket.container).take(ticket.seq)

    def lacking(self, sender: ProcessId, container: bytes, upto: int) -> tuple[int, ...]:
        """What is newly known to be missing, the container having so many."""
        return self._of(sender, container).lacking(upto)

    def _of(self, sender: ProcessId, container: bytes) -> _Places:
        return self._places.setdefault((sender, container), _Places())
