"""Bodies of frames that need not be fast: the values of their fields, in order, as one MessagePack array.

A frame class defines the fields, their order and their types. Group and sender are not in the array, because every
body begins with them (`names.py`). msgspec checks the types on decoding. Numbers below 0 or too large, and texts that
name no process, pass msgspec but no correct peer sends them: they are refused here.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_type_hints

import msgspec

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId
from antiphon.wire.frame import Sealed
from antiphon.wire.layout import Count, Read, Wire, Write
from antiphon.wire.names import encode_identity, require_process
from antiphon.wire.reader import NUMBER_MAX, Reader

NUMBER_BYTES: Final = 8
"""The size of a number in `stamp_bytes`, independent of its size in MessagePack."""


def tuple_wire(
    kinds: Mapping[int, type[Any]],
    *,
    stamp_bytes: Count,
    message: type[Any] | None = None,
    is_complete: Callable[[Any], bool] = lambda _frame: True,
    payloads: Callable[[Any], int] = lambda _frame: 1,
) -> Wire:
    """The layout of a family that writes all its frames as tuples.

    `message`: the class of frames that carry one application message each, if other frames may hold copies of them.
    `is_complete`: whether a message has all that it must have when it travels, and nothing that it gets later.
    `payloads`: how many payloads a message has, if it is not always one.
    """
    messages = _Messages(message, is_complete, payloads)
    return Wire(
        writers={frame: _writer(kind, frame) for kind, frame in kinds.items()},
        readers={kind: _reader(kind, frame, messages) for kind, frame in kinds.items()},
        stamp_bytes=stamp_bytes,
        body_bytes={},
    )


def _fields(frame: type[Any]) -> tuple[str, ...]:
    names = tuple(field.name for field in fields(frame)) if is_dataclass(frame) else frame._fields
    assert names[:2] == ("group", "sender")
    return tuple(names[2:])


def _writer(kind: int, frame: type[Any]) -> Write:
    names = _fields(frame)

    def write(frame: Frame) -> tuple[int, bytes]:
        values = [getattr(frame, name) for name in names]
        return kind, encode_identity(frame.group, frame.sender) + msgspec.msgpack.encode(values)

    return write


def _reader(kind: int, frame: type[Any], messages: "_Messages") -> Read:
    hints = get_type_hints(frame)
    decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
        tuple[tuple(hints[name] for name in _fields(frame))]  # type: ignore[misc]
    )

    def read(sealed: Sealed, at: int) -> Frame:
        reader = Reader(sealed, at)
        group, sender = reader.identity()
        try:
            values = decoder.decode(reader.rest())
        except (ValueError, RecursionError) as error:  # DecodeError, and names that are not UTF-8
            raise ProtocolViolation("body", f"a body of kind {kind} cannot be read: {error}") from error
        found: Frame = frame(group, sender, *values)
        messages.require(found, group)
        messages.require_values(values)
        return found

    return read


class _Messages:
    """Checks messages of a peer, both alone and as copies in other frames."""

    def __init__(
        self, message: type[Any] | None, is_complete: Callable[[Any], bool], payloads: Callable[[Any], int]
    ) -> None:
        self._message = message
        self._is_complete = is_complete
        self._payloads = payloads

    def require(self, frame: Frame, group: GroupId) -> None:
        if self._message is None:
            return
        if isinstance(frame, self._message):
            self._require_message(frame, group)
        for copy in frame.copies:
            self._require_message(copy, group)

    def _require_message(self, frame: Frame, group: GroupId) -> None:
        """A message travels in frames of its own group, alone, and without what delivery adds to it."""
        if len(frame.payloads) != self._payloads(frame) or not self._is_complete(frame):
            raise ProtocolViolation("body", f"a message with {len(frame.payloads)} payloads or a stamp is invalid")
        if frame.group != group:
            raise ProtocolViolation("body", f"a frame of group {group} contains a message of group {frame.group}")
        for copy in frame.copies:
            if copy.copies:
                raise ProtocolViolation("body", "a message in the context of another one has a context of its own")
            self._require_message(copy, group)

    def require_values(self, values: tuple[Any, ...]) -> None:
        """Check the range of numbers, and that texts name processes; the only other texts are roles."""
        for value in values:
            if isinstance(value, int):
                if not 0 <= value <= NUMBER_MAX:
                    raise ProtocolViolation("body", f"{value} found instead of a number from 0 to 2**62")
            elif isinstance(value, str):
                require_process(value)
            elif self._message is not None and isinstance(value, self._message):
                self.require_values(value[1:])  # its group has been compared already
            elif isinstance(value, tuple):
                self.require_values(value)
