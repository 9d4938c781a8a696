"""A receiver of the application framed service: it is told what it lacks, and requests what it wants.

Ours; docs/spec/intergroup.md 6.4. Every message that arrives is delivered at once, and only once. Its requests suppress
those of others as usual. It takes no part in stability: a message that all others have may be gone when it asks. When a
sender is lost, nothing tells which of its messages some process still has, so open requests for them end as gone.
"""

from collections.abc import Iterable

from antiphon.core.effects import Missing
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.services import Framed
from antiphon.protocols.intergroup.frames import DataFrame, GoneFrame, KeepAliveFrame, RepairFrame, RequestFrame
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.receiving.heard import HeardSenders
from antiphon.protocols.intergroup.repair.recovery import Recovery
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class FramedReceiver(Role):
    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        self._recovery = Recovery(context, outlet, handoff)
        assert isinstance(handoff.service, Framed)
        self._collected = handoff.service.collected  # what was collected as a sender counts too
        self._senders = HeardSenders(context, views)

    def begin(self, now: int) -> None:
        self._senders.begin(now)

    def end(self) -> None:
        """Forget open requests; a process that joins again still has the messages that it had."""
        self._recovery.reset()

    def request(self, ticket: Ticket, now: int) -> None:
        if ticket.sender in self._senders:
            self._recovery.request(ticket, now)
        else:
            self._give_up(ticket)

    def data(self, message: DataFrame, now: int) -> None:
        self._senders.heard(message.sender, now)
        self._take(message)

    def repair(self, frame: RepairFrame, now: int) -> None:  # noqa: ARG002
        self._take(frame.message)

    def _take(self, message: DataFrame) -> None:
        self._context.clock.merge(message.stamp)
        ticket = message.ticket
        if len(self._handoff) >= self._context.settings.window:
            return  # no room: the message stays missing, and an open request brings it later
        self._tell_missing(ticket.sender, ticket.container, ticket.seq - 1)
        self._recovery.done(ticket)
        if self._collected.add(ticket):
            self._handoff.deliver([message])

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._senders.heard(frame.sender, now)
        for container, count in frame.known:
            self._tell_missing(frame.sender, container, count)

    def requested(self, frame: RequestFrame, now: int) -> None:
        self._recovery.heard(frame, now)

    @property
    def handlers(self) -> Handlers:
        return {GoneFrame: self._gone}

    def _gone(self, frame: GoneFrame, now: int) -> None:  # noqa: ARG002
        if frame.ticket in self._recovery:
            self._give_up(frame.ticket)

    def _give_up(self, ticket: Ticket) -> None:
        """The message counts as collected: there is nothing more to wait for."""
        self._recovery.done(ticket)
        self._collected.add(ticket)
        missing = Missing(self._context.group, ticket.sender, ticket.container, (ticket.seq,), gone=True)
        self._outlet.add(missing)

    def _tell_missing(self, sender: ProcessId, container: bytes, upto: int) -> None:
        places = self._collected.newly_missing(sender, container, upto)
        if places:
            self._outlet.add(Missing(self._context.group, sender, container, places))

    def conclude(self, now: int) -> None:
        lost = self._senders.forget_silent(now)
        for ticket in self._recovery.of(lost) if lost else ():
            self._give_up(ticket)
        self._recovery.transmit_due(now)

    def deadlines(self) -> Iterable[int]:
        return (*self._recovery.deadlines(), *self._senders.deadlines())

    @property
    def unfinished(self) -> bool:
        return len(self._recovery) > 0
