"""Rows of sends, receipts and frames, indexed by process, group and time.

There are millions of JSON details, and all receivers of a frame share one text. So each text is parsed once, and only
when a checker asks.
"""

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.frames import NAME, TYPE, extracted
from antiphon.properties.tables.history import History


class RowsByTime:
    """Some rows by process and group; those of each pair in the order of time."""

    def __init__(self, history: History, rows: IntArray) -> None:
        table = history.rows
        self._groups = len(history.groups)
        rows = rows[table.group[rows] >= 0]
        place = table.process[rows] * self._groups + table.group[rows]
        order = np.lexsort((table.time[rows], place))
        self._rows, self._places, self._times = rows[order], place[order], table.time[rows[order]]

    def within(self, process: int, group: int, begin: int, end: int) -> IntArray:
        """The rows of a process in a group within a time, both ends included."""
        place = process * self._groups + group
        low, high = np.searchsorted(self._places, [place, place + 1]).tolist()
        times = self._times[low:high]
        found: IntArray = self._rows[low:high][np.searchsorted(times, begin) : np.searchsorted(times, end, "right")]
        return found


class FrameRows:
    """The messages and frames of a run in transit."""

    def __init__(self, history: History) -> None:
        self._history = history

    @cached_property
    def sent(self) -> RowsByTime:
        """The `send` rows."""
        return RowsByTime(self._history, self._history.of_kind("send"))

    @cached_property
    def delivered(self) -> RowsByTime:
        """The `deliver` rows."""
        return RowsByTime(self._history, self._history.of_kind("deliver"))

    @cached_property
    def received(self) -> RowsByTime:
        """The `receive` rows."""
        return RowsByTime(self._history, self._received)

    @cached_property
    def gone(self) -> RowsByTime:
        """The `receive` rows of frames that tell the receiver that a message is gone."""
        return RowsByTime(self._history, self._received[self._is_of_type("gone")])

    @cached_property
    def reports(self) -> RowsByTime:
        """The `receive` rows of a receiver's reports."""
        return RowsByTime(self._history, self._received[self._is_of_type("report")])

    @cached_property
    def named(self) -> RowsByTime:
        """The `transmit` rows of frames that have a name."""
        transmitted = self._history.of_kind("transmit")
        return RowsByTime(self._history, transmitted[self.frame[transmitted] >= 0])

    @cached_property
    def frame(self) -> IntArray:
        """For each row of the run, a code for the name of the frame transmitted or received there; -1 if none."""
        transmitted = self._history.of_kind("transmit")
        left = pc.dictionary_encode(extracted(self._history.columns.texts("detail", transmitted), NAME, "frame"))
        came = pc.index_in(extracted(self._texts.dictionary, NAME, "frame"), left.dictionary)
        frame = np.full(len(self._history.rows.kind), -1, np.int64)
        frame[transmitted] = _codes(left.indices)
        frame[self._received] = np.append(_codes(came), -1)[_codes(self._texts.indices)]
        return frame

    @cached_property
    def _received(self) -> IntArray:
        return self._history.of_kind("receive")

    @cached_property
    def _texts(self) -> pa.DictionaryArray:
        return pc.dictionary_encode(self._history.columns.texts("detail", self._received))

    @cached_property
    def _types(self) -> pa.Array:
        """By text."""
        return extracted(self._texts.dictionary, TYPE, "type")

    def _is_of_type(self, name: str) -> BoolArray:
        """Which of the `receive` rows have that type of frame."""
        such = pc.fill_null(pc.equal(self._types, name), fill_value=False)
        found: BoolArray = np.append(such.to_numpy(zero_copy_only=False), False)[_codes(self._texts.indices)]
        return found


def _codes(indices: pa.Array) -> IntArray:
    """The indices, with -1, the last place of a table, for a null."""
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)
