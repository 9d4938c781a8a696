"""The typed columns of a trace as numbers: the types, names and headers of frames, and the readings of gauges.

They are decoded when a checker first asks, because many runs have no checker that does.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.properties.tables.codes import coded
from antiphon.properties.tables.numbers import whole
from antiphon.trace.schema import EVENTS

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class TypedColumns:
    """The typed columns of one run. Rows are those of the history."""

    def __init__(self, source: pa.Table, order: IntArray) -> None:
        """`source` has them in its own order, or none if there are no frames; `order`: each row's position in it."""
        self._source, self._rows = source, len(order)
        self._order = None if (np.diff(order) == 1).all() else order

    def is_of_type(self, rows: IntArray, names: Collection[str]) -> BoolArray:
        """Which of these rows are about a frame of one of these types."""
        code, types = self._types
        chosen = np.array([*(each in names for each in types), False], np.bool_)
        found: BoolArray = chosen.take(code.take(self._places(rows)))
        return found

    def frames(self, rows: IntArray) -> IntArray:
        """For each of these rows a code for the name of the frame; -1 if it has none."""
        return self._frame.take(self._places(rows))

    def streams(self, rows: IntArray) -> tuple[IntArray, list[str]]:
        """For each of these rows a code for the stream of the frame, -1 if there is none; and the streams by code."""
        code, names = self._stream
        return code.take(self._places(rows)), names

    def numbers(self, name: str, rows: IntArray, null: int) -> IntArray:
        """A column of numbers at these rows."""
        return whole(self._at(name, rows), null)

    def gauges(self, rows: IntArray) -> tuple[IntArray, list[str]]:
        """For each of these rows a code for the name of its gauge, and the names; without one, the next code."""
        code, names = _coded(self._at("gauge_name", rows))
        return np.where(code < 0, len(names), code), names

    def senders(self, rows: IntArray) -> tuple[IntArray, list[list[str]]]:
        """For each of these rows a code for the senders that its frame acknowledges, -1 for none; and them by code."""
        lists = pa.concat_arrays(self._at("frame_senders", rows).chunks or [pa.array([], pa.list_(pa.string()))])
        # Few sets cover a great many frames. No name of a process contains the separator.
        joined = pc.binary_join(lists, "##").dictionary_encode()
        code = whole(joined.indices, -1)
        known, first = np.unique(code, return_index=True)
        return code, lists.take(pa.array(first[known >= 0])).to_pylist()

    @cached_property
    def _types(self) -> tuple[IntArray, list[str]]:
        return _coded(self._column("frame_type"))

    @cached_property
    def _stream(self) -> tuple[IntArray, list[str]]:
        return _coded(self._column("frame_stream"))

    @cached_property
    def _frame(self) -> IntArray:
        """For each row the code of the name: of its stream and its serial number."""
        stream, names = self._stream
        named = np.flatnonzero(stream >= 0)
        # From 1 on; 0 for a name without a serial number. Some protocols use times, which are ranked.
        serial = whole(self._column("frame_serial"), -1)[named] + 1
        if int(serial.max(initial=0)) > len(stream):
            serial = coded(serial)[1]
        last = np.zeros(len(names), np.int64)
        np.maximum.at(last, stream[named], serial)
        base = np.concatenate([[0], np.cumsum(last + 1)])
        frame: IntArray = np.full(len(stream), -1, np.int64)
        frame[named] = coded(base.take(stream[named]) + serial)[1]
        return frame

    def _at(self, name: str, rows: IntArray) -> pa.ChunkedArray:
        return self._column(name).take(pa.array(self._places(rows)))

    def _places(self, rows: IntArray) -> IntArray:
        """Where these rows are in the source."""
        return rows if self._order is None else self._order.take(rows)

    def _column(self, name: str) -> pa.ChunkedArray:
        if name in self._source.column_names:
            return self._source[name]
        return pa.chunked_array([pa.nulls(self._rows, EVENTS.field(name).type)])


def _coded(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """A code for each text, -1 for a null; and the texts by code."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names = list(dict.fromkeys(name for chunk in column.chunks for name in chunk.dictionary.to_pylist()))
    code_of = {name: code for code, name in enumerate(names)}
    return np.concatenate([_NONE, *_codes(column.chunks, code_of)]), names


_NONE: IntArray = np.zeros(0, np.int64)


def _codes(chunks: Sequence[pa.DictionaryArray], code_of: dict[str, int]) -> Iterator[IntArray]:
    for chunk in chunks:
        codes = np.array([*(code_of[name] for name in chunk.dictionary.to_pylist()), -1], np.int64)
        yield codes.take(whole(chunk.indices, len(codes) - 1))
