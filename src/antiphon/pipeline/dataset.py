"""Find the event files of a dataset, check them, group the files that belong together, and read them.

A run directory holds `events/*.parquet`. A file may hold several runs, and a run may be spread over several files.
Files that share a run form one unit, the smallest part that one task can judge alone. Everything that the Parquet
footers show is checked here, once and before Spark starts (`footers.py`): a command makes one `Dataset`, and all that
follows takes it. Only `events` needs Spark.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError
from antiphon.pipeline.footers import EventFile, cause, read_footers, unreadable
from antiphon.properties.tables.columns import READ, in_schema
from antiphon.trace.directory import require_complete, run_ids
from antiphon.trace.places import AnyPlace, Place, is_local, listed, opened, require_reachable
from antiphon.trace.schema import EVENTS
from antiphon.trace.typed import TYPED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CODED: Final = [field.name for field in EVENTS if field.type == pa.string() and field.name != "detail"]
"""Columns of strings that repeat very often."""

_CODES: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that share runs, and no run with any other file."""

    files: tuple[Place, ...]
    rows: int
    bytes: int
    is_one_run: bool


class Dataset:
    """The event files of a directory, as their footers describe them."""

    def __init__(self, directory: Place, files: Sequence[EventFile], unusable: Sequence[TraceError]) -> None:
        self.directory = directory
        self.files = files
        """The usable ones, by name."""
        self.unusable = unusable
        """What is wrong with the others."""
        self._fetched: DataFrame | None = None
        """The events in Spark, if they come from a store."""

    @staticmethod
    def of(source: "Source") -> "Dataset":
        """The dataset of a run directory or of a directory of runs; TraceError if it has none."""
        if isinstance(source, Dataset):
            return source
        found = read_footers(_listed(source))
        files = [each for each in found if isinstance(each, EventFile)]
        unusable = [each for each in found if isinstance(each, TraceError)]
        if not unusable and not any(file.rows for file in files):
            first = files[0].place.name
            raise TraceError(f"{source / 'events'} holds no events: {first} and all other files have zero rows")
        return Dataset(source, files, unusable)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def sound(self) -> "Dataset":
        """The same; TraceError if any file is unusable."""
        if self.unusable:
            raise self.unusable[0]
        return self

    def units(self) -> list[Unit]:
        """All files with rows, grouped as finely as possible so that no run is in two units."""
        return plan_units(self.files)

    def events(self, spark: "SparkSession") -> "DataFrame":
        """All events. Those from a store are kept on the disks of the workers: one query after another uses them."""
        from pyspark import StorageLevel  # noqa: PLC0415 - the rest works without Spark

        from antiphon.pipeline.spark.parquet import read_parquet  # noqa: PLC0415

        if self._fetched is not None:
            return self._fetched
        frame = read_parquet(spark, [file.place for file in self.sound().files], EVENTS)
        if not is_local(self.directory):
            self._fetched = frame.persist(StorageLevel.DISK_ONLY)
        return frame


Source = Place | Dataset
"""A directory, or what was found in it before."""


def find_event_files(directory: AnyPlace) -> list[AnyPlace]:
    """The event files of a run or of a directory of runs, in name order; each footer has been checked.

    Names that begin with a dot or an underscore are files still being written, and are left out.
    """
    return [cast("AnyPlace", file.place) for file in Dataset.of(directory).sound().files]


def _listed(directory: Place) -> list[tuple[Place, int]]:
    """The event files with their sizes."""
    require_reachable(directory)
    require_complete(directory)
    folder = directory / "events"
    files = listed(folder, ".parquet")
    if not files and (directory / "runs.parquet").is_file():
        raise TraceError(
            f"{directory} holds the scenarios of {len(run_ids(directory)):,} runs but no trace; "
            f"`antiphon simulate --from {directory} --run ID --out NEW` makes the trace of one"
        )
    if listed(directory / "journals", ".journal"):
        raise TraceError(f"{directory} has journals that are not in its events yet; `antiphon check` collects them")
    if not files and not folder.is_dir():
        raise TraceError(f"{directory} has no folder `events`: it is not a run directory, or tracing was off")
    if not files:
        raise TraceError(f"{folder} holds no Parquet files")
    return files


def traced_runs(directory: Place) -> set[str]:
    """The runs that must have events here: those whose traces a campaign or sweep kept, else all in the index."""
    if not (directory / "runs.parquet").is_file():
        return set()
    documents = (directory / name for name in ("campaign.json", "sweep.json"))
    document = next((path for path in documents if path.is_file()), None)
    if document is None:
        return {*run_ids(directory)}
    try:
        return set(json.loads(document.read_text("utf-8"))["traces"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{document} has no list of the traces that were kept: {cause(error)}") from error


def plan_units(files: Iterable[EventFile]) -> list[Unit]:
    """Group files as finely as possible so that no run is in two groups; files without rows are left out."""
    parent: dict[str, str] = {}

    def root(run: str) -> str:
        while parent.setdefault(run, run) != run:
            parent[run] = run = parent[parent[run]]
        return run

    full = [file for file in files if file.runs]
    for file in full:
        for run in file.runs:
            parent[root(run)] = root(file.runs[0])
    together: dict[str, list[EventFile]] = defaultdict(list)
    for file in full:
        together[root(file.runs[0])].append(file)
    return [unit_of(own) for own in together.values()]


def unit_of(files: Sequence[EventFile]) -> Unit:
    """These files as one unit."""
    return Unit(
        tuple(file.place.absolute() for file in files),
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
        len({run for file in files for run in file.runs}) == 1,
    )


def read_events(files: Iterable[Place], names: Sequence[str] = READ) -> pa.Table:
    """The files' rows as one Arrow table with these columns, by default those that the checkers read."""
    return pa.concat_tables([_read(path, names) for path in files], promote_options="default")


def open_coded(path: Place) -> pq.ParquetFile:
    """Open a file to read its row groups one by one (`read_coded`)."""
    try:
        return _opened(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error


def read_coded(path: Place, file: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
    """Read these columns of one row group; strings that repeat (`CODED`) are dictionary-encoded.

    Typed columns that the file lacks are left out.
    """
    try:
        names = held_columns(file, names)
        found = file.read_row_group(group, columns=list(names))
        columns = [
            _coded(found[name]) if name in CODED else found[name].cast(EVENTS.field(name).type) for name in names
        ]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return pa.table([column.combine_chunks() for column in columns], names=list(names))


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == _CODES:
        return column
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return plain.cast(pa.string()).dictionary_encode()


def events(spark: "SparkSession", source: Source) -> "DataFrame":
    """The events of a run or of a directory of runs as a DataFrame with exactly the columns of `EVENTS`."""
    return Dataset.of(source).events(spark)


def _read(path: Place, names: Sequence[str]) -> pa.Table:
    try:
        # A task has one core. Texts that repeat stay dictionary-encoded, as in Parquet.
        file = _opened(path)
        names = held_columns(file, names)
        return in_schema(file.read(columns=names, use_threads=False).select(names))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _opened(path: Place) -> pq.ParquetFile:
    source = opened(path)
    plain = pq.ParquetFile(source)
    held = {*plain.schema_arrow.names}
    return pq.ParquetFile(source, metadata=plain.metadata, read_dictionary=[name for name in CODED if name in held])


def held_columns(file: pq.ParquetFile, names: Iterable[str]) -> list[str]:
    """These columns without the typed columns that the file lacks, because it was written before there were any."""
    held = {*file.schema_arrow.names}
    return [name for name in names if name not in TYPED or name in held]
