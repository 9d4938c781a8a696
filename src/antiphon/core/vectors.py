"""A vector that knows its minimum: the receive and completion vectors of Newtop (Macedo94 §3.4, §6.3.1).

The minimum of such a vector is read at every event, but it changes only when the last entry that holds it rises. It is
recomputed only then, so the amortised cost per event is constant for any number of members.
"""

from typing import Final, Protocol

BEYOND: Final = 1 << 63
"""Above every number that a frame can carry: a bound that is never reached."""


class Completion(Protocol):
    """Knows the number up to which a group is complete."""

    @property
    def minimum(self) -> int: ...


class MinVector:
    """One number per member, by rank in the view; entries only rise.

    Invariant: `minimum == min(values)`, and `_holders` entries have that value.
    """

    __slots__ = ("_holders", "minimum", "values")

    def __init__(self, size: int, base: int = 0) -> None:
        assert size > 0
        self.values = [base] * size
        self.minimum = base
        self._holders = size

    @property
    def lowest(self) -> int:
        """The first rank that holds the minimum."""
        return self.values.index(self.minimum)

    def raise_to(self, rank: int, value: int) -> None:
        """Raise one entry; a smaller value, from a late frame, has no effect."""
        values = self.values
        old = values[rank]
        if value <= old:
            return
        values[rank] = value
        if old == self.minimum:
            self._holders -= 1
            if not self._holders:
                self.minimum = minimum = min(values)
                self._holders = values.count(minimum)
