"""Where the events of a run are while it goes on, and when it is over."""

from pathlib import Path
from typing import NamedTuple

from antiphon.trace.segments import began_ns, goes_on, live_folders


class Place(NamedTuple):
    """A folder of event files."""

    directory: Path
    """Its parent, which looks like a run directory."""
    key: str
    """A name that no other place has, nor had."""
    whole: bool
    """Nothing more will come."""
    began_ns: int = 0
    """When the run began that is written there, in nanoseconds since 1970; 0 if nobody knows."""

    @property
    def events(self) -> Path:
        """The folder itself."""
        return self.directory / "events"

    @property
    def goes_on(self) -> bool:
        """Whether more may come."""
        if self.began_ns:
            return goes_on(self.directory)
        return not self.whole and not _is_whole(self.directory)


def find(directory: Path) -> Place | None:
    """Where to read what is in `directory`, or will be: first of all the parts of a run that goes on.

    Parts that a killed run left behind are read if there is nothing else.
    """
    live = [Place(each, each.parent.name, not goes_on(each), began_ns(each)) for each in live_folders(directory)]
    going_on = [place for place in live if not place.whole]
    if going_on:
        return going_on[0]
    events = directory / "events"
    if _is_whole(directory):
        return Place(directory, f"whole-{events.stat().st_mtime_ns if events.is_dir() else 0}", whole=True)
    if live:
        return live[0]
    return Place(directory, "growing", whole=False) if events.is_dir() else None


def _is_whole(directory: Path) -> bool:
    return (directory / "run.json").is_file() or (directory / "runs.parquet").is_file()
