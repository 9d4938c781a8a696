"""Large messages: pieces in, whole messages out (spec/README 14).

The pieces of a message leave in consecutive frames of their sender; the message's place in the order is that of its
last piece. Pieces wait here and not in the window, so that a message longer than the window cannot lock it; the
largest message allowed bounds what waits for one sender.
"""

from antiphon.core.newtop.frames import BlockFrame
from antiphon.types import ProcessId


class Fragments:
    """The messages of one group that have come in part."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: dict[ProcessId, list[bytes]] = {}
        """By sender, the pieces of its message that have come."""

    def join(self, frame: BlockFrame) -> BlockFrame | None:
        """In the order of delivery: None for a piece that others follow, else the frame with its message whole."""
        if frame.more:
            self.open.setdefault(frame.sender, []).extend(frame.payloads)
            return None
        pieces = self.open.pop(frame.sender, None)
        return frame if pieces is None else frame._replace(payloads=(b"".join((*pieces, *frame.payloads)),))
