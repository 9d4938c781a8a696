"""The wire layout of one protocol family: each family declares it, and `codec.py` looks it up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.core.effects import Frame
from antiphon.wire.frame import Sealed

Write = Callable[[Any], tuple[int, bytes]]
"""From a frame to its kind and its body."""
Read = Callable[[Sealed, int], Frame]
"""From bytes and the offset of the body in them to the frame; raises `ProtocolViolation` for wrong bytes."""
Count = Callable[[Any], int]
"""Counts certain bytes of a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How the frame classes of a family become bytes. Kinds from 128 on are free for other packages."""

    writers: Mapping[type[Any], Write]
    """By frame class."""
    readers: Mapping[int, Read]
    """By kind."""
    stamp_bytes: Count
    """Number of bytes of a frame that order or stability needs."""
    body_bytes: Mapping[type[Any], Count]
    """By frame class, the length of a body without payloads, if it is known without encoding."""
