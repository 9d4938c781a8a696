"""A process that runs the group's order, and keeps every message until it is stable (T4).

Each sender does, whatever its application chose (D10), and each receiver of the group timestamp order.
"""

from collections.abc import Iterable

from antiphon.core.effects import Discard, Stable
from antiphon.protocols.intergroup.buffer import Buffer
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RepairFrame, ReportFrame, RequestFrame
from antiphon.protocols.intergroup.orders import GroupTimestamp
from antiphon.protocols.intergroup.party import Part, Repaired
from antiphon.protocols.intergroup.repairs import Repairs
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.protocols.intergroup.stability import Stability
from antiphon.protocols.intergroup.stream import Stream
from antiphon.types import ProcessId


class Holder(Repaired):
    """Orders, keeps and repairs."""

    _order: GroupTimestamp[DataFrame]
    _stability: Stability

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._buffer = Buffer()
        self._repairs = Repairs(part.draw, part.settings.profile)

    @property
    def unstable(self) -> int:
        """How many messages are held because somebody may lack them."""
        return len(self._buffer)

    def _streams(self) -> dict[ProcessId, Stream[DataFrame]]:
        return self._order.streams

    def _ordered(self, message: DataFrame) -> list[DataFrame]:
        self._buffer.keep(message)
        return self._order.data(message.sender, message)

    def _data(self, message: DataFrame, now: int) -> None:
        self._stability.told(message.sender, message.ack)
        super()._data(message, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._stability.told(frame.sender, frame.ack)
        super()._keep_alive(frame, now)

    def _repair(self, frame: RepairFrame, now: int) -> None:
        message = frame.message
        if self._buffer.get(Ticket(message.sender, message.seq)) is not None:
            self._repairs.heard(Ticket(message.sender, message.seq), self._settings.distance(frame.sender), now)
        super()._repair(frame, now)

    def _request(self, frame: RequestFrame, now: int) -> None:
        super()._request(frame, now)
        held = self._buffer.get(frame.ticket)
        if held is not None:
            self._repairs.asked(Ticket(held.sender, held.seq), self._settings.distance(frame.sender), now)

    def _reported(self, frame: ReportFrame, now: int) -> None:
        """What a receiver acknowledges; one that speaks of no source at all takes its leave."""
        if frame.epoch != self._plan.view.id:
            return
        if frame.sources == ():
            self._stability.left(frame.sender)
        else:
            self._stability.reported(frame.sender, frame.ack, now)
            if frame.sources is None or self._me in frame.sources:
                self._stability.begun(frame.sender)

    def _conclude(self, now: int) -> None:
        super()._conclude(now)
        for ticket in self._repairs.due(now):
            message = self._buffer.get(ticket)
            assert message is not None, "what is freed is not repaired"
            self._say(RepairFrame(self._name, self._me, message))
        self._advance(now)

    def _advance(self, now: int) -> None:
        """Deliver whatever can be, and let go what is stable."""
        for message in self._order.deliverable(self._clock.value):
            self._buffer.delivered(message)
            self._deliver(self._service.in_group_order(message))
        if self._stability.conclude(self._ack(now), now):
            self._free()

    def _ack(self, now: int) -> int:
        """Everything up to here is delivered, and taken, and nobody was told to begin below."""
        return self._stability.own_ack(self._untaken.held(self._order.gate), now)

    def _free(self) -> None:
        freed = self._buffer.free(self._stability.stable)
        for message in freed:
            self._let_go(Ticket(message.sender, message.seq))
        if freed and self._settings.tracing:
            last = {message.sender: message.label + len(message.payloads) - 1 for message in freed}
            upto = tuple(sorted(last.items()))
            self._effects += [Stable(self._name, upto), Discard(self._name, upto)]

    def _let_go(self, ticket: Ticket) -> None:
        self._repairs.freed(ticket)

    def _deadlines(self) -> Iterable[int]:
        deadline = self._repairs.deadline
        return (*super()._deadlines(), *(() if deadline is None else (deadline,)))
