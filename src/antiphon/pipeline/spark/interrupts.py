"""Ctrl-C during communication with Java: noted at once, raised at a moment when it is safe.

An exception out of a signal handler can appear between any two instructions. Inside a read from Java's socket it leaves
half an answer behind, and the next call fails; inside a lock it leaves the lock held. So the handler only takes a note,
and the code that holds the interrupt back looks at the note where it can stop. A second Ctrl-C does not wait.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class HeldBack:
    """Interrupts noted so far. `hold` again if a library has installed a handler of its own meanwhile."""

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None
        self._holds = False

    def hold(self) -> None:
        """Take over SIGINT. Only the main thread receives it; elsewhere there is nothing to hold back."""
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._holds:
            self._before = signal.getsignal(signal.SIGINT)
            self._holds = callable(self._before)  # a process that ignores SIGINT goes on ignoring it
        if self._holds:
            signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        """Restore the earlier handler, then raise a noted interrupt, even after another error."""
        if self._holds:
            self._holds = False
            signal.signal(signal.SIGINT, self._before)
            if self.seen:
                signal.raise_signal(signal.SIGINT)
                raise KeyboardInterrupt  # if the handler did not

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.seen:
            self.release()
        self.seen = True


@contextmanager
def interrupt_held_back() -> Iterator[HeldBack]:
    """SIGINT is raised when this block ends; the second one at once."""
    held_back = HeldBack()
    held_back.hold()
    try:
        yield held_back
    finally:
        held_back.release()
