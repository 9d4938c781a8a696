"""Reads a body from front to back; whatever would reach beyond its end is the peer's mistake."""

import struct
from itertools import accumulate, pairwise
from typing import Any, Final

from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId
from antiphon.wire.names import decode_name, decode_names

NUMBER_MAX: Final = 1 << 62
"""No correct peer sends a larger one: those that follow it must still fit 64 bits."""
_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")


class Reader:
    """A place in a body."""

    __slots__ = ("_at", "_body")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next fields."""
        try:
            fields = layout.unpack_from(self._body, self._at)
        except struct.error:
            raise ProtocolViolation("body", "a frame ends inside its numbers") from None
        self._at += layout.size
        return fields

    def number(self) -> int:
        """A number that is not negative."""
        (value,) = self.unpack(_NUMBER)
        if value < 0:
            raise ProtocolViolation("body", f"{value} stands where a number from 0 up is due")
        return int(value)

    def count(self) -> int:
        """How many of something follow; whether they do is for what reads them to see."""
        return int(self.unpack(_COUNT)[0])

    def numbers(self, count: int) -> tuple[int, ...]:
        """So many numbers that are not negative."""
        self._require(8 * count)
        values = struct.unpack_from(f">{count}q", self._body, self._at)
        self._at += 8 * count
        if count and min(values) < 0:
            raise ProtocolViolation("body", f"{min(values)} stands where numbers from 0 up are due")
        return values

    def lengths(self, count: int) -> tuple[int, ...]:
        """A table of lengths."""
        self._require(4 * count)
        values = struct.unpack_from(f">{count}I", self._body, self._at)
        self._at += 4 * count
        return values

    def name(self) -> str:
        """A short text with its length before it."""
        at, body = self._at, self._body
        self._at = end = at + 1 + body[at] if at < len(body) else at + 1
        if end > len(body):
            raise ProtocolViolation("body", "a frame ends inside a name")
        return decode_name(body[at + 1 : end])

    def names(self) -> tuple[GroupId, ProcessId]:
        """The names of a frame's group and sender: two as `name` reads them, looked up together."""
        at, body = self._at, self._body
        try:
            middle = at + 1 + body[at]
            self._at = end = middle + 1 + body[middle]
        except IndexError:
            end = len(body) + 1
        if end > len(body):
            raise ProtocolViolation("body", "a frame ends inside a name")
        return decode_names(body[at:end])

    def part(self, count: int) -> bytes:
        """So many bytes."""
        self._require(count)
        self._at += count
        return self._body[self._at - count : self._at]

    def piece(self) -> bytes:
        """A length, and all that is left, which must have it."""
        (length,) = self.unpack(_COUNT)
        at, body = self._at, self._body
        self._at = len(body)
        if at + length != len(body):
            raise _do_not_add_up()
        return body[at:]

    def pieces(self, lengths: tuple[int, ...]) -> tuple[bytes, ...]:
        """All that is left, cut into pieces of these lengths."""
        if self._at + sum(lengths) != len(self._body):
            raise _do_not_add_up()
        ends = accumulate(lengths, initial=self._at)
        self._at = len(self._body)
        body = self._body
        return tuple(body[start:end] for start, end in pairwise(ends))

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._body):
            raise ProtocolViolation("body", f"{len(self._body) - self._at} bytes are left over behind a frame")

    def _require(self, count: int) -> None:
        if self._at + count > len(self._body):
            raise ProtocolViolation("body", f"a frame ends where {count} more bytes are due")


def _do_not_add_up() -> ProtocolViolation:
    return ProtocolViolation("body", "the lengths of the payloads do not add up to their frame")
