"""Traces as another system would write them: all that a trace has, or only what such a system knows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from antiphon.pipeline.dataset import find_event_files, read_events
from antiphon.trace.line_runs import collect_lines
from antiphon.trace.typed import TYPED
from antiphon.types import WORLD, ProcessId, process_id

Row = dict[str, Any]

KNOWN = ("group", "sender", "number", "digest", "view", "members")
"""What a system knows that is not antiphon: of these columns of these rows."""
_SEEN = ("send", "deliver", "view", "leave", "stop")


def written(directory: Path, **files: Sequence[object]) -> Path:
    """One file for each name, of these lines: objects as JSON, texts as they are."""
    directory.mkdir(exist_ok=True)
    for name, lines in files.items():
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        (directory / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return directory


def events_of(directory: Path) -> pa.Table:
    """The rows that the checkers read of these files."""
    collect_lines(directory)
    return read_events(find_event_files(directory))


def exported(events: pa.Table, directory: Path) -> pa.Table:
    """The whole trace, written in lines and read again."""
    for process, rows in _logs(events).items():
        header: Row = {"antiphon_trace": 1, "process": process, "run": rows[0]["run"], "time": rows[0]["time"]}
        if process != WORLD:
            header["detail"] = json.loads(rows.pop(0)["detail"])
        written(directory, **{process: [header, *map(_line, rows)]})
    return events_of(directory)


def as_known(events: pa.Table, directory: Path, promises: Sequence[str]) -> pa.Table:
    """What a system that promises this would write of the same run."""
    for process, rows in _logs(events).items():
        header: Row = {"antiphon_trace": 1, "process": process}
        lines = [_line(row) for row in rows if row["kind"] in ("faults_end", "end")]
        if process != WORLD:
            groups = json.loads(rows[0]["detail"])["groups"]
            header["groups"] = {
                group: {"promises": [*promises], "members": entry["members"]} for group, entry in groups.items()
            }
            lines = [_known(row) for row in rows if row["kind"] in _SEEN and not _is_first_view(row)]
        written(directory, **{process: [header, *lines]})
    return events_of(directory)


def _is_first_view(row: Row) -> bool:
    """True for what the first line tells."""
    return bool(row["kind"] == "view" and row["previous"] is None)


def _known(row: Row) -> Row:
    columns = {name: row[name] for name in KNOWN if row[name] is not None}
    if row["kind"] in ("send", "deliver"):
        columns["sender"] = process_id(row["sender"], row["sender_incarnation"])
        del columns["view"]
    return {"kind": row["kind"], **columns}


def _line(row: Row) -> Row:
    line = {name: value for name, value in row.items() if value is not None}
    for name in ("run", "process", "incarnation", "index"):
        del line[name]
    for name in TYPED:  # they come from `detail`
        line.pop(name, None)
    if "sender" in line:
        line["sender"] = process_id(line["sender"], line.pop("sender_incarnation", 0))
    if "upto" in line:
        line["upto"] = dict(line["upto"])
    if "detail" in line:
        line["detail"] = json.loads(line["detail"])
    if row["kind"] == "view":
        line["previous"] = row["previous"]
    return line


def _logs(events: pa.Table) -> dict[ProcessId, list[Row]]:
    logs: dict[ProcessId, list[Row]] = {}
    order = [("process", "ascending"), ("incarnation", "ascending"), ("index", "ascending")]
    for row in events.sort_by(order).to_pylist():
        logs.setdefault(process_id(row["process"], row["incarnation"]), []).append(row)
    return logs
