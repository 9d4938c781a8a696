"""Of each process only its latest proposal counts: an older one may arrive later (M29)."""

from typing import Final

from antiphon.types import ProcessId

PROPOSERS_MAX: Final = 1_024
"""At most this number of processes is remembered: any process may use any name."""


class LatestProposals:
    """The highest number of each process, while it is repeated.

    A proposal is repeated while it lasts, so a number that has not been heard for a suspicion timeout is over.
    Otherwise a single forged number would silence a process for as long as it lives.
    """

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._known: dict[ProcessId, tuple[int, int]] = {}
        """By process, the number and when it was last heard."""

    def __len__(self) -> int:
        return len(self._known)

    def is_latest(self, process: ProcessId, number: int, now: int) -> bool:
        """Note a proposal; False if the process has proposed something else since."""
        highest, at = self._known.get(process, (number, now))
        if number < highest and now - at < self._timeout_ns:
            return False
        if len(self._known) >= PROPOSERS_MAX:
            self._known = {each: told for each, told in self._known.items() if now - told[1] < self._timeout_ns}
        if process in self._known or len(self._known) < PROPOSERS_MAX:
            self._known[process] = number, now
        return True
