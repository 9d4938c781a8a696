"""Cycles of messages that are all before one another, and their shortest witness (docs/spec/properties.md 7.3).

The graph has an edge for each pair of consecutive deliveries of a process. For causal order it also has an edge for
each direct cause. A cycle is a violation, because no key can grow along all its edges.
"""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.past import Past
from antiphon.properties.verdicts.verdict import Violation

_STARTS_MAX: Final = 64
"""From how many messages of a knot a shortest cycle is searched: limits the work on a badly broken run."""

Edges = tuple[IntArray, IntArray]
"""The earlier messages, and the later ones."""

_BY_CAUSE: Final = -1
"""Stands for the process of a step from cause to effect."""


@dataclass(frozen=True, slots=True)
class Step:
    """One process delivers a message before another, or one message happened before another."""

    process: int
    messages: tuple[int, int]
    rows: tuple[int, int]
    """The rows of these deliveries."""


def consecutive(asked: Deliveries) -> Edges:
    """Each delivery and the next one of the same process."""
    same = np.diff(asked.process) == 0
    return asked.message[:-1][same], asked.message[1:][same]


def knots(edges: Edges, messages: int) -> list[list[int]]:
    """Sets of messages that are all before one another: strongly connected components with more than one message."""
    after: dict[int, list[int]] = {}
    indegree = [0] * messages
    for before, then in zip(edges[0].tolist(), edges[1].tolist(), strict=True):
        after.setdefault(before, []).append(then)
        indegree[then] += 1
    _take_off_sources(after, indegree)
    # What is left lies on a cycle or behind one.
    left = [message for message in after if indegree[message]]
    return [part for part in _connected(left, after) if len(part) > 1]


def placed(edges: Edges, messages: int) -> IntArray | None:
    """For each message its place in some order that respects all edges; None if there is no such order."""
    after: dict[int, list[int]] = {}
    indegree = [0] * messages
    for before, then in zip(edges[0].tolist(), edges[1].tolist(), strict=True):
        after.setdefault(before, []).append(then)
        indegree[then] += 1
    taken = [message for message in range(messages) if not indegree[message]]
    for message in taken:  # grows while it is iterated
        for then in after.get(message, ()):
            indegree[then] -= 1
            if not indegree[then]:
                taken.append(then)
    if len(taken) < messages:
        return None
    return np.argsort(np.array(taken, np.int64), kind="stable")


def _take_off_sources(after: dict[int, list[int]], indegree: list[int]) -> None:
    """Kahn's algorithm; a message that keeps an indegree could not be placed."""
    ready = [message for message in after if not indegree[message]]
    while ready:
        for then in after.get(ready.pop(), ()):
            indegree[then] -= 1
            if not indegree[then]:
                ready.append(then)


def _connected(nodes: list[int], after: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components of the nodes (Tarjan, with an explicit stack)."""
    search = _Tarjan(after)
    for node in nodes:
        if node not in search.low:
            search.visit(node)
    return search.parts


class _Tarjan:
    """Depth-first search that closes a component when it returns to its first node."""

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


def witness(history: History, tied: Deliveries, causes: Edges) -> list[Step]:
    """Two processes that disagree on two messages if there are such, else a short cycle through more messages.

    `tied` are the deliveries of one knot, `causes` the direct causes within it.
    """
    return _opposite_pair(history, tied) or _short_cycle(history, tied, causes)


def _opposite_pair(history: History, tied: Deliveries) -> list[Step]:
    """The earliest pair of messages that two processes deliver in opposite orders."""
    processes = np.unique(tied.process).tolist()
    logs = {process: tied.where(tied.process == process) for process in processes}
    found = [
        pair
        for at, left in enumerate(processes)
        for right in processes[at + 1 :]
        if (pair := disagreement(logs[left], logs[right]))
    ]
    return min(found, key=lambda steps: _time(history, steps), default=[])


def _time(history: History, steps: list[Step]) -> tuple[int, int]:
    """When the last event of a witness happened."""
    return max((int(history.rows.time[step.rows[1]]), step.process) for step in steps)


def disagreement(left: Deliveries, right: Deliveries) -> list[Step]:
    """The first two messages, adjacent among the common ones at the left, that the right delivers in reverse."""
    _, at_left, at_right = np.intersect1d(left.message, right.message, assume_unique=True, return_indices=True)
    order = np.argsort(at_left)
    fall = np.flatnonzero(np.diff(at_right[order]) < 0)
    if not len(fall):
        return []
    first, second = order[fall[0]], order[fall[0] + 1]
    return [step(left, at_left[first], at_left[second]), step(right, at_right[second], at_right[first])]


def step(log: Deliveries, before: int, then: int) -> Step:
    """The step in which the process of the log delivers one position before the other."""
    messages = int(log.message[before]), int(log.message[then])
    return Step(int(log.process[before]), messages, (int(log.row[before]), int(log.row[then])))


def _short_cycle(history: History, tied: Deliveries, causes: Edges) -> list[Step]:
    """The shortest cycle that is found from the first messages of the knot."""
    web = _Web(tied, causes)
    starts = tied.message[np.argsort(history.rows.time[tied.row], kind="stable")]
    cycles = [web.cycle_through(message) for message in list(dict.fromkeys(starts.tolist()))[:_STARTS_MAX]]
    return min((cycle for cycle in cycles if cycle), key=len)


class _Web:
    """The deliveries of a knot as a graph: a step along a process costs 0, a change of process at a message costs 1.

    Causes count as one more process, in which a message may have several successors.
    """

    def __init__(self, tied: Deliveries, causes: Edges) -> None:
        self._caused = np.unique(np.concatenate(causes)).tolist()
        self._process: list[int] = tied.process.tolist() + [_BY_CAUSE] * len(self._caused)
        self._message: list[int] = tied.message.tolist() + self._caused
        self._row: list[int] = tied.row.tolist() + [-1] * len(self._caused)
        self._places: dict[int, list[int]] = {}
        for place, message in enumerate(self._message):
            self._places.setdefault(message, []).append(place)
        self._next = self._onward(len(tied.row), causes)

    def _onward(self, deliveries: int, causes: Edges) -> dict[int, list[int]]:
        onward = {
            place: [place + 1] for place in range(deliveries - 1) if self._process[place] == self._process[place + 1]
        }
        place_of = {message: deliveries + at for at, message in enumerate(self._caused)}
        for cause, effect in zip(causes[0].tolist(), causes[1].tolist(), strict=True):
            onward.setdefault(place_of[cause], []).append(place_of[effect])
        return onward

    def cycle_through(self, start: int) -> list[Step]:
        """Breadth-first search over costs of 0 and 1, from the message until it is reached again."""
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
        queue.extendleft((following, place) for following in self._next.get(place, ()))
        queue.extend((other, place) for other in self._places[self._message[place]] if other != place)

    def _steps(self, came_from: dict[int, int], origin: int, place: int) -> list[Step]:
        """The path, with consecutive deliveries of one process merged into one step."""
        way = [place, origin]
        while came_from[way[-1]] != way[-1]:
            way.append(came_from[way[-1]])
        way.reverse()
        steps: list[Step] = []
        begin = way[0]
        for here, there in pairwise([*way, -1]):
            if there < 0 or self._process[there] != self._process[here]:
                if here != begin:
                    steps.append(self._step(begin, here))
                begin = there
        return steps

    def _step(self, begin: int, end: int) -> Step:
        messages, rows = (self._message[begin], self._message[end]), (self._row[begin], self._row[end])
        return Step(self._process[begin], messages, rows)


def describe_cycle(history: History, steps: list[Step], past: Past | None = None) -> Violation:
    """All steps of a cycle in one sentence; causes with the chain behind them."""
    processes, indexes = [], []
    for each in steps:
        if each.process != _BY_CAUSE:
            processes.append(history.process_name(each.process))
            indexes += [history.index(row) for row in each.rows]
    sentences = [_describe_step(history, each, past) for each in steps]
    names = [history.message_name(each.messages[0]) for each in steps]
    sentence = ", ".join(sentences[:-1]) + ", but " + sentences[-1]
    return Violation(sentence, tuple(processes), tuple(names), tuple(indexes))


def _describe_step(history: History, each: Step, past: Past | None) -> str:
    if each.process == _BY_CAUSE:
        names = [history.message_name(message) for message in each.messages]
        why = f" ({', and '.join(past.chain(*each.messages))})" if past else ""
        return f"{names[0]} happened before {names[1]}{why}"
    places = [history.located(row) for row in each.rows]
    return f"{history.process_name(each.process)} delivered {places[0]} before {places[1]}"
