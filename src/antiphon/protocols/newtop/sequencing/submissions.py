"""Messages that an origin has submitted in an asymmetric group and may have to resubmit, and their window.

The window counts only an origin's own messages, from the submission until it knows that every member has them and
every application has consumed them: algorithm 3 of Macedo95, without the numbers of others.
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
        """Number of submissions so far."""
        self.bytes = 0
        """Bytes of all that are not stable, including those under way."""
        self._numbered: deque[tuple[int, int]] = deque()  # came back and not stable: number, bytes
        self._window = settings.window if settings.flow_control else BEYOND
        self._window_bytes = settings.window_bytes if settings.flow_control else BEYOND

    @property
    def room_bytes(self) -> int:
        """Maximum size of the next one, if there is room."""
        return self._window_bytes - self.bytes

    def permits(self, least_bytes: int) -> bool:
        """True if one more of at least this size may be submitted; a large one may if it is alone."""
        unstable = len(self.kept) + len(self._numbered)
        return not unstable or (unstable < self._window and least_bytes <= self.room_bytes)

    def count(self, payloads: tuple[bytes, ...]) -> int:
        """Count one more; returns its place."""
        self.bytes += sum(map(len, payloads))
        self.places += 1
        return self.places

    def keep(self, submission: SubmitFrame) -> None:
        """It leaves for the sequencer, and may have to be resubmitted."""
        self.kept.append(submission)

    def came_back(self, frame: BlockFrame, place: int) -> bool:
        """A message has its number; False if none was waiting."""
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
    """The messages in these own frames, in order; the first continues a message with these fragments.

    A message that has left only in part is not among them: the outbox has all of it.
    """
    found: list[Unsent] = []
    for frame in frames:
        if frame.more or pieces:
            pieces = [*pieces, *frame.payloads]
            if not frame.more:
                found.append((b"".join(pieces), frame.label, frame.ask))
                pieces = []
        else:
            found += [(payload, label, frame.ask) for label, payload in enumerate(frame.payloads, start=frame.label)]
    return found
