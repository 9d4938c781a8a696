"""Which directions between processes work: what is cut now, and which streams have lost frames and are dead.

A stream lives on one connection (newtop.md 1, E-47): once a frame of it is lost, nothing of it arrives any more, also
after the cut is mended. A datagram that meets a cut is lost, and no more.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final

from antiphon.scenario.model import Cut, Partition, cut_links
from antiphon.sim.world import EventQueue
from antiphon.types import ProcessId

Direction = tuple[ProcessId, ProcessId]
"""From one process to another."""
Notify = Callable[[ProcessId], None]
"""Tells a process that its connection with a peer has broken."""


class Links:
    """All directions work until a cut. What is drawn here is drawn from a stream of its own."""

    def __init__(self, queue: EventQueue, chance: random.Random, notice_ns: int) -> None:
        self.closed: set[Direction] = set()
        """Nothing passes: cut now, or a dead stream."""
        self.chance: Final = chance
        self._queue = queue
        self._notice_ns = notice_ns
        self._cuts: list[Partition | Cut] = []
        self.dead: set[Direction] = set()
        """Streams that have lost a frame."""
        self._told: set[Direction] = set()

    def cut(self, fault: Partition | Cut) -> list[Direction]:
        """Put a cut in force; gives the directions that worked till now."""
        self._cuts.append(fault)
        fresh = [each for each in _directions(fault) if each not in self.closed]
        self.closed.update(fresh)
        return fresh

    def mend(self, fault: Partition | Cut | None = None) -> None:
        """Undo one cut, or all of them; a dead stream stays dead."""
        self._cuts = [other for other in self._cuts if fault is not None and other is not fault]
        self.closed = {*self.dead, *(each for other in self._cuts for each in _directions(other))}

    def lose(self, direction: Direction, notify: Mapping[ProcessId, Notify]) -> None:
        """A stream has lost a frame. The first time between two processes each is told, by its own draw."""
        self.dead.add(direction)
        self.closed.add(direction)
        a, b = direction
        if (a, b) in self._told:
            return
        self._told |= {(a, b), (b, a)}
        for end, peer in ((a, b), (b, a)):
            late = int(self.chance.random() * self._notice_ns)
            self._queue.at(self._queue.now + late, notify[end], peer)


def _directions(fault: Partition | Cut) -> list[Direction]:
    return [(ProcessId(a), ProcessId(b)) for a, b in cut_links(fault)]
