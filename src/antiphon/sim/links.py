"""Which directions between processes work: what is cut now, and which streams have lost frames.

A stream lives on one connection (newtop.md 1, E-47): once a frame of it is lost, nothing more arrives on that one, also
after the cut is mended; what is sent then goes by the next connection, and the receiver decides what to make of it. A
datagram that meets a cut is lost, and no more.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from antiphon.scenario.model import Cut, Partition, cut_links
from antiphon.sim.world import EventQueue
from antiphon.types import ProcessId, split_process_id

Direction = tuple[ProcessId, ProcessId]
"""From one process to another."""


class Break(NamedTuple):
    """A connection has lost frames, as one of its ends is told."""

    peer: ProcessId
    connection: int
    incoming: bool
    """From the peer, or to it."""


Notify = Callable[[Break], None]
"""Tells a process that a connection has broken."""


class Links:
    """All directions work until a cut. What is drawn here is drawn from a stream of its own.

    `renews`: there may be groups that are formed later, and use later connections; then every break is told, and not
    only the first between two processes. `merges`: those who are connected again find together by themselves.
    """

    def __init__(
        self, queue: EventQueue, chance: random.Random, notice_ns: int, *, renews: bool = False, merges: bool = False
    ) -> None:
        self.chance: Final = chance
        self.connections: dict[Direction, int] = {}
        """Number of the connection in use, where it is not the first."""
        self._queue = queue
        self._notice_ns = notice_ns
        self.renews: Final = renews
        self._merges = merges
        self._cuts: list[Partition | Cut] = []
        self._cut: set[Direction] = set()
        self._unused: set[Direction] = set()  # whose connection has carried nothing yet: there is nothing to lose
        self._closed: set[Direction] = set()  # of these, those that are cut: they lead nowhere
        self._told: set[Direction] = set()
        self._incarnations: dict[str, list[ProcessId]] = {}

    @property
    def troubled(self) -> bool:
        """Whether anything is cut or has been lost."""
        return bool(self._cut or self.connections)

    def attach(self, process: ProcessId) -> None:
        """A process is there from now on; what is cut off from its host is cut off from it."""
        self._incarnations.setdefault(split_process_id(process)[0], []).append(process)
        self._recompute()

    def cut(self, fault: Partition | Cut) -> list[Direction]:
        """Put a cut in force; gives the directions in which something may be under way."""
        self._cuts.append(fault)
        fresh = [each for each in self._directions(fault) if each not in self._cut and each not in self._unused]
        self._recompute()
        return fresh

    def mend(self, fault: Partition | Cut | None = None) -> None:
        """Undo one cut, or all of them; what was lost stays lost."""
        self._cuts = [other for other in self._cuts if fault is not None and other is not fault]
        self._recompute()

    def is_cut(self, direction: Direction) -> bool:
        """Whether nothing passes now."""
        return direction in self._cut

    def breaks(self, direction: Direction) -> bool:
        """Whether a stream that meets a cut there loses something by it."""
        return direction not in self._unused

    def works(self, direction: Direction) -> bool:
        """Whether frames of the groups that are there pass, or will when those who are connected have merged."""
        return direction not in self._cut and (self._merges or direction not in self.connections)

    def passes(self, direction: Direction) -> bool:
        """Whether frames of some group may pass, of one that is formed later at least."""
        return direction not in self._cut and (self.renews or direction not in self.connections)

    def use(self, direction: Direction) -> int:
        """The connection that a frame goes by."""
        self._unused.discard(direction)
        return self.connections.get(direction, 0)

    def number(self, direction: Direction) -> int | None:
        """The connection that a frame would go by now; None: there is none, and what leaves is lost unnoticed."""
        if direction in self._cut and direction in self._unused:
            return None
        return self.connections.get(direction, 0)

    def changed(self) -> list[Direction]:
        """The directions that have got or lost a connection since the last call."""
        before, self._closed = self._closed, self._cut & self._unused
        return sorted(before ^ self._closed)

    def lose(self, direction: Direction, notify: Mapping[ProcessId, Notify]) -> None:
        """A stream has lost a frame: the next one goes by the next connection. Each end is told, by its own draw."""
        a, b = direction
        lost = self.connections.get(direction, 0)
        self.connections[direction] = lost + 1
        self._unused.add(direction)
        if (a, b) in self._told and not self.renews:
            return
        self._told |= {(a, b), (b, a)}
        for end, told in ((a, Break(b, lost, incoming=False)), (b, Break(a, lost, incoming=True))):
            late = int(self.chance.random() * self._notice_ns)
            self._queue.at(self._queue.now + late, notify[end], told)

    def _recompute(self) -> None:
        self._cut = {each for fault in self._cuts for each in self._directions(fault)}

    def _directions(self, fault: Partition | Cut) -> list[Direction]:
        bearers = self._incarnations
        return [(one, other) for a, b in cut_links(fault) for one in bearers[a] for other in bearers[b]]
