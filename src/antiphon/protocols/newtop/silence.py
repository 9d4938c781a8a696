"""Time-silence: when a member without messages must send a null (Macedo94 §4.3, §4.4; Macedo95 §2.2.1).

A block completes only when every member has sent into it or above it. A member that receives a number above its own
last one owes an answer. If the application sends nothing for `timeout_ns`, a null answers. With a timeout of 0 the
answer leaves with the next drain.
"""

from collections import deque


class Silence:
    """The open duties of one member in one group.

    Invariant: block numbers and deadlines in `_duties` both increase; all blocks are above our own last number.
    """

    __slots__ = ("_duties", "_timeout_ns", "deadline")

    def __init__(self, timeout_ns: int) -> None:
        self.deadline: int | None = None
        """When the oldest duty is due, or None if no member waits for us."""
        self._timeout_ns = timeout_ns
        self._duties: deque[tuple[int, int]] = deque()

    def owe(self, block: int, now: int) -> None:
        """The first receipt of a number above our own and above those already owed."""
        due = now + self._timeout_ns
        self._duties.append((block, due))
        if self.deadline is None:
            self.deadline = due

    def spoke(self, block: int) -> None:
        """We sent number `block` in this group: every duty up to it is done."""
        duties = self._duties
        while duties and duties[0][0] <= block:
            duties.popleft()
        self.deadline = duties[0][1] if duties else None

    def due(self, now: int) -> bool:
        """True if a null must leave now."""
        return self.deadline is not None and self.deadline <= now


class LazySilence(Silence):
    """For orders in which no delivery waits for a number: answers serve stability and suspicion only.

    So they wait for a message that carries them, as announcements do, or until a part of a window is owed.
    """

    __slots__ = ("_owed_max",)

    def __init__(self, timeout_ns: int, owed_max: int) -> None:
        super().__init__(timeout_ns)
        self._owed_max = max(1, owed_max)

    def owe(self, block: int, now: int) -> None:
        """As usual; too many open duties are answered at once."""
        super().owe(block, now)
        if len(self._duties) >= self._owed_max:
            self.deadline = now
