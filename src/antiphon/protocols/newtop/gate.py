"""The gate: whether messages of our application may leave in one group, and why not."""

from enum import Enum

from antiphon.core.effects import Blocked, Effect, Unblocked
from antiphon.types import GroupId, ProcessId


class Reason(Enum):
    """Why a message of the application must wait."""

    STOPPED = "a formation or the end of the group has stopped senders"
    NOT_ENTERED = "the application has not yet read the first view"
    STATE_OWED = "this member must first send its state"
    MEMBER_SUSPECTED = "a member is suspected, and senders wait until that is refuted or leads to a view"
    VIEW_CHANGING = "members have failed, and senders wait for the view without them"
    VIEW_UNSEEN = "the application has not yet read the current view"
    WINDOW_FULL = "flow control waits for the slowest member"


class Gate:
    """Invariant: `shut` is true if a standing reason holds; the window is no standing reason, it is tested each time.

    `Blocked` and `Unblocked` follow only from what is refused and permitted here.
    """

    __slots__ = ("_by", "_group", "_standing", "blocked_at", "refused", "shut")

    def __init__(self, group: GroupId) -> None:
        self.shut = False
        """Whether a standing reason holds; a plain attribute, because it is read for each message."""
        self.refused: Reason | None = None
        """Why the next message was refused; None if none was."""
        self.blocked_at = 0
        """The time since which messages are refused."""
        self._standing: set[Reason] = set()
        self._by: ProcessId | None = None  # the member that `Blocked` named
        self._group = group

    @property
    def blocked(self) -> bool:
        """True if a message of our application was refused and has not left since."""
        return self.refused is not None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons that hold now."""
        return tuple(reason for reason in Reason if reason in self._standing or reason is self.refused)

    @property
    def blocked_by(self) -> ProcessId | None:
        """The member that messages wait for; None if none wait."""
        return None if self.refused is None else self._by

    def holds(self, reason: Reason) -> bool:
        """Whether that standing reason holds."""
        return reason in self._standing

    def hold(self, reason: Reason, *, closed: bool = True) -> None:
        """Set or clear a standing reason."""
        if closed:
            self._standing.add(reason)
        else:
            self._standing.discard(reason)
        self.shut = bool(self._standing)

    def refuse(self, reason: Reason, by: ProcessId, now: int, effects: list[Effect]) -> None:
        """A message must wait; informs the application, again when it waits for another member."""
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
        """The next message may leave, or none is waiting."""
        if self.refused is not None:
            self.refused = None
            effects.append(Unblocked(self._group))
