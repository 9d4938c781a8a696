"""Duties between a member and its peers when it leaves a group or goes over to another one."""

from antiphon.core.vectors import BEYOND
from antiphon.types import ProcessId


class Leaving:
    """Invariant: we acknowledge nothing above `ceiling`; `completion_requested` is 0 once we have answered."""

    __slots__ = ("ceiling", "completion_requested", "leave_barrier", "passed_on")

    def __init__(self) -> None:
        self.ceiling = BEYOND
        """We acknowledge nothing above this number now: we may go to another group without delivering it (E-96)."""
        self.leave_barrier: tuple[int, int] | None = None
        """The number that must be stable before we leave, and the time since which we wait for it."""
        self.completion_requested = 0
        """The number that a leaving member asks us to complete."""
        self.passed_on: set[ProcessId] = set()
        """Members that have left gracefully: their votes on primary views pass to us (15)."""

    def wait_for(self, number: int, now: int) -> None:
        """We are about to leave, and wait until all have completed this number."""
        self.leave_barrier = number, now

    def owed_since(self, acknowledged: int) -> int | None:
        """Since when we wait for a member that has announced only this number (9.2 e); None if we do not wait."""
        if self.leave_barrier is None or acknowledged >= self.leave_barrier[0]:
            return None
        return self.leave_barrier[1]

    def request(self, number: int) -> None:
        """A peer is about to leave, and waits until we have completed this number (8)."""
        self.completion_requested = max(self.completion_requested, number)

    def answered(self) -> None:
        """We have announced that the requested number is complete."""
        self.completion_requested = 0

    def stop_at(self, number: int | None) -> None:
        """Acknowledge nothing above this number; None: no limit."""
        self.ceiling = BEYOND if number is None else number
