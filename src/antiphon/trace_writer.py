"""Write the trace of your own ordered messaging system, so that `antiphon check` can judge it.

This file needs Python 3.9 and nothing else: copy it into your project. Each process writes one file, `NAME.jsonl`, into
a directory; collect the files of all processes in one directory and run `antiphon check` on it:

    trace = TraceWriter("traces", "a", {"log": {"promises": ["reliable", "total"], "members": ["a", "b", "c"]}})
    number = trace.sent("log", payload)  # before the message leaves; put `trace.process` and the number into it
    trace.delivered("log", sender, number, payload)  # when the application gets it
    trace.stopped(quiet=True)

The format, the promises and what they mean: docs/guide/other-systems.md and docs/reference/trace-lines.md of antiphon.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

VERSION: Final = 1
PROMISES: Final = ("reliable", "at-most-once", "at-least-once", "causal", "fifo", "total", "uniform", "views")
"""What a system can promise in a group."""
_BLOCK_BYTES: Final = 65_536
_NAMES_MAX: Final = 10_000
"""Maximum names whose JSON is remembered."""


class TraceWriter:
    """The trace of one process. All calls are thread-safe; each writes one complete line.

    A call raises `OSError` if the line cannot be written. Then the trace ends there, and every later call raises it.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        process: str,
        groups: Mapping[str, Mapping[str, Any]],
        *,
        run: str | None = None,
        incarnation: int | None = None,
        flush: str = "line",
    ) -> None:
        """Start the trace of a process.

        `groups`: for each group that the process is in or sends to, `promises` (a list of words) and, if its members
        never change, `members` (their names). `run`: the id of the run; all processes that name one name the same.
        `incarnation`: how often the process was started before; by default, how many traces of it the directory has.
        `flush`: when lines leave this process. `line`: before the call returns, so that nothing is lost if the process
        is killed. `block`: in blocks of 64 KiB, which is cheaper; a killed process loses the last block. `disk`: the
        line is on disk before the call returns, so that nothing is lost if the machine fails.
        """
        if flush not in ("line", "block", "disk"):
            raise ValueError(f"flush: {flush!r} is none of line, block, disk")
        if not process or "#" in process or "@" in process or process == "world":
            raise ValueError(f"process: {process!r} cannot be a name: it has # or @, is empty, or is `world`")
        unknown = {word for group in groups.values() for word in group.get("promises", ())} - {*PROMISES}
        if unknown:
            raise ValueError(f"groups: {min(unknown)!r} is no promise; the promises are {', '.join(PROMISES)}")
        self._lock = threading.Lock()
        self._flush = flush
        self._pid = os.getpid()
        self._waiting = bytearray()
        self._time = 0
        self._sent: dict[str, int] = {}
        """By group, how many messages were sent."""
        self._json: dict[str, str] = {}
        self._error: OSError | None = None
        Path(directory).mkdir(parents=True, exist_ok=True)
        incarnation, path, self._file = _create(Path(directory), process, incarnation)
        self.process: Final = f"{process}#{incarnation}" if incarnation else process
        """The identity of this process: put it into messages, as their sender."""
        header = {"antiphon_trace": VERSION, "process": self.process}
        if run is not None:
            header["run"] = run
        try:
            with self._lock:
                self._write(json.dumps({**header, "groups": groups})[:-1])
                self._write_out()
        except BaseException:
            os.close(self._file)
            path.unlink()
            raise

    # What happens

    def sent(self, group: str, payload: bytes | None = None) -> int:
        """The process sends a message; call it before the message leaves.

        Returns its number, 0, 1, 2 … in this group: together with `process` it is the identity of the message.
        """
        described = "" if payload is None else _described(payload)
        with self._lock:
            number = self._sent.get(group, 0)
            self._write(f'{{"kind": "send", "group": {self._name(group)}, "number": {number}{described}')
            self._sent[group] = number + 1
        return number

    def delivered(
        self, group: str, sender: str, number: int, payload: bytes | None = None, clock: int | None = None
    ) -> None:
        """The application gets a message. `clock`: its place in the order, if the system has such a number."""
        described = "" if payload is None else _described(payload)
        if clock is not None:
            described += f', "clock": {clock:d}'
        with self._lock:
            where = f'"group": {self._name(group)}, "sender": {self._name(sender)}, "number": {number:d}'
            self._write(f'{{"kind": "deliver", {where}{described}')

    def view(self, group: str, view: str, members: Sequence[str]) -> None:
        """From here on the group has these members. `view`: an id that all processes give this same view."""
        self.row("view", group=group, view=view, members=[*members])

    def left(self, group: str) -> None:
        """The process is no longer in the group."""
        self.row("leave", group=group)

    def row(self, kind: str, **columns: Any) -> None:
        """Any other row of antiphon's trace: its kind, and the columns that it has."""
        text = json.dumps({"kind": kind, **columns})[:-1]
        with self._lock:
            self._write(text)

    def stopped(self, *, quiet: bool = False) -> None:
        """The process ends. `quiet`: everything that was sent has had the time to arrive, at all processes."""
        self.row("stop", quiet=quiet)
        self.close()

    def flush(self) -> None:
        """Write what waits in a block."""
        with self._lock:
            self._write_out()

    def close(self) -> None:
        """Close the file. Without `stopped` before, the process counts as crashed. A second call does nothing."""
        with self._lock:
            if self._file >= 0 and self._pid == os.getpid():
                try:
                    self._write_out()
                finally:
                    os.close(self._file)
                    self._file = -1

    def __enter__(self) -> TraceWriter:  # noqa: PYI034 - `Self` came with Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The process stops, if it has not already; after an exception it counts as crashed."""
        if kind is None and self._file >= 0:
            self.stopped()
        self.close()

    # Lines

    def _name(self, text: str) -> str:
        """The text in JSON; names repeat."""
        known = self._json.get(text)
        if known is None:
            known = json.dumps(text)
            if len(self._json) < _NAMES_MAX:
                self._json[text] = known
        return known

    def _write(self, text: str) -> None:
        """Append a line: this object, which lacks its time and its end."""
        if self._error is not None:
            raise self._error
        if self._file < 0:
            raise ValueError(f"the trace of {self.process} is closed")
        if self._pid != os.getpid():
            raise RuntimeError(f"the trace of {self.process} belongs to another process: start one after the fork")
        self._time = max(self._time, time.time_ns())  # the clock may be set back
        self._waiting += f'{text}, "time": {self._time}}}\n'.encode()
        if self._flush != "block" or len(self._waiting) >= _BLOCK_BYTES:
            self._write_out()

    def _write_out(self) -> None:
        if self._error is not None:
            raise self._error
        try:
            while self._waiting:
                del self._waiting[: os.write(self._file, self._waiting)]
            if self._flush == "disk":
                os.fsync(self._file)
        except OSError as error:
            self._error = error
            self._waiting.clear()
            raise


def _create(directory: Path, process: str, incarnation: int | None) -> tuple[int, Path, int]:
    """The incarnation, and the new file with its path; `FileExistsError` if the directory has this incarnation."""
    name = quote(process, safe=" ")
    name = f"%2E{name[1:]}" if name.startswith(".") else name  # a dot would hide the file
    number = incarnation or 0
    while True:
        path = directory / (f"{name}#{number}.jsonl" if number else f"{name}.jsonl")
        try:
            return number, path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            if incarnation is not None:
                raise
            number += 1


def _described(payload: bytes) -> str:
    """The columns that tell one payload from another."""
    digest = hashlib.blake2b(payload, digest_size=8).hexdigest()
    return f', "payload_bytes": {len(payload)}, "digest": "{digest}"'
