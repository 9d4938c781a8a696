"""Deliveries that our application has not consumed yet (the papers' Δ, E-18)."""

from collections import deque

from antiphon.core.pending import Pending


class Consumption:
    """Invariant: with flow control, `handed` has one entry for each `Deliver` effect after `accounted`."""

    __slots__ = ("accounted", "hand", "handed", "position", "unconsumed")

    def __init__(self, unconsumed: Pending) -> None:
        self.unconsumed = unconsumed
        """Numbers of messages that our application has not consumed: no number from there on is complete here."""
        self.position = 0
        """Number of `Deliver` effects that the application has consumed."""
        self.handed: deque[int | None] = deque()
        """The number of each delivery that is not accounted for; None: it does not count."""
        self.hand = self.handed.append
        """Note the delivery of a whole message that counts; the deque's own method, because this path is hot."""
        self.accounted = 0
        """Number of deliveries that are entered in `unconsumed`."""

    @property
    def is_behind(self) -> bool:
        """True if the application has not consumed all deliveries."""
        return len(self.handed) > self.position - self.accounted

    def took(self, position: int) -> None:
        """The application has consumed its first `position` deliveries; entered with the next `account`."""
        self.position = position

    def account(self) -> None:
        """Enter what the application has consumed since the last call."""
        while self.accounted < self.position:
            self.accounted += 1
            if (number := self.handed.popleft()) is not None:
                self.unconsumed.remove(number)

    def delivered(self, number: int, *, whole: bool, state: bool, waits: bool) -> None:
        """A message is delivered. Fragments, states and messages that wait for a state count as consumed at once.

        The reassembly consumes a fragment without the application, and a state must not be blocked (11.2).
        """
        if not whole or state or waits:
            self.unconsumed.remove(number)
        if whole and not state:
            self.handed.append(None if waits else number)
