"""Marks: the prefix of each sender's messages that a process has reported stable, or freed (`upto` of its rows).

A mark is a running maximum per (process, group, sender), -1 before the first report. A row adds what lies between the
mark before it and its own number; only that is new (docs/spec/properties.md 7.6).
"""

import numpy as np

from antiphon.properties.tables.codes import Ranks, coded, sorting
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.history import History


class Marks:
    """The reports of one kind of row, in the order of rows; one entry for each sender that a row names."""

    def __init__(self, history: History, kind: str) -> None:
        history.require(kind)
        rows, upto = history.rows, history.columns.upto
        here = (rows.kind[upto.row] == KIND[kind]) & (rows.group[upto.row] >= 0)
        reports = upto.where(here)
        self.row, self.sender, self.number = reports.row, reports.sender, reports.number
        self.process, self.group = rows.process[self.row], rows.group[self.row]
        self._processes, self._groups, self._total = len(history.processes), len(history.groups), len(rows.kind)
        key = self._key(self.process, self.group, self.sender)
        order = sorting(key)  # reports are in the order of rows
        first = np.diff(key[order], prepend=-1) != 0
        reached = running_maximum(self.number[order], first)
        self._ordered, self._place = order, key[order] * (self._total + 1) + self.row[order]
        numbers, rank = coded(reached)
        self._width, self._rank_of_number = len(numbers) + 1, Ranks(numbers)
        self._reached, self._reach = np.append(reached, -1), key[order] * self._width + rank
        self._rank_of_reach = Ranks(self._reach)
        self.before: IntArray = np.empty(len(order), np.int64)
        """The mark just before each report."""
        self.before[order] = np.where(first, -1, np.roll(reached, 1))

    def at(self, process: IntArray, group: IntArray, sender: IntArray, row: IntArray) -> IntArray:
        """The marks that the earlier rows of the same processes had set."""
        key = self._key(process, group, sender)
        found = np.searchsorted(self._place, key * (self._total + 1) + row) - 1
        same = (found >= 0) & (np.append(self._place, -1)[found] // (self._total + 1) == key)
        return self._reached[np.where(same, found, -1)]

    def since(self, process: IntArray, group: IntArray, sender: IntArray, number: IntArray) -> IntArray:
        """The first row of each process whose mark covers that number; one past the last row of all if none does."""
        key = self._key(process, group, sender)
        found = self._rank_of_reach.below(key * self._width + self._rank_of_number.below(number))
        covered = np.append(self._reach, -1)[found] // self._width == key
        rows = np.append(self.row[self._ordered], self._total)
        return np.where(covered, rows[found], self._total)

    def rising(self) -> BoolArray:
        """Which reports add something to the mark before them."""
        return self.number > self.before

    def _key(self, process: IntArray, group: IntArray, sender: IntArray) -> IntArray:
        return (process * self._groups + group) * self._processes + sender


def running_maximum(number: IntArray, first: BoolArray) -> IntArray:
    """The running maximum within each stretch that begins at a `first`; ranks keep the sum from overflowing."""
    numbers, rank = coded(number)
    base = np.cumsum(first) * (len(numbers) + 1)
    reached: IntArray = numbers[np.maximum.accumulate(base + rank) - base] if len(number) else number
    return reached
