"""The hot keys of `detail` as typed columns, derived from its JSON in one place (docs/reference/trace.md).

Writers call this when rows become Arrow. Readers call it too: traces of older versions and of other tools have no typed
columns, or nulls in them. So a checker reads the columns and never the JSON, whoever wrote the trace. Rows that have
their columns are left as they are.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.trace.schema import EVENTS

FRAMES: Final = ("transmit", "receive")
"""The kinds of rows about frames."""
GAUGE: Final = "gauge"

TYPED: Final = (
    "frame_type frame_stream frame_serial frame_copies frame_messages frame_senders stamp_bytes "
    "flow_number flow_complete flow_stable flow_super_stable gauge_name gauge_value"
).split()
"""The columns that repeat a key of `detail`. A table without them is a trace too."""

_NAME: Final = ("frame_stream", "frame_serial")
_FLOW: Final = ("flow_number", "flow_complete", "flow_stable", "flow_super_stable")
_AS_THEY_ARE: Final = {
    "frame_type": "type",
    "frame_copies": "copies",
    "frame_messages": "count",
    "frame_senders": "senders",
    "stamp_bytes": "stamp_bytes",
    "gauge_name": "name",
    "gauge_value": "value",
}
"""Columns with the value of a key."""
_ROOM: Final = {pa.int32(): 2**31, pa.int64(): 10**18}
"""By type, numbers from here on are not taken."""
_DIGITS_MAX: Final = 18
_NO_FLOW: Final = (None, None, None, None)

_Places = npt.NDArray[np.int64]


class _Detail(msgspec.Struct):
    """The keys that have columns; each may have any type, because people write traces by hand."""

    type: Any = None
    frame: Any = None
    copies: Any = None
    count: Any = None
    senders: Any = None
    stamp_bytes: Any = None
    flow: Any = None
    name: Any = None
    value: Any = None


def with_typed(table: pa.Table) -> pa.Table:
    """The table with all typed columns; the values of rows that lack them come from `detail`."""
    untyped = untyped_rows(table)
    coded = pc.dictionary_encode(_plain(table["detail"].take(pa.array(untyped))))
    derived = _derived(coded.dictionary.to_pylist())
    place = np.full(len(table), -1)
    place[untyped] = coded.indices.to_numpy()
    lacking = pa.array(place, mask=place < 0)  # taking a null gives a null
    given = pa.array(np.where(place < 0, np.arange(len(table)), len(table) + place))
    for name in TYPED:
        field = EVENTS.field(name)
        if name not in table.column_names:
            table = table.append_column(field, derived[name].take(lacking))
        elif len(untyped):
            field = table.field(name)
            column = pa.concat_arrays([_plain(table[name]), derived[name]]).take(given)
            encoded = column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
            table = table.set_column(table.column_names.index(name), field, encoded)
    return table


def untyped_rows(table: pa.Table) -> _Places:
    """The rows whose `detail` has to be read, because a writer has not filled their columns.

    If the table has no `detail`, these are all rows that may need it.
    """
    kind = _plain(table["kind"]) if not pa.types.is_dictionary(table["kind"].type) else table["kind"]
    lacking = np.zeros(len(table), np.bool_)
    for kinds, name in ((FRAMES, "frame_type"), ((GAUGE,), "gauge_name")):
        concerned = _is_one_of(kind, kinds)
        if name in table.column_names:
            concerned = pc.and_(concerned, table[name].is_null())
        if pc.any(concerned).as_py():  # seldom: not all writers fill the columns
            lacking |= _flags(concerned)
    places = np.flatnonzero(lacking)
    if not len(places) or "detail" not in table.column_names:
        return places
    return places[_flags(table["detail"].take(pa.array(places)).is_valid())]


def _is_one_of(kind: Any, names: Sequence[str]) -> Any:
    if not pa.types.is_dictionary(kind.type):
        return pc.is_in(kind, pa.array(names))
    kind = kind.unify_dictionaries().combine_chunks() if kind.num_chunks != 1 else kind.chunk(0)
    codes = pc.index_in(pa.array(names), kind.dictionary.cast(pa.string())).to_pylist()
    found = [pc.equal(kind.indices, code) for code in codes if code is not None]
    return reduce(pc.or_, found, pa.array(np.zeros(len(kind), np.bool_)))


def _flags(column: Any) -> npt.NDArray[np.bool_]:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.array(column.to_numpy(zero_copy_only=False), np.bool_)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array without dictionary."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return pa.concat_arrays(plain.chunks) if plain.num_chunks != 1 else plain.chunk(0)


def _derived(texts: Sequence[str]) -> dict[str, pa.Array]:
    """For each of these details the values of all typed columns."""
    decode = msgspec.json.Decoder(_Detail).decode
    details = []
    for text in texts:
        try:
            details.append(decode(text))
        except (msgspec.MsgspecError, RecursionError):  # not a JSON object: no value
            details.append(_Detail())
    given: dict[str, Sequence[Any]] = {
        name: [getattr(each, key) for each in details] for name, key in _AS_THEY_ARE.items()
    }
    for columns, parts in (
        (_NAME, [_divided(each.frame) for each in details]),
        (_FLOW, [_flow(each.flow) for each in details]),
    ):
        given |= {name: [part[place] for part in parts] for place, name in enumerate(columns)}
    return {name: _array(given[name], EVENTS.field(name).type) for name in TYPED}


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values of another type are nulls."""
    if not any(each is not None for each in values):
        return pa.nulls(len(values), type_)
    if pa.types.is_string(type_):
        return pa.array([each if isinstance(each, str) else None for each in values], type_)
    if pa.types.is_list(type_):
        return pa.array([each if _are_texts(each) else None for each in values], type_)
    room = _ROOM[type_]
    return pa.array([each if type(each) is int and -room < each < room else None for each in values], type_)


def _divided(name: Any) -> tuple[str | None, int | None]:
    """The name of a frame as its stream and its serial number; a name of another form is a stream."""
    if not isinstance(name, str):
        return None, None
    stream, _, serial = name.rpartition("/")
    is_number = serial.isdigit() and serial.isascii() and len(serial) <= _DIGITS_MAX
    if stream and is_number and (serial[0] != "0" or serial == "0"):
        return stream, int(serial)
    return name, None


def _flow(header: Any) -> Sequence[Any]:
    """Number, complete, stable and super-stable of a flow-control header; the last may be missing."""
    if header is None:
        return _NO_FLOW
    room = _ROOM[pa.int64()]
    if isinstance(header, list) and len(header) in (3, 4):
        first, last = header[:3], header[3] if len(header) == 4 else None
        numbers = first if last is None else header
        if all(type(each) is int and -room < each < room for each in numbers):
            return *first, last
    return _NO_FLOW


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
