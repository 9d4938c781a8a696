"""From one run's Arrow table to numpy columns: every string a dense code, rows in each process's own order.

Reads the columns of docs/spec/interfaces.md 1, and rejects a table that is not one run of that schema. Whether the run
is well formed is decided by property W.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.properties.tables.codes import coded
from antiphon.properties.tables.numbers import whole
from antiphon.properties.tables.typed_columns import TypedColumns
from antiphon.trace.schema import EVENTS, KINDS
from antiphon.trace.typed import TYPED, untyped_rows, with_typed
from antiphon.types import ProcessId, process_id, split_process_id

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KIND: Final = {kind: code for code, kind in enumerate(sorted(KINDS))}
"""The code of each kind of event."""

NO_CLOCK: Final = int(np.iinfo(np.int64).min)
"""Stands for a null `clock`, because -1 could be a stamp."""

_UNREAD: Final = {
    *("requested", "payload_bytes", "header_bytes", "unstable"),
    *("frame_copies", "frame_messages", "stamp_bytes"),
}
_ALWAYS: Final = ("start", "stop", "answer", "unanswered", "faults_end", "end")
"""Kinds of rows whose detail is always read; a missing one counts as empty."""
_OPTIONAL: Final = ("discard", "view", "fault", "join", "leave", "state", "primary")
"""Kinds of rows whose detail is read if they have one."""
_OPTIONAL_CODES: Final = frozenset(KIND[name] for name in _OPTIONAL)
_TEXTS: Final = ["peer", "members"]
_ENTRIES: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
READ: Final = [name for name in EVENTS.names if name not in _UNREAD]
"""The columns that the checkers read."""


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows, sorted by process, incarnation and index. Codes and numbers are -1 for a null."""

    process: IntArray
    """Code of (process, incarnation)."""
    index: IntArray
    time: IntArray
    kind: IntArray
    group: IntArray
    view: IntArray
    previous: IntArray
    sender: IntArray
    """Code of (sender, sender_incarnation), from the same codes as `process`."""
    number: IntArray
    orderer: IntArray
    """From the same codes as `process`."""
    clock: IntArray
    digest: IntArray
    service: IntArray


@dataclass(frozen=True, slots=True)
class UptoEntries:
    """The entries of `upto` in `stable` and `discard` rows, one for each sender, in the order of rows."""

    row: IntArray
    sender: IntArray
    number: IntArray

    def where(self, chosen: BoolArray) -> "UptoEntries":
        """The chosen entries."""
        return UptoEntries(self.row[chosen], self.sender[chosen], self.number[chosen])


@dataclass(frozen=True, slots=True)
class Columns:
    """The contents of one table. A code is a position in the tuple of its kind; codes are in the order of the names."""

    run: str
    processes: tuple[ProcessId, ...]
    """All processes that wrote a row, sent a message, gave a stamp, or are in a view."""
    groups: tuple[str, ...]
    views: tuple[str, ...]
    services: tuple[str, ...]
    rows: Rows
    members: dict[int, tuple[int, ...]]
    """For each `view` row its members."""
    transitional: dict[int, tuple[int, ...]]
    """For each `view` row that tells it: the members that came along from the view before."""
    classes: dict[int, tuple[tuple[int, ...], ...]]
    """For each `view` row that begins an epoch: the members that came from one view together."""
    private: dict[int, tuple[tuple[int, ...], tuple[int, ...]]]
    """For each private `view` row: the processes to which it sends, and those from which it receives."""
    details: dict[int, dict[str, Any]]
    """The parsed detail of `start`, `stop`, `answer`, `unanswered`, `faults_end`, `end` rows, and of those
    `discard`, `view`, `fault`, `join`, `leave`, `state` and `primary` rows that have one."""
    upto: UptoEntries
    source: pa.Table
    """The texts of the table itself, in its own order, for the few checks that need some of them."""
    order: IntArray
    """For each row its position in `source`."""
    typed: TypedColumns
    """The columns of frames and gauges."""

    def texts(self, name: str, rows: IntArray) -> pa.Array:
        """A column of strings at these rows, as an Arrow array."""
        found = self.source[name].take(pa.array(self.order[rows])).cast(pa.string())
        return pa.concat_arrays(found.chunks or [pa.array([], pa.string())])


def read(events: pa.Table) -> Columns:
    """Decode the table of one run; TraceError if it is empty, mixed, or does not have the schema."""
    return read_once([events])


def read_once(holder: list[pa.Table]) -> Columns:
    """The same for a table that is in this list only. Its columns are given up while they are decoded."""
    table = _one_run(admit(holder.pop()))
    if len(untyped_rows(table)):
        table = with_typed(table)
    kind = _kinds(table["kind"])
    order_givers = _strings(table["orderer"])
    reported, details = _reported(table, kind), _details(table, kind)
    lists = _ViewLists.read(table, kind, details)
    identities = sorted(lists.named() | set(order_givers[0]) | set(reported[0]))
    processes, process, sender = _process_codes(table, identities)
    code_of: dict[str, int] = {who: code for code, who in enumerate(processes)}
    order = _order(process, whole(table["index"], -1))
    in_order = _Ordered(order)
    source = table.select(_TEXTS)
    typed = TypedColumns(table.select([name for name in table.column_names if name in TYPED]), order)
    run = table["run"][0].as_py()
    columns = {name: table[name] for name in table.column_names}
    del table
    # Column by column, so that no more than one of them is in memory twice.
    groups, group = in_order.strings(columns.pop("group"))
    views, view, previous = in_order.strings(columns.pop("view"), columns.pop("previous"))
    services, service = in_order.strings(columns.pop("service"))
    rows = Rows(
        process=in_order(process),
        index=in_order(whole(columns.pop("index"), -1)),
        time=in_order(whole(columns.pop("time"), -1)),
        kind=in_order(kind),
        group=group,
        view=view,
        previous=previous,
        sender=in_order(sender),
        number=in_order(whole(columns.pop("number"), -1)),
        orderer=in_order(np.array([*(code_of[who] for who in order_givers[0]), -1], np.int64)[order_givers[1]]),
        clock=in_order(whole(columns.pop("clock"), NO_CLOCK)),
        digest=in_order(whole(columns.pop("digest"), 0)),
        service=service,
    )
    del process, kind, sender, order_givers
    _require_names(rows, processes)
    position = np.argsort(order)
    return Columns(
        run=run,
        processes=processes,
        groups=groups,
        views=views,
        services=services,
        rows=rows,
        details={int(position[row]): detail for row, detail in details.items()},
        upto=_upto_entries(reported, code_of, position),
        source=source,
        order=order,
        typed=typed,
        **lists.coded(code_of, position),
    )


@dataclass(frozen=True, slots=True)
class _ViewLists:
    """The processes that `view` rows name, by the position of the row in its table."""

    members: dict[int, list[str] | None]
    transitional: dict[int, list[str] | None]
    private: dict[int, tuple[list[str], list[str]]]
    classes: dict[int, list[list[str]]]

    @classmethod
    def read(cls, table: pa.Table, kind: IntArray, details: dict[int, dict[str, Any]]) -> Self:
        members = _lists(table, kind, "members")
        private = _private(table, kind, details, members)
        return cls(members, _lists(table, kind, "transitional"), private, _classes(table, kind, details))

    def named(self) -> set[str]:
        """All processes in these lists."""
        together = (*chain.from_iterable(self.private.values()), *chain.from_iterable(self.classes.values()))
        lists = (*self.members.values(), *self.transitional.values(), *together)
        return {who for names in lists if names for who in names}

    def coded(self, code_of: dict[str, int], position: IntArray) -> dict[str, Any]:
        """The fields of `Columns` of the same names."""

        def codes(names: list[str] | None) -> tuple[int, ...]:
            return tuple(code_of[who] for who in names or ())

        told = {row: names for row, names in self.transitional.items() if names is not None}
        return {
            "members": {int(position[row]): codes(names) for row, names in self.members.items()},
            "transitional": {int(position[row]): codes(names) for row, names in told.items()},
            "classes": {int(position[row]): tuple(map(codes, found)) for row, found in self.classes.items()},
            "private": {int(position[row]): (codes(to), codes(of)) for row, (to, of) in self.private.items()},
        }


def _order(process: IntArray, index: IntArray) -> IntArray:
    """The order by process and index; traces are written in this order."""
    same = np.diff(process) == 0
    if ((np.diff(process) > 0) | (same & (np.diff(index) >= 0))).all():
        return np.arange(len(process))
    return np.lexsort((index, process))


class _Ordered:
    """Brings columns into the order of rows."""

    def __init__(self, order: IntArray) -> None:
        self._order = None if (np.diff(order) == 1).all() else order

    def __call__(self, column: IntArray) -> IntArray:
        """The column in that order; a column of equal values takes no memory."""
        if len(column) > _LONG and (column == column[0]).all():
            return np.broadcast_to(column[:1].copy(), column.shape)
        return column if self._order is None else column[self._order]

    def strings(self, *columns: Any) -> tuple[Any, ...]:
        """The sorted values of all columns together, then each column as codes into them, -1 for null."""
        values, *codes = _strings(*columns)
        return (values, *map(self, codes))


_LONG: Final = 1_000_000


def admit(events: pa.Table) -> pa.Table:
    """The columns that the checkers read, in the types of the schema; TraceError if one is missing.

    Typed columns may be missing: traces of older versions have none.
    """
    held = {*events.column_names}
    names = [name for name in READ if name in held or name not in TYPED]
    missing = [name for name in names if name not in held]
    if missing:
        raise TraceError(f"the event table is not a trace: it has no column {', '.join(missing)}")
    try:
        return in_schema(events.select(names))
    except (pa.ArrowException, ValueError) as error:
        raise TraceError(f"the event table does not have the column types of a trace: {error}") from error


_FIELDS: Final = {field.name: field for field in EVENTS}
_CODED_FIELDS: Final = {
    field.name: field.with_type(pa.dictionary(pa.int32(), pa.string())) for field in EVENTS if field.type == pa.string()
}
_NEVER_NULL: Final = {field.name for field in EVENTS if not field.nullable}


def in_schema(events: pa.Table) -> pa.Table:
    """The same columns in the types of the schema; texts may also be dictionary-encoded, as Parquet stores them.

    ValueError or ArrowException if that is not possible. A table that has the types already is not cast: for a small
    run this takes longer than reading it.
    """
    wanted, held = pa.schema([_expected(field) for field in events.schema]), {*events.column_names}
    whole = events.schema.equals(wanted) and not any(events[name].null_count for name in _NEVER_NULL & held)
    return events if whole else events.cast(wanted)


def _expected(field: pa.Field) -> pa.Field:
    coded = _CODED_FIELDS.get(field.name)
    return coded if coded is not None and field.type == coded.type else _FIELDS[field.name]


def _one_run(table: pa.Table) -> pa.Table:
    runs = pc.unique(table["run"])
    if len(runs) != 1:
        found = "is empty" if len(runs) == 0 else f"holds {len(runs)} runs; expected one"
        raise TraceError(f"the event table {found}")
    if pc.min(table["incarnation"]).as_py() < 0 or (pc.min(table["sender_incarnation"]).as_py() or 0) < 0:
        raise TraceError("the event table has a negative incarnation")
    return table


def _kinds(column: Any) -> IntArray:
    names, codes = _strings(column)
    unknown = [name for name in names if name not in KIND]
    if unknown:
        raise TraceError(f"the trace has events of unknown kind {', '.join(unknown)}")
    kinds: IntArray = np.array([KIND[name] for name in names], np.int64).take(codes)
    return kinds


def _strings(*columns: Any) -> tuple[Any, ...]:
    """The sorted values of all columns together, then each column as codes into them, -1 for null."""
    parts = [pc.dictionary_encode(pa.concat_arrays(column.chunks or [pa.array([], pa.string())])) for column in columns]
    # The last place is for the code -1 of a null.
    texts, places = (
        [[*part.dictionary.to_pylist(), None] for part in parts],
        [whole(part.indices, -1) for part in parts],
    )
    present = {value for each, place in zip(texts, places, strict=True) for value in _present(each, place)}
    values = tuple(sorted(value for value in present if value is not None))
    code_of = {value: code for code, value in enumerate(values)}
    codes = [np.array([code_of.get(value, -1) for value in each], np.int64) for each in texts]
    return (values, *(code.take(place) for code, place in zip(codes, places, strict=True)))


def _present(values: list[str | None], places: IntArray) -> Iterator[str | None]:
    """The values that occur in some row: the dictionary of a larger table has others too."""
    seen = np.zeros(len(values), np.bool_)
    seen[places] = True
    return compress(values, seen.tolist())


def _lists(table: pa.Table, kind: IntArray, name: str) -> dict[int, list[str] | None]:
    """For each `view` row the list of processes in that column."""
    rows = np.flatnonzero(kind == KIND["view"])
    lists = table[name].take(pa.array(rows)).to_pylist()
    return dict(zip(rows.tolist(), lists, strict=True))


def _private(
    table: pa.Table, kind: IntArray, details: dict[int, dict[str, Any]], members: dict[int, list[str] | None]
) -> dict[int, tuple[list[str], list[str]]]:
    """The receivers and senders of `view` rows that name either; a list that is missing means every member."""
    found = {}
    for row in np.flatnonzero(kind == KIND["view"]).tolist():
        detail = details.get(row, {})
        if "receivers" in detail or "senders" in detail:
            sets = [detail.get(name, members[row] or []) for name in ("receivers", "senders")]
            if not all(isinstance(names, list) and all(isinstance(who, str) for who in names) for names in sets):
                who = table["process"][row].as_py()
                raise TraceError(f"a view row of {who} has `receivers` or `senders` that are not a list of processes")
            found[row] = (sets[0], sets[1])
    return found


def _classes(table: pa.Table, kind: IntArray, details: dict[int, dict[str, Any]]) -> dict[int, list[list[str]]]:
    """The classes of the `view` rows that have them: first views of formed groups."""
    found = {}
    for row, detail in details.items():
        if kind[row] == KIND["view"] and detail.get("classes"):
            given = detail["classes"]
            lists = isinstance(given, list) and all(isinstance(names, list) for names in given)
            if not lists or not all(isinstance(who, str) for names in given for who in names):
                who = table["process"][row].as_py()
                raise TraceError(f"a view row of {who} has `classes` that are not lists of processes")
            found[row] = given
    return found


def _reported(table: pa.Table, kind: IntArray) -> tuple[tuple[str, ...], IntArray, IntArray, IntArray]:
    """The senders named by `stable` and `discard` rows; then for each entry of `upto` its row, sender and number."""
    rows = np.flatnonzero((kind == KIND["stable"]) | (kind == KIND["discard"]))
    if not len(rows):
        return (), rows, rows, rows
    # Cast to lists: flattening skips null maps and data outside the slice of a chunk, but map keys do not.
    lists = pa.concat_arrays(table["upto"].take(pa.array(rows)).chunks).cast(_ENTRIES)
    entries, lengths = pc.list_flatten(lists), whole(pc.list_value_length(lists), 0)
    names, sender = _strings(pa.chunked_array([entries.field("key")]))
    return names, np.repeat(rows, lengths), sender, whole(entries.field("value"), -1)


def _upto_entries(reported: tuple[Any, ...], code_of: dict[str, int], position: IntArray) -> UptoEntries:
    names, row, sender, number = reported
    senders: IntArray = np.array([code_of[who] for who in names], np.int64)
    order = np.argsort(position[row], kind="stable")
    return UptoEntries(position[row][order], senders[sender[order]] if len(sender) else sender, number[order])


def _process_codes(table: pa.Table, identities: list[str]) -> tuple[tuple[ProcessId, ...], IntArray, IntArray]:
    """All processes by (name, incarnation), then the columns `process` and `sender` in these codes."""
    others = [_split(who) for who in identities]
    other_names = pa.chunked_array([pa.array([name for name, _ in others], pa.string())])
    names, name, sender, other = _strings(table["process"], table["sender"], other_names)
    incarnation = whole(table["incarnation"], -1)
    sender_incarnation = whole(table["sender_incarnation"], 0)
    other_incarnation = np.array([number for _, number in others], np.int64)
    width = 1 + max(int(part.max(initial=0)) for part in (incarnation, sender_incarnation, other_incarnation))
    keys = [
        name * width + incarnation,
        sender * width + sender_incarnation,
        other * width + other_incarnation,
    ]
    named = sender >= 0
    known, code = coded(np.concatenate([keys[0], keys[1][named], keys[2]]))
    processes = tuple(process_id(names[key // width], key % width) for key in known.tolist())
    senders: IntArray = np.full(len(sender), -1, np.int64)
    senders[named] = code[len(name) : len(code) - len(other)]
    return processes, code[: len(name)], senders


def _split(identity: str) -> tuple[str, int]:
    if isinstance(identity, str) and re.fullmatch(r"[^#]+(#[1-9][0-9]{0,8})?", identity):
        return split_process_id(ProcessId(identity))
    raise TraceError(f"{identity!r} is not a process: expected name or name#incarnation")


def _require_names(rows: Rows, processes: tuple[ProcessId, ...]) -> None:
    of_message = (rows.kind == KIND["send"]) | (rows.kind == KIND["deliver"])
    nameless = np.flatnonzero(of_message & ((rows.group < 0) | (rows.sender < 0) | (rows.number < 0)))
    if len(nameless):
        where = f"{processes[rows.process[nameless[0]]]} at index {rows.index[nameless[0]]}"
        raise TraceError(f"{where} sends or delivers a message without group, sender or number")
    nameless = np.flatnonzero((rows.kind == KIND["view"]) & ((rows.group < 0) | (rows.view < 0)))
    if len(nameless):
        where = f"{processes[rows.process[nameless[0]]]} at index {rows.index[nameless[0]]}"
        raise TraceError(f"{where} installs a view without group or id")


def _details(table: pa.Table, kind: IntArray) -> dict[int, dict[str, Any]]:
    """The parsed details by row; equal texts are parsed once and share their value."""
    read = np.zeros(len(KIND), np.bool_)
    read[[KIND[name] for name in (*_ALWAYS, *_OPTIONAL)]] = True
    chosen = np.flatnonzero(read[kind])
    texts = table["detail"].take(pa.array(chosen)).to_pylist()
    values: dict[str | None, dict[str, Any]] = {None: {}}
    details = {}
    for row, text, of in zip(chosen.tolist(), texts, kind[chosen].tolist(), strict=True):
        if text is not None or of not in _OPTIONAL_CODES:
            value = values.get(text)
            details[row] = value if value is not None else values.setdefault(text, _detail(table, row, text))
    return details


def _detail(table: pa.Table, row: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{_place(table, row)} has a detail that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TraceError(f"{_place(table, row)} has a detail that is not a JSON object")
    return value


def _place(table: pa.Table, row: int) -> str:
    return f"the {table['kind'][row].as_py()} row of {table['process'][row].as_py()}"
