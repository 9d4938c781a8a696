"""Senders outside of our view: they are probed, and a repair that includes them begins only if they answer.

From docs/spec/intergroup.md 7.5; errata M11, M29, J12. A process that is heard in one direction only does not answer,
so it starts no repair.
"""

from typing import Final

from antiphon.types import ProcessId

PROBES_PER_TIMEOUT: Final = 4
FOREIGN_MAX: Final = 1_024
"""At most this number of foreign processes is remembered: any process may use any name."""


class Foreigners:
    """The processes that one sender hears and that are not in its view."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._probed: dict[ProcessId, int] = {}
        self._answered: dict[ProcessId, int] = {}
        self._since: dict[ProcessId, int] = {}
        """Senders of our own epoch that are not in our view, with the time at which they were first heard."""

    def clear(self) -> None:
        """The view has changed."""
        self._probed.clear()
        self._answered.clear()
        self._since.clear()

    def is_overdue(self, process: ProcessId, grace_ns: int, now: int) -> bool:
        """True if a sender of our own epoch was heard for long and no message has added it to our view."""
        if len(self._since) >= FOREIGN_MAX:
            self._since = self._recent(self._since, now)
        if len(self._since) < FOREIGN_MAX:
            self._since.setdefault(process, now)
        return now - self._since.get(process, now) >= grace_ns

    def should_probe(self, process: ProcessId, now: int) -> bool:
        """True if a probe must leave now."""
        last = self._probed.get(process)
        if last is not None and now - last < self._timeout_ns // PROBES_PER_TIMEOUT:
            return False
        if len(self._probed) >= FOREIGN_MAX:
            self._probed, self._answered = self._recent(self._probed, now), self._recent(self._answered, now)
        if process not in self._probed and len(self._probed) >= FOREIGN_MAX:
            return False
        self._probed[process] = now
        return True

    def _recent(self, times: dict[ProcessId, int], now: int) -> dict[ProcessId, int]:
        """What was noted lately: a flood of names must not keep out others forever."""
        return {process: at for process, at in times.items() if now - at < 2 * self._timeout_ns}

    def answered(self, process: ProcessId, now: int) -> bool:
        """An answer has arrived; False if we have not asked."""
        if process not in self._probed:
            return False
        self._answered[process] = now
        return True

    def is_reachable(self, process: ProcessId, now: int) -> bool:
        """True if the process has answered recently."""
        at = self._answered.get(process)
        return at is not None and now - at < self._timeout_ns
