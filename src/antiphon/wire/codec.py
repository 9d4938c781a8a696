"""Frames to bytes and back. One kind byte per sort of frame; `newtop.py`, `formation.py` and `tuples.py` know them.

Decoding either gives a frame that a correct peer could have sent or raises `ProtocolViolation`; it never reads beyond
the body and never trusts a length it has not compared with it.
"""

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.wire import numbered as newtop
from antiphon.types import ProcessId
from antiphon.wire import tuples
from antiphon.wire.frame import ENVELOPE_BYTES, Sealed, kind_of, seal
from antiphon.wire.names import IDENTITY_BYTES_MAX
from antiphon.wire.reader import Reader


def encode(frame: Frame) -> bytes:
    """The bytes of one frame, envelope included."""
    kind, body = newtop.write(frame) if type(frame) in newtop.WRITERS else tuples.write(frame)
    return seal(kind, body)


def decode(sealed: Sealed) -> Frame:
    """The frame in these bytes; `ProtocolViolation` if a correct peer cannot have sent them."""
    kind = kind_of(sealed)
    if kind == newtop.NUMBERED and (frequent := newtop.read_frequent(sealed, ENVELOPE_BYTES)) is not None:
        return frequent
    reader = Reader(sealed, ENVELOPE_BYTES)
    if kind in newtop.READERS:
        frame: Frame = newtop.READERS[kind](reader)
        reader.end()
        return frame
    if tuples.knows(kind):
        return tuples.read(kind, reader)
    raise ProtocolViolation("kind", f"kind {kind} is not a frame of this version")


def sender_of(sealed: bytes) -> ProcessId:
    """Who transmits the frame in these bytes, by its own word; nothing else in it is looked at."""
    return Reader(sealed[: ENVELOPE_BYTES + IDENTITY_BYTES_MAX], ENVELOPE_BYTES).identity()[1]


def header_bytes(frame: Frame) -> int:
    """How many bytes `encode` adds to the payloads."""
    if isinstance(frame, BlockFrame):
        return ENVELOPE_BYTES + newtop.numbered_bytes(frame)
    return len(encode(frame)) - payload_bytes(frame)


def payload_bytes(frame: Frame) -> int:
    """The application's own bytes in a frame; where it has none of its own, those of the copies in it."""
    if frame.payloads or not frame.copies:
        return sum(map(len, frame.payloads))
    return sum(map(payload_bytes, frame.copies))


def stamp_bytes(frame: Frame) -> int:
    """What the order of delivery, or stability, itself needs of a frame."""
    return newtop.stamp_bytes(frame) if isinstance(frame, BlockFrame) else tuples.stamp_bytes(frame)
