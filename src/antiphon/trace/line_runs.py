"""From the files that another system wrote, one for each process, to the event file of their run.

`DIR/*.jsonl` become `DIR/events/other-system.parquet`, written under another name and renamed; the files of the user
stay. The event file remembers what it was made of, and is made again when a file has changed: a process may still have
been running.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.errors import TraceError, abbreviated
from antiphon.trace.directory import event_writer
from antiphon.trace.lines import LineLog, is_ours
from antiphon.trace.members import IDENTITY, JOURNALS
from antiphon.trace.promise_words import parts_of
from antiphon.trace.table import events_after
from antiphon.types import WORLD

EVENT_FILE: Final = "other-system.parquet"
_ORIGIN: Final = b"antiphon.lines"
"""The key of the metadata of an event file that says what it was made of."""
_READER: Final = 1
"""Counts the changes of this module and of `lines.py` that make other rows of the same lines."""
_ROWS: Final = 100_000
"""Minimum rows in a row group, except for the last."""


@dataclass(slots=True)
class _World:
    """What the world tells, if no file does."""

    rows: list[dict[str, Any]]
    process: str = WORLD
    incarnation: int = 0


def line_files(directory: Path) -> list[Path]:
    """The traces in lines in this directory; none if it holds traces of antiphon itself and nothing else is meant."""
    found = sorted(path for path in directory.glob("*.jsonl") if not path.name.startswith(".") and path.is_file())
    try:
        meant = [path for path in found if is_ours(path)]
    except OSError as error:
        raise TraceError(f"cannot read {error.filename}: {error.strerror}") from error
    own = _own_traces(directory)
    if own and meant:
        raise TraceError(
            f"{directory} holds traces of antiphon itself ({own}) beside {meant[0].name}: "
            "put the files of another system into a directory of their own"
        )
    return [] if own else found


def _own_traces(directory: Path) -> str:
    """The name of something that antiphon wrote there for its own members; empty if there is nothing."""
    names = [directory / name for name in (IDENTITY, JOURNALS, "run.json", "runs.parquet")]
    events = (path for path in (directory / "events").glob("*.parquet") if not path.name.startswith("."))
    return next((path.name for path in (*names, *events) if path.exists() and path.name != EVENT_FILE), "")


def collect_lines(directory: Path) -> tuple[str, ...]:
    """Make the event file of the traces in this directory; `TraceError` if one is damaged. Does nothing without any.

    Returns sentences that a reader of the verdicts should know.
    """
    files = line_files(directory)
    if not files:
        return ()
    target = directory / "events" / EVENT_FILE
    try:
        sources = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        made_of = {"reader": _READER, "directory": directory.resolve().name, "sources": sources}
        known = _metadata(target)
        if known.get("made_of") == made_of:
            return tuple(known["notes"])
        return _convert(files, target, made_of)
    except OSError as error:
        raise TraceError(f"cannot make the event file of the traces in {directory}: {error.strerror}") from error


def _metadata(target: Path) -> dict[str, Any]:
    """What an event file says about its origin; empty if there is none that says it."""
    try:
        found: dict[str, Any] = json.loads((pq.read_metadata(target).metadata or {})[_ORIGIN])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return {}
    return found


def _convert(files: Sequence[Path], target: Path, made_of: dict[str, Any]) -> tuple[str, ...]:
    logs = sorted((LineLog(path) for path in files), key=lambda log: (log.process, log.incarnation))
    _require_consistent(logs)
    run = next((log.header.run for log in logs if log.header.run), str(made_of["directory"]))
    target.parent.mkdir(exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{EVENT_FILE}-", dir=target.parent)
    aside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, event_writer(file) as writer:
            for table in _merged(_tables(run, logs)):
                writer.write_table(table)
            notes = _notes(logs)
            told = json.dumps({"made_of": made_of, "notes": notes})
            writer.add_key_value_metadata({_ORIGIN.decode(): told})
        aside.chmod(0o644)
        aside.rename(target)
    finally:
        aside.unlink(missing_ok=True)
        if not any(target.parent.iterdir()):
            target.parent.rmdir()
    return tuple(notes)


def _require_consistent(logs: Sequence[LineLog]) -> None:
    """What the first lines say must go together."""
    seen: dict[str, Path] = {}
    runs: dict[str, Path] = {}
    members: dict[str, tuple[set[str], Path]] = {}
    for log in logs:
        if log.identity in seen:
            raise TraceError(f"{log.path} line 1: {seen[log.identity].name} is a trace of {log.identity} too")
        seen[log.identity] = log.path
        if log.header.run is not None:
            other, path = next(iter(runs.items()), (log.header.run, log.path))
            if other != log.header.run:
                raise TraceError(f"{log.path} line 1: it is of run {log.header.run}, but {path.name} is of run {other}")
            runs[log.header.run] = log.path
        for group, entry in log.groups.items():
            if entry.members:
                named, path = members.setdefault(group, ({*entry.members}, log.path))
                if named != {*entry.members}:
                    raise TraceError(
                        f"{log.path} line 1: other members of group {group!r} than in {path.name}; a group whose "
                        "members change has view rows instead"
                    )
    if not any(not log.is_world for log in logs):
        raise TraceError(f"{logs[0].path.parent} holds a trace of `world` and of no process")


def _tables(run: str, logs: Sequence[LineLog]) -> Iterator[pa.Table]:
    """The rows of all processes, in pieces."""
    origin = min((began for log in logs if (began := log.began()) is not None), default=0)
    for log in logs:
        first = 0
        for _ in log.read(origin):
            yield events_after(run, log, first)
            first += len(log.rows)
            log.rows.clear()
    _require_digests(logs)
    if not any(log.is_world for log in logs):
        yield events_after(run, _World([_end(logs)]), 0)


def _merged(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in larger pieces."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROWS:
            yield pa.concat_tables(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)


def _require_digests(logs: Sequence[LineLog]) -> None:
    """In each group all messages have a digest, or none has: a missing one would look like another payload."""
    given: dict[str, str] = {}
    missing: dict[str, str] = {}
    for log in logs:
        for group, places in log.digests.items():
            if places.given:
                given.setdefault(group, places.given)
            if places.missing:
                missing.setdefault(group, places.missing)
    for group in sorted({*given} & {*missing}):
        raise TraceError(
            f"{missing[group]}: a message of group {group!r} without `digest`, but the one in {given[group]} has it: "
            "give it to all messages of the group, or to none"
        )


def _end(logs: Sequence[LineLog]) -> dict[str, Any]:
    """The `end` row: quiet if each process that stopped says so."""
    stopped = [log for log in logs if log.end == "stop"]
    restless = [log.identity for log in stopped if not log.quiet]
    detail: dict[str, Any] = {"quiet": bool(stopped) and not restless}
    if not stopped:
        detail["reason"] = "no process stopped"
    elif restless:
        detail["reason"] = f"the stop row of {abbreviated(restless)} does not say `quiet`"
    time = max(log.time for log in logs)
    return {"time": time, "kind": "end", "detail": json.dumps(detail)}


def _notes(logs: Sequence[LineLog]) -> list[str]:
    """What is not judged, and why."""
    notes = [
        f"{log.identity} counts as crashed: {log.path.name} ends without a stop row" for log in logs if log.cut_off
    ]
    promised = [(group, entry.promises) for log in logs for group, entry in log.groups.items()]
    silent = sorted({group for group, words in promised if words == []})
    if silent:
        notes.append(f"nothing is promised in {abbreviated(silent)} by some processes: only --require judges them")
    complete = any("at-least-once" in parts_of(words or ()) for _, words in promised)
    if complete and (why := _restless(logs)):
        notes.append(f"whether everything arrived in the end (D13, L2, L3) is not judged: {why}")
    strangers = sorted(set[str]().union(*(log.senders for log in logs)) - {log.identity for log in logs})
    if strangers:
        notes.append(f"there is no trace of {abbreviated(strangers)}, whose messages were delivered")
    return notes


def _restless(logs: Sequence[LineLog]) -> str | None:
    """Why the end was not quiet; None if it was, or if a file of the world tells the end."""
    reason: str | None = json.loads(_end(logs)["detail"]).get("reason")
    return None if any(log.is_world for log in logs) else reason
