"""The fault detector: which members have been silent for too long (docs/spec/intergroup.md 7.8; J4)."""

from collections.abc import Iterable

from antiphon.types import ProcessId


class FaultDetector:
    """Watches some processes. The caller decides which frames count as a sign of life."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._heard: dict[ProcessId, int] = {}

    def watch(self, processes: Iterable[ProcessId], now: int) -> None:
        """Watch exactly these; their silence is measured from now on."""
        self._heard = dict.fromkeys(processes, now)

    def add(self, process: ProcessId, since: int) -> None:
        """Watch one more; its silence is measured from `since` on, which may be later than now."""
        self._heard[process] = since

    def remove(self, process: ProcessId) -> None:
        self._heard.pop(process, None)

    def heard(self, process: ProcessId, now: int) -> None:
        if now > self._heard.get(process, now):
            self._heard[process] = now

    def silent(self, now: int) -> list[ProcessId]:
        """The processes that have been silent for too long."""
        return [process for process, at in self._heard.items() if now - at >= self._timeout_ns]

    @property
    def deadline(self) -> int | None:
        """The time at which a process is suspected if nothing is heard."""
        return min(self._heard.values()) + self._timeout_ns if self._heard else None
