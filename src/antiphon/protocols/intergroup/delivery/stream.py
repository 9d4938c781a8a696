"""The messages of one sender, put back into their order (Berket00 §4.7, Figs 4.1, 4.2; errata D1 to D5).

Gap detection and order are one component (D3). Nothing up to number `last` is missing. A stream may begin at any
number; the first message that it delivers is number `last + 1` (D1).
"""

from collections.abc import Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from antiphon.types import ProcessId

GAP_MAX: Final = 65_536
"""At most this number of messages is found missing at once: no window is larger, and a peer may claim any number."""


class Numbered(Protocol):
    """A message on a stream."""

    @property
    def seq(self) -> int: ...
    @property
    def clock(self) -> int: ...
    @property
    def is_leave(self) -> bool:
        """True for the last message of a stream."""


Message = TypeVar("Message", bound=Numbered)


class Stream(Generic[Message]):
    """The stream of one sender at one receiver."""

    __slots__ = ("_keep_alive", "_stored", "expected", "has_ended", "horizon", "last")

    def __init__(self, first: int, horizon: int) -> None:
        """`first`: the number of the first message to be delivered."""
        self.last = self.expected = first - 1
        """`expected`: the largest number known to be sent, from a message or a keep-alive."""
        self.horizon: float = horizon
        """Everything that the sender has stamped up to here has arrived (T3)."""
        self._stored: dict[int, Message] = {}
        self.has_ended = False
        """True if the sender has left in order, and everything that it sent before has arrived."""
        self._keep_alive = (first - 1, horizon)  # the greatest (number, clock); it may be ahead of a gap

    def lacks(self, seq: int) -> bool:
        """True if the message of that number is to be delivered and has not arrived."""
        return seq > self.last and seq not in self._stored and not self.has_ended

    def data(self, message: Message) -> list[Message]:
        """Add a message; returns those that are now in order. A duplicate or a number before `first` adds nothing."""
        if not self.lacks(message.seq):
            return []
        self._stored[message.seq] = message
        in_order = []
        while (following := self._stored.pop(self.last + 1, None)) is not None:
            in_order.append(following)
            self.last += 1
            self.horizon = following.clock
            if following.is_leave:
                self._end()
        self._apply_keep_alive()
        return in_order

    def keep_alive(self, seq: int, clock: int) -> None:
        """The sender had sent messages up to `seq`, and later stamps are above `clock`. It waits behind a gap (D5)."""
        if seq >= self.last:
            self._keep_alive = max(self._keep_alive, (seq, clock))
            self._apply_keep_alive()

    def missing(self, seq: int) -> Iterable[int]:
        """The numbers newly known to be missing, now that the sender is known to have sent number `seq`."""
        begin, upto = self.expected + 1, min(seq, self.expected + GAP_MAX)
        self.expected = max(self.expected, upto)
        return (number for number in range(begin, upto + 1) if self.lacks(number))

    def _end(self) -> None:
        """The sender has left: it holds nothing back (J2). What it sends after it was added again is another stream."""
        self.horizon = float("inf")
        self.has_ended = True
        self._stored.clear()

    def _apply_keep_alive(self) -> None:
        seq, clock = self._keep_alive
        if seq == self.last and clock > self.horizon:
            self.horizon = clock


class StreamOrder(Protocol[Message]):
    """An order that puts the messages of several streams together."""

    @property
    def streams(self) -> Mapping[ProcessId, Stream[Message]]: ...
    def data(self, sender: ProcessId, message: Message, /) -> list[Message]:
        """Add a message; returns those of its sender that are now in the sender's order."""
