"""How a process gets into a group that exists, or finds that it is alone (docs/spec/intergroup.md 7.3, Fig. 5.1)."""

from typing import Final

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.frames import JoinRequestFrame
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.types import ProcessId

HEARD_MAX: Final = 1_024
UNHEARD: Final = 2
"""A process that wants to send and hears no sender for the time of this number of questions begins alone."""
UNANSWERED: Final = 6
"""So does one that hears senders, but gets no answer to this number of questions."""


class Bootstrap:
    """The senders that one process hears, and its questions to them."""

    def __init__(self, context: MemberContext, outlet: Outlet) -> None:
        self._context, self._outlet = context, outlet
        self._heard: dict[ProcessId, int] = {}
        """By sender of any epoch, when something was last heard of it."""
        self._asked = 0
        self._began = self.next_at = 0

    def begin(self, now: int) -> None:
        self._asked = 0
        self._began = self.next_at = now

    def heard(self, sender: ProcessId, now: int) -> None:
        if len(self._heard) >= HEARD_MAX:
            self.forget_silent(now)
        if sender in self._heard or len(self._heard) < HEARD_MAX:
            self._heard[sender] = now
            if not self._asked:
                self.next_at = min(self.next_at, now)

    @property
    def hears_senders(self) -> bool:
        return bool(self._heard)

    def hears(self, sender: ProcessId) -> bool:
        """True if we may have asked that sender."""
        return sender in self._heard

    def last_heard(self) -> int:
        """When a sender was last heard; -1: never."""
        return max(self._heard.values(), default=-1)

    def forget_silent(self, now: int) -> None:
        """Senders that have been silent for long are not asked."""
        recent = now - 4 * self._context.settings.suspect_after_ns
        self._heard = {sender: at for sender, at in self._heard.items() if at >= recent}

    def ask_if_due(self, floor: int, now: int) -> None:
        """Ask one of the senders that we hear, another one each time."""
        if now < self.next_at:
            return
        context = self._context
        if self._heard:
            candidates = sorted(self._heard)
            frame = JoinRequestFrame(context.group, context.me, floor)
            self._outlet.transmit(frame, candidates[self._asked % len(candidates)])
            self._asked += 1
        self.next_at = now + context.settings.ask_ns

    def is_alone(self, now: int) -> bool:
        """True if a process that wants to send should begin alone."""
        return now >= self.alone_at

    @property
    def alone_at(self) -> int:
        questions = UNANSWERED if self.last_heard() >= self._began else UNHEARD
        return self._began + questions * self._context.settings.ask_ns
