"""On datagrams: answers of ours outside the order, repeated until their asker says that it has them."""

from dataclasses import dataclass
from typing import Final

from antiphon.protocols.newtop.frames import AnswerFrame
from antiphon.types import GroupId, ProcessId

_KEPT_MAX: Final = 1024
_KEPT_BYTES_MAX: Final = 1 << 22
"""Answers that are kept, and their bytes. Beyond that the oldest is dropped, as if its asker had gone."""

Key = tuple[GroupId, ProcessId, int]
"""Group by name, asker, number of the request."""


@dataclass(slots=True)
class _Reply:
    frame: AnswerFrame
    next_at: int
    wait_ns: int


class Replies:
    """Invariant: what is kept was sent at least once, and nobody has acknowledged it."""

    __slots__ = ("_bytes", "_kept", "_wait_max_ns", "_wait_ns")

    def __init__(self, wait_ns: int, wait_max_ns: int) -> None:
        """The first wait before an answer is repeated, and the longest; it doubles."""
        self._kept: dict[Key, _Reply] = {}
        self._bytes = 0
        self._wait_ns = wait_ns
        self._wait_max_ns = wait_max_ns

    @property
    def at(self) -> int | None:
        """When the next answer is repeated."""
        return min((reply.next_at for reply in self._kept.values()), default=None)

    def __contains__(self, key: Key) -> bool:
        return key in self._kept

    def put(self, key: Key, frame: AnswerFrame, now: int) -> None:
        """Keep an answer that leaves now."""
        assert key not in self._kept, "the first answer counts"
        self._kept[key] = _Reply(frame, now + self._wait_ns, self._wait_ns)
        self._bytes += len(frame.payload)
        while len(self._kept) > _KEPT_MAX or self._bytes > _KEPT_BYTES_MAX:
            self.drop(next(iter(self._kept)))

    def drop(self, key: Key) -> None:
        """The asker has the answer, or no longer waits for it."""
        reply = self._kept.pop(key, None)
        if reply is not None:
            self._bytes -= len(reply.frame.payload)

    def due(self, now: int) -> list[tuple[Key, AnswerFrame]]:
        """The answers to repeat now."""
        due = [(key, reply) for key, reply in self._kept.items() if reply.next_at <= now]
        for _, reply in due:
            reply.wait_ns = min(2 * reply.wait_ns, self._wait_max_ns)
            reply.next_at = now + reply.wait_ns
        return [(key, reply.frame) for key, reply in due]
