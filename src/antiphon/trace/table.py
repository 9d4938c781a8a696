"""Histories to Arrow: the events of one run as one table, in the columns and types of the schema."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from antiphon.trace.recorder import Recorder
from antiphon.trace.schema import EVENTS

_BATCH_ROWS: Final = 100_000
_Part = tuple[Recorder, int, Sequence[dict[str, Any]]]


def events_table(run: str, histories: Iterable[Recorder]) -> pa.Table:
    """The events of one run, ordered by (process, incarnation, index)."""
    ordered = sorted(histories, key=lambda history: (history.process, history.incarnation))
    return pa.Table.from_batches([_batch(run, parts) for parts in _batches(ordered)], schema=EVENTS)


def _batches(histories: Iterable[Recorder]) -> Iterator[list[_Part]]:
    """Pieces of histories, as many together as fit in a batch: many small arrays would cost more than a large one."""
    parts: list[_Part] = []
    room = _BATCH_ROWS
    for history in histories:
        for start in range(0, len(history.rows), _BATCH_ROWS):
            rows = history.rows[start : start + _BATCH_ROWS]
            parts.append((history, start, rows))
            room -= len(rows)
            if room <= 0:
                yield parts
                parts, room = [], _BATCH_ROWS
    if parts:
        yield parts


def _batch(run: str, parts: list[_Part]) -> pa.RecordBatch:
    rows = [row for _, _, own in parts for row in own]
    constant = {
        "run": pa.repeat(pa.scalar(run), len(rows)),
        "process": pa.array([history.process for history, _, own in parts for _ in own], pa.string()),
        "incarnation": pa.array([history.incarnation for history, _, own in parts for _ in own], pa.int32()),
        "index": pa.array([place for _, start, own in parts for place in range(start, start + len(own))], pa.int64()),
    }
    columns = [
        constant[field.name] if field.name in constant else pa.array([row.get(field.name) for row in rows], field.type)
        for field in EVENTS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENTS)
