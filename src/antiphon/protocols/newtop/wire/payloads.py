"""The payloads of a frame: a table of their lengths, and behind it the bytes themselves, up to the end of the body.

table: label, count, lengths

A payload that is a state says of which class, further ahead in the frame: flags of which one is known, and the place.
"""

import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.wire.frame import Sealed
from antiphon.wire.reader import Reader

_TABLE: Final = struct.Struct(">qI")  # label and count, before the lengths
_TABLE_OF_ONE: Final = struct.Struct(">qII")  # with the length of the only payload
_LENGTH: Final = struct.Struct(">I")
_CLASS: Final = struct.Struct(">BI")
_STATE: Final = 1
CLASS_BYTES: Final = _CLASS.size
"""How much longer a frame with a state is than one with a message."""


def encode_table(label: int, payloads: tuple[bytes, ...]) -> bytes:
    """What stands before the payloads."""
    count = len(payloads)
    if count == 1:  # nearly always, where load is light
        return _TABLE_OF_ONE.pack(label, 1, len(payloads[0]))
    lengths = [*map(len, payloads)]
    if lengths.count(lengths[0]) == count:  # nearly always, where load is heavy
        return _TABLE.pack(label, count) + _LENGTH.pack(lengths[0]) * count
    return struct.pack(f">qI{count}I", label, count, *lengths)


def table_bytes(payloads: tuple[bytes, ...]) -> int:
    """How long that is."""
    return _TABLE.size + _LENGTH.size * len(payloads)


def read_payloads(reader: Reader) -> tuple[int, tuple[bytes, ...]]:
    """The label and all payloads; nothing follows them."""
    label, count = reader.unpack(_TABLE)
    if label < 0 or not count:
        raise ProtocolViolation("body", f"label {label} and {count} payloads cannot be")
    if count == 1:
        return label, (reader.piece(),)
    return label, reader.pieces(reader.lengths(count))


def read_only_payload(sealed: Sealed, at: int) -> tuple[int, tuple[bytes, ...]] | None:
    """The label and the payload of a frame that has one, and ends with it; None for others, and for wrong ones."""
    begin = at + _TABLE_OF_ONE.size
    if begin > len(sealed):
        return None
    label, count, length = _TABLE_OF_ONE.unpack_from(sealed, at)
    if count != 1 or label < 0 or begin + length != len(sealed):
        return None
    return label, (bytes(sealed[begin:]),)


def encode_class(place: int) -> bytes:
    """Whose state the payload is."""
    return _CLASS.pack(_STATE, place)


def read_class(reader: Reader) -> int:
    """Whose state the payload is."""
    flags, place = reader.unpack(_CLASS)
    if flags != _STATE:
        raise ProtocolViolation("body", f"flags {flags:#x} say what this version does not know")
    return int(place)


def require_one(payloads: tuple[bytes, ...], *, more: bool, state: int | None) -> None:
    """A piece of a message, and a state, come alone."""
    if (more or state is not None) and len(payloads) != 1:
        raise ProtocolViolation(
            "body", f"a piece of a message, or a state, comes with {len(payloads)} payloads instead of one"
        )
