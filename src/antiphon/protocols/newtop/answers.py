"""Rule CA4: a data number of one group is answered in all other groups of the process (Macedo94 §4.4)."""


class Answers:
    """Invariant: every group has been asked to reach `_answered`; `wanted` never falls."""

    __slots__ = ("_answered", "wanted")

    def __init__(self) -> None:
        self.wanted = 0
        """The largest number that all groups must reach."""
        self._answered = 0

    def want(self, number: int) -> None:
        """A number of one group must be answered in all others."""
        if number > self.wanted:
            self.wanted = number

    def want_again(self, number: int) -> None:
        """A group is new: it has answered nothing (E-54)."""
        self.want(number)
        self._answered = 0

    def due(self) -> int | None:
        """The number to answer now; None if all are answered."""
        if self.wanted <= self._answered:
            return None
        self._answered = self.wanted
        return self._answered
