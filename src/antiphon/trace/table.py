"""Histories to Arrow: the events of one run as one table, in the columns and types of the schema."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from antiphon.trace.schema import EVENTS
from antiphon.trace.typed import TYPED, with_typed

_BATCH_ROWS: Final = 100_000
_PLACE: Final = ("run", "process", "incarnation", "index")
_WRITTEN: Final = pa.schema([field for field in EVENTS if field.name not in TYPED])
_TOLD: Final = pa.struct([field for field in _WRITTEN if field.name not in _PLACE])
"""The columns of a row; its position and the typed columns are added."""


class Log(Protocol):
    """The rows of one process, without their positions; a `Recorder` is one."""

    @property
    def process(self) -> str: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def rows(self) -> Sequence[dict[str, Any]]: ...


_Part = tuple[Log, int, Sequence[dict[str, Any]]]


def events_table(run: str, histories: Iterable[Log]) -> pa.Table:
    """The events of one run, ordered by (process, incarnation, index)."""
    return events_within(run, [(history, range(len(history.rows))) for history in histories])


def events_within(run: str, histories: Iterable[tuple[Log, range]]) -> pa.Table:
    """The same for a part of each history."""
    ordered = sorted(histories, key=lambda each: (each[0].process, each[0].incarnation))
    return _with_all_columns([_batch(run, parts) for parts in _batches(ordered)])


def events_after(run: str, history: Log, first: int) -> pa.Table:
    """The current rows of a history; the `first` rows before them were taken out."""
    return _with_all_columns([_batch(run, [(history, first, history.rows)])])


def _with_all_columns(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Batch by batch, because the typed columns need memory while they are made."""
    tables = [with_typed(pa.Table.from_batches([batch])).select(EVENTS.names) for batch in batches]
    return pa.concat_tables(tables).cast(EVENTS) if tables else EVENTS.empty_table()


def _batches(histories: Iterable[tuple[Log, range]]) -> Iterator[list[_Part]]:
    """Parts of histories, combined into batches: many small arrays would cost more than a large one."""
    parts: list[_Part] = []
    room = _BATCH_ROWS
    for history, stretch in histories:
        for start in stretch[::_BATCH_ROWS]:
            rows = history.rows[start : min(start + _BATCH_ROWS, stretch.stop)]
            parts.append((history, start, rows))
            room -= len(rows)
            if room <= 0:
                yield parts
                parts, room = [], _BATCH_ROWS
    if parts:
        yield parts


def _batch(run: str, parts: list[_Part]) -> pa.RecordBatch:
    rows = [row for _, _, own in parts for row in own]
    columns = dict(zip([field.name for field in _TOLD], pa.array(rows, _TOLD).flatten(), strict=True))
    columns |= {
        "run": pa.repeat(pa.scalar(run), len(rows)),
        "process": pa.array([history.process for history, _, own in parts for _ in own], pa.string()),
        "incarnation": pa.array([history.incarnation for history, _, own in parts for _ in own], pa.int32()),
        "index": pa.array([place for _, start, own in parts for place in range(start, start + len(own))], pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _WRITTEN.names], schema=_WRITTEN)
