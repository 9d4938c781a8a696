"""Large messages: pieces in, whole messages out (spec/README 14).

The pieces of a message leave in consecutive frames of their sender; the message's place in the order is that of its
last piece. Pieces wait here and not in the window, so that a message longer than the window cannot lock it; the
largest message allowed bounds what waits for one sender.
"""

from antiphon.core.newtop.frames import BlockFrame
from antiphon.types import ProcessId


class Fragments:
    """The messages of one group that have come in part."""

    __slots__ = ("_bytes_max", "_sizes", "open")

    def __init__(self, bytes_max: int) -> None:
        self.open: dict[ProcessId, list[bytes]] = {}
        """By sender, the pieces of its message that have come."""
        self._sizes: dict[ProcessId, int] = {}
        self._bytes_max = bytes_max

    def join(self, frame: BlockFrame) -> BlockFrame | None:
        """In the order of delivery: None for a piece that others follow, else the frame with its message whole.

        A message larger than any may be is not kept, and never whole: the same at all members.
        """
        sender = frame.author
        if not frame.more and sender not in self.open:
            return frame
        pieces = self.open.setdefault(sender, [])
        self._sizes[sender] = size = self._sizes.get(sender, 0) + sum(map(len, frame.payloads))
        large = size > self._bytes_max and frame.state is None  # a state may be of any size
        if large:
            pieces.clear()
        else:
            pieces += frame.payloads
        if frame.more:
            return None
        del self.open[sender], self._sizes[sender]
        return None if large else frame._replace(payloads=(b"".join(pieces),))

    def forget(self, sender: ProcessId) -> None:
        """The sender is gone: of a message that was cut in the middle nothing is left, at all members alike."""
        self.open.pop(sender, None)
        self._sizes.pop(sender, None)
