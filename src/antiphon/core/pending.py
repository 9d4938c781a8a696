"""Numbers of things that are not done yet, of which only the smallest is ever asked for."""

from heapq import heappop, heappush


class Pending:
    """Numbers come and go in any order, equal ones several times; what goes has come before."""

    __slots__ = ("_come", "_gone")

    def __init__(self) -> None:
        self._come: list[int] = []
        self._gone: list[int] = []  # left before a smaller one did

    @property
    def smallest(self) -> int | None:
        """The smallest that has not gone, or None."""
        return self._come[0] if self._come else None

    def add(self, number: int) -> None:
        """It has come."""
        heappush(self._come, number)

    def remove(self, number: int) -> None:
        """It goes."""
        come, gone = self._come, self._gone
        if come[0] != number:
            heappush(gone, number)
            return
        heappop(come)
        while gone and gone[0] == come[0]:
            heappop(gone)
            heappop(come)
