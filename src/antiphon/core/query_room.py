"""Bounds the requests outside the order that wait until an application reads them."""

from typing import Final

from antiphon.core.effects import Frame

_COUNT_MAX: Final = 1_024
_BYTES_MAX: Final = 1 << 22
"""Requests that wait, and their bytes. More are dropped, and their askers try other members."""


class QueryRoom:
    """Invariant: the requests that were taken and not freed are within both bounds."""

    __slots__ = ("_bytes", "_count")

    def __init__(self) -> None:
        self._count = self._bytes = 0

    def take(self, frame: Frame) -> bool:
        """A request arrives; False if there is no room for it."""
        size_bytes = _size_bytes(frame)
        if self._count >= _COUNT_MAX or self._bytes + size_bytes > _BYTES_MAX:
            return False
        self._count += 1
        self._bytes += size_bytes
        return True

    def free(self, frame: Frame) -> None:
        """A request that was taken waits no longer."""
        self._count -= 1
        self._bytes -= _size_bytes(frame)


def _size_bytes(frame: Frame) -> int:
    return sum(map(len, frame.payloads))
