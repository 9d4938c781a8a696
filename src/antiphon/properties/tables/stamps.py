"""The protocol's own stamp as a certificate of order: verified, never trusted (docs/spec/properties.md 7.3).

A stamp that is a one-to-one function of the message, and grows along every process's deliveries, proves a total order
at the cost of one sort. If it fails, the order may still hold, and `cycles.py` decides.
"""

import numpy as np

from antiphon.properties.tables.codes import distinct
from antiphon.properties.tables.columns import NO_CLOCK, BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History


class Stamps:
    """The stamps of the first deliveries of a run, as ranks in their order."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._rank = _ranks(history, history.first)

    def of_messages(self, chosen: BoolArray) -> IntArray:
        """For each message its rank at one of the chosen deliveries, -1 if there is none."""
        rank = np.full(len(self._history.messages.number), -1, np.int64)
        rank[self._history.first.message[chosen]] = self._rank[chosen]
        return rank

    def given(self, chosen: BoolArray) -> bool:
        """True if the protocol stamped any of the chosen deliveries; traces of other systems need not tell."""
        return bool((self._history.rows.clock[self._history.first.row[chosen]] != NO_CLOCK).any())

    def flaw(self, chosen: BoolArray) -> str | None:
        """The first way in which the stamps fail as a certificate of the chosen deliveries; None if they prove it."""
        history, asked, rank = self._history, self._history.first.where(chosen), self._rank[chosen]
        of_message = self.of_messages(chosen)
        unequal = np.flatnonzero(of_message[asked.message] != rank)
        if len(unequal):
            return _describe_unequal(history, asked, int(unequal[0]))
        messages = distinct(asked.message)
        by_rank = messages[np.argsort(of_message[messages], kind="stable")]
        same = np.flatnonzero(np.diff(of_message[by_rank]) == 0)
        if len(same):
            names = [history.message_name(by_rank[same[0] + offset]) for offset in (0, 1)]
            return f"{names[0]} and {names[1]} have the same stamp"
        falling = np.flatnonzero((np.diff(asked.process) == 0) & (np.diff(rank) <= 0))
        return _describe_falling(history, asked, int(falling[0])) if len(falling) else None


def _ranks(history: History, first: Deliveries) -> IntArray:
    """The stamps of docs/spec/properties.md 1 as ranks in their order: clock, orderer or sender, sender, number.

    Processes are ordered as texts, as the protocols order them: `p#10` comes before `p#2`.
    """
    rows, sender = history.rows, history.messages.sender[first.message]
    orderer = np.where(rows.orderer[first.row] >= 0, rows.orderer[first.row], sender)
    place = _places(history)
    keys = (rows.number[first.row], place[sender], place[orderer], rows.clock[first.row])
    order = np.lexsort(keys)
    changes = np.zeros(len(order), np.bool_)
    for key in keys:
        changes[1:] |= np.diff(key[order]) != 0
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(changes)
    return rank


def _places(history: History) -> IntArray:
    """For each process its place in the order of the texts."""
    place: IntArray = np.empty(len(history.processes), np.int64)
    for position, code in enumerate(sorted(range(len(place)), key=history.processes.__getitem__)):
        place[code] = position
    return place


def _describe_unequal(history: History, asked: Deliveries, position: int) -> str:
    message = asked.message[position]
    other = int(np.flatnonzero(asked.message == message)[-1])
    places = [
        f"{_clock(history, asked.row[at])} at {history.process_name(asked.process[at])} "
        f"(index {history.index(asked.row[at])})"
        for at in (position, other)
    ]
    return f"{history.message_name(message)} has {places[0]} and {places[1]}"


def _describe_falling(history: History, asked: Deliveries, position: int) -> str:
    names = [
        f"{history.located(row)} with {_clock(history, row)}" for row in asked.row[position : position + 2].tolist()
    ]
    return f"{history.process_name(asked.process[position])} delivered {names[0]} before {names[1]}"


def _clock(history: History, row: int | np.int64) -> str:
    clock = int(history.rows.clock[row])
    return "no clock" if clock == NO_CLOCK else f"clock {clock}"
