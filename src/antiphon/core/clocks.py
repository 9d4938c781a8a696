"""The block counter: Newtop's logical clock (Macedo94 §3.2, §4.2-4.4).

One per process, shared by all its groups; it never decreases, and it starts at 0 (Macedo95 starts at -1).
"""


class BlockCounter:
    """`value` is the largest block number this process has sent or delivered."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def advance(self) -> int:
        """Rule CA1, before a data message: a number above everything sent or delivered here."""
        self.value += 1
        return self.value

    def witness(self, block: int) -> None:
        """Rules CA2 (before a delivery), CA3 and CA4 (before a null): never stay behind `block`."""
        if block > self.value:
            self.value = block
