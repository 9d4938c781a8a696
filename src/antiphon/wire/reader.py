"""Reads a body from front to back; a field beyond its end is a violation by the peer."""

import struct
from typing import Any, Final

from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId, ViewId
from antiphon.wire.frame import Sealed
from antiphon.wire.names import IDENTITY_BYTES, decode_group, decode_identity, decode_process, decode_view

NUMBER_MAX: Final = 1 << 62
"""No correct peer sends a larger number: later numbers must still fit into 64 bits."""
_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_FLAG: Final = struct.Struct(">B")


class Reader:
    """A position in a body; other bytes may precede the body."""

    __slots__ = ("_at", "_body")

    def __init__(self, body: Sealed, at: int = 0) -> None:
        self._body = body
        self._at = at

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next fields."""
        try:
            fields = layout.unpack_from(self._body, self._at)
        except struct.error:
            raise ProtocolViolation("body", "a frame ends inside its numbers") from None
        self._at += layout.size
        return fields

    def number(self) -> int:
        """The next number, checked for its range."""
        (value,) = self.unpack(_NUMBER)
        if not 0 <= value <= NUMBER_MAX:
            raise _not_a_number(value)
        return int(value)

    def count(self) -> int:
        """The next count; the code that reads the items checks that they are there."""
        return int(self.unpack(_COUNT)[0])

    def numbers(self, count: int) -> tuple[int, ...]:
        """The next `count` numbers, checked for their range."""
        self._require(8 * count)
        values = struct.unpack_from(f">{count}q", self._body, self._at)
        self._at += 8 * count
        for value in values:
            if not 0 <= value <= NUMBER_MAX:
                raise _not_a_number(value)
        return values

    def lengths(self, count: int) -> tuple[int, ...]:
        """A table of lengths."""
        self._require(4 * count)
        values = struct.unpack_from(f">{count}I", self._body, self._at)
        self._at += 4 * count
        return values

    def identity(self) -> tuple[GroupId, ProcessId]:
        """Group and sender, the first fields of every body."""
        at, body = self._at, self._body
        names = at + IDENTITY_BYTES
        if len(body) >= names:
            self._at = end = names + body[names - 2] + body[names - 1]
            if end <= len(body):
                return decode_identity(bytes(body[at:end]))
        raise ProtocolViolation("body", "a frame ends inside the names of its group and sender")

    def process(self) -> ProcessId:
        """A process other than the sender."""
        return decode_process(self._text())

    def process_or_none(self) -> ProcessId | None:
        """A process, or nothing."""
        text = self._text()
        return decode_process(text) if text else None

    def group(self) -> GroupId:
        """A group other than the frame's own."""
        return decode_group(self._text())

    def group_or_none(self) -> GroupId | None:
        """A group, or nothing."""
        text = self._text()
        return decode_group(text) if text else None

    def view_or_none(self) -> ViewId | None:
        """A view, or nothing."""
        text = self._text()
        return decode_view(text) if text else None

    def short_text(self) -> bytes:
        """A text of at most 255 bytes, preceded by its length; the code that asks decodes it."""
        return self._text()

    def flag(self) -> bool:
        """A boolean."""
        (value,) = self.unpack(_FLAG)
        if value > 1:
            raise ProtocolViolation("body", f"{value} found instead of a flag, 0 or 1")
        return bool(value)

    def part(self, count: int) -> bytes:
        """The next `count` bytes."""
        self._require(count)
        self._at += count
        return bytes(self._body[self._at - count : self._at])

    def piece(self) -> bytes:
        """A length and the rest of the body, which must have that length."""
        (length,) = self.unpack(_COUNT)
        at, body = self._at, self._body
        self._at = len(body)
        if at + length != len(body):
            raise _do_not_add_up()
        return bytes(body[at:])

    def rest(self) -> bytes:
        """The rest of the body."""
        at, self._at = self._at, len(self._body)
        return bytes(self._body[at:])

    def pieces(self, lengths: tuple[int, ...]) -> tuple[bytes, ...]:
        """The rest of the body, split into pieces of these lengths."""
        if self._at + sum(lengths) != len(self._body):
            raise _do_not_add_up()
        at, self._at = self._at, len(self._body)
        same = lengths.count(lengths[0]) == len(lengths)
        layout = f"{lengths[0]}s" * len(lengths) if same else "%ds" * len(lengths) % lengths
        # Faster than slicing one by one. A Struct of its own, because the functions of `struct` cache every layout.
        return struct.Struct(layout).unpack_from(self._body, at)

    @property
    def left(self) -> int:
        """Number of bytes left."""
        return len(self._body) - self._at

    def end(self) -> None:
        """Raise if bytes are left."""
        if self._at != len(self._body):
            raise ProtocolViolation("body", f"{self.left} bytes are left after the end of a frame")

    def _text(self) -> bytes:
        """A short text, preceded by its length."""
        at, body = self._at, self._body
        self._at = end = at + 1 + body[at] if at < len(body) else at + 1
        if end > len(body):
            raise ProtocolViolation("body", "a frame ends inside a name")
        return bytes(body[at + 1 : end])

    def _require(self, count: int) -> None:
        if self._at + count > len(self._body):
            raise ProtocolViolation("body", f"a frame ends {count} bytes too early")


def _not_a_number(value: int) -> ProtocolViolation:
    return ProtocolViolation("body", f"{value} found instead of a number from 0 to 2**62")


def _do_not_add_up() -> ProtocolViolation:
    return ProtocolViolation("body", "the lengths of the payloads do not add up to the length of the frame")
