"""The window of a sender: how many of its messages may be unstable (Berket00 §4.5.3)."""


class SendWindow:
    """Numbers the messages of one sender. The window closes when it is full, and opens when it is half empty."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.last = 0
        """The number of our last message."""
        self._stable = 0  # the number of our last message that is stable
        self.closed = False

    @property
    def unstable(self) -> int:
        return self.last - self._stable

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def freed(self, number: int) -> None:
        """The message of that number is stable."""
        self._stable = number

    def is_open(self) -> bool:
        """Update `closed`, and return its negation."""
        self.closed = self.unstable >= self._size // (2 if self.closed else 1)
        return not self.closed
