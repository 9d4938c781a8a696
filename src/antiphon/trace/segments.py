"""Parts of the trace of a run that goes on: each is written aside, renamed in, and never touched again.

They lie where the run directory is being made, in a folder `live` that looks like one: `events/part-*.parquet`, and
`live.json`, which says when the run began. Whoever writes them keeps `live.json` locked, so that a reader can tell a
run that goes on from what a killed one left. When the run directory takes its place, it is without them.
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


class Parts:
    """The parts of one run, for the one who writes them."""

    def __init__(self, directory: Path) -> None:
        """`directory` is the run directory in the making."""
        self._folder = directory / _LIVE
        self._count = 0
        self._held: IO[str] | None = None

    def begin(self, began_ns: int) -> None:
        """From here on the run can be watched; `began_ns` is its time 0, in nanoseconds since 1970."""
        (self._folder / "events").mkdir(parents=True)
        self._held = (self._folder / f".{_SAYS}").open("w", encoding="utf-8")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        json.dump({"began_ns": began_ns}, self._held)
        self._held.flush()
        (self._folder / f".{_SAYS}").rename(self._folder / _SAYS)

    def add(self, events: pa.Table) -> None:
        """One more part, unless there is nothing in it."""
        if events.num_rows:
            self._count += 1
            path = self._folder / "events" / f"part-{self._count:08}.parquet"
            write_table(events, path.with_name(f".{path.name}"))
            path.with_name(f".{path.name}").rename(path)

    def end(self) -> None:
        """The parts go, all at once; what they told is elsewhere by now, or is not to be kept."""
        if self._held is not None:
            gone = self._folder.rename(self._folder.with_name(f".{_LIVE}"))
            self._held.close()
            shutil.rmtree(gone)


@contextmanager
def parts_in(directory: Path | None) -> Iterator[Parts | None]:
    """The parts of the run that is to appear from that directory, which are gone before it does."""
    if directory is None:
        yield None
        return
    parts = Parts(directory)
    try:
        yield parts
    finally:
        parts.end()


def live_folders(directory: Path) -> list[Path]:
    """Where parts lie of runs that are to become `directory`, the one that began last first."""
    directory = directory.resolve()
    found = [path.parent for path in directory.parent.glob(f".{_literal(directory.name)}-*/{_LIVE}/{_SAYS}")]
    return sorted(found, key=began_ns, reverse=True)


def began_ns(folder: Path) -> int:
    """When the run began whose parts lie there, in nanoseconds since 1970; 0 if they are gone."""
    try:
        return int(json.loads((folder / _SAYS).read_text(encoding="utf-8"))["began_ns"])
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{folder / _SAYS} does not say when the run began: {error}") from error


def goes_on(folder: Path) -> bool:
    """Whether somebody still adds parts there."""
    try:
        with (folder / _SAYS).open(encoding="utf-8") as said:
            fcntl.flock(said, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    return False


def _literal(name: str) -> str:
    """A name in a pattern, meaning itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
