"""Where the events of a run are, while it goes on and after its end."""

from pathlib import Path
from typing import NamedTuple

from antiphon.trace.segments import began_ns, goes_on, live_folders


class Place(NamedTuple):
    """A folder of event files."""

    directory: Path
    """Its parent, which looks like a run directory."""
    key: str
    """A name that no other place has or had."""
    whole: bool
    """True if nothing more will come."""
    began_ns: int = 0
    """When that run began, in nanoseconds since 1970; 0 if unknown."""

    @property
    def events(self) -> Path:
        """The folder of event files."""
        return self.directory / "events"

    @property
    def goes_on(self) -> bool:
        """True if more may come."""
        if self.began_ns:
            return goes_on(self.directory)
        return not self.whole and not _is_whole(self.directory)


def find(directory: Path) -> Place | None:
    """Find the events in `directory`; the parts of a run that goes on come first.

    Parts that a killed run left behind are used only if there is nothing else.
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
