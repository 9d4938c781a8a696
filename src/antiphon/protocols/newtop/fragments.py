"""Large messages: pieces in, whole messages out (docs/spec/README.md, point 14).

The pieces of a message leave in consecutive frames of their sender; the message's place in the order is that of its
last piece. Pieces wait here and not in the window, so that a message longer than the window cannot lock it; the
largest message allowed bounds what waits for one sender.
"""

from collections.abc import Callable

from antiphon.core.contract import StateSink
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import ProcessId

_Line = tuple[ProcessId, int | None]
"""Whose pieces, and of which class the state is that they are pieces of; None: of a message of its application.

A state may have to be told in the middle of a message, by who did not have to tell it when it began to send that.
"""


class Pieces:
    """Puts a state together at its end, the plain way."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> None:
        """The next piece of it."""
        self._pieces.append(piece)

    def getvalue(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)


class Fragments:
    """The messages of one group that have come in part."""

    __slots__ = ("_bytes_max", "_sink", "_states", "come", "open", "own")

    def __init__(self, bytes_max: int, sink: Callable[[], StateSink] = Pieces) -> None:
        self.open: dict[_Line, list[bytes]] = {}
        """The pieces that have come, of one message each; of a state, none."""
        self._states: dict[_Line, StateSink] = {}
        self._sink = sink
        self.own: int | None = None
        """The class whose state we have ourselves: of that, nothing is kept."""
        self.come: dict[_Line, tuple[int, int]] = {}
        """Of each, how many bytes have come, and its label."""
        self._bytes_max = bytes_max

    def owns(self, place: int) -> None:
        """We have the state of this class ourselves."""
        self.own = place

    def join(self, frame: BlockFrame) -> BlockFrame | None:
        """In the order of delivery: None for a piece that others follow, else the frame with its message whole.

        A message larger than any may be is not kept, and never whole: the same at all members.
        """
        line = frame.author, frame.state
        if not frame.more and line not in self.open:
            return frame
        pieces = self.open.setdefault(line, [])
        size = self.come.get(line, (0, 0))[0] + sum(map(len, frame.payloads))
        self.come[line] = size, frame.label
        large = size > self._bytes_max and frame.state is None  # a state may be of any size
        if large:
            pieces.clear()
        elif frame.state is None:
            pieces += frame.payloads
        elif frame.state != self.own:
            self._states.setdefault(line, self._sink()).write(frame.payloads[0])
        if frame.more:
            return None
        del self.open[line], self.come[line]
        whole = b"".join(pieces) if frame.state is None else self._states.pop(line, Pieces()).getvalue()
        return None if large else frame._replace(payloads=(whole,))

    def forget(self, sender: ProcessId) -> None:
        """The sender is gone: of a message that was cut in the middle nothing is left, at all members alike."""
        for line in [line for line in self.open if line[0] == sender]:
            del self.open[line], self.come[line]
            self._states.pop(line, None)
