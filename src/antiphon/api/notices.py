"""Notices: events outside of the order of messages, one when a concern begins and one when it is over.

The core finds concerns (docs/spec/newtop.md 9.9). Here they become events. A notice waits among the unread events, and
its content is decided when it is read. So an application that has not read for long finds one notice of each kind, not
thousands.
"""

from collections.abc import Callable
from typing import Final

from antiphon.api.events import Blocked, Degraded
from antiphon.core.effects import Concern, ConcernReason
from antiphon.limited_log import LimitedLog
from antiphon.types import ProcessId

_BLOCKING: Final = ("stalled", "unaccepted", "blocking")
"""Reasons that make a `Blocked` event, the more serious one first. Others make a `Degraded` event."""

_WARNINGS: Final[dict[ConcernReason, str]] = {
    "stalled": "%s: the application of %s does not read; all members wait for it",
    "unaccepted": "%s: the application of %s has not accepted the next view; all members wait for it",
    "blocking": "%s: messages of this process wait for %s",
    "lagging": "%s: %s answers late",
    "relayed": "%s: what %s sends reaches this process only through other members",
    "deaf": "%s: %s does not hear this process",
}

_Key = tuple[ProcessId, ConcernReason] | None
"""What a notice is about: a member and a reason; None: whether messages are blocked."""


class Notice:
    """The place of a notice among the events that wait."""

    __slots__ = ("about",)

    def __init__(self, about: _Key) -> None:
        self.about = about


class Notices:
    """The notices of one group. Invariant: `_waiting` holds those that are not read, at most one of each kind."""

    def __init__(self, group: str, add: Callable[[Notice], None]) -> None:
        self._group = group
        self._add = add
        self._log = LimitedLog("antiphon")
        self._concerns: dict[tuple[ProcessId, ConcernReason], None] = {}
        self._read: dict[_Key, ProcessId | None] = {}
        """By kind, what the application has read last; no entry: that the concern is over."""
        self._waiting: dict[_Key, Notice] = {}

    @property
    def blocked_by(self) -> ProcessId | None:
        """The member that holds messages back; of several, the one that the application has read of."""
        holders = [process for reason in _BLOCKING for process, found in self._concerns if found == reason]
        known = self._read.get(None)
        return known if known in holders else next(iter(holders), None)

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """All current concerns except blockages."""
        return tuple(Degraded(*each) for each in self._concerns if each[1] not in _BLOCKING)

    def note(self, concern: Concern, hint: str = "") -> None:
        """The core has found a concern, or that one is over. `hint`: added to the log message."""
        about = concern.process, concern.reason
        if concern.over:
            self._concerns.pop(about, None)
        else:
            self._concerns[about] = None
            text = _WARNINGS[concern.reason]
            self._log.warn(f"{about}", f"{text}%s", self._group, concern.process, hint)
        self._tell(about)

    def keep(self, members: tuple[ProcessId, ...]) -> None:
        """These are the members from now on: concerns about others are over."""
        for about in [each for each in self._concerns if each[0] not in members]:
            del self._concerns[about]
            self._tell(about)

    def read(self, notice: Notice) -> Blocked | Degraded | None:
        """The application reads a notice; None if it would tell nothing new."""
        about = notice.about
        del self._waiting[about]
        holds = self._state(about)
        if holds == self._read.get(about):
            return None
        if holds is None:
            del self._read[about]
        else:
            self._read[about] = holds
        return Blocked(by=holds) if about is None else Degraded(*about, over=holds is None)

    def _tell(self, about: tuple[ProcessId, ConcernReason]) -> None:
        kind = None if about[1] in _BLOCKING else about
        if kind not in self._waiting and self._state(kind) != self._read.get(kind):
            self._waiting[kind] = Notice(kind)
            self._add(self._waiting[kind])

    def _state(self, about: _Key) -> ProcessId | None:
        """The member that is concerned; None if all is well."""
        if about is None:
            return self.blocked_by
        return about[0] if about in self._concerns else None
