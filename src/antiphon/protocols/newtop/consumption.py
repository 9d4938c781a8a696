"""What our application has been handed and has not taken yet (the papers' Δ, E-18)."""

from collections import deque

from antiphon.core.pending import Pending


class Consumption:
    """Invariant: `handed` has one entry for each `Deliver` effect behind `accounted`, where flow control counts."""

    __slots__ = ("accounted", "hand", "handed", "position", "unconsumed")

    def __init__(self, unconsumed: Pending) -> None:
        self.unconsumed = unconsumed
        """Numbers of messages that our application has not taken: nothing from there on is complete here."""
        self.position = 0
        """How many `Deliver` effects the application has taken."""
        self.handed: deque[int | None] = deque()
        """The number of each delivery that is not accounted for; None: it does not count."""
        self.hand = self.handed.append
        """A whole message that counts has its turn; the method of the deque itself, for it runs for every delivery."""
        self.accounted = 0
        """How many of them `unconsumed` knows of."""

    def took(self, position: int) -> None:
        """The application has taken its first `position` deliveries; entered with the next `account`."""
        self.position = position

    def account(self) -> None:
        """Enter what the application has taken since the last call."""
        while self.accounted < self.position:
            self.accounted += 1
            if (number := self.handed.popleft()) is not None:
                self.unconsumed.remove(number)

    def delivered(self, number: int, *, whole: bool, state: bool, waits: bool) -> None:
        """A message has its turn. Pieces, states and what waits for a state count as taken at once.

        The reassembly takes a piece, whatever the application does; and a state must get through (11.2).
        """
        if not whole or state or waits:
            self.unconsumed.remove(number)
        if whole and not state:
            self.handed.append(None if waits else number)
