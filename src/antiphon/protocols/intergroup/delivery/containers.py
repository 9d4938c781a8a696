"""Names of messages: a path such as `bids/7`: a container, and a leaf in it.

Ours; docs/spec/intergroup.md 6.4. A sender numbers its messages in each container from 1. Keep-alives tell how many
messages a container has, so that an application can find out what it lacks and request it. Messages without a name
share one container.
"""

from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.protocols.intergroup.delivery.stream import GAP_MAX
from antiphon.protocols.intergroup.tickets import Ticket, container_of
from antiphon.types import ProcessId

CONTAINERS_TOLD: Final = 32
"""A keep-alive tells of at most this number of containers; the next one tells of the following ones."""
CONTAINERS_MAX: Final = 65_536
"""A sender uses at most this number of containers in a group: each has a counter for as long as the process lives."""


class ContainerCounts:
    """How many messages a sender has sent in each of its containers."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._containers: list[bytes] = []  # in the order of first use
        self._next = 0
        """The place of the container that the next keep-alive begins with."""

    def admit(self, name: bytes) -> None:
        """Refuse a name whose container would be one too many."""
        if len(self._counts) >= CONTAINERS_MAX and container_of(name) not in self._counts:
            raise ConfigurationError(f"a sender has at most {CONTAINERS_MAX:,} containers in a group")

    def next_place(self, name: bytes) -> int:
        """The number of the next message in the container of that name."""
        container = container_of(name)
        if container not in self._counts:
            self._containers.append(container)
        self._counts[container] = count = self._counts.get(container, 0) + 1
        return count

    def told(self) -> tuple[tuple[bytes, int], ...]:
        """What the next keep-alive tells: some containers with their numbers of messages, in turn."""
        part = self._containers[self._next : self._next + CONTAINERS_TOLD]
        self._next += CONTAINERS_TOLD
        if self._next >= len(self._containers):
            self._next = 0
        return tuple((container, self._counts[container]) for container in part)


class _Places:
    """The messages that a receiver has of one container of one sender."""

    __slots__ = ("_ahead", "_prefix", "known")

    def __init__(self) -> None:
        self._prefix = self.known = 0
        """Everything up to `_prefix` is here; messages up to `known` are known to exist."""
        self._ahead: set[int] = set()

    def add(self, place: int) -> bool:
        """Note that the message is here; False if it was here before."""
        if place <= self._prefix or place in self._ahead:
            return False
        self._ahead.add(place)
        while self._prefix + 1 in self._ahead:
            self._prefix += 1
            self._ahead.remove(self._prefix)
        return True

    def newly_missing(self, upto: int) -> tuple[int, ...]:
        """The places up to `upto` that were not known to exist before, and that are not here."""
        begin, upto = self.known + 1, min(upto, self.known + GAP_MAX)
        self.known = max(self.known, upto)
        return tuple(place for place in range(begin, upto + 1) if place > self._prefix and place not in self._ahead)


class CollectedMessages:
    """What a receiver has of each container, from the first message on. Containers that are too many do not exist."""

    def __init__(self) -> None:
        self._places: dict[ProcessId, dict[bytes, _Places]] = {}

    def add(self, ticket: Ticket) -> bool:
        """Note that a message is here; False if it was here before."""
        places = self._of(ticket.sender, ticket.container)
        return places is not None and places.add(ticket.seq)

    def newly_missing(self, sender: ProcessId, container: bytes, upto: int) -> tuple[int, ...]:
        """What is newly known to be missing, now that the container is known to have `upto` messages."""
        places = self._of(sender, container)
        return () if places is None else places.newly_missing(upto)

    def _of(self, sender: ProcessId, container: bytes) -> _Places | None:
        known = self._places.setdefault(sender, {})
        if container not in known and len(known) >= CONTAINERS_MAX:
            return None
        return known.setdefault(container, _Places())
