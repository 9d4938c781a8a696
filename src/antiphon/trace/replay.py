"""From the records of a journal to rows of the trace."""

from collections import defaultdict
from collections.abc import Iterable

from antiphon.trace.recorder import Recorder
from antiphon.trace.records import Head, Record, Stopped


class Replay:
    """The history of one process, from its journal."""

    def __init__(self, head: Head) -> None:
        services = defaultdict(lambda: head.service, head.services)
        self.history = Recorder(head.process, services, rides=head.rides, signed=head.signed)
        """Has the rows; the owner may take them out at any time."""
        self.closed = False
        """True once the process has said that it stops."""
        self._epoch_ns = head.epoch_ns
        self._last_ns: int | None = None

    def take(self, entry: Iterable[Record]) -> None:
        """Repeat the calls of the records of one entry.

        Times never go back: all that leaves in one turn of a driver is recorded with the time at which the turn began,
        and the application may do something in between.
        """
        for record in entry:
            time = record.now - self._epoch_ns
            if self._last_ns is None or time > self._last_ns:
                self._last_ns = time
            record.repeat(self.history, self._last_ns)
            self.closed = self.closed or type(record) is Stopped

    def crash(self) -> None:
        """The process is gone and never recorded its stop. The time is that of its last record."""
        self.history.note("crash", self._last_ns or 0)
