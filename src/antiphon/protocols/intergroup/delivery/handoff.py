"""From the protocol to the application: the delivery service, and what the application has not consumed yet."""

from collections.abc import Iterable

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.services import delivery_service
from antiphon.protocols.intergroup.delivery.unconsumed import Unconsumed
from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.types import ProcessId


class Handoff:
    """Tells the service of every message, and delivers what the service returns."""

    def __init__(self, context: MemberContext, outlet: Outlet, capacity: int | None = None) -> None:
        """`capacity`: while this number of messages is unconsumed, further ones are dropped; None: none are."""
        self._clock, self._outlet, self._capacity = context.clock, outlet, capacity
        self.service = delivery_service(context.plan, context.settings)
        self._unconsumed = Unconsumed()

    def __len__(self) -> int:
        """Number of messages delivered and not consumed yet."""
        return len(self._unconsumed)

    def heard(self, sender: ProcessId, stamp: int) -> None:
        """The sender's clock has reached `stamp`."""
        self._clock.merge(stamp)
        self.service.heard(sender, stamp)

    def arrived(self, message: DataFrame, *, repair: bool) -> None:
        self.heard(message.sender, message.stamp)
        if message.change is None:
            self.deliver(self.service.arrived(message, repair=repair))

    def in_source_order(self, message: DataFrame) -> None:
        """It is the next message of its sender. A message of the membership is not for the application."""
        if message.change is None:
            self.deliver(self.service.in_source_order(message))

    def in_group_order(self, message: DataFrame) -> None:
        """It is the next message in the order of the whole group."""
        self.deliver(self.service.in_group_order(message))

    def sent(self, message: DataFrame) -> None:
        """A message of our own leaves: it has arrived here, and it is the next in our order."""
        self.deliver(self.service.arrived(message, repair=False))
        self.in_source_order(message)
        self.service.heard(message.sender, message.stamp)

    def deliver_due(self, now: int) -> None:
        """Deliver what the service has held back long enough."""
        self.deliver(self.service.due(now // 1000))

    def deliver(self, messages: Iterable[DataFrame]) -> None:
        for message in messages:
            if self._capacity is not None and len(self._unconsumed) >= self._capacity:
                continue
            self._unconsumed.delivered(message.stamp)
            self._outlet.deliver(message)

    def consumed(self, position: int) -> None:
        """The application has consumed the first `position` deliveries."""
        self._unconsumed.consumed(position)

    def acknowledgeable(self, stamp: int) -> int:
        """The largest stamp up to `stamp` below which nothing delivered waits for the application."""
        return self._unconsumed.acknowledgeable(stamp)

    @property
    def deadline(self) -> int | None:
        """The time at which `deliver_due` is next needed."""
        due_us = self.service.deadline_us
        return None if due_us is None else due_us * 1000
