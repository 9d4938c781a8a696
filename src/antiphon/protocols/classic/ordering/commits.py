"""What a site remembers of the committed messages of one originator, and for how long.

A delivered message itself is not needed any more: its final stamp is the maximum of the proposals of all live sites, so
all of them held it before it was committed. But its stamp is needed: if the originator crashes before its commit has
reached all sites, those that received it must tell the others (`takeover.py`). The notes have no acknowledgments, so
the existing frames carry what is needed. A proposal tells the originator up to which number the site knows the stamps
of its messages. A commit tells the sites up to which number all of them do. A stamp that all sites know is *settled*:
it is never asked for, and it is forgotten. This costs no frame. A site keeps the stamps of an originator's last
messages, at most as many as the originator had in transit at once, even after its loss.
"""

from antiphon.protocols.classic.frames import Stamp
from antiphon.protocols.classic.seen import Seen


class Commits:
    """The final stamps of the messages of one originator that are not settled."""

    __slots__ = ("_known", "_settled", "_stamps")

    def __init__(self) -> None:
        self._known = Seen()
        self._stamps: dict[int, Stamp] = {}
        self._settled = 0

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def mark(self) -> int:
        """Every message up to this number is committed here."""
        return self._known.mark

    def get(self, sequence: int) -> Stamp | None:
        """The final stamp of a message, if it is remembered."""
        return self._stamps.get(sequence)

    def note(self, sequence: int, stamp: Stamp) -> None:
        self._known.add(sequence)
        self._stamps[sequence] = stamp

    def settle(self, upto: int) -> None:
        """All sites know the stamps up to this number."""
        while self._settled < upto:
            self._settled += 1
            self._stamps.pop(self._settled, None)
