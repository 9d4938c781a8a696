"""What a site remembers of one originator's committed messages, and for how long.

A delivered message itself is not needed any more: its final stamp is the maximum of the proposals of all who live, so
everybody held it before it was committed. But the stamp is: if the originator dies before its commit has reached us
all, whoever got it must tell the others (`takeover.py`). The notes have no acknowledgments, so the frames that travel
anyway say what is needed: a proposal tells the originator up to where the site knows the stamps of its messages, and a
commit tells the sites up to where they all do. What all know is *settled*: nobody will ever ask, and it is forgotten.
This costs no frame. The stamps kept are those of an originator's last messages, as many as it had under way at once,
also when it was lost.
"""

from antiphon.protocols.classic.frames import Stamp
from antiphon.protocols.classic.seen import Seen


class Commits:
    """The final stamps of one originator's messages, above those that are settled."""

    __slots__ = ("_known", "_settled", "_stamps")

    def __init__(self) -> None:
        self._known = Seen()
        self._stamps: dict[int, Stamp] = {}
        self._settled = 0

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def mark(self) -> int:
        """Up to here, every message is committed here."""
        return self._known.mark

    def get(self, sequence: int) -> Stamp | None:
        """The final stamp of a message, if it is remembered."""
        return self._stamps.get(sequence)

    def note(self, sequence: int, stamp: Stamp) -> None:
        """A message is committed."""
        self._known.add(sequence)
        self._stamps[sequence] = stamp

    def settle(self, upto: int) -> None:
        """Everybody knows the stamps up to here."""
        while self._settled < upto:
            self._settled += 1
            self._stamps.pop(self._settled, None)
