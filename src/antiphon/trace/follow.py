"""Following members while they write: their journals as segments that `antiphon watch` reads.

The reader does this work, not the members. What a command has collected meanwhile is read from the event files.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from antiphon.trace.journal import JournalReader, TornHead, is_locked
from antiphon.trace.members import JOURNALS, Identity
from antiphon.trace.replay import Replay
from antiphon.trace.schema import EVENTS
from antiphon.trace.segments import SegmentWriter
from antiphon.trace.table import events_after
from antiphon.trace.typed import with_typed

_ROWS: Final = 200_000
"""Approximate limit of rows of a process in memory."""


class _Log:
    """One process: how many of its rows are in segments, and where the next ones come from."""

    def __init__(self) -> None:
        self.ended = False
        self._rows = 0
        self._reader: JournalReader | None = None
        self._replay: Replay | None = None

    def new_rows(self, journal: Path) -> pa.Table:
        """New entries of its journal; `FileNotFoundError` if the journal has been collected."""
        ended = not is_locked(journal)  # asked before reading: nothing is written after that
        if self._reader is None or self._replay is None:
            self._reader = JournalReader(journal)
            self._replay = Replay(self._reader.head)
        rows = self._replay.history.rows
        for entry in self._reader.entries():
            self._replay.take(entry)
            if len(rows) >= _ROWS:
                ended = False  # the rest comes with the next step
                break
        if ended and not self._replay.closed:
            self._replay.crash()
        found = events_after(self._reader.head.run, self._replay.history, self._rows)
        self._rows += found.num_rows
        rows.clear()
        self.ended = ended
        return found

    def rest(self, events: Path) -> Iterator[pa.Table]:
        """The rows of the event file of an ended process after those."""
        with pq.ParquetFile(events) as file:
            for group in range(file.num_row_groups):
                found = with_typed(file.read_row_group(group)).select(EVENTS.names).cast(EVENTS)
                yield found.filter(pc.greater_equal(found["index"], self._rows))
        self.ended = True


class Follower:
    """Copies the events of members to a folder of segments."""

    def __init__(self, directory: Path, identity: Identity, folder: Path) -> None:
        """`folder`: a separate folder for the segments."""
        self._directory = directory
        self._logs: dict[str, _Log] = {}
        self._segments = SegmentWriter(folder)
        self._segments.begin(identity.began_ns or 1)
        self.folder = self._segments.folder

    def step(self) -> bool:
        """Add all that is new; False if there were members and all of them have ended."""
        for events in self._new():
            self._segments.add(events)
        goes_on = not self._logs or any(not log.ended for log in self._logs.values())
        if not goes_on:
            self._segments.close()
        return goes_on

    def _new(self) -> Iterator[pa.Table]:
        journals = {path.stem: path for path in sorted((self._directory / JOURNALS).glob("member-*.journal"))}
        for name, journal in journals.items():
            log = self._logs.setdefault(name, _Log())
            try:
                if not log.ended:
                    yield log.new_rows(journal)
            except TornHead:
                log.ended = not is_locked(journal)
            except FileNotFoundError:
                pass  # collected just now: the event file is there
        for events in sorted((self._directory / "events").glob("member-*.parquet")):
            log = self._logs.setdefault(events.stem, _Log())
            if not log.ended:
                yield from log.rest(events)
