"""From the journals of a directory of members to its event files, once the members have ended.

A journal becomes one event file, which is written under another name and renamed; then the journal is removed. So an
interrupted collection can be repeated: nothing is lost or duplicated. One command collects at a time.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from antiphon.errors import TraceError, abbreviated
from antiphon.trace.directory import event_writer
from antiphon.trace.journal import JournalReader, TornHead, is_locked
from antiphon.trace.members import IDENTITY, JOURNALS, events_path
from antiphon.trace.replay import Replay
from antiphon.trace.table import events_after

_ROWS: Final = 100_000
"""Maximum rows in memory at a time, and in a row group."""


def collect(directory: Path) -> None:
    """Make event files of all journals; `TraceError` if a process is still writing one.

    Does nothing without journals: other directories have event files from the start.
    """
    if not any((directory / JOURNALS).glob("*.journal")):
        return
    try:
        with _alone(directory):
            running = [journal for journal in sorted((directory / JOURNALS).glob("*.journal")) if not _finish(journal)]
    except OSError as error:
        raise TraceError(f"cannot collect the journals in {directory}: {error.strerror}") from error
    if running:
        names = abbreviated([JournalReader(journal).head.process for journal in running])
        raise TraceError(
            f"{names} still write to {directory}: use `antiphon watch`; other commands need traces that have ended"
        )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Another command that collects there finishes first."""
    with (directory / IDENTITY).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _finish(journal: Path) -> bool:
    """Make an event file of one journal; False if its process still runs."""
    if is_locked(journal):
        return False
    try:
        reader = JournalReader(journal)
    except TornHead:
        journal.unlink()
        return True
    path = events_path(journal.parents[1], reader.head.process)
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        aside = path.with_name(f".{path.name}")
        _write(reader, aside)
        aside.rename(path)
    journal.unlink()
    return True


def _write(reader: JournalReader, path: Path) -> None:
    with path.open("wb") as file:
        with event_writer(file) as writer:
            for table in tables(reader, ended=True):
                writer.write_table(table)
        os.fsync(file.fileno())  # before the journal is removed


def tables(reader: JournalReader, *, ended: bool) -> Iterator[pa.Table]:
    """All rows of a journal; `ended`: its process has ended, so it has crashed unless it recorded its stop."""
    replay, first = Replay(reader.head), 0
    for entry in reader.entries():
        replay.take(entry)
        if len(replay.history.rows) >= _ROWS:
            yield events_after(reader.head.run, replay.history, first)
            first += len(replay.history.rows)
            replay.history.rows.clear()
    if ended and not replay.closed:
        replay.crash()
    yield events_after(reader.head.run, replay.history, first)
