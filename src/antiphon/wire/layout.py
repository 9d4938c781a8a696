"""How the frames of one protocol family travel: what each family declares, and `codec.py` looks up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.core.effects import Frame
from antiphon.wire.frame import Sealed

Write = Callable[[Any], tuple[int, bytes]]
"""From a frame to its kind and its body."""
Read = Callable[[Sealed, int], Frame]
"""From bytes in which the body begins at an offset and ends at the end; `ProtocolViolation` if they are wrong."""
Count = Callable[[Any], int]
"""Some bytes of a frame, counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The frame classes of a family as bytes. Kinds from 128 on are free for other packages."""

    writers: Mapping[type[Any], Write]
    """By frame class."""
    readers: Mapping[int, Read]
    """By kind."""
    stamp_bytes: Count
    """What the order of delivery, or stability, itself needs of a frame."""
    body_bytes: Mapping[type[Any], Count]
    """By frame class, the length of a body without its payloads, where that is known without encoding it."""
