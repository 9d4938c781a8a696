"""The changes of views that a process knows, for those that have missed them (intergroup.md 7.6; M8, J18)."""

from collections import deque
from dataclasses import replace
from typing import Final

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.membership.frames import ChangeFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.types import ProcessId, ViewId

CHANGES_MAX: Final = 5
REPLAY_EVERY_NS: Final = SECOND // 10


class KnownChanges:
    """The last changes that this process installed."""

    def __init__(self, context: MemberContext, outlet: Outlet) -> None:
        self._context, self._outlet = context, outlet
        self._known: deque[ChangeFrame] = deque(maxlen=CHANGES_MAX)
        self._replayed = -REPLAY_EVERY_NS

    def add(self, change: ChangeFrame) -> None:
        self._known.append(change)

    def replay_to(self, process: ProcessId, epoch: ViewId, now: int) -> None:
        """A member of a change that is still in the epoch before it has missed the change."""
        for change in self._known:
            if (process, epoch) in change.origins:
                self._transmit(change, now)
                return

    def replay_after(self, epoch: ViewId, now: int) -> None:
        """A receiver asks what came after its epoch."""
        for change in self._known:
            if change.end_of(epoch) is not None:
                self._transmit(change, now)
                return

    def _transmit(self, change: ChangeFrame, now: int) -> None:
        """At most ten a second: whatever asks, it gets the answer by multicast."""
        if now - self._replayed >= REPLAY_EVERY_NS:
            self._replayed = now
            self._outlet.transmit(replace(change, sender=self._context.me))
