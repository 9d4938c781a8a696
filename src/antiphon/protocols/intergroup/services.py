"""What an application gets of what its process has: the delivery service that it chose (Berket00 §4.6 to 4.9).

A process tells its service of every message that arrives, of those that are in their sender's order, and of those in
the group's, as far as it knows about these itself; a service takes what it is about.
"""

from typing import Final

from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.names import Collected
from antiphon.protocols.intergroup.orders import UnreliableSourceOrder, UnreliableTimestampOrder
from antiphon.protocols.intergroup.settings import InterGroupSettings, Service
from antiphon.types import ProcessId


class Offered:
    """Nothing, unless a service says otherwise."""

    reliable = True
    """Whether messages that are missing are asked for."""

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:  # noqa: ARG002
        """A message came, for the first time or again; or leaves, if it is ours."""
        return []

    def in_source_order(self, message: DataFrame) -> list[DataFrame]:  # noqa: ARG002
        """It is the next of its sender."""
        return []

    def in_group_order(self, message: DataFrame) -> list[DataFrame]:  # noqa: ARG002
        """It is the next of all."""
        return []

    def heard(self, sender: ProcessId, stamp: int) -> None:
        """A sender's clock was so far."""

    def due(self, now_us: int) -> list[DataFrame]:  # noqa: ARG002
        """What time alone brings."""
        return []

    @property
    def deadline_us(self) -> int | None:
        """When that may be."""
        return None


class Unreliable(Offered):
    """UU: whatever the network brings; repairs are for others."""

    reliable = False

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        """At once."""
        return [] if repair else [message]


class SourceOrdered(Offered):
    """RSO."""

    def in_source_order(self, message: DataFrame) -> list[DataFrame]:
        """As its sender sent it."""
        return [message]


class GroupOrdered(Offered):
    """RGTO."""

    def in_group_order(self, message: DataFrame) -> list[DataFrame]:
        """As everybody gets it."""
        return [message]


class Framed(Offered):
    """Whatever comes, once: repairs that others asked for too."""

    def __init__(self) -> None:
        self._collected = Collected()

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:  # noqa: ARG002
        """At once, unless it was there before."""
        return [message] if self._collected.take(message.ticket) else []


class UnreliablySourceOrdered(Offered):
    """In the order of each sender, without what comes late."""

    reliable = False

    def __init__(self) -> None:
        self._order: UnreliableSourceOrder[DataFrame] = UnreliableSourceOrder()

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        """Unless a later one was there before."""
        return [] if repair else self._order.data(message.sender, message)


class UnreliablyGroupOrdered(Offered):
    """In one order of stamps, without what comes late."""

    reliable = False

    def __init__(self, settings: InterGroupSettings, members: tuple[ProcessId, ...]) -> None:
        self._order: UnreliableTimestampOrder[DataFrame] = UnreliableTimestampOrder(members, settings.wait_us)

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        """It waits for its turn."""
        if not repair:
            self._order.data(message.sender, message)
        return []

    def heard(self, sender: ProcessId, stamp: int) -> None:
        """Whoever is so far sends nothing below."""
        self._order.seen(sender, stamp)

    def due(self, now_us: int) -> list[DataFrame]:
        """Whose turn has come, or who has waited long enough."""
        return self._order.deliverable(now_us)

    @property
    def deadline_us(self) -> int | None:
        """When the next one has."""
        return self._order.deadline()


_PLAIN: Final[dict[Service, type[Offered]]] = {
    "unreliable": Unreliable,
    "fifo": SourceOrdered,
    "total": GroupOrdered,
    "unreliable-fifo": UnreliablySourceOrdered,
    "framed": Framed,
}


def offered(service: Service, settings: InterGroupSettings, members: tuple[ProcessId, ...]) -> Offered:
    """The service of that name, in a group of these senders."""
    if service == "unreliable-total":
        return UnreliablyGroupOrdered(settings, members)
    return _PLAIN[service]()
