"""Packing without a timer: what the application asked for, until it may leave (docs/adr/0002).

Idle, a message leaves alone and at once. While the transport is full, messages gather and leave together: the cost
per message falls as load rises, and latency at low load stays one round.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

_ENTRY_BYTES: Final = 4
"""What each further message costs in a frame beside its own bytes; so even empty ones fill a frame."""


class Outbox:
    """Application messages of one group that have no block number yet, in the order of the calls."""

    __slots__ = ("_frame_bytes_max", "_label", "_payloads")

    def __init__(self, *, packing: bool, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max if packing else 0
        self._payloads: deque[bytes] = deque()
        self._label = 0

    def __bool__(self) -> bool:
        return bool(self._payloads)

    def put(self, payload: bytes, label: int) -> None:
        """Keep a message; labels count up by one, so the first one waiting says them all."""
        if not self._payloads:
            self._label = label
        self._payloads.append(payload)

    def take(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Everything that waits, as frames: (first label, payloads). One message alone may exceed the limit."""
        while self._payloads:
            payloads = [self._payloads.popleft()]
            room = self._frame_bytes_max - len(payloads[0])
            while self._payloads and len(self._payloads[0]) + _ENTRY_BYTES <= room:
                room -= len(self._payloads[0]) + _ENTRY_BYTES
                payloads.append(self._payloads.popleft())
            label, self._label = self._label, self._label + len(payloads)
            yield label, tuple(payloads)
