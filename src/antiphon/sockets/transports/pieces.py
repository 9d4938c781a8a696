"""Frames larger than a datagram: split by the sender, reassembled by the receiver.

Data frames always fit. A refutation or a repair contains many of them, and a formation names all members, so these may
be too large. Each piece carries the digest of the whole frame. If a core repeats the frame, pieces that arrived the
first time still count, and only the lost ones are needed.
"""

import hashlib
import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.types import ProcessId
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, open_envelope, seal
from antiphon.wire.names import decode_process, encode_name

PIECE: Final = 65
"""The kind of a frame that is a piece of another. No protocol family uses the kinds 64 to 127."""
_DIGEST_BYTES: Final = 16
_PLACE: Final = struct.Struct(f">{_DIGEST_BYTES}sII")
_OPEN_MAX: Final = 4
"""Incomplete frames that are kept for one peer. Older ones are unlikely to be completed."""
_PIECE_BYTES: Final = 128
"""Overhead of a piece beside its content, so that many small pieces count too."""
MEMBER_BYTES_MAX: Final = (20 << 20, 64 << 20)
"""Bytes of incomplete frames: of one member, enough for the largest frame, and of all members."""
GUEST_BYTES_MAX: Final = (1 << 19, 4 << 20)
"""The same for processes in no view with us, which send only formations."""


def cut(sealed: bytes, sender: ProcessId, size: int) -> list[bytes]:
    """The pieces of a frame, sealed, each with at most `size` bytes."""
    name, digest = encode_name(sender), _digest(sealed)
    room = size - ENVELOPE_BYTES - len(name) - _PLACE.size
    count = -(-len(sealed) // room)
    return [
        seal(PIECE, name + _PLACE.pack(digest, place, count) + sealed[place * room : (place + 1) * room])
        for place in range(count)
    ]


class Piece:
    """One piece, as received."""

    def __init__(self, sealed: bytes) -> None:
        _, body = open_envelope(sealed)
        begin = 1 + (body[0] if body else 0)
        if len(body) < begin + _PLACE.size:
            raise ProtocolViolation("body", "a piece of a frame is too short for its header")
        self.sender = decode_process(body[1:begin])
        self.digest, self.place, self.count = _PLACE.unpack_from(body, begin)
        self.content = body[begin + _PLACE.size :]
        if self.place >= self.count or self.count > BODY_BYTES_MAX:
            raise ProtocolViolation("body", f"there is no piece {self.place} of {self.count}")


class _Partial:
    """The pieces of one incomplete frame."""

    __slots__ = ("content", "size_bytes")

    def __init__(self) -> None:
        self.content: dict[int, bytes] = {}
        self.size_bytes = 0
        """Including the overhead of the pieces."""


class Reassembly:
    """The incomplete frames of all members, or of all other peers.

    Invariant: no peer has more than `each_bytes`, and all together have no more than `total_bytes`.
    """

    def __init__(self, each_bytes: int = MEMBER_BYTES_MAX[0], total_bytes: int = MEMBER_BYTES_MAX[1]) -> None:
        self._open: dict[tuple[ProcessId, bytes], _Partial] = {}  # the oldest first
        self._held: dict[ProcessId, tuple[int, int]] = {}  # by peer, how many frames and bytes
        self.held_bytes = 0
        """Bytes that are kept now."""
        self._each_bytes = each_bytes
        self._total_bytes = total_bytes

    def add(self, piece: Piece) -> bytes | None:
        """Add a piece; returns the frame if this completes it."""
        key = piece.sender, piece.digest
        partial = self._open.get(key)
        if partial is None:
            partial = self._open[key] = _Partial()
            self._count(piece.sender, 1, 0)
        if piece.place not in partial.content:
            partial.content[piece.place] = piece.content
            partial.size_bytes += len(piece.content) + _PIECE_BYTES
            self._count(piece.sender, 0, len(piece.content) + _PIECE_BYTES)
        if partial.size_bytes > self._each_bytes:
            self._forget(key)
            raise ProtocolViolation("length", "the pieces of a frame exceed the limit")
        if len(partial.content) < piece.count:
            self._make_room(piece.sender)
            return None
        self._forget(key)
        whole = b"".join(partial.content[place] for place in sorted(partial.content))
        if _digest(whole) != piece.digest:
            raise ProtocolViolation("checksum", "the pieces of a frame do not match its digest")
        return whole

    def forget(self, sender: ProcessId) -> None:
        """Drop the pieces of this peer."""
        for key in [key for key in self._open if key[0] == sender]:
            self._forget(key)

    def _make_room(self, sender: ProcessId) -> None:
        """Give up the oldest frame: of this peer if it has too many, else of all."""
        frames, size = self._held[sender]
        if frames > _OPEN_MAX or size > self._each_bytes:
            self._forget(next(key for key in self._open if key[0] == sender))
        while self.held_bytes > self._total_bytes:
            self._forget(next(iter(self._open)))

    def _forget(self, key: tuple[ProcessId, bytes]) -> None:
        self._count(key[0], -1, -self._open.pop(key).size_bytes)

    def _count(self, sender: ProcessId, frames: int, size_bytes: int) -> None:
        before = self._held.get(sender, (0, 0))
        self.held_bytes += size_bytes
        if before[0] + frames:
            self._held[sender] = before[0] + frames, before[1] + size_bytes
        else:
            del self._held[sender]


def _digest(sealed: bytes) -> bytes:
    return hashlib.blake2b(sealed, digest_size=_DIGEST_BYTES).digest()
