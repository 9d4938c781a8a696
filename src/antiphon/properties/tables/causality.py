"""Happened-before, established topologically from local order and send-before-deliver, never from `time`.

It yields the deliveries that no order of all events allows (D1, O3; docs/spec/properties.md 7.3 and 7.5). If the clocks
agree with causality, as in a simulation, this is quickly proved. Otherwise the logs are walked. Duplicates and messages
that no process sent carry no causality.
"""

from dataclasses import dataclass

import numpy as np

from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History


@dataclass(frozen=True, slots=True)
class Wait:
    """A process that can deliver a message only after an event that itself waits for this process."""

    process: int
    message: int
    row: int
    """The row of the delivery."""


@dataclass(frozen=True, slots=True)
class Causality:
    """The sends and first deliveries of a run as one partial order."""

    row: IntArray
    """The events in the order of rows, without the deliveries at which circles were cut."""
    message: IntArray
    """The message that each event sends or delivers."""
    sending: BoolArray
    """True if the event is a send."""
    circles: list[list[Wait]]
    """Deliveries before their own send: each waits for the sender of the next, the last for the first."""


def establish(history: History) -> Causality:
    """The events of a run in causal order. A circle is reported and cut at its first delivery, so the rest goes on.

    A message beyond the end of a crashed sender's log was sent after everything in the log, because the log is a prefix
    of what the process did. It counts as sent at the crash.
    """
    first, sends, messages = history.first, history.sends, history.messages
    real = first.where(messages.known[first.message])
    excused = np.flatnonzero(messages.known & (messages.send_row < 0))
    row = np.concatenate([real.row, sends.row, history.logs.end[messages.sender[excused]] - 1])
    sorting = np.argsort(row, kind="stable")
    row, message = row[sorting], np.concatenate([real.message, sends.message, excused])[sorting]
    sending: BoolArray = sorting >= len(real.row)
    if _in_order_of_time(history, real):
        return Causality(row, message, sending, [])
    circles = _Walk(history, row, message, sending).circles()
    kept = ~np.isin(row, [circle[0].row for circle in circles])
    return Causality(row[kept], message[kept], sending[kept], circles)


def _in_order_of_time(history: History, real: Deliveries) -> bool:
    """True if time never goes back in a log and every delivery is later than its send: then there is no circle.

    Along a circle time could only stand still. Then no message would be in transit, so the circle could not leave its
    log. A sender may deliver its own message at the same time, but in a later row. This proves that time agrees with
    causality in this trace; time is not used instead of causality.
    """
    rows, messages = history.rows, history.messages
    backwards = (np.diff(rows.time) < 0) & (np.diff(rows.process) == 0)
    sender, send_row = messages.sender[real.message], messages.send_row[real.message]
    send_row = np.where(send_row >= 0, send_row, history.logs.end[sender] - 1)
    later = (rows.time[real.row] > rows.time[send_row]) | ((sender == real.process) & (real.row > send_row))
    return bool(later.all()) and not backwards.any()


class _Walk:
    """Reads all logs side by side; a log that must deliver an unsent message waits for it."""

    def __init__(self, history: History, row: IntArray, message: IntArray, sending: BoolArray) -> None:
        self._circles: list[list[Wait]] = []
        self._row = row
        # A send is stored as the complement of its message: one list to read, one test to distinguish them.
        self._events: list[int] = np.where(sending, ~message, message).tolist()
        self._at: list[int] = np.searchsorted(row, history.logs.begin).tolist()
        self._end: list[int] = np.searchsorted(row, history.logs.end).tolist()
        self._sender: list[int] = history.messages.sender.tolist()
        self._passed = bytearray((~history.messages.known).astype(np.uint8).tobytes())
        self._waiting: dict[int, list[int]] = {}

    def circles(self) -> list[list[Wait]]:
        """All circles; each is cut before the next is searched."""
        ready = list(reversed(range(len(self._at))))
        while ready:
            self._advance(ready)
            if self._waiting:
                ready.append(self._cut_circle())
        return self._circles

    def _advance(self, ready: list[int]) -> None:
        events, passed, waiting = self._events, self._passed, self._waiting
        while ready:
            process = ready.pop()
            at, end = self._at[process], self._end[process]
            while at < end:
                message = events[at]
                if message < 0:
                    passed[~message] = 1
                    ready.extend(waiting.pop(~message, ()))
                elif not passed[message]:
                    waiting.setdefault(message, []).append(process)
                    break
                at += 1
            self._at[process] = at

    def _cut_circle(self) -> int:
        """Report one circle and let its first process go on as if the delivery had no cause."""
        process = next(iter(self._waiting.values()))[0]
        trail: dict[int, Wait] = {}
        # A process that is waited for waits as well, or it would have gone on: so the trail must close.
        while process not in trail:
            at = self._at[process]
            trail[process] = Wait(process, self._events[at], int(self._row[at]))
            process = self._sender[self._events[at]]
        walked = list(trail)
        circle = [trail[who] for who in walked[walked.index(process) :]]
        self._circles.append(circle)
        self._let_go(circle[0])
        return circle[0].process

    def _let_go(self, wait: Wait) -> None:
        others = [who for who in self._waiting.pop(wait.message) if who != wait.process]
        if others:
            self._waiting[wait.message] = others
        self._at[wait.process] += 1
