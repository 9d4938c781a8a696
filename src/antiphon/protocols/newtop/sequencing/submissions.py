"""What an origin has submitted in an asymmetric group and may have to submit again, and the window that limits it.

The window counts an origin's own messages alone, from the moment it hands them over to the moment it knows that every
member has them and every application has taken them: algorithm 3 of Macedo95, without the numbers of others.
"""

from collections import deque
from collections.abc import Iterable

from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.frames import BlockFrame, SubmitFrame
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.protocols.newtop.settings import NewtopSettings


class Submissions:
    """Our own messages of one group. Invariant: `kept` have not come back, in the order of their places."""

    __slots__ = ("_numbered", "_window", "_window_bytes", "bytes", "kept", "places")

    def __init__(self, settings: NewtopSettings) -> None:
        self.kept: deque[SubmitFrame] = deque()
        self.places = 0
        """How many there were so far."""
        self.bytes = 0
        """Of all that are not stable, those on their way included."""
        self._numbered: deque[tuple[int, int]] = deque()  # came back and not stable: number, bytes
        self._window = settings.window if settings.flow_control else BEYOND
        self._window_bytes = settings.window_bytes if settings.flow_control else BEYOND

    @property
    def room_bytes(self) -> int:
        """How many bytes the next one may have, if there is room at all."""
        return self._window_bytes - self.bytes

    def permits(self, least_bytes: int) -> bool:
        """Whether one more of at least this size may be handed over; a large one may if it is alone."""
        unstable = len(self.kept) + len(self._numbered)
        return not unstable or (unstable < self._window and least_bytes <= self.room_bytes)

    def count(self, payloads: tuple[bytes, ...]) -> int:
        """One more; gives its place."""
        self.bytes += sum(map(len, payloads))
        self.places += 1
        return self.places

    def keep(self, submission: SubmitFrame) -> None:
        """It leaves for the sequencer, and may have to leave again."""
        self.kept.append(submission)

    def came_back(self, frame: BlockFrame, place: int) -> bool:
        """One has its number; False if nothing was waited for."""
        waited = bool(self.kept)
        while self.kept and self.kept[0].place <= place:
            self.kept.popleft()
        self._numbered.append((frame.block, sum(map(len, frame.payloads))))
        return waited

    def stable(self, upto: int) -> None:
        """Every member has everything up to that number."""
        while self._numbered and self._numbered[0][0] <= upto:
            self.bytes -= self._numbered.popleft()[1]


def whole_messages(frames: Iterable[BlockFrame | SubmitFrame], pieces: list[bytes]) -> list[Unsent]:
    """The messages in these frames of ours, in order; the first continues a message of which these pieces have come.

    Pieces of a message of which not all have left are not among them: the outbox has all of it.
    """
    found: list[Unsent] = []
    for frame in frames:
        if frame.more or pieces:
            pieces = [*pieces, *frame.payloads]
            if not frame.more:
                found.append((b"".join(pieces), frame.label))
                pieces = []
        else:
            found += [(payload, frame.label + place) for place, payload in enumerate(frame.payloads)]
    return found
