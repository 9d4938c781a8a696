"""Histories to Arrow: the events of one run as one table, in the columns and types of the schema."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from antiphon.trace.recorder import Recorder
from antiphon.trace.schema import EVENTS

_CHUNK_ROWS: Final = 100_000


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
