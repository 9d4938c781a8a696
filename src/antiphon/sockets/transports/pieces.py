"""Frames that no datagram holds: cut by the sender, put together again by the receiver.

Data frames are made so that they fit. A refutation or a repair brings many of them, a formation names all members, and
these may not. Pieces bear the digest of the whole: when the same bytes are sent again, because the core has missed the
frame, what came the first time still counts, and only the pieces that were lost must come.
"""

import hashlib
import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.types import ProcessId
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, open_envelope, seal
from antiphon.wire.names import decode_process, encode_name

PIECE: Final = 65
"""The kind of a frame that is a piece of another; the range above 63 is no protocol's."""
_DIGEST_BYTES: Final = 16
_PLACE: Final = struct.Struct(f">{_DIGEST_BYTES}sII")
_OPEN_MAX: Final = 4
"""So many frames of one peer may be incomplete; of an older one nothing more will come."""


def cut(sealed: bytes, sender: ProcessId, size: int) -> list[bytes]:
    """The pieces of a frame, each sealed and at most so large."""
    name, digest = encode_name(sender), _digest(sealed)
    room = size - ENVELOPE_BYTES - len(name) - _PLACE.size
    count = -(-len(sealed) // room)
    return [
        seal(PIECE, name + _PLACE.pack(digest, place, count) + sealed[place * room : (place + 1) * room])
        for place in range(count)
    ]


class Piece:
    """One of them, as it came."""

    def __init__(self, sealed: bytes) -> None:
        _, body = open_envelope(sealed)
        begin = 1 + (body[0] if body else 0)
        if len(body) < begin + _PLACE.size:
            raise ProtocolViolation("body", "a piece of a frame ends before it says of which")
        self.sender = decode_process(body[1:begin])
        self.digest, self.place, self.count = _PLACE.unpack_from(body, begin)
        self.content = body[begin + _PLACE.size :]
        if self.place >= self.count or self.count > BODY_BYTES_MAX:
            raise ProtocolViolation("body", f"there is no piece {self.place} of {self.count}")


class Puzzles:
    """What has come of the frames of one peer that are not complete."""

    def __init__(self) -> None:
        self._open: dict[bytes, dict[int, bytes]] = {}
        self._bytes: dict[bytes, int] = {}

    def add(self, piece: Piece) -> bytes | None:
        """Gives the frame that it completes."""
        found = self._open.setdefault(piece.digest, {})
        if piece.place not in found:
            found[piece.place] = piece.content
            self._bytes[piece.digest] = self._bytes.get(piece.digest, 0) + len(piece.content)
        if self._bytes[piece.digest] > BODY_BYTES_MAX + ENVELOPE_BYTES:
            self._forget(piece.digest)
            raise ProtocolViolation("length", "the pieces of a frame are longer than any may be")
        if len(found) < piece.count:
            if len(self._open) > _OPEN_MAX:
                self._forget(next(iter(self._open)))
            return None
        self._forget(piece.digest)
        whole = b"".join(found[place] for place in sorted(found))
        if _digest(whole) != piece.digest:
            raise ProtocolViolation("checksum", "the pieces of a frame do not give what they are said to be of")
        return whole

    def _forget(self, digest: bytes) -> None:
        del self._open[digest], self._bytes[digest]


def _digest(sealed: bytes) -> bytes:
    return hashlib.blake2b(sealed, digest_size=_DIGEST_BYTES).digest()
