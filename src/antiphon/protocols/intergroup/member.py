"""One process in one group: checks each frame, dispatches it to the role of the process, and collects the effects."""

from typing import Final

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
from antiphon.protocols.intergroup.membership.plausible import is_plausible
from antiphon.protocols.intergroup.membership.states import Standing
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.receiving.framed import FramedReceiver
from antiphon.protocols.intergroup.receiving.source_order import SourceOrderReceiver
from antiphon.protocols.intergroup.receiving.unreliable import UnreliableReceiver
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.settings import CLOCK_AHEAD_US, STAMP_AHEAD_MAX_US, Service
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

_RECEIVERS: Final[dict[Service, type[Role]]] = {"fifo": SourceOrderReceiver, "framed": FramedReceiver}
"""The role of a process that only receives, by its delivery service; the other services are unreliable."""


class GroupMember:
    """A process that sends in a group or only receives, and changes between both; it may join and leave repeatedly.

    In the group timestamp order it has one role for both. With any other service it has a role of its own while it only
    receives, and joins the group timestamp order to send (D10).
    """

    def __init__(self, context: MemberContext) -> None:
        self._context = context
        self._outlet = Outlet()
        views = Views(context, self._outlet)
        receiver = None if context.plan.service == "total" else _RECEIVERS.get(context.plan.service, UnreliableReceiver)
        capacity = context.settings.window if receiver is not None and receiver.drops_when_full else None
        self._handoff = Handoff(context, self._outlet, capacity)
        parts = context, self._outlet, views, self._handoff
        self._participant = context.rules.participant(*parts)
        self._receiver = self._participant if receiver is None else receiver(*parts)
        self._views = views
        self._handlers: Handlers
        self._become(self._receiver)
        self._joined = False
        self._leaves = False
        """True if the process leaves the group once it is no sender any more."""
        self._gauge_above_us = CLOCK_AHEAD_US
        """A clock that is further ahead than this is reported; doubled by each report."""

    def _become(self, role: Role) -> None:
        self._role = role
        self._handlers = {
            DataFrame: self._data,
            KeepAliveFrame: self._keep_alive,
            RepairFrame: self._repair,
            RequestFrame: role.requested,
            **role.handlers,
        }

    @property
    def standing(self) -> Standing:
        """The state of the process in the group timestamp order."""
        return self._participant.standing

    # Inputs

    def join(self, now: int) -> None:
        if self._joined:
            self._leaves = False
            return
        self._joined = True
        if self._context.plan.sends:
            self._participant.promote()
        self._become(self._participant if self._context.plan.sends else self._receiver)
        self._role.begin(now)

    def leave(self) -> None:
        """Leave the group; a sender first leaves the sender group, in order (M24)."""
        if self._joined:
            self._leaves = True
            self._participant.demote()

    def promote(self, now: int) -> None:
        """Become a sender."""
        self._participant.promote()
        self._take_part(now)

    def demote(self) -> None:
        """Become a receiver."""
        self._participant.demote()

    def suspect(self, process: ProcessId, now: int) -> None:
        self._participant.suspect(process, now)

    def send(self, payload: bytes, label: int, name: bytes, now: int) -> None:
        """A receiver that sends becomes a sender."""
        self._participant.send(payload, label, name)
        self._take_part(now)

    def _take_part(self, now: int) -> None:
        if self._joined and self._role is not self._participant:
            self._role.end()
            self._views.install_private(())  # ends what the view before promised, as in a reset (M16)
            self._become(self._participant)
            self._participant.begin(now)

    def request(self, ticket: Ticket, now: int) -> None:
        self._role.request(ticket, now)

    def receive(self, frame: InterGroupFrame, now: int) -> None:
        """Receive a frame; one that comes before joining or after leaving is ignored."""
        latest = now // 1000 + STAMP_AHEAD_MAX_US
        if not self._joined or highest_stamp(frame) > latest or not is_plausible(frame, latest):
            return
        handler = self._handlers.get(type(frame))
        if handler is not None:
            handler(frame, now)

    def consumed(self, position: int) -> None:
        """The application has consumed the first `position` deliveries."""
        self._handoff.consumed(position)
        self._role.consumed()

    def set_writable(self, ready: bool) -> None:
        self._participant.set_writable(ready)

    # Outputs

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Append to `effects` what follows from all inputs since the last call, and from the time."""
        if self._joined:
            self._role.conclude(now)
            self._handoff.deliver_due(now)
            self._step_down(now)
        self._outlet.move_to(effects)

    def _step_down(self, now: int) -> None:
        """End what this process no longer is: a member of the group, or of the group timestamp order."""
        if self._leaves and (self._role is not self._participant or self._participant.may_end):
            self._role.end()
            self._joined = self._leaves = False
            self._handoff.service.clear()
            self._views.clear()
            self._outlet.add(Left(self._context.group, graceful=not self._participant.drop_unsent()))
        elif self._role is not self._receiver and self._participant.is_only_receiver:
            self._role.end()
            self._become(self._receiver)
            self._receiver.begin(now)
            self._role.conclude(now)

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
        return self._participant.has_unsent or (self._joined and (self._leaves or self._role.unfinished))

    # Frames of a sender's stream

    def _data(self, frame: DataFrame, now: int) -> None:
        if frame.sender != self._context.me:
            self._note_clock(frame, now)
            self._role.data(frame, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        if frame.sender != self._context.me:
            self._note_clock(frame, now)
            self._handoff.heard(frame.sender, frame.stamp)
            self._role.keep_alive(frame, now)

    def _repair(self, frame: RepairFrame, now: int) -> None:
        if frame.message.sender != self._context.me:
            self._role.repair(frame, now)

    def _note_clock(self, frame: DataFrame | KeepAliveFrame, now: int) -> None:
        """P1: a clock far ahead drags the clocks of all others along. That is tolerated, and reported."""
        ahead_us, context = frame.stamp - now // 1000, self._context
        if ahead_us > self._gauge_above_us:
            self._gauge_above_us = 2 * ahead_us
            self._outlet.add(ClockAhead(context.group, frame.sender, ahead_us))
            if context.settings.tracing:
                self._outlet.add(Gauge(context.group, "clock_ahead_us", ahead_us, frame.sender))
