"""Which links carry frames in one direction only, from some fault until the end.

A process that only receives may follow a sender outside its stable component that it hears, although that sender does
not hear it. It is live there (docs/spec/errata-intergroup.md 5a), so its own component is not the measure.
"""

from antiphon.properties.tables.history import History
from antiphon.types import split_process_id


class OneWayLinks:
    """The links that are cut for good, by the fault rows of the world."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._cut: set[tuple[str, str]] = set()
        self._names = [split_process_id(who)[0] for who in history.processes]
        for row in history.of_kind("fault").tolist():
            self._read(history.details.get(row, {}))

    def _read(self, fault: dict[str, object]) -> None:
        """A cut with an end is over by the time at which the components are final."""
        if fault.get("kind") == "heal":
            self._cut.clear()
        elif fault.get("kind") == "cut" and "until" not in fault:
            self._cut.add((str(fault.get("from")), str(fault.get("to"))))

    def hears_outsider(self, process: int, members: frozenset[int]) -> bool:
        """True if one of these lives outside the component of the process, and the process hears it."""
        component, crashed = self._history.world.component, self._history.logs.crashed
        return any(
            component[other] != component[process] and not crashed[other] and self._is_one_way(other, process)
            for other in members - {process}
        )

    def _is_one_way(self, sender: int, receiver: int) -> bool:
        there, back = (self._names[sender], self._names[receiver]), (self._names[receiver], self._names[sender])
        return there not in self._cut and back in self._cut
