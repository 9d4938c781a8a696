"""Histories to Arrow and Parquet, and the run directory around them (docs/reference/trace.md).

A directory appears whole or not at all: it is written aside and renamed. The bytes of the event file depend on the
events alone, so two runs can be compared with `cmp`.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError
from antiphon.trace.recorder import Recorder
from antiphon.trace.schema import EVENTS

_CHUNK_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run beside its events: one `run.json`, or one row of `runs.parquet`."""

    run: str
    scenario: str
    """Name of the scenario."""
    seed: int
    antiphon_version: str
    clock: str
    """`virtual` or `wall`."""
    finished: bool


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


def events_table(run: str, histories: Iterable[Recorder]) -> pa.Table:
    """The events of one run, ordered by (process, incarnation, index)."""
    ordered = sorted(histories, key=lambda history: (history.process, history.incarnation))
    return pa.concat_tables([_history_table(run, history) for history in ordered] or [EVENTS.empty_table()])


def _history_table(run: str, history: Recorder) -> pa.Table:
    chunks = [
        _chunk(run, history, start, history.rows[start : start + _CHUNK_ROWS])
        for start in range(0, len(history.rows), _CHUNK_ROWS)
    ]
    return pa.Table.from_batches(chunks, schema=EVENTS)


def _chunk(run: str, history: Recorder, start: int, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    count = len(rows)
    constant = {
        "run": pa.repeat(pa.scalar(run), count),
        "process": pa.repeat(pa.scalar(history.process), count),
        "incarnation": pa.repeat(pa.scalar(history.incarnation, pa.int32()), count),
        "index": pa.array(range(start, start + count), pa.int64()),
    }
    columns = [
        constant[field.name] if field.name in constant else pa.array([row.get(field.name) for row in rows], field.type)
        for field in EVENTS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)


def write_run(directory: Path, record: RunRecord, scenario_toml: str) -> None:
    """What stands beside the events of a single run."""
    (directory / "scenario.toml").write_text(scenario_toml, encoding="utf-8")
    (directory / "run.json").write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")


def write_events(events: pa.Table, directory: Path, run: str) -> None:
    """Put the events of one run in a run directory."""
    (directory / "events").mkdir(exist_ok=True)
    path = directory / "events" / f"{run}.parquet"
    pq.write_table(events, path, compression="zstd", write_statistics=["run", "process", "kind", "time"])


def write_index(directory: Path, runs: Iterable[tuple[RunRecord, str]]) -> None:
    """The index of a directory of many runs: each with the scenario that replays it."""
    rows = [asdict(record) | {"scenario_toml": text} for record, text in runs]
    pq.write_table(pa.Table.from_pylist(rows, schema=RUNS), directory / "runs.parquet", compression="zstd")


def read_index(directory: Path) -> dict[str, str]:
    """The scenario text of every run in a directory, by run id."""
    try:
        if (directory / "runs.parquet").is_file():
            rows = pq.read_table(directory / "runs.parquet", columns=["run", "scenario_toml"]).to_pylist()
            return {row["run"]: row["scenario_toml"] for row in rows}
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))["run"]
        return {run: (directory / "scenario.toml").read_text(encoding="utf-8")}
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TraceError(f"{directory} is not a run directory: it has no run.json and no runs.parquet") from error
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise TraceError(f"cannot read what {directory} holds: {error}") from error


def check_free(directory: Path, runs: Collection[str], *, force: bool) -> None:
    """Refuse to write where something else is; the very same runs may be written again, they are equal."""
    if directory.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise TraceError(f"{directory} is where this command runs; name a new directory for its output")
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    held = read_index(directory)  # whatever is not a run directory is never replaced
    if not force and set(held) != set(runs):
        raise TraceError(f"{directory} holds other runs ({_some(held)}); choose another directory or use --force")


@contextmanager
def appearing(directory: Path) -> Iterator[Path]:
    """A new directory to fill that takes its place when it is complete, and leaves nothing behind if it fails."""
    directory = directory.resolve()
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise TraceError(f"cannot write {directory}: {error.strerror}") from error
    replaced = aside.with_name(f"{aside.name}-replaced")
    try:
        aside.chmod(0o755)
        yield aside
        if directory.exists():
            directory.rename(replaced)  # moved, not deleted, until its successor is in place
        aside.rename(directory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _some(names: Iterable[str]) -> str:
    first, *rest = names
    return f"{first} and {len(rest)} more" if rest else first
