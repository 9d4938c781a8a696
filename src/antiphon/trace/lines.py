"""One file of a trace in lines: its first line, and its rows as they are checked and completed.

Any program can write such files (docs/reference/trace-lines.md); `trace_writer.py` does it for Python. A torn last line
is what a killed process was writing, and is ignored. Any other damage is one sentence with file and line.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from antiphon.errors import TraceError
from antiphon.trace.promise_words import PROTOCOL, SENDING, WORDS, service_of
from antiphon.trace.schema import KINDS
from antiphon.types import WORLD, ProcessId, process_id, split_process_id

VERSION: Final = 1
MARK: Final = "antiphon_trace"
"""The key of the version in the first line."""
INITIAL: Final = "initial"
"""The id of the view that the first line gives: the fixed members of a group."""
_OUTSIDE: Final = "outside"
"""The id of the view of a process that is not in the group, and does not know its members."""
_ROWS: Final = 100_000
"""Maximum rows in memory at a time."""

_INT64: Final = 2**63 - 1
_INT32: Final = 2**31 - 1
_Count = Annotated[int, msgspec.Meta(ge=0, le=_INT64)]
_Small = Annotated[int, msgspec.Meta(ge=0, le=_INT32)]
_Signed = Annotated[int, msgspec.Meta(ge=-_INT64 - 1, le=_INT64)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class Group(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A group as the first line names it."""

    promises: list[str] | None = None
    members: list[str] | None = None
    """The processes in it if they never change, or those of the first view; None: `view` rows tell."""


class Header(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The first line."""

    antiphon_trace: int
    process: _Text
    run: _Text | None = None
    time: _Count | None = None
    groups: dict[_Text, Group] | None = None
    detail: dict[str, Any] | None = None
    """The detail of the `start` row as docs/reference/trace.md has it, instead of `groups`."""


class _Version(msgspec.Struct):
    antiphon_trace: Any


class LineRow(msgspec.Struct, forbid_unknown_fields=True):
    """A line after the first: columns of the schema, in which processes are named as `name` or `name#1`."""

    kind: str
    time: _Count | None = None
    requested: _Count | None = None
    group: _Text | None = None
    sender: _Text | None = None
    number: _Count | None = None
    service: _Text | None = None
    view: _Text | None = None
    members: list[str] | None = None
    previous: str | msgspec.UnsetType | None = msgspec.UNSET
    transitional: list[str] | None = None
    peer: _Text | None = None
    orderer: _Text | None = None
    clock: _Signed | None = None
    payload_bytes: _Small | None = None
    header_bytes: _Small | None = None
    unstable: _Small | None = None
    digest: _Signed | str | None = None
    upto: dict[str, _Count] | None = None
    detail: dict[str, Any] | None = None
    quiet: bool | None = None


_AS_THEY_ARE: Final = tuple(
    "kind requested group service view transitional peer orderer clock payload_bytes header_bytes unstable".split()
)
"""Columns that are taken from a line without a change."""
_NEEDED: Final = {
    "send": ("group",),
    "deliver": ("group", "sender", "number"),
    "view": ("group", "view", "members"),
    "stable": ("group", "upto"),
    "discard": ("group", "upto"),
}
"""By kind, the columns that a line must have; other kinds need a group, except these:"""
_OF_WORLD: Final = frozenset({"fault", "faults_end", "end"})
_PLACELESS: Final = _OF_WORLD | {"stop", "crash", "recover"}
_IDENTITY: Final = re.compile(r"[^#@]+(#[1-9][0-9]{0,8})?")


@dataclass(slots=True)
class _Seat:
    """A process in a group."""

    service: str | None
    """None: the rows themselves name it."""
    view: str | None = None
    members: Sequence[str] = ()
    """Of the view that the first line gives."""
    left: bool = False
    """True from its `leave` row until its next view."""
    sent: int = 0


@dataclass(slots=True)
class Digests:
    """The first message of a group with a digest, and the first without; both together are an error."""

    given: str | None = None
    missing: str | None = None


class LineLog:
    """The log of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = _header(path)
        self.identity = _identity(self.header.process, lambda: f"{path} line 1")
        self.process, self.incarnation = split_process_id(self.identity)
        self.rows: list[dict[str, Any]] = []
        """Rows that were read and not yet taken."""
        self.end: str | None = None
        """`stop` or `crash`, once the rows are read."""
        self.cut_off = False
        """True if the file ends without an end of its process."""
        self.quiet: bool | None = None
        """What the `stop` row says."""
        self.senders: set[str] = set()
        """The processes whose messages it delivers."""
        self.digests: dict[str, Digests] = {}
        self.time = 0
        """The time of the last row."""
        self._line = 1
        self._seats = {group: self._first_seat(group, entry) for group, entry in self.groups.items()}

    @property
    def is_world(self) -> bool:
        return self.process == WORLD

    @property
    def groups(self) -> dict[str, Group]:
        """The groups that the first line names."""
        return self.header.groups or {}

    def began(self) -> int | None:
        """The time of the first line, or of the second; None if they have none."""
        if self.header.time is not None:
            return self.header.time
        with self.path.open("rb") as file:
            file.readline()
            line = file.readline()
        try:
            return msgspec.json.decode(line, type=LineRow).time
        except msgspec.MsgspecError:
            return None  # reported when the line is read

    def read(self, origin: int) -> Iterator[None]:
        """Fill `rows`, and pause when there are many; the time `origin` becomes 0."""
        if not self.is_world:
            self._start(origin)
        for line in self._lines():
            self._take(line, origin)
            if len(self.rows) >= _ROWS:
                yield
        if self.end is None and not self.is_world:
            self.end, self.cut_off = "crash", True
            self.rows.append({"time": self.time, "kind": "crash"})
        yield

    def _lines(self) -> Iterator[LineRow]:
        decode = msgspec.json.Decoder(LineRow).decode
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                self._line += 1
                if not line.strip():
                    continue
                if not line.endswith(b"\n") and not _is_whole(line):
                    return
                try:
                    row = decode(line)
                except (msgspec.MsgspecError, RecursionError) as error:
                    raise self._damage(_in_words(error)) from error
                yield row

    def _start(self, origin: int) -> None:
        header = self.header
        self.time = max((header.time or 0) - origin, 0)
        if header.detail is not None:
            self.rows.append({"time": self.time, "kind": "start", "detail": json.dumps(header.detail)})
            return
        groups: dict[str, dict[str, Any]] = {}
        views: list[dict[str, Any]] = []
        for group, seat in self._seats.items():
            groups[group] = {"service": seat.service}
            if seat.view is not None:
                members = groups[group]["members"] = seat.members
                views.append({"kind": "view", "group": group, "view": seat.view, "members": members})
        detail = {"protocol": PROTOCOL, "options": {}, "groups": groups}
        self.rows.append({"time": self.time, "kind": "start", "detail": json.dumps(detail)})
        self.rows += [{"time": self.time, **view} for view in views]

    def _first_seat(self, group: str, entry: Group) -> _Seat:
        service = self._service(group, entry)
        return _Seat(service) if entry.members is None else _Seat(service, *self._initial(entry.members))

    def _initial(self, members: list[str]) -> tuple[str, list[str]]:
        """The first view of a group with these members. A process that was started again has one of its own."""
        if self.incarnation and self.identity not in members and self.process in members:
            again = [self.identity if name == self.process else name for name in members]
            return f"{INITIAL} of {self.identity}", self._identities(again)
        return INITIAL if members else _OUTSIDE, self._identities(members)

    def _service(self, group: str, entry: Group) -> str:
        if entry.members is not None and not {self.identity, self.process} & {*entry.members}:
            return SENDING
        if entry.promises is None:
            raise self._damage(
                f"group {group!r} has no `promises`: name what your system promises there ({', '.join(WORDS)}), or []"
            )
        try:
            return service_of(entry.promises)
        except ValueError as error:
            raise self._damage(f"promises of group {group!r}: {error}") from error

    # Rows

    def _take(self, row: LineRow, origin: int) -> None:
        self._admit(row)
        if row.time is not None:
            self.time = max(self.time, row.time - origin)
        seat = self._seat(row)
        columns = {name: value for name in _AS_THEY_ARE if (value := getattr(row, name)) is not None}
        columns["time"] = self.time
        if row.sender is not None:
            columns["sender"], columns["sender_incarnation"] = split_process_id(self._checked(row.sender))
        if row.members is not None:
            columns["members"] = self._identities(row.members)
        if row.upto is not None:
            columns["upto"] = [*row.upto.items()]
        if row.detail is not None:
            columns["detail"] = json.dumps(row.detail)
        if row.digest is not None:
            columns["digest"] = row.digest if isinstance(row.digest, int) else _hashed(row.digest)
        _COMPLETED.get(row.kind, LineLog._other)(self, row, columns, seat)
        self.rows.append(columns)

    def _admit(self, row: LineRow) -> None:
        """Refuse a row that cannot stand here."""
        if row.kind not in KINDS or row.kind == "start":
            also = ": only the first line starts a process" if row.kind == "start" else ""
            raise self._damage(f"unknown kind {row.kind!r}{also}")
        if self.end is not None:
            raise self._damage(f"{_row(row.kind)} after the {self.end} row of the process")
        if (row.kind in _OF_WORLD) != self.is_world:
            where = "belongs in the file of the process `world`" if row.kind in _OF_WORLD else "of the process `world`"
            raise self._damage(f"{_row(row.kind)} {where}")
        for name in _NEEDED.get(row.kind, () if row.kind in _PLACELESS else ("group",)):
            if getattr(row, name) is None:
                raise self._damage(f"{_row(row.kind)} without `{name}`")
        if row.quiet is not None and row.kind != "stop":
            raise self._damage(f"`quiet` in {_row(row.kind)}: only a stop row says it")

    def _seat(self, row: LineRow) -> _Seat:
        """The seat of the process in the group; it is outside if neither its first line nor a view names the group."""
        if row.group is None:
            return _Seat(None)
        seat = self._seats.get(row.group)
        if seat is None:
            seat = self._seats[row.group] = _Seat(SENDING if self.header.detail is None else None)
            if self.header.detail is None:
                seat.view = _OUTSIDE
                self.rows.append(
                    {"time": self.time, "kind": "view", "group": row.group, "view": _OUTSIDE, "members": []}
                )
        return seat

    def _sends(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        """Its process sends it, with the next number."""
        if row.sender is None:
            columns["sender"], columns["sender_incarnation"] = self.process, self.incarnation
        elif (columns["sender"], columns["sender_incarnation"]) != (self.process, self.incarnation):
            raise self._damage(f"{self.identity} sends in the name of {row.sender}")
        if row.number is not None and row.number != seat.sent:
            raise self._damage(
                f"number {row.number} where {seat.sent} should follow: a process numbers its messages in each group "
                "0, 1, 2 …"
            )
        if row.requested is None and row.time is not None:
            columns["requested"] = self.time
        columns["number"] = seat.sent
        seat.sent += 1
        self._of_message(row, columns, seat)

    def _delivers(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        columns["number"] = row.number
        self.senders.add(process_id(columns["sender"], columns["sender_incarnation"]))
        self._of_message(row, columns, seat)

    def _of_message(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        self._in_view(row, columns, seat)
        if row.service is None and seat.service is not None:
            columns["service"] = seat.service
        known = self.digests.setdefault(str(row.group), Digests())
        if row.digest is not None:
            known.given = known.given or self._place()
        else:
            known.missing = known.missing or self._place()

    def _in_view(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        """It names the current view, unless the line does."""
        if row.view is None and seat.view is None:
            raise self._damage(
                f"{_row(row.kind)} before any view of group {row.group!r}: give its members in the first line, or "
                "write a view row first"
            )
        columns["view"] = row.view or seat.view

    def _installs(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        before = None if seat.left else seat.view
        columns["previous"] = before if isinstance(row.previous, msgspec.UnsetType) else row.previous
        seat.view, seat.left = row.view, False

    def _leaves(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        """What is delivered after it still names the last view: D3 reports it."""
        columns["view"] = row.view or seat.view
        seat.left = True

    def _stops(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        del columns, seat
        self.end, self.quiet = row.kind, row.quiet

    def _other(self, row: LineRow, columns: dict[str, Any], seat: _Seat) -> None:
        """Rows about messages that were received, stable or freed, of any process."""
        if row.number is not None:
            columns["number"] = row.number
        if row.kind == "stable":
            self._in_view(row, columns, seat)

    # Sentences

    def _identities(self, names: list[str]) -> list[str]:
        return sorted(self._checked(name) for name in names)

    def _checked(self, name: str) -> ProcessId:
        return _identity(name, self._place)

    def _place(self) -> str:
        return f"{self.path} line {self._line}"

    def _damage(self, sentence: str) -> TraceError:
        return TraceError(f"{self._place()}: {sentence}")


_COMPLETED: Final[dict[str, Callable[[LineLog, LineRow, dict[str, Any], _Seat], None]]] = {
    "send": LineLog._sends,
    "deliver": LineLog._delivers,
    "view": LineLog._installs,
    "leave": LineLog._leaves,
    "stop": LineLog._stops,
    "crash": LineLog._stops,
}
"""By kind, what is filled in."""


def is_ours(path: Path) -> bool:
    """True if the first line of the file names the format."""
    with path.open("rb") as file:
        return f'"{MARK}"'.encode() in file.readline()


def _header(path: Path) -> Header:
    with path.open("rb") as file:
        line = file.readline().removeprefix(b"\xef\xbb\xbf")
    if not line.strip():
        raise TraceError(f"{path} is empty: its first line must name the format; remove it if its process did nothing")
    try:
        version = msgspec.json.decode(line, type=_Version).antiphon_trace
        if version != VERSION:
            raise TraceError(
                f"{path} line 1: version {version} of the format is unknown; this antiphon reads {VERSION}"
            )
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TraceError(f"{path} line 1: {_in_words(error)}") from error
    if (header.groups is None) == (header.detail is None) and header.process != WORLD:
        raise TraceError(f"{path} line 1: it must have `groups` (or `detail`, a complete one of a start row)")
    if header.process == WORLD and (header.groups is not None or header.detail is not None):
        raise TraceError(f"{path} line 1: the process `world` is in no group")
    return header


def _identity(text: str, place: Callable[[], str]) -> ProcessId:
    if not _IDENTITY.fullmatch(text) or text.startswith(f"{WORLD}#"):
        raise TraceError(
            f"{place()}: {text!r} is no process: expected name or name#incarnation, with incarnation 1, 2 …"
        )
    return ProcessId(text)


def _row(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} row"


def _is_whole(line: bytes) -> bool:
    """True if the last line lacks nothing but its end."""
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _in_words(error: Exception) -> str:
    """What a decoder says, as a part of a sentence."""
    sentence, _, place = str(error).partition(" - at ")
    sentence, place = sentence.replace(" | null", ""), place.strip("`").removeprefix("$").removeprefix(".")
    return f"{sentence} in `{place}`" if place else sentence


def _hashed(text: str) -> int:
    """A digest that is a text, as the number of the column."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)
