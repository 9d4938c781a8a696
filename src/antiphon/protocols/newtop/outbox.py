"""Packing without a timer: messages of the application until they may leave (docs/design/adr/0002).

In an idle group, a message leaves alone and at once. While the transport is full or the window closed, messages gather
and leave together: the cost per message falls as load rises, and latency at low load stays one round. A message that
is too large for a frame leaves in fragments, each in its own frame.
"""

from collections import deque
from typing import Final

from antiphon.core.contract import StateSource
from antiphon.protocols.newtop.frames import Ask

_ENTRY_BYTES: Final = 4
"""Cost of each further message in a frame besides its own bytes; so even empty messages fill a frame."""


Parcel = tuple[int, tuple[bytes, ...], bool]
"""Contents of one frame: label of the first message, payloads, and whether it is a fragment before the last."""


Unsent = tuple[bytes, int, Ask | None]
"""A message with its label, and its mark if it is a request or an answer."""


class Outbox:
    """Application messages of one group that have no block number yet, in the order of the calls."""

    __slots__ = ("_frame_bytes_max", "_label", "_packing", "_taken_bytes", "asks", "in_pieces", "waiting")

    def __init__(self, *, packing: bool, frame_bytes_max: int) -> None:
        self._packing = packing
        self._frame_bytes_max = frame_bytes_max
        self.waiting: deque[bytes] = deque()
        """The messages that have not left; the first may have left in part."""
        self.in_pieces = False
        """True if a message has ever left in fragments."""
        self.asks: dict[int, Ask] = {}
        """By label, the marks of waiting requests and answers, in order. These leave in frames of their own."""
        self._label = 0
        self._taken_bytes = 0  # of the first message, which is leaving in fragments

    @property
    def least_bytes(self) -> int:
        """Minimum size of the next frame; something must be waiting."""
        return min(len(self.waiting[0]) - self._taken_bytes, self._frame_bytes_max)

    @property
    def next_ask(self) -> Ask | None:
        """The mark of the next message."""
        return self.asks.get(self._label)

    def put(self, payload: bytes, label: int, ask: Ask | None = None) -> None:
        """Keep a message; labels count up by one, so the label of the first one determines all."""
        if not self.waiting:
            self._label = label
        if ask is not None:
            self.asks[self._label + len(self.waiting)] = ask
        self.waiting.append(payload)

    def put_all(self, payloads: list[bytes], label: int) -> None:
        """Keep many messages; `label` is that of the first."""
        if not self.waiting:
            self._label = label
        self.waiting.extend(payloads)

    def remove_all(self) -> list[Unsent]:
        """All messages that have not left completely, with their labels: they will leave in another group."""
        found = [
            (payload, label, self.asks.get(label)) for label, payload in enumerate(self.waiting, start=self._label)
        ]
        self.waiting.clear()
        self.asks.clear()
        self._taken_bytes = 0
        return found

    def take(self, room_bytes: int) -> Parcel:
        """The contents of the next frame: at least `least_bytes`, at most what fits in a frame and in `room_bytes`."""
        waiting = self.waiting
        if self._taken_bytes or len(waiting[0]) > self._frame_bytes_max:
            return self._take_piece()
        if len(waiting) == 1 or self._label in self.asks:
            self.asks.pop(self._label, None)
            self._label += 1
            return self._label - 1, (waiting.popleft(),), False
        payloads = self._pack(min(room_bytes, self._frame_bytes_max)) if self._packing else [waiting.popleft()]
        label = self._label
        while self.asks and label + len(payloads) > next(iter(self.asks)):
            waiting.appendleft(payloads.pop())
        self._label = label + len(payloads)
        return label, tuple(payloads), False

    def _pack(self, room_bytes: int) -> list[bytes]:
        """As many messages as fit, at least one. Sizes are often equal, so the expected number is taken at once."""
        waiting = self.waiting
        alike = max(1, room_bytes // (len(waiting[0]) + _ENTRY_BYTES))
        if alike < len(waiting):
            payloads = [waiting.popleft() for _ in range(alike)]
        else:
            payloads = [*waiting]
            waiting.clear()
        room = room_bytes - sum(map(len, payloads)) - _ENTRY_BYTES * (len(payloads) - 1)
        while room < 0 and len(payloads) > 1:
            waiting.appendleft(payloads.pop())
            room += len(waiting[0]) + _ENTRY_BYTES
        while waiting and len(waiting[0]) + _ENTRY_BYTES <= room:
            room -= len(waiting[0]) + _ENTRY_BYTES
            payloads.append(waiting.popleft())
        return payloads

    def _take_piece(self) -> Parcel:
        self.in_pieces = True
        message, begin = self.waiting[0], self._taken_bytes
        end = begin + self._frame_bytes_max
        if end < len(message):
            self._taken_bytes = end
            return self._label, (message[begin:end],), True
        self.waiting.popleft()
        self._taken_bytes = 0
        self.asks.pop(self._label, None)
        self._label += 1
        return self._label - 1, (message[begin:],), False


class Stream:
    """A state that is read while it leaves, one piece ahead, because a piece says whether others follow.

    If it cannot be read to its end, its last piece never leaves. Its label is its size.
    """

    __slots__ = ("_frame_bytes_max", "_next", "_source")

    def __init__(self, source: StateSource, frame_bytes_max: int) -> None:
        self._source = source
        self._frame_bytes_max = frame_bytes_max
        self._next = source.read(frame_bytes_max)

    @property
    def waiting(self) -> bool:
        """True if a piece can leave."""
        return self._next is not None

    @property
    def least_bytes(self) -> int:
        """Size of the next frame; something must be waiting."""
        assert self._next is not None
        return len(self._next)

    def take(self, room_bytes: int) -> Parcel:  # noqa: ARG002
        """The contents of the next frame."""
        piece, following = self._next, self._source.read(self._frame_bytes_max)
        assert piece is not None
        self._next = following or None
        return self._source.total, (piece,), following != b""
