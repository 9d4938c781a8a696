"""Recovery of lost messages: finds the gaps in the streams that a process follows, and requests what is missing."""

from collections.abc import Collection, Iterable

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.stream import Stream, StreamOrder
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RequestFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.repair.requests import Requests
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class Recovery:
    """The requests of one process in one group."""

    def __init__(self, context: MemberContext, outlet: Outlet, handoff: Handoff) -> None:
        self._context, self._outlet, self._handoff = context, outlet, handoff
        self._requests = self._no_requests()

    def _no_requests(self) -> Requests:
        context = self._context
        return context.rules.requests(context.draw, context.settings.profile)

    def __len__(self) -> int:
        """Number of messages that are missing."""
        return len(self._requests)

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self._requests

    def reset(self) -> None:
        """Forget everything, also how long requests wait."""
        self._requests = self._no_requests()

    def request(self, ticket: Ticket, now: int) -> None:
        """Request a message from now on until it arrives."""
        self._requests.missing(ticket, self._context.settings.distance(ticket.sender), now)

    def heard(self, frame: RequestFrame, now: int) -> None:
        """Another process requests a message."""
        self._requests.heard(frame.ticket, now)

    def done(self, ticket: Ticket) -> None:
        """The message is here, or no longer wanted."""
        self._requests.done(ticket)

    def forget(self, sender: ProcessId, below: int) -> None:
        """Messages of that sender with numbers below `below` are no longer wanted."""
        self._requests.forget(sender, below)

    def of(self, senders: Collection[ProcessId]) -> list[Ticket]:
        """The open requests for messages of these senders."""
        return self._requests.of(senders)

    def received(self, order: StreamOrder[DataFrame], message: DataFrame, now: int, *, repair: bool = False) -> None:
        """Add a message to its stream, if the stream lacks it, and request what is missing before it."""
        self._handoff.arrived(message, repair=repair)
        stream = order.streams.get(message.sender)
        if stream is None or not stream.lacks(message.seq):
            return
        self._requests.done(Ticket(message.sender, message.seq))
        for following in order.data(message.sender, message):
            self._handoff.in_source_order(following)
        self._request_missing(message.sender, stream, message.seq, now)

    def keep_alive(self, order: StreamOrder[DataFrame], frame: KeepAliveFrame, now: int) -> None:
        """Request what the sender has sent before its keep-alive and we lack."""
        stream = order.streams.get(frame.sender)
        if stream is not None:
            stream.keep_alive(frame.seq, frame.stamp)
            self._request_missing(frame.sender, stream, frame.seq, now)

    def transmit_due(self, now: int) -> None:
        context = self._context
        for ticket in self._requests.due(now):
            self._outlet.transmit(RequestFrame(context.group, context.me, ticket))

    def deadlines(self) -> Iterable[int]:
        deadline = self._requests.deadline
        return () if deadline is None else (deadline,)

    def _request_missing(self, sender: ProcessId, stream: Stream[DataFrame], upto: int, now: int) -> None:
        for seq in stream.missing(upto):
            self.request(Ticket(sender, seq), now)
