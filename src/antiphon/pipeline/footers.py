"""What the footers of event files tell: each is checked and read once, many at a time, and nothing is opened again.

The result is one small value for each file. Everything that a command asks before it reads events follows from these
values: which files belong together, how many rows there are, and whether a unit is one large run.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import NotShared, TraceError
from antiphon.trace import stores
from antiphon.trace.places import Place, in_parallel, is_local, opened
from antiphon.trace.schema import EVENTS
from antiphon.trace.typed import TYPED

_REQUIRED: Final = frozenset(field.name for field in EVENTS if not field.nullable)


@dataclass(frozen=True, slots=True)
class EventFile:
    """One event file, as its footer describes it."""

    place: Place
    rows: int
    bytes: int
    runs: tuple[str, ...]
    """The runs that have rows in it, by name."""


def read_footers(files: Iterable[tuple[Place, int]]) -> list[EventFile | TraceError]:
    """What the footers of these files tell, or what is wrong with a file; with each file its size."""
    return in_parallel(_read, [*files])


def checked(place: Place, size: int) -> pq.FileMetaData:
    """The footer of an event file; TraceError if it is not one."""
    if size == 0:
        raise TraceError(f"{place} is empty, not a Parquet file")
    try:
        footer = pq.read_metadata(opened(place))
        schema = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        if (sentence := stores.meaning(error)) is not None:
            raise TraceError(f"{place} cannot be reached: {sentence}") from error
        raise TraceError(f"{place} is truncated, damaged or not Parquet: {cause(error)}") from error
    if (wrong := _difference(schema)) is not None:
        raise TraceError(f"{place} {wrong}")
    _check_nulls(place, footer)
    return footer


def cause(error: Exception) -> str:
    """The first sentence of a library's error message, without the full stop."""
    told = stores.meaning(error)
    return told or str(error).strip().split("\n")[0].split(". ")[0].rstrip(".") or type(error).__name__


def unreadable(place: Place, error: Exception) -> TraceError:
    """What to raise if a file that was listed cannot be read. A worker of a cluster may not see it."""
    if isinstance(error, FileNotFoundError) and is_local(place):
        return NotShared(str(place), socket.gethostname())
    return TraceError(f"{place} cannot be read: {cause(error)}")


def _read(file: tuple[Place, int]) -> EventFile | TraceError:
    place, size = file
    try:
        footer = checked(place, size)
        return EventFile(place, footer.num_rows, size, _runs(place, footer))
    except TraceError as error:
        return error.with_traceback(None)


@lru_cache(maxsize=64)
def _difference(schema: pa.Schema) -> str | None:
    """How a schema differs from that of events; None if rows can be read with it. Most files have the same one."""
    for wanted in EVENTS:
        if wanted.name not in schema.names:
            if wanted.name in TYPED:
                continue  # older traces have none; the reader derives them from `detail`
            return f"has no column `{wanted.name}`"
        found = schema.field(wanted.name).type
        if not _compatible(found, wanted.type):
            return f"has column `{wanted.name}` as {found}, not as {wanted.type}"
    return None


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


def _check_nulls(place: Place, footer: pq.FileMetaData) -> None:
    """Reject nulls in required columns, as far as the statistics of the footer tell."""
    required = [(at, name) for at, name in enumerate(_leaves(footer)) if name in _REQUIRED]
    for group in range(footer.num_row_groups):
        columns = footer.row_group(group)
        for at, name in required:
            statistics = columns.column(at).statistics
            if statistics is not None and statistics.has_null_count and statistics.null_count:
                raise TraceError(f"{place} has rows without a value in column `{name}`")


def _leaves(footer: pq.FileMetaData) -> list[str]:
    schema = footer.schema
    return [schema.column(at).path for at in range(footer.num_columns)]


def _runs(place: Place, footer: pq.FileMetaData) -> tuple[str, ...]:
    """The runs in a file: from the statistics of `run` if each names one run, else from the column."""
    at = _leaves(footer).index("run")
    runs: set[str] = set()
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(at).statistics
        if statistics is None or not statistics.has_min_max or statistics.min != statistics.max:
            try:
                column = pq.ParquetFile(opened(place)).read(columns=["run"]).column("run")
            except (pa.ArrowException, OSError) as error:
                raise unreadable(place, error) from error
            return tuple(sorted(column.cast(pa.string()).unique().drop_null().to_pylist()))
        runs.add(statistics.min)
    return tuple(sorted(runs))
