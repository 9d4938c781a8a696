"""Bugs to plant in InterGroup: one rule left out, or turned, at a time.

As in `tests/planted/newtop.py`; the rules are those of intergroup.md 4 to 7 with their errata. Each is looked for in
the family `intergroup`, where receivers come and go and every service occurs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, Final

import pytest

from antiphon.core.effects import Discard, Scope
from antiphon.protocols.intergroup.delivery.orders import (
    GroupTimestamp,
    UnreliableSourceOrder,
    UnreliableTimestampOrder,
)
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.frames import DataFrame, InterGroupFrame, ReportFrame
from antiphon.protocols.intergroup.membership.receivers import ReceiverSide
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.states import Event
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.receiving.source_order import SourceOrderReceiver
from antiphon.protocols.intergroup.repair.buffer import Buffer
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.repair.requests import Pending, Requests
from antiphon.protocols.intergroup.sending.outbox import Outbox
from antiphon.protocols.intergroup.sending.window import SendWindow
from antiphon.protocols.intergroup.stability.log import Changed, OrderedLog
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId
from tests.planted.newtop import Bug, Traits

Patch = pytest.MonkeyPatch
_FAR: Final = 2**62
_HOUR_US: Final = 3_600_000_000


def _hindered(traits: Traits) -> bool:
    """A process is paused, or receives nothing, for a while."""
    return not traits.changes.isdisjoint({"pause", "stall", "partition", "cut"})


def _joined(traits: Traits) -> bool:
    return "join" in traits.changes


# -------------------------------------------------------------------------------- stability


def the_largest_is_acknowledged(patch: Patch) -> None:
    """A sender acknowledges the largest horizon instead of the smallest."""

    def ack(self: OrderedLog, now: int) -> int:
        horizons = [int(stream.horizon) for stream in self._order.streams.values() if not stream.has_ended]
        return self._stability.own_ack(max([self._order.gate, *horizons]), now)

    patch.setattr(OrderedLog, "ack", ack)


def one_is_missing_from_the_acknowledgment(patch: Patch) -> None:
    """The horizon of one sender is left out of the minimum."""

    def ack(self: OrderedLog, now: int) -> int:
        named = sorted(self._order.streams.items())[1:]
        horizons = [int(stream.horizon) for _, stream in named if not stream.has_ended]
        horizon = min(horizons, default=self._order.gate)
        return self._stability.own_ack(max(self._order.gate, horizon), now)

    patch.setattr(OrderedLog, "ack", ack)


def one_is_missing_from_the_minimum(patch: Patch) -> None:
    """Stability does not wait for one member."""
    conclude = Stability.conclude

    def without_one(self: Stability, own_ack: int, now: int, leaver_ns: int = 0) -> bool:
        members, missing = self._members, max(self._members, default=None)
        self._members = {member: ack for member, ack in members.items() if member != missing}
        try:
            return conclude(self, own_ack, now, leaver_ns)
        finally:
            self._members = members

    patch.setattr(Stability, "conclude", without_one)


def freed_on_receipt(patch: Patch) -> None:
    """Delivered messages are not kept for others (T4)."""
    advance = OrderedLog.advance

    def forgetful(self: OrderedLog, changed: Changed, now: int) -> list[DataFrame]:
        stable = advance(self, changed, now)
        freed = self._buffer.free(_FAR)
        for message in freed:
            self._repairs.freed(Ticket(message.sender, message.seq))
        if freed:
            last = {message.sender: message.label + len(message.payloads) - 1 for message in freed}
            self._outlet.add(Discard(self._context.group, tuple(sorted(last.items()))))
        return [*stable, *freed]

    patch.setattr(OrderedLog, "advance", forgetful)


def stable_when_delivered(patch: Patch) -> None:
    """When anything becomes stable, everything delivered counts as stable."""
    free = Buffer.free
    patch.setattr(Buffer, "free", lambda self, _stable: free(self, _FAR))


def newcomers_not_held_for(patch: Patch) -> None:
    """T5: no sender waits for a joiner that was told where to begin."""
    patch.setattr(Stability, "hold", lambda *_: None)


def receivers_do_not_count(patch: Patch) -> None:
    """Stability waits only for members."""
    patch.setattr(Stability, "reported", lambda *_: None)


def the_stalled_count(patch: Patch) -> None:
    """J16: a receiver counts for ever, even if it is silent."""

    def conclude(self: Stability, own_ack: int, now: int, leaver_ns: int = 0) -> bool:
        stable = min([own_ack, *self._members.values(), *(each.ack for each in self._receivers.values())])
        risen, self.stable = stable > self.stable, max(stable, self.stable)
        return risen

    patch.setattr(Stability, "conclude", conclude)


def the_departed_count(patch: Patch) -> None:
    """A receiver that leaves still counts, because its acknowledgment rose in the far future."""

    def left(self: Stability, receiver: ProcessId) -> None:
        if receiver in self._receivers:
            self._receivers[receiver].rose = _FAR

    patch.setattr(Stability, "left", left)


def listeners_claim_everything(patch: Patch) -> None:
    """A receiver in source order acknowledges more than it has."""
    transmit = Outlet.transmit

    def boastful(self: Outlet, frame: InterGroupFrame, to: ProcessId | Scope = Scope.GROUP) -> None:
        if isinstance(frame, ReportFrame) and frame.sources:
            frame = replace(frame, ack=frame.ack + _HOUR_US)
        transmit(self, frame, to)

    patch.setattr(Outlet, "transmit", boastful)


# -------------------------------------------------------------------------------- order


def arrival_breaks_ties(patch: Patch) -> None:
    """Messages with equal stamps are delivered in the order of arrival."""
    begin = GroupTimestamp.__init__

    def initially(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        self.arrivals = 0

    def push(self: Any, message: DataFrame) -> None:
        self.arrivals += 1
        heappush(self._ready, (message.clock, self.arrivals, message))

    def data(self: Any, sender: ProcessId, message: DataFrame) -> list[DataFrame]:
        in_order: list[DataFrame] = self.streams[sender].data(message)
        for following in in_order:
            push(self, following)
        return in_order

    def deliverable(self: Any, clock: int) -> Iterator[DataFrame]:
        least = self._least_horizon(clock)
        while self._ready and self._ready[0][0] <= least:
            message = heappop(self._ready)[-1]
            self._last, self.delivered[message.sender] = message.clock, message.seq
            yield message
            if self._has_changed:
                least, self._has_changed = self._least_horizon(clock), False
        self.gate = max(self.gate, int(least))

    patch.setattr(GroupTimestamp, "__init__", initially)
    patch.setattr(GroupTimestamp, "own", push)
    patch.setattr(GroupTimestamp, "data", data)
    patch.setattr(GroupTimestamp, "deliverable", deliverable)


def keep_alives_overtake(patch: Patch) -> None:
    """D5: a keep-alive ahead of a gap counts at once."""

    def keep_alive(self: Stream[Any], seq: int, clock: int) -> None:
        self.horizon = max(self.horizon, clock)

    patch.setattr(Stream, "keep_alive", keep_alive)


def late_ones_taken(patch: Patch) -> None:
    """6.4: unreliable source order delivers late messages too."""
    patch.setattr(UnreliableSourceOrder, "data", lambda _self, _source, message: [message])


def late_ones_ordered(patch: Patch) -> None:
    """6.4: unreliable timestamp order delivers messages below those that it has delivered."""

    def data(self: UnreliableTimestampOrder[DataFrame], sender: ProcessId, message: DataFrame) -> None:
        self._last = -1, ProcessId("")
        heappush(self._ready, (message.clock, sender, message.seq, message))

    patch.setattr(UnreliableTimestampOrder, "data", data)


# -------------------------------------------------------------------------------- repair


def no_keep_alives(patch: Patch) -> None:
    """D7: an idle sender transmits nothing."""

    def silent(self: Outbox, *_: Any) -> None:
        self.keep_alive_at = _FAR

    patch.setattr(Outbox, "rearm", silent)
    patch.setattr(Outbox, "hurry", silent)


def no_repairs(patch: Patch) -> None:
    """No process answers requests."""
    patch.setattr(Repairs, "asked", lambda *_: None)


def requests_not_repeated(patch: Patch) -> None:
    """R2: a missing message is requested once, by any process."""

    def back_off(self: Requests, ticket: Ticket, _pending: Pending, _now: int) -> None:
        self._timers.set(ticket, None)

    patch.setattr(Requests, "_back_off", back_off)


# -------------------------------------------------------------------------------- senders, followers, listeners


def window_one_too_large(patch: Patch) -> None:
    """§4.5.3: the window closes one message late."""
    is_open = SendWindow.is_open

    def late(self: SendWindow) -> bool:
        self._stable += 1
        try:
            return is_open(self)
        finally:
            self._stable -= 1

    patch.setattr(SendWindow, "is_open", late)


def gaps_skipped(patch: Patch) -> None:
    """M16: a receiver in total order skips a message that is gone."""

    reset = ReceiverSide.reset

    def skip(self: ReceiverSide, reason: str, now: int) -> None:
        seat = self._seat
        if reason not in ("behind", "stalled") or seat.standing.is_halted:
            reset(self, reason, now)
            return
        for sender, stream in seat.log.streams.items():
            lowest = min(stream._stored, default=stream.expected + 1)
            stream.last = max(stream.last, lowest - 1)
            seat.recovery.forget(sender, below=stream.last + 1)
            if lowest in stream._stored:
                seat.log._order.data(sender, stream._stored.pop(lowest))
            stream._apply_keep_alive()
        self._progress.at = now

    patch.setattr(ReceiverSide, "reset", skip)


def resets_untold(patch: Patch) -> None:
    """M16: a receiver in total order begins again without a view of its own."""

    def reset(self: Seat, _reason: str) -> None:
        self._floor = self.floor
        self._forget()
        self.standing.go(Event.RESET)

    patch.setattr(Seat, "reset", reset)


def lost_sources_untold(patch: Patch) -> None:
    """A receiver in source order loses a source, asks it again, and keeps it in its view meanwhile."""
    install = SourceOrderReceiver._install_view

    def only_more(self: SourceOrderReceiver, sources: Iterable[ProcessId]) -> None:
        named, view = {*sources}, self._views.current
        if view is None or named - {*view.members}:
            install(self, named)

    patch.setattr(SourceOrderReceiver, "_install_view", only_more)


def late_for_what_was_begun(patch: Patch) -> None:
    """D1: a joiner begins one number too late, and misses a message."""
    activate = SourceOrderReceiver._accepted

    def accepted(self: SourceOrderReceiver, frame: Any, now: int) -> None:
        activate(self, replace(frame, first=frame.first + 1), now)

    patch.setattr(SourceOrderReceiver, "_accepted", accepted)


_RIG: Final = ("intergroup",)
BUGS: Final[tuple[Bug, ...]] = (
    Bug("properties 9", "the largest horizon is acknowledged", the_largest_is_acknowledged, wanted=("S1",), rigs=_RIG),
    Bug("properties 9", "one sender is missing from the minimum that is acknowledged",
        one_is_missing_from_the_acknowledgment, wanted=("S1",), rigs=_RIG),
    Bug("properties 9", "one member is missing from the minimum of acknowledgments", one_is_missing_from_the_minimum,
        wanted=("S1",), rigs=_RIG),
    Bug("properties 9", "delivered messages are freed", freed_on_receipt, wanted=("S4",), rigs=_RIG),
    Bug("properties 9", "delivered messages are called stable", stable_when_delivered, wanted=("S1",), rigs=_RIG),
    Bug("T5", "senders do not wait for a joiner that was told where to begin", newcomers_not_held_for, _joined,
        wanted=("L9", "L1"), rigs=_RIG),
    Bug("J9", "receivers do not count", receivers_do_not_count, wanted=("L9",), rigs=_RIG),
    Bug("J16", "receivers count forever", the_stalled_count, wanted=("L6", "L8", "L7"), rigs=_RIG),
    Bug("J16", "receivers that left count", the_departed_count, wanted=("L6", "L8", "L7", "L2"), rigs=_RIG),
    Bug("J0", "a listener acknowledges more than it has", listeners_claim_everything, wanted=("L9",),
        rigs=_RIG),
    Bug("properties 9", "equal stamps are delivered in arrival order", arrival_breaks_ties, wanted=("O6",), rigs=_RIG),
    Bug("D5", "a keep-alive counts ahead of a gap", keep_alives_overtake, rigs=_RIG),
    Bug("6.4", "unreliable source order accepts late messages", late_ones_taken, wanted=("O1", "D2"), rigs=_RIG),
    Bug("6.4", "unreliable timestamp order accepts late messages", late_ones_ordered, wanted=("O6", "D2"), rigs=_RIG),
    Bug("properties 9", "no keep-alives", no_keep_alives, wanted=("L10", "L2"), rigs=_RIG),
    Bug("R6", "no repairs", no_repairs, wanted=("L2",), rigs=_RIG),
    Bug("R2", "a request is not repeated", requests_not_repeated, wanted=("L2", "L6"), rigs=_RIG),
    Bug("properties 9", "the window is one too large", window_one_too_large, wanted=("F1",), rigs=_RIG),
    Bug("M16", "a follower skips messages that are gone", gaps_skipped, wanted=("O2", "O4"), rigs=_RIG),
    Bug("M16", "a follower starts again without a view", resets_untold, _hindered, wanted=("O2", "L10"), rigs=_RIG),
    Bug("D1", "a listener asks again untold", lost_sources_untold, _hindered, wanted=("O2", "L2", "L5"), rigs=_RIG),
    Bug("D1", "a listener begins one message late", late_for_what_was_begun, rigs=_RIG),
)  # fmt: skip
