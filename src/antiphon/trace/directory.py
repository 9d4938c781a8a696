"""Run directories: their contents, how they are read, and how they appear (docs/reference/trace.md).

A directory appears complete or not at all: it is written under another name and renamed. A store has no rename: there
the files are copied to their place below a mark, and readers refuse a directory with a mark. The bytes of the event
file depend only on the events, so two runs can be compared with `cmp`.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError, abbreviated
from antiphon.trace import stores
from antiphon.trace.places import AnyPlace, Place, Remote, copy, in_parallel, opened, remove, require_target, written
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


PARTS: Final = "parts"
"""The folder of partial results in an unfinished directory; removed when everything is done."""
_INDEX_ROWS: Final = 1_000
_MARK: Final = "_unfinished"
"""The file that marks a directory in a store while files are copied to it."""


def write_run(directory: Place, record: RunRecord, scenario_toml: str) -> None:
    """The files besides the events of a single run."""
    (directory / "scenario.toml").write_text(scenario_toml, "utf-8")
    (directory / "run.json").write_text(json.dumps(asdict(record), indent=2) + "\n", "utf-8")


def write_events(events: pa.Table, directory: Place, run: str) -> None:
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
    "max_rows_per_page": ROWS_PER_GROUP,  # pages of 20,000 rows, the default, take an eighth longer to read
    "write_statistics": ["run", "process", "kind", "time"],
    "column_encoding": dict.fromkeys(sorted(_COUNTING), "DELTA_BINARY_PACKED"),
    "use_dictionary": [
        *(field.name for field in EVENTS if field.name not in _COUNTING and not pa.types.is_nested(field.type)),
        *(*_LEAVES, "upto.key_value.key", "upto.key_value.value"),
    ],
}


def write_table(events: pa.Table, path: Place) -> None:
    """Events as a file, the same way everywhere."""
    with written(path) as file:
        pq.write_table(events, file, ROWS_PER_GROUP, **_FORMAT)


def event_writer(file: Path | IO[bytes]) -> pq.ParquetWriter:
    """The same for events in pieces of at most `ROWS_PER_GROUP` rows; each piece becomes a row group."""
    return pq.ParquetWriter(file, EVENTS, **_FORMAT)


def write_index(directory: Place, runs: Iterable[tuple[RunRecord, str]]) -> None:
    """The index of a directory of many runs: each with the scenario that replays it."""
    rows = [asdict(record) | {"scenario_toml": text} for record, text in runs]
    with written(directory / "runs.parquet") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema=RUNS), file, compression="zstd")


def has_index(directory: Place) -> bool:
    """Whether the directory describes its runs."""
    return any((directory / name).is_file() for name in ("runs.parquet", "run.json"))


def read_index(directory: Place) -> list[tuple[RunRecord, str]]:
    """Every run of a directory, with the scenario text that replays it."""
    return [*each_run(directory)]


def each_run(directory: Place) -> Iterator[tuple[RunRecord, str]]:
    """The same one by one: the scenarios of a hundred thousand runs need not be in memory together."""
    with _read(directory):
        for row in _index_rows(directory):
            yield RunRecord(**{name: row[name] for name in _RECORDED}), row["scenario_toml"]


def _index_rows(directory: Place) -> Iterator[dict[str, Any]]:
    if (directory / "runs.parquet").is_file():
        for batch in pq.ParquetFile(opened(directory / "runs.parquet")).iter_batches(_INDEX_ROWS):
            yield from pa.Table.from_batches([batch]).select(RUNS.names).cast(RUNS).to_pylist()
        return
    row = json.loads((directory / "run.json").read_text("utf-8"))
    yield {**row, "scenario_toml": (directory / "scenario.toml").read_text("utf-8")}


def run_ids(directory: Place) -> list[str]:
    """The ids of all runs of a directory, without their scenarios: these may need much memory."""
    ids: list[str]
    with _read(directory):
        if (directory / "runs.parquet").is_file():
            ids = pq.ParquetFile(opened(directory / "runs.parquet")).read(columns=["run"])["run"].to_pylist()
        else:
            ids = [str(json.loads((directory / "run.json").read_text("utf-8"))["run"])]
    return ids


@contextmanager
def _read(directory: Place) -> Iterator[None]:
    require_complete(directory)
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TraceError(f"{directory} is not a run directory: it has no run.json and no runs.parquet") from error
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise TraceError(f"cannot read the list of runs in {directory}: {stores.meaning(error) or error}") from error


def require_complete(directory: Place) -> None:
    """TraceError for a directory in a store that is being written, or whose writer was interrupted."""
    if _is_marked(directory):
        raise TraceError(f"{directory} is incomplete: a command is writing it, or was interrupted; --force replaces it")


def check_free(directory: Place, runs: Collection[str], *, force: bool) -> None:
    """Refuse to overwrite other files; the same runs may be written again, because they are equal."""
    if isinstance(directory, Remote):
        require_target(directory)
    elif isinstance(directory, Path) and directory.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise TraceError(f"{directory} is the working directory; name a new directory for the output")
    if directory.is_file():
        raise TraceError(f"{directory} is a file; name a new directory for the output")
    if not is_occupied(directory) or (force and _is_marked(directory)):
        return
    held = run_ids(directory)  # only run directories are replaced
    if not force and set(held) != set(runs):
        raise TraceError(f"{directory} holds other runs ({abbreviated(held)}); choose another directory or use --force")


def is_occupied(directory: Place) -> bool:
    """Whether there is anything in the directory."""
    if isinstance(directory, Remote):
        return any(each.base_name for each in directory.entries())
    return directory.exists() and any(True for _ in directory.iterdir())


def _is_marked(directory: Place) -> bool:
    return isinstance(directory, Remote) and (directory / _MARK).is_file()


@contextmanager
def appearing(directory: AnyPlace) -> Iterator[AnyPlace]:
    """A new directory to fill; it appears at its place when it is complete, and is removed on failure."""
    aside: Any = _beside(directory)
    try:
        yield aside
        take_place(aside, directory)
    finally:
        remove(aside)


def _beside(directory: Place) -> Place:
    """A new empty directory in the same parent."""
    if isinstance(directory, Remote):
        require_target(directory)
        return directory.with_name(f".{directory.name}-{uuid4().hex[:8]}")
    assert isinstance(directory, Path)
    directory = directory.resolve()
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise TraceError(f"cannot write {directory}: {error.strerror}") from error
    aside.chmod(0o755)
    return aside


def take_place(aside: Place, directory: Place, *, plan: str | None = None) -> None:
    """Bring a complete directory to its place; an old directory there is removed.

    `plan` names a file that is left behind in a store, and so are the files in `parts`. Another command with the same
    plan writes the same files. It removes the plan when they are all at their place, and before anything else.
    """
    if isinstance(aside, Remote):
        assert isinstance(directory, Remote)
        _take_place_in_store(aside, directory, plan)
        return
    assert isinstance(aside, Path)
    assert isinstance(directory, Path)
    directory = directory.resolve()
    replaced = aside.with_name(f"{aside.name}-replaced")
    try:
        if directory.exists():
            directory.rename(replaced)  # moved, not deleted, until its successor is in place
        aside.rename(directory)
    finally:
        if replaced.exists() and not directory.exists():
            replaced.rename(directory)  # the rename failed: the old directory stays
        shutil.rmtree(replaced, ignore_errors=True)


def _take_place_in_store(aside: Remote, directory: Remote, plan: str | None) -> None:
    names = [name for name in aside.files_below() if plan is None or not name.startswith((plan, f"{PARTS}/"))]

    def is_done() -> bool:
        """Another command has brought the same files to their place."""
        return plan is not None and not (aside / plan).is_file()

    if not is_done():
        (directory / _MARK).write_text(aside.name, "utf-8")
        try:
            copy(aside, names, directory)
            old = {*directory.files_below()} - {*names, _MARK}
            in_parallel(lambda name: (directory / name).unlink(missing_ok=True), [*old])
            _require_alone(aside, directory, {*names, _MARK})
        except (TraceError, FileNotFoundError):
            if not is_done():
                raise
        (directory / _MARK).unlink(missing_ok=True)
    if plan is not None:
        (aside / plan).unlink(missing_ok=True)
        remove(aside)


def _require_alone(aside: Remote, directory: Remote, names: set[str]) -> None:
    """TraceError, and the mark stays, if another command with other files was at the same place."""
    try:
        is_ours = (directory / _MARK).read_text("utf-8") == aside.name
    except FileNotFoundError:
        is_ours = False
    if not is_ours or {*directory.files_below()} != names:
        (directory / _MARK).write_text(aside.name, "utf-8")
        raise TraceError(f"another command has written to {directory} at the same time; --force replaces it")
