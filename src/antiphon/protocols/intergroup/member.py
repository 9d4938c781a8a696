"""One process in one group: checks each frame, dispatches it to the role of the process, and collects the effects."""

from antiphon.core.effects import ClockAhead, Effect, Gauge, Left
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    InterGroupFrame,
    KeepAliveFrame,
    RepairFrame,
    RequestFrame,
    highest_stamp,
)
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.settings import CLOCK_AHEAD_US, STAMP_AHEAD_MAX_US
from antiphon.protocols.intergroup.tickets import Ticket


class GroupMember:
    """A process that sends in a group or only receives; it may join and leave again and again."""

    def __init__(self, context: MemberContext, role: type[Role]) -> None:
        self._context = context
        self._senders = frozenset(context.plan.view.members)
        self._outlet = Outlet()
        self._views = Views(context, self._outlet)
        capacity = context.settings.window if role.drops_when_full else None
        self._handoff = Handoff(context, self._outlet, capacity)
        self._role = role(context, self._outlet, self._views, self._handoff)
        self._handlers: Handlers = {
            DataFrame: self._data,
            KeepAliveFrame: self._keep_alive,
            RepairFrame: self._repair,
            RequestFrame: self._role.requested,
            **self._role.handlers,
        }
        self._joined = False
        self._gauge_above_us = CLOCK_AHEAD_US
        """A clock that is further ahead than this is reported; doubled by each report."""

    # Inputs

    def join(self, now: int) -> None:
        if not self._joined:
            self._joined = True
            self._role.begin(now)

    def leave(self) -> None:
        if self._joined:
            self._role.end()
            self._joined = False
            self._views.clear()
            self._outlet.add(Left(self._context.group, graceful=True))

    def send(self, payload: bytes, label: int, name: bytes, now: int) -> None:  # noqa: ARG002
        self._role.send(payload, label, name)

    def request(self, ticket: Ticket, now: int) -> None:
        self._role.request(ticket, now)

    def receive(self, frame: InterGroupFrame, now: int) -> None:
        """Receive a frame; one that comes before joining or after leaving is ignored."""
        handler = self._handlers.get(type(frame))
        if self._joined and handler is not None and highest_stamp(frame) <= now // 1000 + STAMP_AHEAD_MAX_US:
            handler(frame, now)

    def consumed(self, position: int) -> None:
        """The application has consumed the first `position` deliveries."""
        self._handoff.consumed(position)
        self._role.consumed()

    def set_writable(self, ready: bool) -> None:
        self._role.set_writable(ready)

    # Outputs

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Append to `effects` what follows from all inputs since the last call, and from the time."""
        if self._joined:
            self._role.conclude(now)
            self._handoff.deliver_due(now)
        self._outlet.move_to(effects)

    @property
    def deadline(self) -> int | None:
        if not self._joined:
            return None
        times, due = [*self._role.deadlines()], self._handoff.deadline
        if due is not None:
            times.append(due)
        return min(times, default=None)

    @property
    def unstable(self) -> int:
        """Number of messages held because some process may lack them."""
        return self._role.unstable

    @property
    def unfinished(self) -> bool:
        return self._role.has_unsent or (self._joined and self._role.unfinished)

    # Frames of a sender's stream; those of a process that is no sender here are ignored

    def _data(self, frame: DataFrame, now: int) -> None:
        if frame.sender in self._senders:
            self._note_clock(frame, now)
            self._role.data(frame, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        if frame.sender in self._senders:
            self._note_clock(frame, now)
            self._handoff.heard(frame.sender, frame.stamp)
            self._role.keep_alive(frame, now)

    def _repair(self, frame: RepairFrame, now: int) -> None:
        if frame.message.sender in self._senders:
            self._role.repair(frame, now)

    def _note_clock(self, frame: DataFrame | KeepAliveFrame, now: int) -> None:
        """P1: a clock far ahead drags the clocks of all others along. That is tolerated, and reported."""
        ahead_us, context = frame.stamp - now // 1000, self._context
        if ahead_us > self._gauge_above_us:
            self._gauge_above_us = 2 * ahead_us
            self._outlet.add(ClockAhead(context.group, frame.sender, ahead_us))
            if context.settings.tracing:
                self._outlet.add(Gauge(context.group, "clock_ahead_us", ahead_us, frame.sender))
