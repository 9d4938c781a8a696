"""Reassembly of large messages from their fragments (docs/spec/README.md, point 14).

The fragments of a message leave in consecutive frames of their sender. The message has the place of its last fragment
in the order. Fragments wait here and not in the window, so a message longer than the window cannot block it. The
largest allowed message bounds the fragments of one sender.
"""

from collections.abc import Callable

from antiphon.core.contract import StateSink
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import ProcessId

_Line = tuple[ProcessId, int | None]
"""The sender, and the class of a state; None: fragments of an application message.

A member may have to send a state in the middle of a message: it became the donor after the message began.
"""


class Pieces:
    """Joins the pieces of a state at its end; the simple implementation."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> None:
        """The next piece of the state."""
        self._pieces.append(piece)

    def getvalue(self) -> bytes:
        """The whole state."""
        return b"".join(self._pieces)


class Fragments:
    """The partly received messages of one group."""

    __slots__ = ("_bytes_max", "_sink", "_states", "come", "open", "own")

    def __init__(self, bytes_max: int, sink: Callable[[], StateSink] = Pieces) -> None:
        self.open: dict[_Line, list[bytes]] = {}
        """The received fragments, of one message each; none of a state."""
        self._states: dict[_Line, StateSink] = {}
        self._sink = sink
        self.own: int | None = None
        """The class whose state we have ourselves: nothing of it is kept."""
        self.come: dict[_Line, tuple[int, int]] = {}
        """For each, the bytes received and its label."""
        self._bytes_max = bytes_max

    def owns(self, place: int) -> None:
        """We have the state of this class ourselves."""
        self.own = place

    def join(self, frame: BlockFrame) -> BlockFrame | None:
        """Add a frame, in the order of delivery: None before the last fragment, then the frame with the whole message.

        A message above the size limit is not kept and never becomes whole, at all members alike.
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
        """The sender is gone: drop the fragments of its unfinished message, at all members alike."""
        for line in [line for line in self.open if line[0] == sender]:
            del self.open[line], self.come[line]
            self._states.pop(line, None)
