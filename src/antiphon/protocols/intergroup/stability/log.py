"""The messages of a group in its timestamp order, each kept until it is stable (T4).

Every sender has such a log, whichever service its application chose (D10), and so has every receiver of the group
timestamp order. From it they answer requests.
"""

from collections.abc import Iterable, Mapping

from antiphon.core.effects import Discard, Stable
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.frames import DataFrame, RepairFrame, ReportFrame, RequestFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.repair.buffer import Buffer
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class OrderedLog:
    """Orders, keeps and repairs messages."""

    def __init__(
        self, context: MemberContext, outlet: Outlet, handoff: Handoff, order: GroupTimestamp[DataFrame]
    ) -> None:
        settings = context.settings
        self._context, self._outlet, self._handoff = context, outlet, handoff
        self._order = order
        self._buffer = Buffer()
        self._repairs = Repairs(context.draw, settings.profile)
        self._stability = context.rules.stability(
            context.me, context.plan.view.members, 0, settings.stall_ns, settings.report_every_ns
        )

    def __len__(self) -> int:
        """Number of messages held."""
        return len(self._buffer)

    # The order

    @property
    def streams(self) -> Mapping[ProcessId, Stream[DataFrame]]:
        return self._order.streams

    @property
    def gate(self) -> int:
        """Everything with a stamp up to here has been delivered."""
        return self._order.gate

    @property
    def delivered(self) -> Mapping[ProcessId, int]:
        """For each member, the number of its message delivered last."""
        return self._order.delivered

    def follow(self, order: GroupTimestamp[DataFrame]) -> None:
        """Use this order from now on. What is known about acknowledgments stays."""
        self._order = order

    def own(self, message: DataFrame) -> None:
        """A message of ours leaves."""
        self._buffer.keep(message)
        self._order.own(message)

    def data(self, sender: ProcessId, message: DataFrame) -> list[DataFrame]:
        """Add a message that its stream lacks; returns those that are now in their sender's order."""
        self._buffer.keep(message)
        return self._order.data(sender, message)

    # Requests and repairs

    def get(self, ticket: Ticket) -> DataFrame | None:
        """The message, if it is held."""
        return self._buffer.get(ticket)

    def requested(self, frame: RequestFrame, now: int) -> None:
        held = self._buffer.get(frame.ticket)
        if held is not None:
            self._repairs.asked(Ticket(held.sender, held.seq), self._context.settings.distance(frame.sender), now)

    def repaired(self, frame: RepairFrame, now: int) -> None:
        """Another process repairs a message."""
        ticket = Ticket(frame.message.sender, frame.message.seq)
        if self._buffer.get(ticket) is not None:
            self._repairs.heard(ticket, self._context.settings.distance(frame.sender), now)

    def transmit_repairs(self, now: int) -> None:
        for ticket in self._repairs.due(now):
            message = self._buffer.get(ticket)
            assert message is not None, "a freed message has no pending repair"
            self._outlet.transmit(RepairFrame(self._context.group, self._context.me, message))

    def deadlines(self) -> Iterable[int]:
        deadline = self._repairs.deadline
        return () if deadline is None else (deadline,)

    # Stability

    @property
    def stable(self) -> int:
        """Every process that counts has everything with a stamp up to here."""
        return self._stability.stable

    def acknowledged(self, member: ProcessId, ack: int) -> None:
        """A member of the view acknowledges."""
        self._stability.told(member, ack)

    def reported(self, frame: ReportFrame, now: int) -> None:
        """A receiver acknowledges; a receiver whose report names no source at all leaves the group."""
        if frame.epoch != self._context.epoch:
            return
        if frame.sources == ():
            self._stability.left(frame.sender)
        else:
            self._stability.reported(frame.sender, frame.ack, now)
            if frame.sources is None or self._context.me in frame.sources:
                self._stability.begun(frame.sender)

    def hold(self, joiner: ProcessId, start: int, until: int) -> None:
        """Keep everything above `start` for a joiner that was told to begin there (T5)."""
        self._stability.hold(joiner, start, until)

    def slowest(self) -> ProcessId | None:
        """The other member that acknowledges least; None if we are alone."""
        return self._stability.slowest()

    def ack(self, now: int) -> int:
        """The stamp that we acknowledge.

        Everything up to it is delivered and consumed, and no joiner was told to begin below it.
        """
        return self._stability.own_ack(self._handoff.acknowledgeable(self._order.gate), now)

    def advance(self, now: int) -> list[DataFrame]:
        """Deliver what can be delivered, free what is stable, and return what was freed."""
        for message in self._order.deliverable(self._context.clock.value):
            self._buffer.delivered(message)
            self._handoff.in_group_order(message)
        return self._free() if self._stability.conclude(self.ack(now), now) else []

    def _free(self) -> list[DataFrame]:
        freed = self._buffer.free(self._stability.stable)
        for message in freed:
            self._repairs.freed(Ticket(message.sender, message.seq))
        if freed and self._context.settings.tracing:
            last = {message.sender: message.label + len(message.payloads) - 1 for message in freed}
            upto, group = tuple(sorted(last.items())), self._context.group
            self._outlet.add(Stable(group, upto))
            self._outlet.add(Discard(group, upto))
        return freed
