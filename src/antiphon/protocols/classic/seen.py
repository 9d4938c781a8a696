"""Which messages of a sender have been seen, in bounded space: a contiguous mark, and the numbers beyond gaps."""


class Seen:
    """Numbers from 1. Invariant: `mark + 1` has not been seen; everything up to `mark` has."""

    __slots__ = ("_beyond", "_closed", "mark")

    def __init__(self) -> None:
        self.mark = 0
        self._beyond: set[int] = set()
        self._closed = False

    def __contains__(self, number: int) -> bool:
        return number <= self.mark or number in self._beyond

    def add(self, number: int) -> bool:
        """Add a number; False if it was seen before."""
        if number in self or self._closed:
            return False
        self._beyond.add(number)
        while self.mark + 1 in self._beyond:
            self.mark += 1
            self._beyond.remove(self.mark)
        return True

    def close(self) -> None:
        """The gap after `mark` will never close: forget the numbers beyond it, and accept no new ones."""
        self._closed = True
        self._beyond.clear()
