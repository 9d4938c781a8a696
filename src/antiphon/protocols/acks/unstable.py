"""The messages that are not known to be stable."""

from collections import deque
from collections.abc import Callable

from antiphon.types import ProcessId

_Messages = deque[tuple[int, int]]
"""(stamp, label) of each message, in the order of stamps."""


class UnstableMessages:
    """Unstable messages at one process in one group: its own and, if it watches all senders, those of the others."""

    def __init__(self) -> None:
        self._own: _Messages = deque()
        self._others: dict[ProcessId, _Messages] = {}

    def __len__(self) -> int:
        """Number of our own messages that some receiver may lack."""
        return len(self._own)

    def sent(self, stamp: int, label: int) -> None:
        self._own.append((stamp, label))

    def watch(self, process: ProcessId) -> None:
        self._others[process] = deque()

    def forget(self, process: ProcessId) -> None:
        self._others.pop(process, None)

    def received(self, sender: ProcessId, stamp: int, label: int) -> None:
        self._others[sender].append((stamp, label))

    def take_own(self, stable: int) -> int | None:
        """Remove our messages with stamps up to `stable`; returns the label of the last one, or None."""
        return _take(self._own, stable)

    def take_others(self, stable_of: Callable[[ProcessId], int]) -> list[tuple[ProcessId, int]]:
        """The same for each other sender: senders and labels."""
        labels = ((sender, _take(messages, stable_of(sender))) for sender, messages in self._others.items())
        return [(sender, label) for sender, label in labels if label is not None]


def _take(messages: _Messages, stable: int) -> int | None:
    last = None
    while messages and messages[0][0] <= stable:
        last = messages.popleft()[1]
    return last
