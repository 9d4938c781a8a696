"""What must be known about a large run before it is split: one pass over a few of its columns.

The survey collects the backbone, which every part needs, and counts the rows of each process and about each sender. For
names that occur only in the bulk it adds shadows: rows in the place of a bulk row that carry its names and nothing
else. With backbone and shadows, every part of a run has the same processes, groups and services as the whole.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from antiphon.pipeline.dataset import CODED, open_coded, read_coded
from antiphon.properties.tables.history import BULK
from antiphon.trace.places import Place
from antiphon.trace.schema import EVENTS
from antiphon.trace.typed import with_typed
from antiphon.types import ProcessId, process_id, split_process_id

Flags = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]

CODED_EVENTS: Final = pa.schema(
    [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in CODED else field for field in EVENTS]
)
"""The schema of the parts of a run: that of events, with dictionary codes for strings that repeat."""

_SILENT: Final = "refute"
"""The kind of shadows: no checker reads such rows."""

REPORTS: Final = frozenset(["stable", "discard"])
"""Kinds of rows that concern the messages of several senders."""

_ENTRIES: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
_PROCESS: Final = re.compile(r"[^#]+(#[1-9][0-9]{0,8})?")

_NAMED: Final = ("process", "incarnation", "kind", "group", "sender", "sender_incarnation", "service", "orderer")
"""The columns in which shadows carry names."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The result of one pass over a run."""

    run: str
    rows: int
    backbone: pa.Table
    shadows: pa.Table
    by: Counter[tuple[str, str]]
    """The number of bulk rows of each process and kind."""
    about: Counter[tuple[str, str]]
    """The number of such rows about each sender and of each kind; reports count for every sender."""
    within: Counter[tuple[str, str]]
    """The number of such rows in each group and of each kind."""
    processes: tuple[str, ...]
    """All named processes, in the order of names and incarnations."""
    groups: tuple[str, ...]


def survey(files: Sequence[Place]) -> Survey:
    """Survey the files of one run."""
    found = _Found()
    for path, file in ((path, open_coded(path)) for path in files):
        for group in range(file.metadata.num_row_groups):
            found.take(path, file, group)
    return found.survey()


class _Found:
    """What the row groups so far have shown."""

    def __init__(self) -> None:
        self._rows = 0
        self._backbone: list[pa.Table] = []
        self._shadows: list[pa.Table] = []
        self._reported: set[str] = set()
        self._by, self._about, self._within = (Counter[tuple[str, str]]() for _ in range(3))

    def take(self, path: Place, file: pq.ParquetFile, group: int) -> None:
        piece = read_coded(path, file, group, ["run", "index", "time", *_NAMED])
        self._rows += piece.num_rows
        bulk = is_one_of(piece["kind"], BULK)
        if not bulk.all():
            whole = with_typed(read_coded(path, file, group, EVENTS.names).filter(pa.array(~bulk)))
            self._backbone.append(whole.select(EVENTS.names).cast(CODED_EVENTS))
        rows = _in_order(piece.filter(pa.array(bulk)))
        if not rows.num_rows:
            return
        last, count = _last_of_each([rows[name] for name in _NAMED])
        latest = int(np.argmax(rows["time"].to_numpy()))
        self._shadows.append(_shadows(rows.take(pa.array([*last.tolist(), latest]))))
        self._count(rows.take(pa.array(last)).to_pylist(), count.tolist())
        if is_one_of(rows["kind"], REPORTS).any():
            entries = pc.list_flatten(read_coded(path, file, group, ["upto"])["upto"].cast(_ENTRIES))
            keys = pc.unique(entries.combine_chunks().field("key")).to_pylist()
            self._reported |= {who for who in keys if _PROCESS.fullmatch(who)}  # W reports other names

    def _count(self, rows: list[dict[str, Any]], counts: list[int]) -> None:
        for row, count in zip(rows, counts, strict=True):
            kind, who = row["kind"], process_id(row["process"], row["incarnation"])
            self._by[who, kind] += count
            if row["group"] is not None:
                self._within[row["group"], kind] += count
            if row["sender"] is not None:
                self._about[process_id(row["sender"], row["sender_incarnation"] or 0), kind] += count

    def survey(self) -> Survey:
        backbone, shadows = (_joined(tables) for tables in (self._backbone, self._shadows))
        place = pa.concat_tables([backbone, shadows]).slice(0, 1)
        shadows = _joined([shadows, _ghosts(place, sorted(self._reported))])
        wrote = {process_id(*who) for who in zip(*_columns(backbone, "process", "incarnation"), strict=True)}
        named = {who for who, _ in (*self._by, *self._about)} | wrote | self._reported
        return Survey(
            run=place["run"][0].as_py(),
            rows=self._rows,
            backbone=backbone,
            shadows=shadows,
            by=self._by,
            about=self._about,
            within=self._within,
            processes=tuple(sorted(named, key=lambda who: split_process_id(ProcessId(who)))),
            groups=tuple(
                sorted({*pc.unique(backbone["group"]).to_pylist(), *(group for group, _ in self._within)} - {None})
            ),
        )


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([*tables, CODED_EVENTS.empty_table()]).unify_dictionaries().combine_chunks()


def _columns(table: pa.Table, *names: str) -> Iterator[list[Any]]:
    return (table[name].to_pylist() for name in names)


def _shadows(rows: pa.Table) -> pa.Table:
    """Rows of the bulk with their place and the names in them, and nothing else."""
    kept = {name: rows[name] for name in ("run", "index", "time", *_NAMED)}
    kept["kind"] = repeated(_SILENT, rows.num_rows)
    columns = [kept.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in CODED_EVENTS]
    return pa.table(columns, schema=CODED_EVENTS)


def _ghosts(place: pa.Table, names: list[str]) -> pa.Table:
    """Shadows that name the senders in reports, because no other row may name them."""
    where = {**place.select(["run", "process", "incarnation", "index", "time"]).to_pylist()[0], "kind": _SILENT}
    senders = [split_process_id(ProcessId(name)) for name in names]
    rows = [{**where, "sender": name, "sender_incarnation": incarnation} for name, incarnation in senders]
    return pa.Table.from_pylist(rows, schema=EVENTS).cast(CODED_EVENTS)


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """One text for each of `count` rows."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows of each process in its own order; usually they already are."""
    process, incarnation, index = _codes(rows["process"]), *(_whole(rows[name]) for name in ("incarnation", "index"))
    follows = (np.diff(index) > 0) | (np.diff(process) != 0) | (np.diff(incarnation) != 0)
    return rows if follows.all() else rows.take(pa.array(np.lexsort((index, incarnation, process))))


def _last_of_each(columns: list[pa.ChunkedArray]) -> tuple[_Ints, _Ints]:
    """The last position of each combination of values, and how often it occurs."""
    key: _Ints = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = (
            _codes(column) if pa.types.is_dictionary(column.type) else np.unique(_whole(column), return_inverse=True)[1]
        )
        key = key * (int(code.max()) + 2) + code + 1
    _, first, count = np.unique(key[::-1], return_index=True, return_counts=True)
    return len(key) - 1 - first, count


def _codes(column: pa.ChunkedArray) -> _Ints:
    """Codes into the dictionary of the column, -1 for a null."""
    return _whole(column.combine_chunks().indices, -1)


def _whole(column: Any, null: int = 0) -> _Ints:
    return np.asarray(pc.fill_null(column, null).to_numpy(zero_copy_only=False), np.int64)


def is_one_of(column: pa.ChunkedArray, names: frozenset[str]) -> Flags:
    """For each row of a dictionary-encoded column: whether it has one of these values."""
    values = column.combine_chunks().dictionary.to_pylist()
    flags: Flags = np.array([*(value in names for value in values), False], np.bool_)[_codes(column)]
    return flags


def is_process(names: pa.ChunkedArray, incarnations: pa.ChunkedArray, chosen: frozenset[str]) -> Flags:
    """For each row: whether name and incarnation are those of one of these processes."""
    name, values = _codes(names), names.combine_chunks().dictionary.to_pylist()
    numbers, number = np.unique(_whole(incarnations), return_inverse=True)
    known = [[process_id(value, each) in chosen for each in numbers.tolist()] for value in values]
    flags: Flags = np.array([*known, [False] * len(numbers)], np.bool_)[name, number] if len(name) else name > 0
    return flags
