"""The histories of the processes of a local run: read from their journals, and cut into segments during the run.

The supervisor does this, so the processes have no extra work.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from antiphon.protocols.assembly import recorder_of
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import run_id
from antiphon.trace.journal import JournalReader, TornHead
from antiphon.trace.recorder import Recorder
from antiphon.trace.records import Head
from antiphon.trace.replay import Replay
from antiphon.trace.segments import SegmentWriter
from antiphon.trace.table import events_within
from antiphon.types import WORLD, ProcessId


class Histories:
    """The histories of all processes of a run, and of the world."""

    def __init__(self, scenario: Scenario, directory: Path, has_ended: Callable[[ProcessId], bool]) -> None:
        """`has_ended`: True if a process writes nothing more."""
        self.world = Recorder(WORLD)
        self._scenario = scenario
        self._directory = directory
        self._has_ended = has_ended
        self._journals: dict[ProcessId, _Journal] = {}
        self._crashes: dict[ProcessId, int] = {}
        self._cut_to: dict[Recorder, int] = {}
        """By history, the number of rows that are in segments."""

    def add(self, process: ProcessId) -> None:
        """A process is about to start."""
        head = Head.of(recorder_of(self._scenario, process), run_id(self._scenario))
        self._journals[process] = _Journal(head, self._directory / f"{process}.journal")

    def path(self, process: ProcessId) -> Path:
        """Where a process writes its journal."""
        return self._journals[process].path

    def crashed(self, process: ProcessId, now: int) -> None:
        """A process was killed; it cannot record that itself."""
        self._crashes[process] = now

    def read(self) -> tuple[Recorder, ...]:
        """All current histories: by process, then of the world."""
        return (*map(self._history, sorted(self._journals)), self.world)

    def cut(self, segments: SegmentWriter) -> None:
        """Write the new rows since the last segment as the next one."""
        histories = [*map(self._history, [*self._journals]), self.world]
        counts = {history: len(history.rows) for history in histories}  # the history of the world may grow meanwhile
        new = [(history, range(self._cut_to.get(history, 0), count)) for history, count in counts.items()]
        segments.add(events_within(run_id(self._scenario), new))
        self._cut_to = counts

    def _history(self, process: ProcessId) -> Recorder:
        """The current history of a process; if it was killed, that row comes last."""
        journal, ended = self._journals[process], self._has_ended(process)
        journal.read()
        history = journal.history
        if ended and process in self._crashes and (not history.rows or history.rows[-1]["kind"] != "crash"):
            last = history.rows[-1]["time"] if history.rows else 0
            history.note("crash", max(self._crashes[process], last))
        return history


class _Journal:
    """The journal of one process, read while it grows."""

    def __init__(self, head: Head, path: Path) -> None:
        self.path = path
        self._replay = Replay(head)
        self._reader: JournalReader | None = None

    @property
    def history(self) -> Recorder:
        """The history read so far."""
        return self._replay.history

    def read(self) -> None:
        """Read new entries; none if the process was killed before it began."""
        with contextlib.suppress(FileNotFoundError, TornHead):
            self._reader = self._reader or JournalReader(self.path)
            for entry in self._reader.entries():
                self._replay.take(entry)
