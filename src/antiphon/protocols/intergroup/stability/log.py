"""The messages of a group in its timestamp order, each kept until it is stable (T4).

Every sender has such a log, whichever service its application chose (D10), and so has every receiver of the group
timestamp order. From it they answer requests.
"""

from collections.abc import Callable, Iterable, Mapping

from antiphon.core.effects import Discard, Stable
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.frames import DataFrame, RepairFrame, ReportFrame, RequestFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, ViewId

Changed = Callable[[DataFrame], None]
"""Called with each message that changes the view, in its place among the deliveries."""


class OrderedLog:
    """Orders, keeps and repairs messages."""

    def __init__(self, context: MemberContext, outlet: Outlet, handoff: Handoff) -> None:
        settings = context.settings
        self._context, self._outlet, self._handoff = context, outlet, handoff
        self._order: GroupTimestamp[DataFrame] = GroupTimestamp(None, {}, 0)
        self._buffer = context.rules.buffer(context.me)
        self._repairs = Repairs(context.draw, settings.profile)
        self._stability = context.rules.stability(context.me, (), 0, settings.stall_ns, settings.report_every_ns)

    def __len__(self) -> int:
        """Number of messages of this epoch that are held."""
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
        """For each process that is or was a member, the number of its message delivered last."""
        return self._order.delivered

    def begin(self, members: Mapping[ProcessId, int], start: int, now: int, *, is_sender: bool) -> None:
        """A view begins; for each member, the number of its first message. Older messages are kept for a while."""
        context = self._context
        me = context.me if is_sender else None
        self._order = GroupTimestamp(me, members, start, context.rules.stream)
        self._tell(Stable, self._buffer.retire(now + context.settings.old_keep_ns))
        self._stability.begin(members, start if is_sender else 0, now)

    def follow(self, members: Iterable[ProcessId], first: Mapping[ProcessId, int], start: int) -> None:
        """A receiver begins in the middle of a view of these. What is known about acknowledgments stays."""
        self._order = GroupTimestamp(None, first, start, self._context.rules.stream)
        for member in members:
            self._stability.count(member)

    def add(self, member: ProcessId, first: int, stamp: int) -> None:
        """A message just delivered adds a member."""
        self._order.add(member, first, stamp, is_me=member == self._context.me)
        self._stability.add(member)

    def remove(self, member: ProcessId, stamp: int, now: int) -> None:
        """A message just delivered is the last one of a member."""
        self._order.remove(member)
        self._stability.remove(member, stamp, now)

    def own(self, message: DataFrame) -> None:
        """A message of ours leaves."""
        self._buffer.keep(message)
        self._order.own(message)

    def data(self, sender: ProcessId, message: DataFrame) -> list[DataFrame]:
        """Add a message that its stream lacks; returns those that are now in their sender's order."""
        self._buffer.keep(message)
        return self._order.data(sender, message)

    def keep(self, message: DataFrame) -> None:
        """Keep a message of a sender that is not in our view: the end of this epoch may need it."""
        self._buffer.keep(message)

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
        return (each for each in (self._repairs.deadline, self._buffer.deadline) if each is not None)

    # Stability

    @property
    def stable(self) -> int:
        """Every process that counts has everything with a stamp up to here."""
        return self._stability.stable

    def is_with_members(self, stamp: int) -> bool:
        """True if every member of the view has everything with a stamp up to here."""
        return self._stability.is_with_members(stamp)

    def acknowledged(self, member: ProcessId, ack: int, now: int) -> None:
        """A member of the view, or one that left it, acknowledges."""
        self._stability.told(member, ack, now)

    def reported(self, frame: ReportFrame, epoch: ViewId, now: int) -> None:
        """A receiver acknowledges; a receiver whose report names no source at all leaves the group.

        A report in source order holds in any epoch, because its numbers go on (D12).
        """
        if frame.sources == ():
            self._stability.left(frame.sender)
        elif frame.sources is not None or frame.epoch == epoch:
            self._stability.reported(frame.sender, frame.ack, now)
            if frame.sources is None or self._context.me in frame.sources:
                self._stability.begun(frame.sender)

    def knows(self, receiver: ProcessId) -> bool:
        """True if that receiver has reported lately."""
        return self._stability.knows(receiver)

    def hold(self, joiner: ProcessId, start: int, now: int) -> bool:
        """Keep everything above `start` for a joiner that is told to begin there (T5); False if too many ask."""
        return self._stability.hold(joiner, start, now + self._context.settings.hold_ns, now)

    def slowest(self) -> ProcessId | None:
        """The other member that acknowledges least; None if we are alone."""
        return self._stability.slowest()

    def ack(self, now: int) -> int:
        """The stamp that we acknowledge.

        Everything up to it is delivered and consumed, and no joiner was told to begin below it.
        """
        return self._stability.own_ack(self._handoff.acknowledgeable(self._order.gate), now)

    def advance(self, changed: Changed, now: int) -> list[DataFrame]:
        """Deliver what can be delivered, free what is stable, and return what was freed."""
        for message in self._order.deliverable(self._context.clock.value):
            self._deliver(message, changed)
        leaver_ns = 2 * self._context.settings.suspect_after_ns
        return self._free() if self._stability.conclude(self.ack(now), now, leaver_ns) else []

    def _deliver(self, message: DataFrame, changed: Changed) -> None:
        self._buffer.delivered(message)
        if message.change is None:
            self._handoff.in_group_order(message)
        else:
            changed(message)

    def flush(self, messages: Iterable[DataFrame], changed: Changed) -> None:
        """Deliver the last messages of an epoch, in their order. Those of a sender were perhaps not all passed on."""
        for message in messages:
            self._buffer.delivered(message)
            stream = self._order.streams.get(message.sender)
            if message.change is None and message.sender != self._context.me:
                if stream is None or message.seq > stream.last:
                    self._handoff.in_source_order(message)
                self._handoff.in_group_order(message)
            elif message.change is None:
                self._handoff.in_group_order(message)
            else:
                changed(message)

    def expire(self, now: int) -> None:
        """Drop messages of earlier epochs that were kept long enough."""
        dropped, delivered = self._buffer.expire(now)
        for message in dropped:
            self._repairs.freed(Ticket(message.sender, message.seq))
        self._tell(Discard, delivered)

    def _free(self) -> list[DataFrame]:
        freed = self._buffer.free(self._stability.stable)
        for message in freed:
            self._repairs.freed(Ticket(message.sender, message.seq))
        self._tell(Stable, freed)
        self._tell(Discard, freed)
        return freed

    def _tell(self, effect: type[Stable | Discard], messages: Iterable[DataFrame]) -> None:
        """For the trace: up to which message of each sender this holds; the messages of each are in their order."""
        last = {each.sender: each.label + len(each.payloads) - 1 for each in messages if each.payloads}
        if last and self._context.settings.tracing:
            self._outlet.add(effect(self._context.group, tuple(sorted(last.items()))))
