"""O6 strong total order: one key for all processes, crashed ones included, over all groups and views.

By certificate first: the protocol's own stamp is verified, never trusted (properties.md 7.3). If it fails,
the graph of consecutive deliveries decides: a cycle is a violation, told by its shortest witness; no cycle,
and the order holds although the stamp is broken, which a note says.
"""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from antiphon.properties.columns import NO_CLOCK, IntArray
from antiphon.properties.findings import NOTHING, Broken, over_run
from antiphon.properties.history import Deliveries, History
from antiphon.properties.promises import Promises
from antiphon.properties.verdict import Verdict, Violation

_STARTS_MAX: Final = 64
"""From how many messages of a knot a shortest cycle is looked for: bounds the work on a badly broken run."""


def check_total(history: History, promises: Promises) -> list[Verdict]:
    """O6: some one-to-one key grows along every process's deliveries."""
    first = history.first
    asked = first.where(promises.deliveries("O6") & history.messages.known[first.message])
    shared = np.bincount(asked.message, minlength=len(history.messages.number)) > 1
    opportunities = int(shared[asked.message].sum())
    flaw = _broken_stamp(history, asked)
    if flaw is None:
        return over_run(history, promises, "O6", opportunities, NOTHING)
    knots = _knots(asked, len(shared))
    if not knots:
        note = f"the order holds, but its stamp does not prove it: {flaw}"
        return over_run(history, promises, "O6", opportunities, NOTHING, note=note)
    return over_run(history, promises, "O6", opportunities, _broken(history, asked, knots))


# -------------------------------------------------------------------------------- certificate


def _broken_stamp(history: History, asked: Deliveries) -> str | None:
    """The first way in which the stamps fail as a certificate, or None if they prove O6."""
    rank = _stamp_ranks(history, asked)
    of_message = np.zeros(len(history.messages.number), np.int64)
    of_message[asked.message] = rank
    unequal = np.flatnonzero(of_message[asked.message] != rank)
    if len(unequal):
        return _tell_unequal(history, asked, int(unequal[0]))
    messages = np.unique(asked.message)
    by_rank = messages[np.argsort(of_message[messages], kind="stable")]
    same = np.flatnonzero(np.diff(of_message[by_rank]) == 0)
    if len(same):
        names = [history.message_name(by_rank[same[0] + offset]) for offset in (0, 1)]
        return f"{names[0]} and {names[1]} carry one stamp"
    falling = np.flatnonzero((np.diff(asked.process) == 0) & (np.diff(rank) <= 0))
    if not len(falling):
        return None
    return _tell_falling(history, asked, int(falling[0]))


def _stamp_ranks(history: History, asked: Deliveries) -> IntArray:
    """The stamps of properties.md 1 as integers in their order: clock, orderer or sender, sender, number."""
    rows, sender = history.rows, history.messages.sender[asked.message]
    orderer = np.where(rows.orderer[asked.row] >= 0, rows.orderer[asked.row], sender)
    keys = (rows.number[asked.row], sender, orderer, rows.clock[asked.row])
    order = np.lexsort(keys)
    changes = np.zeros(len(order), np.bool_)
    for key in keys:
        changes[1:] |= np.diff(key[order]) != 0
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(changes)
    return rank


def _tell_unequal(history: History, asked: Deliveries, position: int) -> str:
    message = asked.message[position]
    other = int(np.flatnonzero(asked.message == message)[-1])
    places = [
        f"{_clock(history, asked.row[at])} at {history.process_name(asked.process[at])} "
        f"(index {history.index(asked.row[at])})"
        for at in (position, other)
    ]
    return f"{history.message_name(message)} has {places[0]} and {places[1]}"


def _tell_falling(history: History, asked: Deliveries, position: int) -> str:
    names = [f"{history.told(row)} with {_clock(history, row)}" for row in asked.row[position : position + 2].tolist()]
    return f"{history.process_name(asked.process[position])} delivered {names[0]} before {names[1]}"


def _clock(history: History, row: int | np.int64) -> str:
    clock = int(history.rows.clock[row])
    return "no clock" if clock == NO_CLOCK else f"clock {clock}"


# -------------------------------------------------------------------------------- graph


def _knots(asked: Deliveries, messages: int) -> list[list[int]]:
    """Sets of messages that are all before one another: strongly connected parts of more than one message."""
    after: dict[int, list[int]] = {}
    indegree = [0] * messages
    same = np.diff(asked.process) == 0
    for before, then in zip(asked.message[:-1][same].tolist(), asked.message[1:][same].tolist(), strict=True):
        after.setdefault(before, []).append(then)
        indegree[then] += 1
    _take_off_sources(after, indegree)
    # What is left lies on a cycle or behind one.
    left = [message for message in after if indegree[message]]
    return [part for part in _connected(left, after) if len(part) > 1]


def _take_off_sources(after: dict[int, list[int]], indegree: list[int]) -> None:
    """Kahn's algorithm; a message that keeps an indegree could not be placed."""
    ready = [message for message in after if not indegree[message]]
    while ready:
        for then in after.get(ready.pop(), ()):
            indegree[then] -= 1
            if not indegree[then]:
                ready.append(then)


def _connected(nodes: list[int], after: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected parts among the nodes (Tarjan, with an explicit stack)."""
    search = _Tarjan(after)
    for node in nodes:
        if node not in search.low:
            search.visit(node)
    return search.parts


class _Tarjan:
    """Depth-first search that closes a part when it returns to the first node of it."""

    def __init__(self, after: dict[int, list[int]]) -> None:
        self.parts: list[list[int]] = []
        self.low: dict[int, int] = {}
        self._after = after
        self._number: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()

    def visit(self, root: int) -> None:
        path = [(root, iter(self._enter(root)))]
        while path:
            node, following = path[-1]
            for then in following:
                if then not in self.low:
                    path.append((then, iter(self._enter(then))))
                    break
                if then in self._is_open:
                    self.low[node] = min(self.low[node], self._number[then])
            else:
                path.pop()
                self._leave(node)
                if path:
                    self.low[path[-1][0]] = min(self.low[path[-1][0]], self.low[node])

    def _enter(self, node: int) -> list[int]:
        self.low[node] = self._number[node] = len(self._number)
        self._open.append(node)
        self._is_open.add(node)
        return self._after.get(node, [])

    def _leave(self, node: int) -> None:
        if self.low[node] < self._number[node]:
            return
        part = [self._open.pop()]
        while part[-1] != node:
            part.append(self._open.pop())
        self._is_open.difference_update(part)
        self.parts.append(part)


# -------------------------------------------------------------------------------- witness


@dataclass(frozen=True, slots=True)
class _Step:
    """One process delivers a message before another; rows of both."""

    process: int
    before: int
    then: int


def _broken(history: History, asked: Deliveries, knots: list[list[int]]) -> Broken:
    """One violation per knot: each is a place where no order fits."""
    knot_of = np.full(len(history.messages.number), -1, np.int64)
    for position, messages in enumerate(knots):
        knot_of[messages] = position
    tied = asked.where(knot_of[asked.message] >= 0)
    knot: IntArray = knot_of[tied.message]
    # Knots are told apart by their first delivery; the times of their witnesses would cost a search each.
    order = np.lexsort((tied.row, tied.process, history.rows.time[tied.row]))
    first_of_knot = np.unique(knot[order], return_index=True)[1]
    rows: IntArray = tied.row[order][first_of_knot]

    def tell(position: int) -> Violation:
        return _tell_cycle(history, _witness(history, tied.where(knot == position)))

    return Broken(rows, history.rows.group[rows], tell)


def _witness(history: History, tied: Deliveries) -> list[_Step]:
    """Two processes that disagree on two messages if there are such, else a short cycle through more."""
    return _opposite_pair(history, tied) or _short_cycle(history, tied)


def _opposite_pair(history: History, tied: Deliveries) -> list[_Step]:
    """The earliest pair of messages that two processes deliver in opposite orders."""
    processes = np.unique(tied.process).tolist()
    logs = {process: tied.where(tied.process == process) for process in processes}
    found = [
        pair
        for at, left in enumerate(processes)
        for right in processes[at + 1 :]
        if (pair := _disagree(logs[left], logs[right]))
    ]
    return min(found, key=lambda steps: _time(history, steps), default=[])


def _time(history: History, steps: list[_Step]) -> tuple[int, int]:
    """When the last event of a witness happened."""
    return max((int(history.rows.time[step.then]), step.process) for step in steps)


def _disagree(left: Deliveries, right: Deliveries) -> list[_Step]:
    """The first two messages, neighbours among the common ones at the left, that the right has reversed."""
    _, at_left, at_right = np.intersect1d(left.message, right.message, assume_unique=True, return_indices=True)
    order = np.argsort(at_left)
    fall = np.flatnonzero(np.diff(at_right[order]) < 0)
    if not len(fall):
        return []
    first, second = order[fall[0]], order[fall[0] + 1]
    return [
        _Step(int(left.process[0]), int(left.row[at_left[first]]), int(left.row[at_left[second]])),
        _Step(int(right.process[0]), int(right.row[at_right[second]]), int(right.row[at_right[first]])),
    ]


def _short_cycle(history: History, tied: Deliveries) -> list[_Step]:
    """A cycle through as few processes as can be found from the first messages of the knot."""
    web = _Web(tied)
    starts = tied.message[np.argsort(history.rows.time[tied.row], kind="stable")]
    cycles = [web.cycle_through(message) for message in list(dict.fromkeys(starts.tolist()))[:_STARTS_MAX]]
    return min((cycle for cycle in cycles if cycle), key=len)


class _Web:
    """The deliveries of a knot: along a process is free, from one process to another at a message costs 1."""

    def __init__(self, tied: Deliveries) -> None:
        self._process: list[int] = tied.process.tolist()
        self._message: list[int] = tied.message.tolist()
        self._row: list[int] = tied.row.tolist()
        self._places: dict[int, list[int]] = {}
        for place, message in enumerate(self._message):
            self._places.setdefault(message, []).append(place)

    def cycle_through(self, start: int) -> list[_Step]:
        """Breadth-first over costs of 0 and 1, from the message until it is met again."""
        came_from: dict[int, int] = {}
        queue = deque((place, place) for place in self._places[start])
        while queue:
            place, origin = queue.popleft()
            if self._message[place] == start and self._message[origin] != start:
                return self._steps(came_from, origin, place)
            if place not in came_from:
                came_from[place] = origin
                self._spread(place, queue)
        return []

    def _spread(self, place: int, queue: "deque[tuple[int, int]]") -> None:
        following = place + 1
        if following < len(self._process) and self._process[following] == self._process[place]:
            queue.appendleft((following, place))
        queue.extend((other, place) for other in self._places[self._message[place]] if other != place)

    def _steps(self, came_from: dict[int, int], origin: int, place: int) -> list[_Step]:
        """The way back, with all that one process adds told as one step."""
        way = [place, origin]
        while came_from[way[-1]] != way[-1]:
            way.append(came_from[way[-1]])
        way.reverse()
        steps: list[_Step] = []
        begin = way[0]
        for here, there in pairwise([*way, -1]):
            if there < 0 or self._process[there] != self._process[here]:
                if here != begin:
                    steps.append(_Step(self._process[here], self._row[begin], self._row[here]))
                begin = there
        return steps


def _tell_cycle(history: History, steps: list[_Step]) -> Violation:
    who = [history.process_name(step.process) for step in steps]
    told = [
        f"{name} delivered {history.told(step.before)} before {history.told(step.then)}"
        for name, step in zip(who, steps, strict=True)
    ]
    return Violation(
        ", ".join(told[:-1]) + ", yet " + told[-1],
        tuple(who),
        tuple(history.message_at(step.before) for step in steps),
        tuple(history.index(row) for step in steps for row in (step.before, step.then)),
    )
