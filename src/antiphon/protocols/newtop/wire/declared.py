"""The wire of Newtop, as the codec looks it up."""

from collections.abc import Callable
from typing import Any, Final

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.wire.numbered import (
    NUMBERED,
    READERS,
    WRITERS,
    numbered_bytes,
    read_frequent,
    stamp_bytes,
    write,
)
from antiphon.wire.frame import Sealed
from antiphon.wire.layout import Read, Wire
from antiphon.wire.reader import Reader


def _read(body: Callable[[Reader], Any]) -> Read:
    def read(sealed: Sealed, at: int) -> Frame:
        reader = Reader(sealed, at)
        frame: Frame = body(reader)
        reader.end()
        return frame

    return read


_read_at_length: Final = _read(READERS[NUMBERED])


def _read_numbered(sealed: Sealed, at: int) -> Frame:
    """Nearly all frames are of the frequent form, which needs no reader."""
    frequent = read_frequent(sealed, at)
    return _read_at_length(sealed, at) if frequent is None else frequent


def _stamp_bytes(frame: Frame) -> int:
    return stamp_bytes(frame) if isinstance(frame, BlockFrame) else 0


WIRE: Final = Wire(
    writers=dict.fromkeys(WRITERS, write),
    readers={kind: _read(body) for kind, body in READERS.items()} | {NUMBERED: _read_numbered},
    stamp_bytes=_stamp_bytes,
    body_bytes={BlockFrame: numbered_bytes},
)
