"""Processes, groups and views on the wire. A run has few names, which occur in every frame: both directions are cached.

Every body begins with the identity of its frame:

    offset  bytes  field
    0       8      formation of the group, 0 for a configured one
    8       4      incarnation of the sender, lower 32 bits
    12      1      length of the group's name
    13      1      length of the sender's name
    14      …      the two names, UTF-8; if the incarnation has more bits, `#` and these bits follow in decimal

Elsewhere, a process or a group is written as its identity in text, `p3`, `p3#2` or `orders@7`, preceded by a length
byte. A name contains no separator, and a formation or incarnation has exactly one text, so equal identities are equal
bytes.
"""

import re
import struct
from functools import lru_cache
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.types import WORLD, GroupId, ProcessId, ViewId, group_id, process_id, split_group_id, split_process_id

FORMATION_MAX: Final = (1 << 64) - 1
INCARNATION_MAX: Final = (1 << 63) - 1
_LOWER: Final = 32
"""Bits of an incarnation that have their own field; few processes need more than these in a simulation."""

_IDENTITY: Final = struct.Struct(">QIBB")
IDENTITY_BYTES: Final = _IDENTITY.size
"""Length without the names; the last two bytes are the lengths of the names."""
IDENTITY_BYTES_MAX: Final = IDENTITY_BYTES + 2 * 255
"""Length with the longest possible names."""
NAME_BYTES_MAX: Final = 200
"""Leaves room for the suffix of an incarnation or a formation."""
_TEXT_BYTES_MAX: Final = 255
"""Length of an identity in text. A longer one cannot be encoded."""
_CACHED_MAX: Final = 16_384
"""Names that are remembered in each direction: any peer can invent them, and each may be long."""
_NAME: Final = re.compile(r"[^\s#@/:\x00-\x1f\x7f\ud800-\udfff]+")
_COUNTED: Final = re.compile(r"[1-9][0-9]{0,19}")
_VIEW: Final = re.compile(r"[0-9]{4,8}\.[0-9]{6,19}\.[0-9a-f]{16}")


@lru_cache(_CACHED_MAX)
def encode_identity(group: GroupId, sender: ProcessId) -> bytes:
    """Group and sender, the first fields of every body."""
    group_name, epoch = split_group_id(group)
    sender_name, incarnation = split_process_id(sender)
    if upper := incarnation >> _LOWER:
        sender_name = f"{sender_name}#{upper}"
    names = group_name.encode(), sender_name.encode()
    return b"".join((_IDENTITY.pack(epoch, incarnation & (1 << _LOWER) - 1, *map(len, names)), *names))


@lru_cache(_CACHED_MAX)
def decode_identity(encoded: bytes) -> tuple[GroupId, ProcessId]:
    """The group and the sender in these bytes, which the two names fill exactly."""
    epoch, incarnation, group_bytes, _ = _IDENTITY.unpack_from(encoded)
    middle = IDENTITY_BYTES + group_bytes
    group, text = _decode_text(encoded[IDENTITY_BYTES:middle]), _decode_text(encoded[middle:])
    sender, separator, upper = text.partition("#")
    _require_name(group)
    _require_process_name(sender)
    if separator:
        _require_counted(upper, INCARNATION_MAX >> _LOWER)
        incarnation |= int(upper) << _LOWER
    return group_id(group, epoch), process_id(sender, incarnation)


@lru_cache(_CACHED_MAX)
def encode_name(identity: str) -> bytes:
    """The name of a process or a group, preceded by its length."""
    encoded = identity.encode()
    return bytes((len(encoded),)) + encoded


@lru_cache(_CACHED_MAX)
def decode_process(encoded: bytes) -> ProcessId:
    """The process that these bytes name."""
    text = _decode_text(encoded)
    require_process(text)
    return ProcessId(text)


@lru_cache(_CACHED_MAX)
def decode_group(encoded: bytes) -> GroupId:
    """The group that these bytes name."""
    text = _decode_text(encoded)
    name, separator, epoch = text.partition("@")
    _require_name(name)
    if separator:
        _require_counted(epoch, FORMATION_MAX)
    return GroupId(text)


@lru_cache(_CACHED_MAX)
def decode_view(encoded: bytes) -> ViewId:
    """The view that these bytes name."""
    text = _decode_text(encoded)
    if not _VIEW.fullmatch(text):
        raise ProtocolViolation("body", f"{text!r} is not a view id")
    return ViewId(text)


@lru_cache(_CACHED_MAX)
def require_process(text: str) -> None:
    """Raise unless the text is the one valid name of a process, and short enough for its length byte."""
    if len(text) > _TEXT_BYTES_MAX or len(text.encode()) > _TEXT_BYTES_MAX:
        raise ProtocolViolation("body", f"a name has {len(text):,} characters, which is too long")
    name, separator, incarnation = text.partition("#")
    _require_process_name(name)
    if separator:
        _require_counted(incarnation, INCARNATION_MAX)


def _decode_text(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise ProtocolViolation("body", "a name is not UTF-8") from error


def _require_process_name(name: str) -> None:
    _require_name(name)
    if name == WORLD:
        raise ProtocolViolation("body", f"{name!r} is not the name of a process")


def is_name(text: str) -> bool:
    """True if a process or a group may have this name."""
    return bool(_NAME.fullmatch(text)) and len(text.encode()) <= NAME_BYTES_MAX and text != WORLD


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ProtocolViolation(
            "body", f"{name!r} is not a name: it is empty or contains a space, '#', '@', '/' or ':'"
        )


def _require_counted(digits: str, most: int) -> None:
    """Zero and leading zeros are never written, so each identity has exactly one text."""
    if not _COUNTED.fullmatch(digits) or int(digits) > most:
        raise ProtocolViolation("body", f"{digits!r} is not the number of a later formation or incarnation")
