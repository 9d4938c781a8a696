"""The delivery services: which messages an application gets, and when (Berket00 §4.6 to 4.9).

A process tells its service of every message that arrives, of every message that is next in its sender's order, and of
every message that is next in the group's order, as far as the process knows these orders. A service returns what is
to be delivered, and ignores what does not concern it.
"""

from typing import Final

from antiphon.protocols.intergroup.delivery.containers import CollectedMessages
from antiphon.protocols.intergroup.delivery.orders import UnreliableSourceOrder, UnreliableTimestampOrder
from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings, Service
from antiphon.types import ProcessId


class DeliveryService:
    """Delivers nothing; each service overrides the events that it delivers at."""

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:  # noqa: ARG002
        """A message arrived, for the first time or again; or a message of our own leaves."""
        return []

    def in_source_order(self, message: DataFrame) -> list[DataFrame]:  # noqa: ARG002
        """It is the next message of its sender."""
        return []

    def in_group_order(self, message: DataFrame) -> list[DataFrame]:  # noqa: ARG002
        """It is the next message in the order of the whole group."""
        return []

    def heard(self, sender: ProcessId, stamp: int) -> None:
        """The sender's clock has reached `stamp`."""

    def due(self, now_us: int) -> list[DataFrame]:  # noqa: ARG002
        """What is delivered because time has passed."""
        return []

    def clear(self) -> None:
        """The process leaves the group: drop what is held back."""

    @property
    def deadline_us(self) -> int | None:
        """The time at which `due` is next needed."""
        return None


class Unreliable(DeliveryService):
    """UU: delivers what the network brings, at once. Repairs are for others."""

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        return [] if repair else [message]


class SourceOrdered(DeliveryService):
    """RSO."""

    def in_source_order(self, message: DataFrame) -> list[DataFrame]:
        return [message]


class GroupOrdered(DeliveryService):
    """RGTO."""

    def in_group_order(self, message: DataFrame) -> list[DataFrame]:
        return [message]


class Framed(DeliveryService):
    """Delivers whatever arrives, once and at once; also repairs that others requested."""

    def __init__(self) -> None:
        self.collected = CollectedMessages()

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:  # noqa: ARG002
        return [message] if self.collected.add(message.ticket) else []


class UnreliablySourceOrdered(DeliveryService):
    """Delivers in the order of each sender; a message that comes after a later one is dropped."""

    def __init__(self) -> None:
        self._order: UnreliableSourceOrder[DataFrame] = UnreliableSourceOrder()

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        return [] if repair else self._order.data(message.sender, message)


class UnreliablyGroupOrdered(DeliveryService):
    """Delivers in the order of the stamps; a message that comes too late is dropped."""

    def __init__(self, plan: InterGroupPlan, settings: InterGroupSettings) -> None:
        self._order: UnreliableTimestampOrder[DataFrame] = UnreliableTimestampOrder(plan.view.members, settings.wait_us)

    def arrived(self, message: DataFrame, *, repair: bool) -> list[DataFrame]:
        if not repair:
            self._order.data(message.sender, message)
        return []

    def heard(self, sender: ProcessId, stamp: int) -> None:
        """The sender will send nothing below `stamp`."""
        self._order.seen(sender, stamp)

    def due(self, now_us: int) -> list[DataFrame]:
        """The messages whose turn has come, or that have waited for MAX_WAIT."""
        return self._order.deliverable(now_us)

    def clear(self) -> None:
        self._order.clear()

    @property
    def deadline_us(self) -> int | None:
        return self._order.deadline()


_PLAIN: Final[dict[Service, type[DeliveryService]]] = {
    "unreliable": Unreliable,
    "fifo": SourceOrdered,
    "total": GroupOrdered,
    "unreliable-fifo": UnreliablySourceOrdered,
    "framed": Framed,
}


def delivery_service(plan: InterGroupPlan, settings: InterGroupSettings) -> DeliveryService:
    """The service that a process chose."""
    if plan.service == "unreliable-total":
        return UnreliablyGroupOrdered(plan, settings)
    return _PLAIN[plan.service]()
