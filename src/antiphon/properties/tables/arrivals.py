"""When each message first reached each member: its `receive`, or the `send` of its own sender (properties.md 5, S1).

Each group has a table of members by messages, which is about as large as the trace itself. Datagrams overtake one
another, so every message needs its own cell; a high-water mark is not enough.
"""

from functools import cached_property
from typing import Final

import numpy as np

from antiphon.properties.tables.codes import Ranks, coded, distinct
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History

NEVER: Final = int(np.iinfo(np.int64).max)
"""The time or row of an event that did not happen."""


class Arrivals:
    """The messages that some log sent or received, coded in the order of (group, sender, number)."""

    def __init__(self, history: History) -> None:
        self._history = history
        rows = history.rows
        at = history.of_kind("send", "receive")
        at = at[(rows.number[at] >= 0) & (rows.group[at] >= 0) & (rows.sender[at] >= 0)]
        self._numbers, number = coded(rows.number[at])
        stream = rows.group[at] * len(history.processes) + rows.sender[at]
        self._mids, message = coded(stream * self._width + number)
        self._rank_of_number, self._rank_of_mid = Ranks(self._numbers), Ranks(self._mids)
        self.number: IntArray = self._numbers[self._mids % self._width] if len(at) else self._mids
        self.group, self.sender = np.divmod(self._mids // self._width, len(history.processes))
        self.begin: IntArray = np.searchsorted(self.group, np.arange(len(history.groups) + 1))
        """For each group the code of its first message; one past the last message at the end."""
        self._rank = self._ranks()
        self._first = self._tables(at, message)
        self._latest: dict[tuple[int, tuple[int, ...]], IntArray] = {}

    @property
    def _width(self) -> int:
        return len(self._numbers) + 1

    def between(self, group: IntArray, sender: IntArray, above: IntArray, upto: IntArray) -> tuple[IntArray, IntArray]:
        """The codes of the messages of each stream with a number in (above, upto]: first, and one past the last."""
        stream = (group * len(self._history.processes) + sender) * self._width
        bounds = [self._rank_of_mid.below(stream + self._rank_of_number.upto(number)) for number in (above, upto)]
        return bounds[0], bounds[1]

    def find(self, group: IntArray, sender: IntArray, number: IntArray) -> IntArray:
        """The codes of these messages; -1 for a message that no log sent or received."""
        begin, end = self.between(group, sender, number - 1, number)
        return np.where(end > begin, begin, -1)

    def first_row(self, process: IntArray, message: IntArray) -> IntArray:
        """The row at which the process first had the message; NEVER if its log does not say."""
        found = np.full(len(message), NEVER, np.int64)
        group = self.group[message]
        for code in distinct(group).tolist():
            asked = group == code
            rank = self._rank[code, process[asked]]
            row = self._first[code][rank, message[asked] - self.begin[code]]
            found[asked] = np.where(rank >= 0, row, NEVER)
        return found

    @cached_property
    def slowest_ns(self) -> int:
        """The longest transit time of a message, from its `send` to a `receive` of a member."""
        rows, at = self._history.rows, self._history.of_kind("receive")
        at = at[(rows.number[at] >= 0) & (rows.group[at] >= 0) & (rows.sender[at] >= 0)]
        sent = self.first_row(rows.sender[at], self.find(rows.group[at], rows.sender[at], rows.number[at]))
        known = sent < len(rows.time)
        return int((rows.time[at[known]] - rows.time[sent[known]]).max(initial=0))

    def latest(self, group: int, members: tuple[int, ...], message: IntArray) -> IntArray:
        """When the last of these members had each of these messages of the group; NEVER if one never had it.

        Cached for all messages of the group: use it for sets of members that are asked about often.
        """
        known = self._latest.get((group, members))
        if known is None:
            every = np.arange(self.begin[group], self.begin[group + 1])
            known = self._latest[group, members] = self.latest_of(group, members, every)
        asked: IntArray = known[message - self.begin[group]]
        return asked

    def latest_of(self, group: int, members: tuple[int, ...], message: IntArray) -> IntArray:
        """The same without the cache: use it for members to which only these messages are addressed."""
        latest: IntArray = self.times(group, members, message).max(axis=0, initial=0)
        return latest

    def times(self, group: int, members: tuple[int, ...], message: IntArray) -> IntArray:
        """A table of members by messages of the group: the time at which each member had each message.

        The log of a crashed member is a prefix of what it did. If it may have received a message after its last row and
        before it crashed, the time of its last row counts as the receipt, because that is the earliest possible time.
        """
        rows, logs = self._history.rows, self._history.logs
        first = self._first[group][self._rank[group, list(members)][:, None], message - self.begin[group]]
        times: IntArray = np.append(rows.time, NEVER)[np.minimum(first, len(rows.time))]
        for place, member in enumerate(members):
            if logs.crashed[member]:
                crash = logs.end[member] - 1
                lost = (first[place] == NEVER) & (self._sent(group, message) <= rows.time[crash])
                times[place, lost] = rows.time[max(crash - 1, logs.begin[member])]
        return times

    def _sent(self, group: int, message: IntArray) -> IntArray:
        """For each message of the group, the time of its `send`; the earliest possible time if no log tells."""
        row = self._first[group][self._rank[group, self.sender[message]], message - self.begin[group]]
        times = self._history.rows.time[np.where(row == NEVER, 0, row)]
        return np.where(row == NEVER, -NEVER, times)

    def _ranks(self) -> IntArray:
        """By group and process: its line in the table of the group; -1 for a process that never appears in it."""
        history = self._history
        present = np.zeros((len(history.groups), len(history.processes)), np.bool_)
        present[self.group, self.sender] = True
        for named in (history.stays.members, history.stays.receivers):
            for group, members in set(zip(history.stays.group.tolist(), named, strict=True)):
                present[group, list(members)] = True
        placed = history.rows.group >= 0
        present[history.rows.group[placed], history.rows.process[placed]] = True
        return np.where(present, np.cumsum(present, axis=1) - 1, -1)

    def _tables(self, at: IntArray, message: IntArray) -> list[IntArray]:
        lines, process, group = self._rank.max(axis=1, initial=-1) + 1, self._history.rows.process, self.group[message]
        tables = []
        for code, begin in enumerate(self.begin[:-1].tolist()):
            table: IntArray = np.full((lines[code], self.begin[code + 1] - begin), NEVER, np.int64)
            here = np.flatnonzero(group == code)[::-1]  # backwards, so that the first row of a message wins
            table[self._rank[code, process[at[here]]], message[here] - begin] = at[here]
            tables.append(table)
        return tables
