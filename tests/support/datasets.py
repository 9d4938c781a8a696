"""Tiny traces written by hand: rows as keyword arguments, everything not said is null."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.pipeline.dataset import Unit, unit_of
from antiphon.pipeline.footers import EventFile, read_footers
from antiphon.trace.schema import EVENTS

Row = dict[str, Any]


def row(process: str, index: int, time: int, kind: str, **columns: Any) -> Row:
    detail = columns.pop("detail", None)
    return {
        "run": "r1",
        "process": process,
        "incarnation": 0,
        "index": index,
        "time": time,
        "kind": kind,
        "group": "g",
        "detail": None if detail is None else json.dumps(detail),
        **columns,
    }


def table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=EVENTS)


def write(directory: Path, events: pa.Table | Iterable[Row], name: str = "part.parquet") -> Path:
    """Writes one event file of the run directory, and gives its path."""
    path = directory / "events" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(events if isinstance(events, pa.Table) else table(events), path)
    return path


def unit(*files: Path) -> Unit:
    """These files, as if no other shared their runs."""
    found = read_footers([(path, path.stat().st_size) for path in files])
    return unit_of([each for each in found if isinstance(each, EventFile)])


def of_run(rows: Iterable[Row], run: str) -> list[Row]:
    return [{**each, "run": run} for each in rows]


def two_members() -> list[Row]:
    """Process a sends two messages in one frame; b answers with a null; both deliver both."""
    data = {"type": "data", "frame": "a:1", "stamp_bytes": 8, "count": 2}
    null = {"type": "null", "frame": "b:1", "stamp_bytes": 8, "count": 0}
    first = {"sender": "a", "sender_incarnation": 0, "number": 0, "payload_bytes": 100}
    second = {**first, "number": 1}
    return [
        row("a", 0, 0, "start", group=None, detail={"type": "none of a frame's", "stamp_bytes": 99}),
        row("a", 1, 200, "send", requested=0, **first),
        row("a", 2, 200, "send", requested=100, **second),
        row("a", 3, 200, "transmit", payload_bytes=200, header_bytes=30, unstable=1, detail=data),
        row("a", 4, 1000, "deliver", unstable=3, **first),
        row("a", 5, 1000, "deliver", unstable=2, **second),
        row("a", 6, 2000, "stop", group=None),
        row("b", 0, 0, "start", group=None),
        row("b", 1, 700, "transmit", payload_bytes=0, header_bytes=20, detail=null),
        row("b", 2, 1100, "deliver", unstable=1, **first),
        row("b", 3, 1300, "deliver", unstable=0, **second),
        row("b", 4, 2000, "stop", group=None),
        row("world", 0, 2400, "end", group=None, unstable=50),
    ]
