"""What one sender sends, put back into its order (Berket00 §4.7, Figs 4.1, 4.2; errata D1 to D5).

Gap detection and order are one component (D3). `last` is the last number up to which nothing is missing; numbers begin
wherever one comes in, and the first one delivered is the one after `last` (D1).
"""

from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

GAP_MAX: Final = 65_536
"""No more than so many are found missing at once: no window is as large, and a number may be anything."""


class Numbered(Protocol):
    """A message on a stream."""

    @property
    def seq(self) -> int: ...
    @property
    def clock(self) -> int: ...


Message = TypeVar("Message", bound=Numbered)


class Stream(Generic[Message]):
    """Of one sender, at one receiver."""

    __slots__ = ("_keep_alive", "_stored", "expected", "horizon", "last")

    def __init__(self, first: int, horizon: int) -> None:
        """`first`: the number of the first message that is wanted."""
        self.last = self.expected = first - 1
        """The greatest number heard of, in a message or a keep-alive."""
        self.horizon: float = horizon
        """All that its sender has stamped up to here has come (T3)."""
        self._stored: dict[int, Message] = {}
        self._keep_alive = (first - 1, horizon)  # the greatest that runs ahead of a gap

    def lacks(self, seq: int) -> bool:
        """Whether a message of that number is wanted, and has not come."""
        return seq > self.last and seq not in self._stored

    def data(self, message: Message) -> list[Message]:
        """A message came: what is in order now. A duplicate, or one from before we came, is none."""
        if not self.lacks(message.seq):
            return []
        self._stored[message.seq] = message
        in_order = []
        while (following := self._stored.pop(self.last + 1, None)) is not None:
            in_order.append(following)
            self.last += 1
            self.horizon = following.clock
        self._apply_keep_alive()
        return in_order

    def keep_alive(self, seq: int, clock: int) -> None:
        """Its sender had sent so much, and stamps above that clock only. Ahead of a gap it has to wait (D5)."""
        if seq >= self.last:
            self._keep_alive = max(self._keep_alive, (seq, clock))
            self._apply_keep_alive()

    def missing(self, seq: int) -> Iterable[int]:
        """What is newly known to be missing, now that its sender is known to have sent number `seq`."""
        begin, upto = self.expected + 1, min(seq, self.expected + GAP_MAX)
        self.expected = max(self.expected, upto)
        return (number for number in range(begin, upto + 1) if self.lacks(number))

    def _apply_keep_alive(self) -> None:
        seq, clock = self._keep_alive
        if seq == self.last and clock > self.horizon:
            self.horizon = clock
