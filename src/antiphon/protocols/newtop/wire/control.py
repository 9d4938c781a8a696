"""The bodies of frames that are a few numbers: repair of a lossy transport, leaving, needs (see `numbered.py`)."""

import struct
from collections.abc import Callable
from typing import Any, Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import AckFrame, LeavingFrame, NeedFrame, RequestFrame, StatusFrame, WantFrame
from antiphon.wire.names import encode_identity, encode_name
from antiphon.wire.reader import Reader

_STATUS: Final = 3
_ACK: Final = 4
_REQUEST: Final = 5
LEAVING: Final = 14
WANT: Final = 15
_NEED: Final = 50

_PASSES_VOTE: Final = 1
_STALLED: Final = 2
"""Flags at the end of a leaving frame, in one byte; the byte is absent if none is set."""
_NUMBER: Final = struct.Struct(">q")
_TWO_NUMBERS: Final = struct.Struct(">qq")
_THREE_NUMBERS: Final = struct.Struct(">qqq")


def _identity(frame: Frame) -> bytes:
    return encode_identity(frame.group, frame.sender)


def _leaving(frame: LeavingFrame) -> bytes:
    flags = (_PASSES_VOTE if frame.passes_vote else 0) | (_STALLED if frame.stalled else 0)
    return _identity(frame) + _TWO_NUMBERS.pack(frame.block, frame.sequence) + (bytes((flags,)) if flags else b"")


def _read_leaving(reader: Reader) -> LeavingFrame:
    group, sender = reader.identity()
    block, sequence = reader.numbers(2)
    has_flags = reader.left > 0
    flags = reader.part(1)[0] if has_flags else 0
    if flags & ~(_PASSES_VOTE | _STALLED) or (has_flags and not flags):
        raise ProtocolViolation("body", "a leaving frame has flags that this version does not know")
    return LeavingFrame(group, sender, block, bool(flags & _PASSES_VOTE), bool(flags & _STALLED), sequence=sequence)


def _want(frame: WantFrame) -> bytes:
    return _identity(frame) + _THREE_NUMBERS.pack(frame.block, frame.wanted, frame.sequence)


def _read_want(reader: Reader) -> WantFrame:
    group, sender = reader.identity()
    block, wanted, sequence = reader.numbers(3)
    return WantFrame(group, sender, block, wanted, sequence=sequence)


def _need(frame: NeedFrame) -> bytes:
    return _identity(frame) + _NUMBER.pack(frame.number)


def _read_need(reader: Reader) -> NeedFrame:
    return NeedFrame(*reader.identity(), reader.number())


def _status(frame: StatusFrame) -> bytes:
    return _identity(frame) + _TWO_NUMBERS.pack(frame.last, frame.settled)


def _read_status(reader: Reader) -> StatusFrame:
    return StatusFrame(*reader.identity(), *reader.numbers(2))


def _ack(frame: AckFrame) -> bytes:
    return _identity(frame) + _NUMBER.pack(frame.upto)


def _read_ack(reader: Reader) -> AckFrame:
    return AckFrame(*reader.identity(), reader.number())


def _request(frame: RequestFrame) -> bytes:
    count = len(frame.missing)
    return _identity(frame) + encode_name(frame.origin) + struct.pack(f">I{count}q", count, *frame.missing)


def _read_request(reader: Reader) -> RequestFrame:
    return RequestFrame(*reader.identity(), reader.process(), reader.numbers(reader.count()))


WRITERS: Final[dict[type[Any], tuple[int, Callable[[Any], bytes]]]] = {
    StatusFrame: (_STATUS, _status),
    AckFrame: (_ACK, _ack),
    RequestFrame: (_REQUEST, _request),
    LeavingFrame: (LEAVING, _leaving),
    WantFrame: (WANT, _want),
    NeedFrame: (_NEED, _need),
}
"""By class: the kind of a frame, and the function that writes its body."""

READERS: Final[dict[int, Callable[[Reader], Any]]] = {
    _STATUS: _read_status,
    _ACK: _read_ack,
    _REQUEST: _read_request,
    LEAVING: _read_leaving,
    WANT: _read_want,
    _NEED: _read_need,
}
"""By kind: the function that reads a body, except for the check of its end."""
