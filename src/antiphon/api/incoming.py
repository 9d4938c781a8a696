"""The reading side of a group: effects wait here in their order until the application asks for the next event.

When the application asks for an event, it is done with the one before. `drive/reader.py` decides what that means to the
core and to the trace.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from antiphon.api.asking import Asking
from antiphon.api.events import Event, Message, Primary, Request, Reset, Transitional, View
from antiphon.api.notices import Notice, Notices
from antiphon.api.states import Failure
from antiphon.api.transfers import Transfers
from antiphon.core import effects
from antiphon.drive.drive import Shown
from antiphon.errors import ConfigurationError
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.api.group import Group
    from antiphon.api.process import LocalProcess


Unread = Shown | Failure | Notice
"""What waits for the application."""


class Incoming:
    """The unread effects and events of one group."""

    def __init__(self, member: "LocalProcess", group: "Group", transfers: Transfers, asking: Asking) -> None:
        self.shown: deque[Unread] = deque()
        """Effects that the application has not asked for."""
        self.events: deque[Event] = deque()
        """Events of the effect that was opened last, as far as the application has not taken them."""
        self.view: View | None = None
        """The view at the application's place in the stream."""
        self.primary = False
        """Whether that view is primary at that place."""
        self.reader: asyncio.Future[None] | None = None
        """The task that waits for an event."""
        self.notices = Notices(group.name, self.add)
        self._task: weakref.ref[asyncio.Task[Any]] | None = None
        """The task that waited last."""
        self._member = member
        self._group = group
        self._transfers = transfers
        self._asking = asking
        self._apart = False
        """Whether the application reads this group by itself."""
        self._taking: tuple[GroupId, int] | None = None
        """The position of the delivery whose messages the application is taking."""
        self._waived: dict[GroupId, int] = {}
        """Once the process leaves: by group, the number of deliveries that count as taken."""

    def wake(self) -> None:
        """Wake the task that waits for an event."""
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    def add(self, item: Failure | Notice) -> None:
        """Add an error or a notice, after everything that waits already."""
        self.shown.append(item)
        self._member.queue(self._group)
        self.wake()

    @property
    def reader_ended(self) -> bool:
        """Whether events wait, and the task that read them last has ended."""
        if self._task is None or not (self.shown or self.events):
            return False
        task = self._task()
        return task is None or task.done()

    def waive_all(self) -> None:
        """The process leaves. The application may read on, but no member and no message waits for that."""
        for effect in self.shown:
            self.waive(effect)

    def waive(self, effect: Unread) -> None:
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

    async def fill(self, ended: asyncio.Event) -> bool:
        """Open the next effect, or wait for one; False if the stream has ended."""
        if not self._apart:
            self._member.read_apart(self._group.name)
            self._apart = True
        if self.shown:
            self.events.extend(self.open_next())
            return True
        if ended.is_set():
            return False
        self.done()
        if self.reader is not None:
            name = self._group.name
            raise ConfigurationError(f"two tasks read {name} at once; let one read, and hand on what it gets")
        loop = asyncio.get_running_loop()  # once: each of these calls asks the system for the id of the process
        self.reader = loop.create_future()
        if (task := asyncio.current_task(loop)) is not None:
            self._task = weakref.ref(task)
        try:
            await self.reader
        finally:
            self.reader = None
        return True

    def take_all(self) -> list[Event]:
        """All events up to one before which the application must have taken the rest, or up to an error.

        The application is done with all deliveries but the last of them: positions count, so one call reports them.
        """
        events = [*self.events]
        self.events.clear()
        passed: tuple[GroupId, int] | None = None
        while self.shown and not _stands_alone(self.shown[0]):
            effect = self.shown.popleft()
            if self._taking is not None and type(effect) is effects.Deliver and effect.frame.group == self._taking[0]:
                passed = self._taking
            else:
                self.done()
                passed = None
            events += self._open(effect)
        if passed is not None and not self._group.leaving:
            self._member.consumed(*passed)
        return events

    def open_next(self) -> Iterable[Event]:
        """The events of the next effect. The application is done with what it took before."""
        self.done()
        return self._open(self.shown.popleft())

    def _open(self, effect: Unread) -> Iterable[Event]:
        if type(effect) is effects.Deliver:
            frame = effect.frame
            self._taking = frame.group, self._member.delivered(self._group, frame)
            if len(frame.payloads) == 1 and self._member.asker.is_request(frame):
                return (self._request(frame, in_order=True),)
            return [*map(Message, repeat(frame.author), frame.payloads)]
        event = _EVENTS[type(effect)](self, effect)
        return () if event is None else (event,)

    def _request(self, frame: effects.Frame, *, in_order: bool) -> Request:
        return Request(frame.author, frame.payloads[0], in_order, partial(self._asking.answer, frame))

    def _query(self, effect: effects.Query) -> Request:
        self._asking.read_query(effect)
        return self._request(effect.frame, in_order=False)

    def _enter(self, effect: effects.InstallView) -> View:
        """The application reaches a view. Its state at this place goes to the joiners."""
        view, before = effect.view, () if self.view is None else self.view.members
        wanted = effect.snapshot and self._member.is_current(self._group)  # nobody needs it once we have left
        state = self._transfers.state_at(view) if wanted else None
        self._member.entered(self._group, effect)
        if state is not None and self._transfers.has_state:
            self._transfers.hand_over(view, state)
        self.view = View(
            id=view.id,
            members=view.members,
            joined=tuple(member for member in view.members if member not in before),
            left=effect.left,
            together=view.transitional,
            excluded=len(view.excluded),
        )
        self.primary = False
        return self.view

    def _restore(self, effect: effects.InstallState) -> Reset | None:
        places, states = self._transfers.merge(effect)
        self._member.restored(self._group, effect, states)
        if not self._transfers.has_state:
            return None
        own, primary = (None if place is None else places.index(place) for place in (effect.own, effect.primary))
        return Reset(states=tuple(states), own=own, primary=primary)

    def _notice(self, effect: effects.Transitional) -> Transitional | None:
        self._member.noticed(self._group, effect)
        self.primary = False  # deliveries hold for fewer members than the view has
        if self._come_along(effect.members):
            return None
        service = self._group.service
        if service is None or not service.core.accept:
            return Transitional(members=effect.members)
        return Transitional(members=effect.members, _accepted=partial(self._member.accept, effect))

    def _prevail(self, effect: effects.Primary) -> Primary | None:
        self._member.prevailed(self._group, effect)
        if not effect.holds:
            return None
        self.primary = True
        return Primary(view=effect.view, number=effect.number)

    def _come_along(self, members: tuple[ProcessId, ...]) -> bool:
        """Whether the missing members are in the next view because a process joins, and no event comes before it.

        They leave the old group when they enter the new one, perhaps before us. So none of them has failed.
        """
        following = next((each for each in self.shown if not isinstance(each, effects.Left | Notice)), None)
        if self.view is None or not isinstance(following, effects.InstallView):
            return False
        return {*self.view.members} - {*members} <= {*following.view.members}

    def _tell(self, notice: Notice) -> Event | None:
        return self.notices.read(notice)

    def _leave(self, effect: effects.Left) -> None:
        self._member.left(self._group, effect)

    def _fail(self, failure: Failure) -> None:
        raise failure.error


_EVENTS: Final[Mapping[type[Unread], Callable[[Incoming, Any], Event | None]]] = {
    effects.InstallView: Incoming._enter,
    effects.Query: Incoming._query,
    effects.InstallState: Incoming._restore,
    effects.Transitional: Incoming._notice,
    effects.Primary: Incoming._prevail,
    effects.Left: Incoming._leave,
    Notice: Incoming._tell,
    Failure: Incoming._fail,
}


def _stands_alone(effect: Unread) -> bool:
    asks_for_state = isinstance(effect, effects.InstallView) and effect.snapshot
    return asks_for_state or isinstance(effect, effects.InstallState | Failure)
