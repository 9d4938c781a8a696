"""The clocks that number or stamp messages. None of them ever goes back."""


class BlockCounter:
    """The logical clock of Newtop (Macedo94 §3.2, §4.2-4.4): the largest number that this process sent or delivered.

    There is one per process, shared by all its groups. It starts at 0 (Macedo95 starts at -1).
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def advance(self) -> int:
        """Rule CA1, before a data message: a number above everything sent or delivered here."""
        self.value += 1
        return self.value

    def witness(self, block: int) -> None:
        """Rules CA2 (before a delivery), CA3 and CA4 (before a null): advance to `block` if it is higher."""
        if block > self.value:
            self.value = block


class TimestampClock:
    """The clock of the acknowledgment protocols and of InterGroup (Berket98 §2, §5): physical or logical time.

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
        """A frame that carries this time has arrived. Rule T9: take the maximum, without adding one.

        A physical clock does not change: if it is behind, that is a skew (docs/spec/stability.md 5).
        """
        if not self.physical:
            self.merge(time)

    def merge(self, time: int) -> None:
        """For both kinds of clock: later stamps are above `time` (T8)."""
        if time > self.value:
            self.value = time
