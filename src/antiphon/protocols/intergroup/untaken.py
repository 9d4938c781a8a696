"""What was handed to the application and not taken yet: until it is, nobody may think that it is done with."""

from collections import deque


class Untaken:
    """Of one process in one group; the application takes in the order in which it is handed."""

    def __init__(self) -> None:
        self._handed = self._taken = 0
        self._lowest: deque[tuple[int, int]] = deque()
        """(position, stamp) of those below which nothing stands behind them, rising: the first is the lowest of all."""

    def __len__(self) -> int:
        return self._handed - self._taken

    def hand(self, stamp: int) -> None:
        """A message goes up."""
        self._handed += 1
        while self._lowest and self._lowest[-1][1] >= stamp:
            self._lowest.pop()
        self._lowest.append((self._handed, stamp))

    def take(self, position: int) -> None:
        """The application has taken so many since the beginning."""
        self._taken = position
        while self._lowest and self._lowest[0][0] <= position:
            self._lowest.popleft()

    def held(self, ack: int) -> int:
        """What may be acknowledged of what has been handed up to there."""
        return min(ack, self._lowest[0][1] - 1) if self._lowest else ack
