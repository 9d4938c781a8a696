"""Frames to bytes and back. One kind byte per family of frames; the bodies below are Newtop's.

    kind 1, data: numbers, names, label, count, one length per payload, payloads
    kind 2, null: numbers, names

Numbers are block, previous block and complete block. Names are the group's and the sender's, UTF-8 with a length byte.
Decoding either gives a frame that a correct peer could have sent or raises
`ProtocolViolation`; it never reads beyond the body and never trusts a length it has not compared with it.
"""

import struct
from itertools import accumulate, pairwise
from typing import Final

from antiphon.core.effects import Frame
from antiphon.core.newtop.frames import BlockFrame
from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId
from antiphon.wire.frame import ENVELOPE_BYTES, open_envelope, seal

STAMP_BYTES: Final = 8
"""What total order itself needs of a frame: its block number."""

_DATA: Final = 1
_NULL: Final = 2
_NUMBERS: Final = struct.Struct(">qqq")
_TABLE: Final = struct.Struct(">qI")  # label and count, before the lengths
_LENGTH_BYTES: Final = 4


def encode(frame: Frame) -> bytes:
    """The bytes of one frame, envelope included."""
    assert isinstance(frame, BlockFrame)
    group, sender = frame.group.encode(), frame.sender.encode()
    head = b"".join(
        (
            _NUMBERS.pack(frame.block, frame.previous_block, frame.complete_block),
            bytes((len(group),)),
            group,
            bytes((len(sender),)),
            sender,
        )
    )
    if not frame.payloads:
        return seal(_NULL, head)
    count = len(frame.payloads)
    table = struct.pack(f">qI{count}I", frame.label, count, *map(len, frame.payloads))
    return seal(_DATA, b"".join((head, table, *frame.payloads)))


def decode(sealed: bytes) -> Frame:
    """The frame in these bytes; `ProtocolViolation` if a correct peer cannot have sent them."""
    kind, body = open_envelope(sealed)
    if kind not in (_DATA, _NULL):
        raise ProtocolViolation("kind", f"kind {kind} is not a frame of this version")
    if len(body) < _NUMBERS.size:
        raise ProtocolViolation("body", "a frame ends inside its numbers")
    block, previous_block, complete_block = _NUMBERS.unpack_from(body)
    if not 0 <= complete_block <= previous_block < block:  # a block is complete only after its member spoke in it
        raise ProtocolViolation("body", f"numbers {block}, {previous_block}, {complete_block} cannot be")
    group, at = _name(body, _NUMBERS.size)
    sender, at = _name(body, at)
    label, payloads = _payloads(body, at) if kind == _DATA else (0, ())
    if kind == _NULL and at != len(body):
        raise ProtocolViolation("body", "bytes are left over behind a null")
    return BlockFrame(GroupId(group), ProcessId(sender), block, previous_block, complete_block, payloads, label)


def header_bytes(frame: Frame) -> int:
    """How many bytes `encode` adds to the payloads, without encoding."""
    names = len(frame.group.encode()) + len(frame.sender.encode()) + 2
    table = _TABLE.size + _LENGTH_BYTES * len(frame.payloads) if frame.payloads else 0
    return ENVELOPE_BYTES + _NUMBERS.size + names + table


def payload_bytes(frame: Frame) -> int:
    """The application's own bytes in a frame."""
    return sum(map(len, frame.payloads))


def _name(body: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + body[at] if at < len(body) else at + 1
    if end > len(body):
        raise ProtocolViolation("body", "a frame ends inside a name")
    try:
        return body[at + 1 : end].decode(), end
    except UnicodeDecodeError as error:
        raise ProtocolViolation("body", "a name is not UTF-8") from error


def _payloads(body: bytes, at: int) -> tuple[int, tuple[bytes, ...]]:
    lengths_at = at + _TABLE.size
    if len(body) < lengths_at:
        raise ProtocolViolation("body", "a data frame ends before its count")
    label, count = _TABLE.unpack_from(body, at)
    first = lengths_at + _LENGTH_BYTES * count
    if label < 0 or not count or first > len(body):
        raise ProtocolViolation("body", f"label {label} and a table of {count} lengths do not fit their frame")
    lengths = struct.unpack_from(f">{count}I", body, lengths_at)
    if first + sum(lengths) != len(body):
        raise ProtocolViolation("body", "the lengths of the payloads do not add up to their frame")
    ends = accumulate(lengths, initial=first)
    return label, tuple(body[start:end] for start, end in pairwise(ends))
