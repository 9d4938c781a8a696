"""The application's side of a simulated process: effects wait in one order until the application takes them.

`Reader` decides what taking an effect means. This module has what only a simulation has: an application that may be
stalled, or busy for a given time with each delivery.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from antiphon.core.contract import Core, is_framing
from antiphon.core.effects import (
    Answered,
    Blocked,
    ClockAhead,
    Concern,
    Deliver,
    Evicted,
    Frame,
    InstallState,
    InstallView,
    Left,
    Missing,
    Primary,
    Query,
    Reset,
    Transitional,
    Unanswered,
    Unavailable,
    Unblocked,
)
from antiphon.drive.drive import Shown
from antiphon.drive.reader import Reader
from antiphon.sim.presence import Presence
from antiphon.sim.world import EventQueue
from antiphon.types import GroupId, name_of

if TYPE_CHECKING:
    from antiphon.sim.node import Node


class Application(Protocol):
    """What runs on top of the processes."""

    def taken(self, node: "Node", frame: Frame) -> None:
        """The application at `node` has taken the messages of this frame."""

    def asked(self, node: "Node", frame: Frame) -> None:
        """The application at `node` has taken a request outside the order of its group."""

    def state(self, node: "Node", group: GroupId) -> bytes:
        """The state of the application at `node` in that group."""

    def merge(self, node: "Node", effect: InstallState) -> bytes:
        """The application at `node` merges the states of others; returns the result."""

    def left(self, node: "Node", group: GroupId) -> None:
        """The application at `node` has left that group."""


class Desk:
    """The desk of one process; implements `drive.Audience`."""

    __slots__ = (
        "_application",
        "_busy",
        "_consume_ns",
        "_framing",
        "_free",
        "_node",
        "_presence",
        "_queue",
        "_reader",
        "_silent",
        "_stalls",
        "_untaken",
    )

    def __init__(
        self,
        node: "Node",
        core: Core,
        application: Application,
        presence: Presence,
        queue: EventQueue,
        consume_ns: int,
        free: Callable[[object], None],
    ) -> None:
        """`free`: called when a busy application can take more."""
        self._node = node
        self._framing = core if is_framing(core) else None
        self._application = application
        self._presence = presence
        self._queue = queue
        self._consume_ns = consume_ns
        self._free = free
        self._busy = False
        self._stalls = 0  # faults that stop the application
        self._untaken: deque[Shown] = deque()

    def open(self, reader: Reader) -> None:
        """Call this before the first effect: the reader belongs to the drive, which is built with this desk."""
        self._reader = reader
        self._silent = reader.silent

    @property
    def stalled(self) -> bool:
        return bool(self._stalls)

    @property
    def behind(self) -> bool:
        """Whether effects wait for an application that will take them."""
        return bool(self._untaken) and not self._stalls

    def stall(self, begins: bool) -> None:
        self._stalls += 1 if begins else -1

    def freed(self) -> None:
        """The application has finished its last delivery."""
        self._busy = False

    def show(self, effect: Shown, now: int) -> None:
        """Add the next effect; an effect without a place in the order is handled at once."""
        if type(effect) is Deliver and not (self._busy or self._untaken or self._stalls):
            frame = effect.frame  # the usual case; inline, because a call would cost a hundredth of a run
            if not self._silent:
                self._reader.consume(frame, now, self._queue.now)
            self._application.taken(self._node, frame)
            if self._consume_ns:
                self._rest()
        elif type(effect) in _OUTSIDE_THE_ORDER:
            _TAKEN[type(effect)](self, effect, now)
        elif type(effect) is InstallView and self._joins(effect):
            self._enter(effect, now)
        else:
            self._untaken.append(effect)
            self.catch_up(now)

    def catch_up(self, now: int) -> None:
        """The application takes all effects that it can."""
        while self._untaken and not self._stalls and not self._busy:
            effect = self._untaken.popleft()
            _TAKEN[type(effect)](self, effect, now)

    def _joins(self, effect: InstallView) -> bool:
        return self._reader.joins_at_once and name_of(effect.view.group) not in self._presence.views

    def _deliver(self, effect: Deliver, now: int) -> None:
        self._reader.consume(effect.frame, now, self._queue.now)
        self._application.taken(self._node, effect.frame)
        if self._consume_ns:
            self._rest()

    def _rest(self) -> None:
        """The application is busy with its last delivery for some time."""
        self._busy = True
        self._queue.at(self._queue.now + self._consume_ns, self._free)

    def _enter(self, effect: InstallView, now: int) -> None:
        """The application reads a view; its state at this point is transferred (docs/spec/newtop.md 11.2 rule 7)."""
        view = effect.view
        state = self._application.state(self._node, name_of(view.group)) if effect.snapshot else None
        self._reader.enter(effect, now, self._queue.now, state=state)
        self._presence.entered(view)
        if state is not None:
            self._reader.hand_over(view, state, now)

    def _restore(self, effect: InstallState, _now: int) -> None:
        self._reader.restore(effect, (self._application.merge(self._node, effect),), self._queue.now)

    def _leave(self, effect: Left, now: int) -> None:
        group = name_of(effect.group)
        if self._reader.leave(effect, self._queue.now):
            self._application.left(self._node, group)
            self._presence.left(group, now)

    def _notice(self, effect: Transitional, _now: int) -> None:
        self._reader.notice(effect, self._queue.now)

    def _prevail(self, effect: Primary, _now: int) -> None:
        self._reader.prevail(effect, self._queue.now)

    def _answered(self, effect: Answered, _now: int) -> None:
        if self._node.recorder is not None:
            self._node.recorder.answered(effect, self._queue.now)

    def _unanswered(self, effect: Unanswered, _now: int) -> None:
        if self._node.recorder is not None:
            self._node.recorder.unanswered(effect, self._queue.now)

    def _ask(self, effect: Query, _now: int) -> None:
        self._application.asked(self._node, effect.frame)

    def _request(self, effect: Missing, now: int) -> None:
        """The application asks for all missing messages."""
        if self._framing is not None and not effect.gone:
            self._framing.request(effect, now)

    def _ignore(self, _effect: Shown, _now: int) -> None:
        """The simulated application ignores notices and flow control, and leaves when the scenario says so."""


_OUTSIDE_THE_ORDER: Final = frozenset(
    {Query, Missing, Unavailable, Reset, ClockAhead, Blocked, Unblocked, Concern, Evicted}
)
_TAKEN: Final[dict[type[Shown], Callable[[Desk, Any, int], None]]] = {
    Deliver: Desk._deliver,
    InstallView: Desk._enter,
    InstallState: Desk._restore,
    Left: Desk._leave,
    Transitional: Desk._notice,
    Primary: Desk._prevail,
    Answered: Desk._answered,
    Unanswered: Desk._unanswered,
    Query: Desk._ask,
    Missing: Desk._request,
    Unavailable: Desk._ignore,
    Reset: Desk._ignore,
    ClockAhead: Desk._ignore,
    Blocked: Desk._ignore,
    Concern: Desk._ignore,
    Evicted: Desk._ignore,
    Unblocked: Desk._ignore,
}
