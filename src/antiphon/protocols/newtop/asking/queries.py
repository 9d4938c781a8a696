"""Requests of mode `any`: one member answers, outside the order (docs/spec/multicast.md 4, the read of the notes).

The request goes to one member after another, our own application among them, until one answers. The next one is asked
if a member does not answer for some time, or is no longer in the view. So a member may get a request twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.types import GroupId, ProcessId, View


@dataclass(slots=True)
class _Query:
    payload: bytes
    attempts: int = 0
    asked: ProcessId | None = None
    """The member whose turn it is; None: we are in no view yet."""
    next_at: int | None = None


class Queries:
    """Our queries, by group and number. Invariant: a query that has asked a member has a time for the next attempt."""

    __slots__ = ("_open", "_retry_ns")

    def __init__(self, retry_ns: int) -> None:
        assert retry_ns > 0
        self._open: dict[tuple[GroupId, int], _Query] = {}
        self._retry_ns = retry_ns

    def __contains__(self, key: tuple[GroupId, int]) -> bool:
        return key in self._open

    @property
    def at(self) -> int | None:
        """When the next member must be asked."""
        return min((query.next_at for query in self._open.values() if query.next_at is not None), default=None)

    def add(self, name: GroupId, number: int, payload: bytes) -> None:
        self._open[name, number] = _Query(payload)

    def remove(self, name: GroupId, number: int) -> bool:
        """The query has ended; False if it had ended before."""
        return self._open.pop((name, number), None) is not None

    def of(self, name: GroupId) -> Iterable[int]:
        """The numbers of all queries to that group."""
        return [number for group, number in self._open if group == name]

    def next(self, name: GroupId, number: int, view: View, now: int) -> tuple[ProcessId, bytes]:
        """The member to ask now, and the payload. Different queries begin with different members."""
        query = self._open[name, number]
        query.asked = view.members[(number + query.attempts) % len(view.members)]
        query.attempts += 1
        query.next_at = now + self._retry_ns
        return query.asked, query.payload

    def due(self, now: int) -> list[tuple[GroupId, int]]:
        """The queries whose member has not answered in time."""
        return [key for key, query in self._open.items() if query.next_at is not None and query.next_at <= now]

    def stranded(self, name: GroupId, view: View) -> list[int]:
        """The queries whose member is not in this view."""
        return [number for number in self.of(name) if self._open[name, number].asked not in view.ranks]
