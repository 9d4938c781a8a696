"""Which directions between processes work: the current cuts, and the streams that have lost frames.

A stream uses one connection (newtop.md 1, E-47). After it has lost a frame, nothing more arrives on that connection,
also after the cut has ended. Later frames use the next connection, and the receiver decides whether to accept them. A
datagram that meets a cut is lost, without further effect.
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
    """A connection has lost frames; one of its ends is informed."""

    peer: ProcessId
    connection: int
    incoming: bool
    """From the peer, or to it."""


Notify = Callable[[Break], None]
"""Informs a process that a connection has broken."""


class Links:
    """All directions work until a cut. Random numbers here come from their own stream.

    `renews`: groups may be formed later and use later connections; then every break is reported, not only the first
    between two processes. `merges`: members that are connected again merge by themselves.
    """

    def __init__(
        self, queue: EventQueue, chance: random.Random, notice_ns: int, *, renews: bool = False, merges: bool = False
    ) -> None:
        self.chance: Final = chance
        self.connections: dict[Direction, int] = {}
        """Number of the current connection, if it is not the first."""
        self._queue = queue
        self._notice_ns = notice_ns
        self.renews: Final = renews
        self._merges = merges
        self._cuts: list[Partition | Cut] = []
        self._cut: set[Direction] = set()
        self._unused: set[Direction] = (
            set()
        )  # directions whose connection has carried nothing yet: there is nothing to lose
        self._closed: set[Direction] = set()  # of these, those that are cut: frames on them are lost
        self._told: set[Direction] = set()
        self._incarnations: dict[str, list[ProcessId]] = {}

    @property
    def troubled(self) -> bool:
        """Whether anything is cut or has been lost."""
        return bool(self._cut or self.connections)

    def attach(self, process: ProcessId) -> None:
        """A process has started; cuts of its host apply to it."""
        self._incarnations.setdefault(split_process_id(process)[0], []).append(process)
        self._recompute()

    def cut(self, fault: Partition | Cut) -> list[Direction]:
        """Begin a cut; returns the directions in which frames may be under way."""
        self._cuts.append(fault)
        fresh = [each for each in self._directions(fault) if each not in self._cut and each not in self._unused]
        self._recompute()
        return fresh

    def mend(self, fault: Partition | Cut | None = None) -> None:
        """End one cut, or all of them; lost frames stay lost."""
        self._cuts = [other for other in self._cuts if fault is not None and other is not fault]
        self._recompute()

    def is_cut(self, direction: Direction) -> bool:
        """True if the direction is cut now."""
        return direction in self._cut

    def breaks(self, direction: Direction) -> bool:
        """True if a stream that meets a cut there loses frames."""
        return direction not in self._unused

    def works(self, direction: Direction) -> bool:
        """True if frames of existing groups pass, or will pass after connected members have merged."""
        return direction not in self._cut and (self._merges or direction not in self.connections)

    def passes(self, direction: Direction) -> bool:
        """True if frames of some group may pass, at least of one that is formed later."""
        return direction not in self._cut and (self.renews or direction not in self.connections)

    def use(self, direction: Direction) -> int:
        """The connection that a frame uses."""
        self._unused.discard(direction)
        return self.connections.get(direction, 0)

    def number(self, direction: Direction) -> int | None:
        """The connection that a frame would use now; None: there is none, and frames are lost unnoticed."""
        if direction in self._cut and direction in self._unused:
            return None
        return self.connections.get(direction, 0)

    def changed(self) -> list[Direction]:
        """The directions that gained or lost a connection since the last call."""
        before, self._closed = self._closed, self._cut & self._unused
        return sorted(before ^ self._closed)

    def lose(self, direction: Direction, notify: Mapping[ProcessId, Notify]) -> None:
        """A stream has lost a frame: later frames use the next connection. Each end is informed after a random time."""
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
