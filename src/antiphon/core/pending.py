"""A multiset of numbers; only the smallest is read."""

from heapq import heappop, heappush


class Pending:
    """Numbers are added and removed in any order, equal ones several times. Only a number that was added is removed."""

    __slots__ = ("_added", "_removed")

    def __init__(self) -> None:
        self._added: list[int] = []
        self._removed: list[int] = []  # removed while a smaller number was still there

    @property
    def smallest(self) -> int | None:
        """The smallest number, or None."""
        return self._added[0] if self._added else None

    def add(self, number: int) -> None:
        heappush(self._added, number)

    def remove(self, number: int) -> None:
        added, removed = self._added, self._removed
        if added[0] != number:
            heappush(removed, number)
            return
        heappop(added)
        while removed and removed[0] == added[0]:
            heappop(removed)
            heappop(added)
