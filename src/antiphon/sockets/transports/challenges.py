"""Proof that a process receives what is sent to the address that it gives: it repeats a number that was sent there.

The number is computed from the address, so nothing is kept for a process that has not answered yet. Without the proof a
forged datagram would make us send to an address that never asked.
"""

import hashlib
import secrets
from typing import Final

from antiphon.sockets.limits import SourceRates
from antiphon.sockets.transports.datagrams import Sockaddr
from antiphon.sockets.transports.guests import FRAMES_EACH, FRAMES_TOTAL

_GREETINGS_EACH: Final = (32.0, 128.0)
_GREETINGS_TOTAL: Final = (256.0, 512.0)
"""Greetings of unknown processes that are read in a second, and the burst: from one address, and from all."""


class Challenges:
    """The challenges that one process gives to others."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._rates = SourceRates(_GREETINGS_EACH, _GREETINGS_TOTAL)
        self._frames = SourceRates(FRAMES_EACH, FRAMES_TOTAL)

    def token(self, to: Sockaddr | None) -> int:
        """What a process at this address has to repeat; it is never 0."""
        if to is None:
            return 1
        found = hashlib.blake2b(f"{to[0]} {to[1]}".encode(), key=self._key, digest_size=8).digest()
        return (int.from_bytes(found) >> 1) | 1

    def admits(self, source: Sockaddr, now_s: float) -> bool:
        """Whether a greeting from there is read now."""
        return self._rates.take(source[0], now_s)

    def reads(self, host: str, frames: int, now_s: float) -> bool:
        """Whether frames of a process in no view with us are read now; else they are lost, as any datagram may be."""
        return self._frames.take(host, now_s, frames)
