"""Messages that members of an asymmetric group have submitted and the sequencer has not numbered (11.3 rule 6.6)."""

from collections.abc import Container, Iterable, Iterator

from antiphon.protocols.newtop import bounds
from antiphon.protocols.newtop.frames import SubmitFrame
from antiphon.protocols.newtop.membership.roster import Roster
from antiphon.types import ProcessId


class Queue:
    """Invariant: `_last` is the place of each origin's last numbered message, by any sequencer."""

    __slots__ = ("_last", "_submitted")

    def __init__(self) -> None:
        self._last: dict[ProcessId, int] = {}
        self._submitted: dict[ProcessId, dict[int, SubmitFrame]] = {}  # by origin and place

    def add(self, frame: SubmitFrame) -> None:
        """A member has submitted a message, perhaps again, or before we know that we are the sequencer."""
        if frame.place > self._last.get(frame.sender, 0):
            self._submitted.setdefault(frame.sender, {}).setdefault(frame.place, frame)

    def require_near(self, origin: ProcessId, place: int) -> None:
        """Refuse a place that its origin cannot have got to."""
        if place > (most := self._last.get(origin, 0) + bounds.PLACES_STEP):
            bounds.refuse("place of a message", place, most)

    def require_next(self, origin: ProcessId, place: int) -> None:
        """Refuse a place that leaves out messages of its origin."""
        if place > (following := self._last.get(origin, 0) + 1):
            bounds.refuse("place of a message", place, following)

    def numbered(self, origin: ProcessId, place: int) -> None:
        """The message of that place has its number."""
        self._last[origin] = place

    def put_own(self, me: ProcessId, submissions: Iterable[SubmitFrame]) -> None:
        """We are the sequencer from now on, and number our own messages under way."""
        self._submitted[me] = {submission.place: submission for submission in submissions}

    def keep(self, members: Container[ProcessId]) -> None:
        """Forget what others have submitted."""
        self._submitted = {origin: each for origin, each in self._submitted.items() if origin in members}

    def next(self, roster: Roster, failed: Container[ProcessId]) -> Iterator[SubmitFrame]:
        """Submissions by origin, each in order; each must be `numbered` before the next one is taken.

        We never number those of a failed member.
        """
        for origin in sorted(self._submitted):
            waiting = self._submitted.pop(origin)
            if origin in failed or origin not in roster.ranks:
                continue
            while (submission := waiting.get(self._last.get(origin, 0) + 1)) is not None:
                if not {*submission.excluded} <= {*roster.excluded}:
                    break  # it has excluded a member that we have not: our own agreement must come first
                yield waiting.pop(submission.place)
            reached = self._last.get(origin, 0)
            if left := {place: each for place, each in waiting.items() if place > reached}:
                self._submitted[origin] = left
