"""Find the event files of a dataset, check them, and group the files that belong together.

A run directory holds `events/*.parquet`. A file may hold several runs, and a run may be spread over several files.
Files that share a run form one unit, the smallest part that one task can judge alone. Everything that the Parquet
footers show is checked here, before Spark starts: a command calls `find_event_files` first. Only `events` needs Spark.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError
from antiphon.properties.tables.columns import READ, as_read
from antiphon.trace.directory import read_index
from antiphon.trace.schema import EVENTS
from antiphon.trace.typed import TYPED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CODED: Final = [field.name for field in EVENTS if field.type == pa.string() and field.name != "detail"]
"""Columns of strings that repeat very often."""

_CODES: Final = pa.dictionary(pa.int32(), pa.string())
_REQUIRED: Final = frozenset(field.name for field in EVENTS if not field.nullable)


def find_event_files(directory: Path) -> list[Path]:
    """The event files of a run or of a directory of runs, in name order; each footer has been checked.

    Names that begin with a dot or an underscore are files still being written, and are left out.
    """
    files, unusable = sound_event_files(directory)
    if unusable:
        raise unusable[0]
    return files


def sound_event_files(directory: Path) -> tuple[list[Path], list[TraceError]]:
    """The usable event files, and the errors of the others."""
    files, unusable, rows = [], [], 0
    for path in _listed(directory):
        try:
            rows += checked(path).num_rows
        except TraceError as error:
            unusable.append(error)
        else:
            files.append(path)
    if not rows and not unusable:
        first = files[0].name
        raise TraceError(f"{directory / 'events'} holds no events: {first} and all other files have zero rows")
    return files, unusable


def _listed(directory: Path) -> list[Path]:
    if not directory.exists():
        raise TraceError(f"{directory} does not exist")
    folder = directory / "events"
    if (directory / "runs.parquet").is_file() and not any(folder.glob("*.parquet")):
        raise TraceError(
            f"{directory} holds the scenarios of {len(read_index(directory)):,} runs but no trace; "
            f"`antiphon simulate --from {directory} --run ID --out NEW` makes the trace of one"
        )
    if any((directory / "journals").glob("*.journal")):
        raise TraceError(f"{directory} has journals that are not in its events yet; `antiphon check` collects them")
    if not folder.is_dir():
        raise TraceError(f"{directory} has no folder `events`: it is not a run directory, or tracing was off")
    files = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_")))
    if not files:
        raise TraceError(f"{folder} holds no Parquet files")
    return files


def traced_runs(directory: Path) -> set[str]:
    """The runs that must have events here: those whose traces a campaign or sweep kept, else all in the index."""
    if not (directory / "runs.parquet").is_file():
        return set()
    documents = (directory / name for name in ("campaign.json", "sweep.json"))
    document = next((path for path in documents if path.is_file()), None)
    if document is None:
        return {record.run for record, _ in read_index(directory)}
    try:
        return set(json.loads(document.read_text(encoding="utf-8"))["traces"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{document} has no list of the traces that were kept: {_cause(error)}") from error


def count_events(files: Iterable[Path]) -> int:
    """The number of rows of the files, according to their footers."""
    return sum(pq.read_metadata(path).num_rows for path in files)


def plan_units(files: Iterable[Path]) -> list[list[Path]]:
    """Group files as finely as possible so that no run is in two groups; files without rows are left out."""
    runs_of = {path: sorted(_runs(path)) for path in files}
    parent: dict[str, str] = {}

    def root(run: str) -> str:
        while parent.setdefault(run, run) != run:
            parent[run] = run = parent[parent[run]]
        return run

    for runs in runs_of.values():
        for run in runs:
            parent[root(run)] = root(runs[0])
    units = defaultdict(list)
    for path, runs in runs_of.items():
        if runs:
            units[root(runs[0])].append(path)
    return list(units.values())


def one_run(files: Iterable[Path]) -> bool:
    """True if all rows of the files belong to one run."""
    return len({run for path in files for run in _runs(path)}) == 1


def read_events(files: Iterable[Path], names: Sequence[str] = READ) -> pa.Table:
    """The files' rows as one Arrow table with these columns, by default those that the checkers read."""
    return pa.concat_tables([_read(path, names) for path in files], promote_options="default")


def open_coded(path: Path) -> pq.ParquetFile:
    """Open a file to read its row groups one by one (`read_coded`)."""
    try:
        return _opened(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TraceError(f"{path} cannot be read: {_cause(error)}") from error


def read_coded(path: Path, file: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
    """Read these columns of one row group; strings that repeat (`CODED`) are dictionary-encoded.

    Typed columns that the file lacks are left out.
    """
    try:
        names = written(file, names)
        found = file.read_row_group(group, columns=list(names))
        columns = [
            _coded(found[name]) if name in CODED else found[name].cast(EVENTS.field(name).type) for name in names
        ]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TraceError(f"{path} cannot be read: {_cause(error)}") from error
    return pa.table([column.combine_chunks() for column in columns], names=list(names))


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == _CODES:
        return column
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return plain.cast(pa.string()).dictionary_encode()


def events(spark: "SparkSession", directory: Path) -> "DataFrame":
    """The events of a run or of a directory of runs as a DataFrame with exactly the columns of `EVENTS`."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - the rest works without Spark

    paths = [spark_path(path) for path in find_event_files(directory)]
    return spark.read.schema(from_arrow_schema(EVENTS)).parquet(*paths).select(*EVENTS.names)


def _read(path: Path, names: Sequence[str]) -> pa.Table:
    try:
        # A task has one core. Texts that repeat stay dictionary-encoded, as in Parquet.
        file = _opened(path)
        names = written(file, names)
        found = file.read(columns=names, use_threads=False).select(names)
        return found.cast(pa.schema([as_read(field) for field in found.schema]))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TraceError(f"{path} cannot be read: {_cause(error)}") from error


def _opened(path: Path) -> pq.ParquetFile:
    footer = pq.read_metadata(path)
    held = {footer.schema.column(index).path for index in range(footer.num_columns)}
    return pq.ParquetFile(path, metadata=footer, read_dictionary=[name for name in CODED if name in held])


def written(file: pq.ParquetFile, names: Iterable[str]) -> list[str]:
    """These columns without the typed columns that the file lacks, because it was written before there were any."""
    return [name for name in names if name not in TYPED or name in file.schema_arrow.names]


def checked(path: Path) -> pq.FileMetaData:
    """The footer of an event file; TraceError if it is not one."""
    if path.stat().st_size == 0:
        raise TraceError(f"{path} is empty, not a Parquet file")
    try:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{path} is truncated, damaged or not Parquet: {_cause(error)}") from error
    for wanted in EVENTS:
        if wanted.name not in schema.names:
            if wanted.name in TYPED:
                continue  # older traces have none; the reader derives them from `detail`
            raise TraceError(f"{path} has no column `{wanted.name}`")
        found = schema.field(wanted.name).type
        if not _compatible(found, wanted.type):
            raise TraceError(f"{path} has column `{wanted.name}` as {found}, not as {wanted.type}")
    _check_nulls(path, footer)
    return footer


def _check_nulls(path: Path, footer: pq.FileMetaData) -> None:
    """Reject nulls in required columns, as far as the statistics of the footer tell."""
    for index in range(footer.num_columns):
        name = footer.schema.column(index).path
        if name not in _REQUIRED:
            continue
        for group in range(footer.num_row_groups):
            statistics = footer.row_group(group).column(index).statistics
            if statistics is not None and statistics.has_null_count and statistics.null_count:
                raise TraceError(f"{path} has rows without a value in column `{name}`")


def _compatible(found: pa.DataType, wanted: pa.DataType) -> bool:
    """True if a column can hold the wanted type, however its writer stored it.

    People rewrite traces with their own tools. An integer may come back wider, or as a float if there are nulls; a
    column without values may have no type at all. The cast on reading rejects what does not fit.
    """
    if pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return _compatible(found.value_type, wanted)
    if pa.types.is_integer(wanted):
        fits = pa.types.is_integer(found) or pa.types.is_floating(found)
    elif pa.types.is_string(wanted):
        fits = pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
    elif pa.types.is_list(wanted):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        fits = is_list and _compatible(found.value_type, wanted.value_type)
    else:
        assert pa.types.is_map(wanted)
        fits = (
            pa.types.is_map(found)
            and _compatible(found.key_type, wanted.key_type)
            and _compatible(found.item_type, wanted.item_type)
        )
    return bool(fits)


def _runs(path: Path) -> set[str]:
    """The runs in a file: from the statistics of `run` if each names one run, else from the column."""
    footer = pq.read_metadata(path)
    index = next(i for i in range(footer.num_columns) if footer.schema.column(i).path == "run")
    runs: set[str] = set()
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max or statistics.min != statistics.max:
            column = pq.ParquetFile(path).read(columns=["run"]).column("run")
            return set(column.unique().to_pylist())
        runs.add(statistics.min)
    return runs


def spark_path(path: Path) -> str:
    """A path that Spark takes literally: Hadoop would expand brackets, braces and stars."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))


def _cause(error: Exception) -> str:
    """The first sentence of a library's error message, without the full stop."""
    return str(error).strip().split("\n")[0].split(". ")[0].rstrip(".") or type(error).__name__
