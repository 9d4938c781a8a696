"""What a member waits for from the sequencer: numbers for its messages, and numbers that it needs."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from antiphon.protocols.newtop.frames import BlockFrame, SubmitFrame
from antiphon.protocols.newtop.recovery.streams import Patience
from antiphon.protocols.newtop.sequencing.submissions import Submissions
from antiphon.protocols.newtop.settings import NewtopSettings

_REPEATED_MAX: Final = 16
"""Number of submissions that are repeated at once, on datagrams; later ones may have arrived."""


class Origin:
    """Invariant: messages up to place `_doubtful` may have been numbered elsewhere without our knowledge."""

    __slots__ = ("_asked", "_datagrams", "_doubtful", "_patience", "_unsent", "need", "repeat_at", "submissions")

    def __init__(self, settings: NewtopSettings) -> None:
        self.submissions = Submissions(settings)
        self.need = 0
        """The largest number that a member needs this group to reach."""
        self.repeat_at: int | None = None
        """On datagrams: when to submit again what did not come back."""
        self._asked = 0  # the number that we have requested from the sequencer
        self._unsent = False  # the sequencer has changed, and does not have our submissions
        self._doubtful = 0
        self._patience = Patience(settings)
        self._datagrams = settings.datagrams

    @property
    def awaits_return(self) -> bool:
        """True if we do not know the number of a message."""
        return bool(self.submissions.kept)

    @property
    def in_doubt(self) -> bool:
        """True if such a message was submitted to another sequencer, or sent in another group."""
        kept = self.submissions.kept
        return bool(kept and kept[0].place <= self._doubtful)

    def sends_again(self) -> None:
        """The next message has left once, in another group."""
        self._doubtful = self.submissions.places + 1

    def came_back(self, frame: BlockFrame, place: int) -> None:
        """A message of ours has its number."""
        if self.submissions.came_back(frame, place):
            self._patience.progress()

    def needs(self, number: int) -> None:
        """A member needs this number, perhaps another one: its need is ours from now on (rule 6.7)."""
        self.need = max(self.need, number)

    def asks(self) -> bool:
        """True if the sequencer must be asked for the number that we need; it counts as asked now."""
        if self.need <= self._asked:
            return False
        self._asked = self.need
        return True

    def turn(self, *, to_me: bool) -> None:
        """Another member orders from now on, perhaps we: messages under way may have a number or not."""
        self._asked = 0
        self._doubtful = self.submissions.places
        if to_me:
            self.repeat_at = None
        else:
            self._unsent = True

    def unsent(self) -> Iterable[SubmitFrame]:
        """The messages that a new sequencer does not have; returned once (rule 6.6)."""
        if not self._unsent:
            return ()
        self._unsent = False
        self._patience.reset()
        return self.submissions.kept

    def repeat_later(self, now: int) -> None:
        """On datagrams: set the alarm for a repetition, because anything may be lost."""
        if self._datagrams and self.repeat_at is None:
            self.repeat_at = now + self._patience.wait()

    def due(self, now: int) -> bool:
        """True if a repetition is due; clears the alarm."""
        if self.repeat_at is None or self.repeat_at > now:
            return False
        self.repeat_at = None
        return True

    def repeated(self) -> Sequence[SubmitFrame]:
        """The submissions to repeat now."""
        return [*islice(self.submissions.kept, _REPEATED_MAX)]
