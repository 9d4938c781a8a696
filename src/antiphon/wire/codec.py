"""Frames to bytes and back. Each class of frame has a kind byte; each protocol family declares its own (`layout.py`).

Decoding either returns a frame that a correct peer could have sent, or raises `ProtocolViolation`. It never reads
beyond the body, and never trusts a length before it has compared it with the body.

    kinds 1 to 15, 24 to 31, 37, 38, 48 to 50, 61: newtop    kinds 16 to 23: classic    kinds 32 to 36: acks
    kinds 39 to 47, 51 to 60: intergroup                     kinds 128 to 255: families of other packages
"""

from collections.abc import Iterator
from typing import Any, Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.contract import Family
from antiphon.protocols.registry import BUILT_IN, built_in, families
from antiphon.types import ProcessId
from antiphon.wire.frame import ENVELOPE_BYTES, Sealed, kind_of, seal
from antiphon.wire.layout import Count, Read, Write
from antiphon.wire.names import IDENTITY_BYTES_MAX
from antiphon.wire.reader import Reader

# Looked up for every frame. When a lookup fails, families are loaded one after another until it succeeds.
_WRITERS: Final[dict[type[Any], Write]] = {}
_READERS: Final[dict[int, Read]] = {}
_STAMPS: Final[dict[type[Any], Count]] = {}
_BODIES: Final[dict[type[Any], Count]] = {}


def _load() -> Iterator[None]:
    """Register one more family at each step: those of this package, then those of others."""
    for name in BUILT_IN:
        _register(built_in(name))
        yield
    for family in families().values():
        _register(family)
        yield


def _register(family: Family) -> None:
    _WRITERS.update(family.wire.writers)
    _READERS.update(family.wire.readers)
    _STAMPS.update(dict.fromkeys(family.wire.writers, family.wire.stamp_bytes))
    _BODIES.update(family.wire.body_bytes)


def encode(frame: Frame) -> bytes:
    """The bytes of one frame, including its envelope."""
    write = _WRITERS.get(type(frame)) or _writer(type(frame))
    return seal(*write(frame))


def decode(sealed: Sealed) -> Frame:
    """The frame in these bytes; `ProtocolViolation` if a correct peer cannot have sent them."""
    kind = kind_of(sealed)
    read = _READERS.get(kind) or _reader(kind)
    return read(sealed, ENVELOPE_BYTES)


def _writer(frame: type[Any]) -> Write:
    any(frame in _WRITERS for _ in _load())
    return _WRITERS[frame]


def _reader(kind: int) -> Read:
    if not any(kind in _READERS for _ in _load()):
        raise ProtocolViolation("kind", f"frame kind {kind} is unknown in this version")
    return _READERS[kind]


def sender_of(sealed: bytes) -> ProcessId:
    """The sender that the frame in these bytes claims; nothing else in it is read."""
    return Reader(sealed[: ENVELOPE_BYTES + IDENTITY_BYTES_MAX], ENVELOPE_BYTES).identity()[1]


def header_bytes(frame: Frame) -> int:
    """Number of bytes that `encode` adds to the payloads."""
    body = _BODIES.get(type(frame))
    return len(encode(frame)) - payload_bytes(frame) if body is None else ENVELOPE_BYTES + body(frame)


def payload_bytes(frame: Frame) -> int:
    """Number of application bytes in a frame; if it has none, those of the copies in it."""
    if frame.payloads or not frame.copies:
        return sum(map(len, frame.payloads))
    return sum(map(payload_bytes, frame.copies))


def stamp_bytes(frame: Frame) -> int:
    """Number of bytes of a frame that order or stability needs."""
    stamp = _STAMPS.get(type(frame))
    if stamp is None:
        _writer(type(frame))
        stamp = _STAMPS[type(frame)]
    return stamp(frame)
