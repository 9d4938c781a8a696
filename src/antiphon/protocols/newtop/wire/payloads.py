"""The payloads of a frame: a table of their lengths, then the bytes, up to the end of the body.

table: label, count, lengths

If a payload is not an application message, an earlier part of the frame says so: 1 and the place of the class whose
state it is; or 2 and 0 for a word about primary views.
"""

import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import WORD
from antiphon.wire.frame import Sealed
from antiphon.wire.reader import Reader

_TABLE: Final = struct.Struct(">qI")  # label and count, before the lengths
_TABLE_OF_ONE: Final = struct.Struct(">qII")  # with the length of the only payload
_LENGTH: Final = struct.Struct(">I")
_CLASS: Final = struct.Struct(">BI")
_STATE: Final = 1
_WORD: Final = 2
CLASS_BYTES: Final = _CLASS.size
"""Additional bytes of a frame with a state, compared with a message."""


def encode_table(label: int, payloads: tuple[bytes, ...]) -> bytes:
    """The bytes before the payloads."""
    count = len(payloads)
    if count == 1:  # the usual case under light load
        return _TABLE_OF_ONE.pack(label, 1, len(payloads[0]))
    lengths = [*map(len, payloads)]
    if lengths.count(lengths[0]) == count:  # the usual case under heavy load
        return _TABLE.pack(label, count) + _LENGTH.pack(lengths[0]) * count
    return struct.pack(f">qI{count}I", label, count, *lengths)


def table_bytes(payloads: tuple[bytes, ...]) -> int:
    """Their length."""
    return _TABLE.size + _LENGTH.size * len(payloads)


def read_payloads(reader: Reader) -> tuple[int, tuple[bytes, ...]]:
    """The label and all payloads; nothing follows them."""
    label, count = reader.unpack(_TABLE)
    if label < 0 or not count:
        raise ProtocolViolation("body", f"label {label} with {count} payloads is invalid")
    if count == 1:
        return label, (reader.piece(),)
    return label, reader.pieces(reader.lengths(count))


def read_only_payload(sealed: Sealed, at: int) -> tuple[int, tuple[bytes, ...]] | None:
    """The label and the payload of a frame that ends with a single payload; None for others, and for invalid ones."""
    begin = at + _TABLE_OF_ONE.size
    if begin > len(sealed):
        return None
    label, count, length = _TABLE_OF_ONE.unpack_from(sealed, at)
    if count != 1 or label < 0 or begin + length != len(sealed):
        return None
    return label, (bytes(sealed[begin:]),)


def encode_class(place: int) -> bytes:
    """Whose state the payload is, or that it is a word about primary views."""
    return _CLASS.pack(_WORD, 0) if place == WORD else _CLASS.pack(_STATE, place)


def read_class(reader: Reader) -> int:
    """Whose state the payload is, or that it is a word about primary views."""
    flags, place = reader.unpack(_CLASS)
    if flags == _WORD and not place:
        return WORD
    if flags != _STATE:
        raise ProtocolViolation("body", f"flags {flags:#x} contain bits that this version does not know")
    return int(place)


def require_one(payloads: tuple[bytes, ...], *, more: bool, state: int | None) -> None:
    """Require a single payload for a fragment or a state."""
    if (more or state is not None) and len(payloads) != 1:
        raise ProtocolViolation("body", f"a fragment or a state has {len(payloads)} payloads instead of one")
