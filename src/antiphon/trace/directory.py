"""Run directories: their contents, how they are read, and how they appear (docs/reference/trace.md).

A directory appears complete or not at all: it is written under another name and renamed. The bytes of the event file
depend only on the events, so two runs can be compared with `cmp`.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError, abbreviated
from antiphon.trace.schema import EVENTS


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The description of a run besides its events: one `run.json`, or one row of `runs.parquet`."""

    run: str
    scenario: str
    """Name of the scenario."""
    seed: int
    antiphon_version: str
    clock: str
    """`virtual` or `wall`."""
    finished: bool


_RECORDED: Final = tuple(field.name for field in fields(RunRecord))

RUNS: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("scenario", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("antiphon_version", pa.string(), nullable=False),
        pa.field("clock", pa.string(), nullable=False),
        pa.field("finished", pa.bool_(), nullable=False),
        pa.field("scenario_toml", pa.string(), nullable=False),
    ]
)


def write_run(directory: Path, record: RunRecord, scenario_toml: str) -> None:
    """The files besides the events of a single run."""
    (directory / "scenario.toml").write_text(scenario_toml, encoding="utf-8")
    (directory / "run.json").write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")


def write_events(events: pa.Table, directory: Path, run: str) -> None:
    """Write the events of one run to a run directory."""
    (directory / "events").mkdir(exist_ok=True)
    write_table(events, directory / "events" / f"{run}.parquet")


ROWS_PER_GROUP: Final = 200_000
"""Maximum rows of a row group. Rows are ordered by process, so a reader of one process skips most groups."""

_COUNTING: Final = frozenset(
    "index time requested number clock frame_serial flow_number flow_complete flow_stable flow_super_stable".split()
)
"""Columns of numbers that grow from row to row: their differences take a third of the space of the numbers."""
_LEAVES: Final = ("members.list.element", "transitional.list.element", "frame_senders.list.element")
_FORMAT: Final[dict[str, Any]] = {
    "compression": "zstd",
    "write_statistics": ["run", "process", "kind", "time"],
    "column_encoding": dict.fromkeys(sorted(_COUNTING), "DELTA_BINARY_PACKED"),
    "use_dictionary": [
        *(field.name for field in EVENTS if field.name not in _COUNTING and not pa.types.is_nested(field.type)),
        *(*_LEAVES, "upto.key_value.key", "upto.key_value.value"),
    ],
}


def write_table(events: pa.Table, path: Path) -> None:
    """Events as a file, the same way everywhere."""
    pq.write_table(events, path, ROWS_PER_GROUP, **_FORMAT)


def event_writer(file: Path | IO[bytes]) -> pq.ParquetWriter:
    """The same for events in pieces of at most `ROWS_PER_GROUP` rows; each piece becomes a row group."""
    return pq.ParquetWriter(file, EVENTS, **_FORMAT)


def write_index(directory: Path, runs: Iterable[tuple[RunRecord, str]]) -> None:
    """The index of a directory of many runs: each with the scenario that replays it."""
    rows = [asdict(record) | {"scenario_toml": text} for record, text in runs]
    pq.write_table(pa.Table.from_pylist(rows, schema=RUNS), directory / "runs.parquet", compression="zstd")


def read_index(directory: Path) -> list[tuple[RunRecord, str]]:
    """Every run of a directory, with the scenario text that replays it."""
    try:
        if (directory / "runs.parquet").is_file():
            rows = pq.read_table(directory / "runs.parquet", schema=RUNS).to_pylist()
        else:
            row = json.loads((directory / "run.json").read_text(encoding="utf-8"))
            rows = [{**row, "scenario_toml": (directory / "scenario.toml").read_text(encoding="utf-8")}]
        return [(RunRecord(**{name: row[name] for name in _RECORDED}), row["scenario_toml"]) for row in rows]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TraceError(f"{directory} is not a run directory: it has no run.json and no runs.parquet") from error
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise TraceError(f"cannot read the list of runs in {directory}: {error}") from error


def check_free(directory: Path, runs: Collection[str], *, force: bool) -> None:
    """Refuse to overwrite other files; the same runs may be written again, because they are equal."""
    if directory.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise TraceError(f"{directory} is the working directory; name a new directory for the output")
    if directory.is_file():
        raise TraceError(f"{directory} is a file; name a new directory for the output")
    if not directory.exists() or not any(directory.iterdir()):
        return
    held = [record.run for record, _ in read_index(directory)]  # only run directories are replaced
    if not force and set(held) != set(runs):
        raise TraceError(f"{directory} holds other runs ({abbreviated(held)}); choose another directory or use --force")


@contextmanager
def appearing(directory: Path) -> Iterator[Path]:
    """A new directory to fill; it appears at its place when it is complete, and is removed on failure."""
    directory = directory.resolve()
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise TraceError(f"cannot write {directory}: {error.strerror}") from error
    try:
        aside.chmod(0o755)
        yield aside
        take_place(aside, directory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def take_place(aside: Path, directory: Path) -> None:
    """Rename a complete directory to its place; an old directory there is removed."""
    replaced = aside.with_name(f"{aside.name}-replaced")
    try:
        if directory.exists():
            directory.rename(replaced)  # moved, not deleted, until its successor is in place
        aside.rename(directory)
    finally:
        if replaced.exists() and not directory.exists():
            replaced.rename(directory)  # the rename failed: the old directory stays
        shutil.rmtree(replaced, ignore_errors=True)
