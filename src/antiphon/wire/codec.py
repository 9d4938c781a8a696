"""Frames to bytes and back. One kind byte per sort of frame; the bodies below are Newtop's, `tuples.py` has the others.

    kind 1, numbered: flags, block, previous and complete block, names, [sequence], [flow], [stamp], [payloads]
    kind 2, alive:    flags, block, complete block, names, [sequence], [flow]
    kind 3, status:   names, last and settled sequence number
    kind 4, ack:      names, a sequence number
    kind 5, request:  names, origin, count, sequence numbers
    kind 6, repair:   names, count, each with a kind byte and a length: bodies of kinds 1 and 2

Names are the group's and the sender's, UTF-8 with a length byte; flags say which of the parts in brackets are there.
Decoding either gives a frame that a correct peer could have sent or raises `ProtocolViolation`; it never reads beyond
the body and never trusts a length it has not compared with it.
"""

import struct
from typing import Final

from antiphon.core.effects import Frame
from antiphon.core.newtop.frames import (
    AckFrame,
    AliveFrame,
    BlockFrame,
    Flow,
    NewtopFrame,
    RepairFrame,
    RequestFrame,
    SequencedFrame,
    StatusFrame,
)
from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId
from antiphon.wire import tuples
from antiphon.wire.frame import ENVELOPE_BYTES, open_envelope, seal
from antiphon.wire.names import encode_name, encode_names
from antiphon.wire.reader import NUMBER_MAX, Reader
from antiphon.wire.stamps import encode_stamp, read_stamp

_NUMBERED: Final = 1
_ALIVE: Final = 2
_STATUS: Final = 3
_ACK: Final = 4
_REQUEST: Final = 5
_REPAIR: Final = 6

_PAYLOADS: Final = 1
_FLOW: Final = 2
_SEQUENCE: Final = 4
_STAMP: Final = 8
_MORE: Final = 16
_STALLED: Final = 1  # of an alive, which has no payloads
_NUMBERED_FLAGS: Final = _PAYLOADS | _FLOW | _SEQUENCE | _STAMP | _MORE
_ALIVE_FLAGS: Final = _STALLED | _FLOW | _SEQUENCE

_NUMBERS: Final = struct.Struct(">Bqqq")
_ALIVE_NUMBERS: Final = struct.Struct(">Bqq")
_NUMBER: Final = struct.Struct(">q")
_FLOW_NUMBERS: Final = struct.Struct(">qqqq")
_TABLE: Final = struct.Struct(">qI")  # label and count, before the lengths
_TABLE_OF_ONE: Final = struct.Struct(">qII")  # with the length of the only payload
_LENGTH_BYTES: Final = 4
_COPY: Final = struct.Struct(">BI")


def encode(frame: Frame) -> bytes:
    """The bytes of one frame, envelope included."""
    kind, body = _body(frame) if isinstance(frame, NewtopFrame) else tuples.write(frame)
    return seal(kind, body)


def decode(sealed: bytes) -> Frame:
    """The frame in these bytes; `ProtocolViolation` if a correct peer cannot have sent them."""
    kind, body = open_envelope(sealed)
    frame: Frame
    reader = Reader(body)
    if kind == _NUMBERED:
        frame = _read_numbered(reader)
    elif kind == _ALIVE:
        frame = _read_alive(reader)
    elif kind == _STATUS:
        frame = StatusFrame(*reader.names(), reader.number(), reader.number())
    elif kind == _ACK:
        frame = AckFrame(*reader.names(), reader.number())
    elif kind == _REQUEST:
        frame = _read_request(reader)
    elif kind == _REPAIR:
        frame = _read_repair(reader)
    elif tuples.knows(kind):
        return tuples.read(kind, body)
    else:
        raise ProtocolViolation("kind", f"kind {kind} is not a frame of this version")
    reader.end()
    return frame


def header_bytes(frame: Frame) -> int:
    """How many bytes `encode` adds to the payloads."""
    if not isinstance(frame, BlockFrame):
        return len(encode(frame)) - payload_bytes(frame)
    names = len(_names(frame))
    table = _TABLE.size + _LENGTH_BYTES * len(frame.payloads) if frame.payloads else 0
    flow = _FLOW_NUMBERS.size if frame.flow is not None else 0
    sequence = _NUMBER.size if frame.sequence else 0
    stamp = len(encode_stamp(frame.stamp)) if frame.stamp is not None else 0
    return ENVELOPE_BYTES + _NUMBERS.size + names + table + flow + sequence + stamp


def payload_bytes(frame: Frame) -> int:
    """The application's own bytes in a frame; where it has none of its own, those of the copies in it."""
    if frame.payloads or not frame.copies:
        return sum(map(len, frame.payloads))
    return sum(map(payload_bytes, frame.copies))


def stamp_bytes(frame: Frame) -> int:
    """What the order of delivery itself needs of a frame: its block number, and a causal stamp."""
    if not isinstance(frame, BlockFrame):
        return tuples.stamp_bytes(frame)
    return _NUMBER.size + (len(encode_stamp(frame.stamp)) if frame.stamp is not None else 0)


def _body(frame: Frame) -> tuple[int, bytes]:
    if isinstance(frame, BlockFrame):
        return _NUMBERED, _numbered(frame)
    if isinstance(frame, AliveFrame):
        return _ALIVE, _alive(frame)
    names = _names(frame)
    if isinstance(frame, StatusFrame):
        return _STATUS, names + _NUMBER.pack(frame.last) + _NUMBER.pack(frame.settled)
    if isinstance(frame, AckFrame):
        return _ACK, names + _NUMBER.pack(frame.upto)
    if isinstance(frame, RequestFrame):
        count = len(frame.missing)
        return _REQUEST, names + encode_name(frame.origin) + struct.pack(f">I{count}q", count, *frame.missing)
    assert isinstance(frame, RepairFrame)
    copies = [_body(copy) for copy in frame.copies]
    parts = [part for kind, body in copies for part in (_COPY.pack(kind, len(body)), body)]
    return _REPAIR, b"".join((names, struct.pack(">I", len(copies)), *parts))


def _numbered(frame: BlockFrame) -> bytes:
    flags, parts = _place_and_flow(frame)
    if frame.stamp is not None:
        flags |= _STAMP
        parts.append(encode_stamp(frame.stamp))
    if frame.payloads:
        flags |= _PAYLOADS | (_MORE if frame.more else 0)
        parts.append(_table(frame.label, frame.payloads))
        parts += frame.payloads
    numbers = _NUMBERS.pack(flags, frame.block, frame.previous_block, frame.complete_block)
    return b"".join((numbers, *parts))


def _table(label: int, payloads: tuple[bytes, ...]) -> bytes:
    count = len(payloads)
    if count == 1:  # nearly always, where load is light
        return _TABLE_OF_ONE.pack(label, 1, len(payloads[0]))
    return struct.pack(f">qI{count}I", label, count, *map(len, payloads))


def _alive(frame: AliveFrame) -> bytes:
    flags, parts = _place_and_flow(frame)
    flags |= _STALLED if frame.stalled else 0
    return b"".join((_ALIVE_NUMBERS.pack(flags, frame.block, frame.complete_block), *parts))


def _place_and_flow(frame: SequencedFrame) -> tuple[int, list[bytes]]:
    """What both multicast frames have behind their numbers: names, place in the stream, flow-control header."""
    flags, parts = 0, [_names(frame)]
    if frame.sequence:
        flags |= _SEQUENCE
        parts.append(_NUMBER.pack(frame.sequence))
    if frame.flow is not None:
        flags |= _FLOW
        parts.append(_FLOW_NUMBERS.pack(*frame.flow))
    return flags, parts


def _names(frame: Frame) -> bytes:
    return encode_names(frame.group, frame.sender)


def _read_numbered(reader: Reader) -> BlockFrame:
    flags, block, previous_block, complete_block = reader.unpack(_NUMBERS)
    if not 0 <= complete_block <= previous_block <= block <= NUMBER_MAX:  # complete only after its member spoke in it
        raise ProtocolViolation("body", f"numbers {block}, {previous_block}, {complete_block} cannot be")
    if flags & ~_NUMBERED_FLAGS:
        raise ProtocolViolation("body", f"flags {flags:#x} say what this version does not know")
    group, sender, sequence, flow = _read_place_and_flow(flags, reader)
    stamp = read_stamp(reader) if flags & _STAMP else None
    label, payloads = _read_payloads(reader) if flags & _PAYLOADS else (0, ())
    more = bool(flags & _MORE)
    if more and len(payloads) != 1:
        raise ProtocolViolation("body", f"a piece of a message comes with {len(payloads)} payloads instead of one")
    return BlockFrame(
        group, sender, block, previous_block, complete_block, payloads, label, flow, stamp, more, sequence
    )


def _read_alive(reader: Reader) -> AliveFrame:
    flags, block, complete_block = reader.unpack(_ALIVE_NUMBERS)
    if not 0 <= complete_block <= block <= NUMBER_MAX:
        raise ProtocolViolation("body", f"numbers {block}, {complete_block} cannot be")
    if flags & ~_ALIVE_FLAGS:
        raise ProtocolViolation("body", f"flags {flags:#x} say what this version does not know")
    group, sender, sequence, flow = _read_place_and_flow(flags, reader)
    return AliveFrame(group, sender, block, complete_block, flow, bool(flags & _STALLED), sequence)


def _read_place_and_flow(flags: int, reader: Reader) -> tuple[GroupId, ProcessId, int, Flow | None]:
    group, sender = reader.names()
    sequence = reader.number() if flags & _SEQUENCE else 0
    return group, sender, sequence, _read_flow(reader) if flags & _FLOW else None


def _read_flow(reader: Reader) -> Flow:
    flow = Flow(*reader.unpack(_FLOW_NUMBERS))
    # A correct peer also has stable <= complete; but one that follows E-18 as printed is to be seen breaking S1.
    if not 0 <= flow.super_stable <= flow.stable <= NUMBER_MAX or not 0 <= flow.complete <= flow.number <= NUMBER_MAX:
        raise ProtocolViolation("body", f"flow-control numbers {', '.join(map(str, flow))} cannot be")
    return flow


def _read_request(reader: Reader) -> RequestFrame:
    group, sender = reader.names()
    return RequestFrame(group, sender, ProcessId(reader.name()), reader.numbers(reader.count()))


def _read_repair(reader: Reader) -> RepairFrame:
    group, sender = reader.names()
    copies = []
    for _ in range(reader.count()):
        kind, length = reader.unpack(_COPY)
        if kind not in (_NUMBERED, _ALIVE):
            raise ProtocolViolation("body", f"a repair holds a copy of kind {kind}")
        inner = Reader(reader.part(length))
        copy: SequencedFrame = _read_numbered(inner) if kind == _NUMBERED else _read_alive(inner)
        inner.end()
        if copy.group != group:
            raise ProtocolViolation("body", f"a repair of group {group} holds a frame of group {copy.group}")
        copies.append(copy)
    return RepairFrame(group, sender, tuple(copies))


def _read_payloads(reader: Reader) -> tuple[int, tuple[bytes, ...]]:
    label, count = reader.unpack(_TABLE)
    if label < 0 or not count:
        raise ProtocolViolation("body", f"label {label} and {count} payloads cannot be")
    if count == 1:
        return label, (reader.piece(),)
    return label, reader.pieces(reader.lengths(count))
