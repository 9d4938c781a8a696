"""The gate: whether messages of our application may leave in one group, and why not."""

from enum import Enum

from antiphon.core.effects import Blocked, Effect, Unblocked
from antiphon.types import GroupId, ProcessId


class Reason(Enum):
    """Why a message of the application must wait."""

    STOPPED = "a formation or the end of the group has stopped senders"
    NOT_ENTERED = "the application has not got to the first view"
    STATE_OWED = "our state must leave first"
    VIEW_CHANGING = "members have failed, and senders wait for the view without them"
    VIEW_UNSEEN = "the application has not got to the view in force"
    WINDOW_FULL = "flow control waits for the slowest member"


class Gate:
    """Invariant: `shut` says whether a standing reason holds; the window is no standing reason, it is asked each time.

    `Blocked` and `Unblocked` follow from what is refused and permitted here, and from nothing else.
    """

    __slots__ = ("_by", "_group", "_standing", "blocked_at", "refused", "shut")

    def __init__(self, group: GroupId) -> None:
        self.shut = False
        """Whether a standing reason holds; a plain attribute, because it is read for each message."""
        self.refused: Reason | None = None
        """Why the next message was refused when it wanted to leave; None if none was."""
        self.blocked_at = 0
        """Since when messages are refused."""
        self._standing: set[Reason] = set()
        self._by: ProcessId | None = None  # the member that we named as the one we wait for
        self._group = group

    @property
    def blocked(self) -> bool:
        """Whether a message of our application has been refused and has not left since."""
        return self.refused is not None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons that hold now."""
        return tuple(reason for reason in Reason if reason in self._standing or reason is self.refused)

    def holds(self, reason: Reason) -> bool:
        """Whether that standing reason holds."""
        return reason in self._standing

    def hold(self, reason: Reason, *, closed: bool = True) -> None:
        """From now on this reason holds, or not any more."""
        if closed:
            self._standing.add(reason)
        else:
            self._standing.discard(reason)
        self.shut = bool(self._standing)

    def refuse(self, reason: Reason, by: ProcessId, now: int, effects: list[Effect]) -> None:
        """A message wanted to leave and may not; tells the application, again when it waits for another member."""
        blocked = self.refused is not None
        if not blocked or by != self._by:
            self._by = by
            effects.append(Blocked(self._group, by))
        if not blocked:
            self.blocked_at = now
        self.refused = reason

    def standing(self) -> Reason:
        """The first standing reason; there must be one."""
        return next(reason for reason in Reason if reason in self._standing)

    def permit(self, effects: list[Effect]) -> None:
        """The next message may leave, or nothing is left to wait."""
        if self.refused is not None:
            self.refused = None
            effects.append(Unblocked(self._group))
