"""The clocks of the protocols: what messages are numbered or stamped with. None of them ever goes back."""


class BlockCounter:
    """Newtop's logical clock (Macedo94 §3.2, §4.2-4.4): `value` is the largest number this process sent or delivered.

    One per process, shared by all its groups; it starts at 0 (Macedo95 starts at -1).
    """

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


class TimestampClock:
    """What messages are stamped with under the acknowledgment protocols (Berket98 §2, §5): physical or logical time.

    `value` is the largest stamp given or merged here.
    """

    __slots__ = ("physical", "value")

    def __init__(self, *, physical: bool) -> None:
        self.physical = physical
        self.value = 0

    def stamp(self, now: int) -> int:
        """The next stamp, strictly above the last one (T6): two messages at one reading of the clock differ."""
        self.value += 1
        if self.physical and now > self.value:
            self.value = now
        return self.value

    def read(self, now: int) -> int:
        """The time on this clock."""
        return max(self.value, now) if self.physical else self.value

    def witness(self, time: int) -> None:
        """A frame that carries this time has come. Rule T9: the maximum, without adding one.

        A physical clock goes its own way: one that is behind shows as skew (stability.md 5), and is not dragged along.
        """
        if not self.physical:
            self.merge(time)

    def merge(self, time: int) -> None:
        """Whatever the kind of clock: stamps from now on are above `time` (T8)."""
        if time > self.value:
            self.value = time
