"""The envelope of every frame: length, version, kind, checksum. It does not depend on the body.

    offset  bytes  field
    0       4      length of the body
    4       1      version of the wire format
    5       1      kind: how to read the body
    6       4      lower 32 bits of the XXH3 of the body, seeded with version and kind
    10      …      body

Lengths are checked before anything else is trusted; nothing received is ever executed or unpickled.
"""

import struct
from typing import Final

from xxhash import xxh3_64_intdigest

from antiphon.errors import ProtocolViolation

VERSION: Final = 3
BODY_BYTES_MAX: Final = 17 * 1024 * 1024
"""A payload of 16 MiB plus headers; larger lengths are refused before memory is allocated."""

Sealed = bytes | memoryview
"""A frame in its envelope; a view of a buffer is read at once, and no reference to it is kept."""

_ENVELOPE: Final = struct.Struct(">IBBI")
ENVELOPE_BYTES: Final = _ENVELOPE.size
_SEED: Final = VERSION << 8  # of the checksum, with the kind below it
_CHECKSUM: Final = 0xFFFF_FFFF
_SHORT_BYTES: Final = 1 << 10


def seal(kind: int, body: bytes) -> bytes:
    """Put a body in its envelope."""
    assert len(body) <= BODY_BYTES_MAX
    return _ENVELOPE.pack(len(body), VERSION, kind, xxh3_64_intdigest(body, _SEED | kind) & _CHECKSUM) + body


def open_envelope(sealed: Sealed) -> tuple[int, bytes]:
    """The kind and the body of exactly one sealed frame."""
    return kind_of(sealed), bytes(sealed[ENVELOPE_BYTES:])


def kind_of(sealed: Sealed) -> int:
    """Check the envelope of exactly one sealed frame, and return its kind; the body follows the envelope."""
    if len(sealed) < ENVELOPE_BYTES:
        raise ProtocolViolation("length", f"a frame of {len(sealed)} bytes is shorter than an envelope")
    length, version, kind, checksum = _ENVELOPE.unpack_from(sealed)
    if version != VERSION:
        raise ProtocolViolation("version", f"wire version {version} is not supported; this version is {VERSION}")
    if length > BODY_BYTES_MAX or length != len(sealed) - ENVELOPE_BYTES:
        raise ProtocolViolation(
            "length", f"the envelope states a body of {length} bytes, but the body has {len(sealed) - ENVELOPE_BYTES}"
        )
    # A short body is copied: that is faster than a view of it
    body = sealed[ENVELOPE_BYTES:] if length < _SHORT_BYTES else memoryview(sealed)[ENVELOPE_BYTES:]
    if checksum != xxh3_64_intdigest(body, _SEED | kind) & _CHECKSUM:
        raise ProtocolViolation("checksum", "the checksum of a frame does not match its body")
    return int(kind)


def envelopes(joined: bytes) -> list[bytes]:
    """Split bytes into the sealed frames in them, without reading them; at least one."""
    found: list[bytes] = []
    begin = 0
    while begin < len(joined) or not found:
        if len(joined) - begin < ENVELOPE_BYTES:
            raise ProtocolViolation("length", f"{len(joined) - begin} bytes are shorter than an envelope")
        end = begin + ENVELOPE_BYTES + int.from_bytes(joined[begin : begin + 4])
        if end > len(joined):
            raise ProtocolViolation("length", "an inner frame is longer than the frame that contains it")
        found.append(joined[begin:end])
        begin = end
    return found
