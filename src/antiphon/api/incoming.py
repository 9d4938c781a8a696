"""The reading side of a group: effects wait here in their order until the application asks for the next event.

Asking for an event says that the application is done with the one before. What that means to the core and to the trace
is decided in `drive/reader.py`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from antiphon.api.events import Blocked, Event, Message, Reset, Transitional, View
from antiphon.api.states import Failure
from antiphon.api.transfers import Transfers
from antiphon.core import effects
from antiphon.drive.drive import Shown
from antiphon.errors import ConfigurationError
from antiphon.types import GroupId

if TYPE_CHECKING:
    from antiphon.api.group import Group
    from antiphon.api.member import Member


class Incoming:
    """Of one group."""

    def __init__(self, member: "Member", group: "Group", transfers: Transfers) -> None:
        self.shown: deque[Shown | Failure] = deque()
        """Effects that the application has not asked for."""
        self.events: deque[Event] = deque()
        """Of the last effect that was opened, the events that the application has not taken."""
        self.view: View | None = None
        """The view that the application has got to."""
        self.reader: asyncio.Future[None] | None = None
        """The task that waits for an event."""
        self._member = member
        self._group = group
        self._transfers = transfers
        self._taking: tuple[GroupId, int] | None = None
        """The position of the delivery whose messages the application is taking."""
        self._waived: dict[GroupId, int] = {}
        """Once the process leaves: by group, the number of deliveries that count as taken."""

    def rouse(self) -> None:
        """Let the task that waits look again."""
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    def add(self, failure: Failure) -> None:
        """What the application gets to after all that is there: an error of its own."""
        self.shown.append(failure)
        self.rouse()

    def waive_all(self) -> None:
        """The process leaves. The application may read on, but nobody waits for it, and its own messages do not."""
        for effect in self.shown:
            self.waive(effect)

    def waive(self, effect: Shown | Failure) -> None:
        """The process leaves: count an effect as taken."""
        if isinstance(effect, effects.Deliver):
            group = effect.frame.group
            self._waived[group] = self._waived.get(group, self._member.position(group)) + 1
            self._member.consumed(group, self._waived[group])
        elif isinstance(effect, effects.InstallView):
            self._member.passed_over(effect.view)

    def done(self) -> None:
        """The application is done with what it took: flow control counts it (the papers' Δ)."""
        if self._taking is not None and not self._group.leaving:
            self._member.consumed(*self._taking)
        self._taking = None

    async def fill(self, *, ended: bool) -> bool:
        """Open the next effect, or wait until there is one; False if none will come."""
        if self.shown:
            self.events.extend(self.open_next())
            return True
        if ended:
            return False
        self.done()
        if self.reader is not None:
            name = self._group.name
            raise ConfigurationError(f"two tasks read {name} at once; let one read, and hand on what it gets")
        self.reader = asyncio.get_running_loop().create_future()
        try:
            await self.reader
        finally:
            self.reader = None
        return True

    def take_all(self) -> list[Event]:
        """All events up to one that needs the application to have taken the rest, or up to an error."""
        events = [*self.events]
        self.events.clear()
        while self.shown and not _stands_alone(self.shown[0]):
            events += self.open_next()
        return events

    def open_next(self) -> Iterable[Event]:
        """The events that the next effect brings."""
        self.done()
        effect = self.shown.popleft()
        if type(effect) is effects.Deliver:
            frame = effect.frame
            self._taking = frame.group, self._member.delivered(self._group, frame)
            return [*map(Message, repeat(frame.author), frame.payloads)]
        event = _EVENTS[type(effect)](self, effect)
        return () if event is None else (event,)

    def _enter(self, effect: effects.InstallView) -> View:
        """The application gets to a view. Its state at this place goes to the joiners."""
        view, before = effect.view, () if self.view is None else self.view.members
        state = self._transfers.state_at(view) if effect.snapshot else None
        self._member.entered(self._group, effect)
        if state is not None and self._transfers.has_state:
            self._transfers.hand_over(view, state)
        self.view = View(
            id=view.id,
            members=view.members,
            joined=tuple(member for member in view.members if member not in before),
            left=effect.left,
            together=view.transitional,
            primary=view.primary,
        )
        return self.view

    def _restore(self, effect: effects.InstallState) -> Reset | None:
        states, own = self._transfers.merge(effect)
        self._member.restored(self._group, effect, states)
        return Reset(states=tuple(states), own=own) if self._transfers.has_state else None

    def _notice(self, effect: effects.Transitional) -> Transitional:
        self._member.noticed(self._group, effect)
        return Transitional(members=effect.members)

    def _block(self, effect: effects.Blocked) -> Blocked:
        return Blocked(by=effect.by)

    def _unblock(self, _effect: effects.Unblocked) -> Blocked:
        return Blocked(by=None)

    def _leave(self, effect: effects.Left) -> None:
        self._member.left(self._group, effect)

    def _fail(self, failure: Failure) -> None:
        raise failure.error


_EVENTS: Final[Mapping[type[Shown | Failure], Callable[[Incoming, Any], Event | None]]] = {
    effects.InstallView: Incoming._enter,
    effects.InstallState: Incoming._restore,
    effects.Transitional: Incoming._notice,
    effects.Blocked: Incoming._block,
    effects.Unblocked: Incoming._unblock,
    effects.Left: Incoming._leave,
    Failure: Incoming._fail,
}


def _stands_alone(effect: Shown | Failure) -> bool:
    asks_for_state = isinstance(effect, effects.InstallView) and effect.snapshot
    return asks_for_state or isinstance(effect, effects.InstallState | Failure)
