"""What was delivered to the application and not consumed yet: it must not be acknowledged."""

from collections import deque


class Unconsumed:
    """The unconsumed deliveries of one process in one group. The application consumes in the order of delivery."""

    def __init__(self) -> None:
        self._delivered = self._consumed = 0
        self._lowest: deque[tuple[int, int]] = deque()
        """(position, stamp) of each delivery that no later one undercuts. Stamps rise, so the first is the lowest."""

    def __len__(self) -> int:
        return self._delivered - self._consumed

    def delivered(self, stamp: int) -> None:
        self._delivered += 1
        while self._lowest and self._lowest[-1][1] >= stamp:
            self._lowest.pop()
        self._lowest.append((self._delivered, stamp))

    def consumed(self, position: int) -> None:
        """The application has consumed the first `position` deliveries."""
        self._consumed = position
        while self._lowest and self._lowest[0][0] <= position:
            self._lowest.popleft()

    def acknowledgeable(self, stamp: int) -> int:
        """The largest stamp up to `stamp` that is below every unconsumed message."""
        return min(stamp, self._lowest[0][1] - 1) if self._lowest else stamp
