"""Segments of the trace of a run in progress: each is written under another name, renamed, and never changed.

They are in a folder `live` with the structure of a run directory: `events/part-*.parquet`, and `live.json` with the
start time of the run. The writer keeps `live.json` locked, so a reader can distinguish a run in progress from a killed
one. `antiphon run` writes them inside the unfinished run directory; the finished directory does not contain them.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.trace.directory import write_table

_LIVE: Final = "live"
_SAYS: Final = "live.json"


class SegmentWriter:
    """Writes the segments of one run."""

    def __init__(self, directory: Path) -> None:
        """`directory`: the place of the folder `live`."""
        self.folder = directory / _LIVE
        self._count = 0
        self._lock: IO[str] | None = None

    def begin(self, began_ns: int) -> None:
        """From here on the run can be watched; `began_ns` is its time 0, in nanoseconds since 1970."""
        (self.folder / "events").mkdir(parents=True)
        self._lock = (self.folder / f".{_SAYS}").open("w", encoding="utf-8")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        json.dump({"began_ns": began_ns}, self._lock)
        self._lock.flush()
        (self.folder / f".{_SAYS}").rename(self.folder / _SAYS)

    def add(self, events: pa.Table) -> None:
        """Write a segment; none for an empty table."""
        if events.num_rows:
            self._count += 1
            path = self.folder / "events" / f"part-{self._count:08}.parquet"
            write_table(events, path.with_name(f".{path.name}"))
            path.with_name(f".{path.name}").rename(path)

    def close(self) -> None:
        """No more segments follow; existing ones stay."""
        if self._lock is not None:
            self._lock.close()

    def end(self) -> None:
        """Remove all segments at once: the run directory has their rows, or is not kept."""
        if self._lock is not None:
            gone = self.folder.rename(self.folder.with_name(f".{_LIVE}"))
            self._lock.close()
            shutil.rmtree(gone)


@contextmanager
def segments_in(directory: Path | None) -> Iterator[SegmentWriter | None]:
    """The segments of the run that will appear as this directory; they are removed before it appears."""
    if directory is None:
        yield None
        return
    segments = SegmentWriter(directory)
    try:
        yield segments
    finally:
        segments.end()


def live_folders(directory: Path) -> list[Path]:
    """The folders with segments of runs that will become `directory`, the latest run first."""
    directory = directory.resolve()
    found = [path.parent for path in directory.parent.glob(f".{_quoted(directory.name)}-*/{_LIVE}/{_SAYS}")]
    return sorted(found, key=began_ns, reverse=True)


def began_ns(folder: Path) -> int:
    """When the run of these segments began, in nanoseconds since 1970; 0 if they are gone."""
    try:
        return int(json.loads((folder / _SAYS).read_text(encoding="utf-8"))["began_ns"])
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{folder / _SAYS} has no start time of the run: {error}") from error


def goes_on(folder: Path) -> bool:
    """True while a process may still add segments there."""
    try:
        with (folder / _SAYS).open(encoding="utf-8") as said:
            fcntl.flock(said, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    return False


def _quoted(name: str) -> str:
    """A name, escaped for use in a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
