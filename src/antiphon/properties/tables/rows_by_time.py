"""Rows of sends, receipts and frames, indexed by process, group and time; made only when a checker asks."""

from functools import cached_property

import numpy as np

from antiphon.properties.tables.columns import IntArray
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
        return RowsByTime(self._history, self._received_of_type("gone"))

    @cached_property
    def reports(self) -> RowsByTime:
        """The `receive` rows of a receiver's reports."""
        return RowsByTime(self._history, self._received_of_type("report"))

    @cached_property
    def named(self) -> RowsByTime:
        """The `transmit` rows of frames that have a name."""
        transmitted = self._history.of_kind("transmit")
        return RowsByTime(self._history, transmitted[self.frame[transmitted] >= 0])

    @cached_property
    def frame(self) -> IntArray:
        """For each row of the run, a code for the name of the frame transmitted or received there; -1 if none."""
        frame = np.full(len(self._history.rows.kind), -1, np.int64)
        rows = self._history.of_kind("transmit", "receive")
        frame[rows] = self._history.columns.typed.frames(rows)
        return frame

    @cached_property
    def _received(self) -> IntArray:
        return self._history.of_kind("receive")

    def _received_of_type(self, name: str) -> IntArray:
        """The `receive` rows of that type of frame."""
        return self._received[self._history.columns.typed.is_of_type(self._received, [name])]
