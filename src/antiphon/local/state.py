"""The state of the application of a local run: says exactly what was delivered, in how many bytes its group says."""

import hashlib
from typing import Final

from antiphon.scenario.model import STATE_BYTES_MIN

_NOTHING: Final = bytes(STATE_BYTES_MIN)


class State:
    """Of one process in one group: equal to that of another one if the same was delivered, and merged, before."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kernel = _NOTHING

    def add(self, sender: str, payload: bytes) -> None:
        """One more message is in it."""
        self._kernel = _digest(b"%b%b %b" % (self._kernel, sender.encode(), payload))

    def replace(self, states: tuple[bytes, ...]) -> None:
        """What others had, or what all had, merged in their order."""
        kernels = [state[:STATE_BYTES_MIN] for state in states]
        self._kernel = kernels[0] if len(kernels) == 1 else _digest(b"".join(kernels))

    def whole(self) -> bytes:
        """The state as it is now."""
        return (self._kernel * (self._size // STATE_BYTES_MIN + 1))[: self._size]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=STATE_BYTES_MIN).digest()
