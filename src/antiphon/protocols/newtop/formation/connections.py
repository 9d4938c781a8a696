"""Which connection a group lives on: for drivers, which see connections; cores never do (docs/spec/newtop.md 1, E-47).

The transport numbers the connections from one process to another, from 0. After a loss the number rises, and a group
that used the old connection is dead on the new one: a core could not see the gap. A configured group uses the first
connection; a formed one, from each peer, the connection that brought that peer's `install`, its first frame. A driver
that has no connection to put an `install` on tells its core that it is severed from that peer in the new group.
"""

from typing import Final

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.frames import BlockFrame, FormationFrame, InstallFrame
from antiphon.types import GroupId, ProcessId, epoch_of, name_of

_BROKEN_MAX: Final = 1024
"""Of so many processes it is remembered that a connection with them broke; of others nothing will come on one."""


class Connections:
    """Those of one process, with what its groups make of them."""

    def __init__(self, configured: frozenset[GroupId]) -> None:
        self._configured = configured
        self._incoming: dict[tuple[ProcessId, GroupId], int] = {}
        self._outgoing: dict[tuple[ProcessId, GroupId], int] = {}
        self._broken: dict[ProcessId, int] = {}  # of those coming in, the last from each process

    def admits(self, frame: Frame, connection: int) -> bool:
        """Whether a frame that came on this connection may be fed; formations belong to none."""
        if type(frame) is not BlockFrame and isinstance(frame, FormationFrame):
            if isinstance(frame, InstallFrame):
                self._incoming.setdefault((frame.sender, frame.group), connection)
            return True
        if name_of(frame.group) == frame.group:
            return connection == 0
        return self._incoming.get((frame.sender, frame.group)) == connection

    def sent(self, frame: InstallFrame, to: ProcessId, connection: int) -> None:
        """Our own first frame of a group leaves on this connection."""
        self._outgoing[to, frame.group] = connection

    def came_too_late(self, frame: InstallFrame) -> bool:
        """Whether the connection that brought it is known to have broken: the peer is silent from the start."""
        return self._incoming[frame.sender, frame.group] <= self._broken.get(frame.sender, -1)

    def broke(self, peer: ProcessId, connection: int, *, incoming: bool) -> frozenset[GroupId]:
        """A connection with a peer has lost frames; gives the groups that used it."""
        if incoming:
            self._broken[peer] = max(connection, self._broken.pop(peer, -1))
            if len(self._broken) > _BROKEN_MAX:
                del self._broken[next(iter(self._broken))]
        bound = self._incoming if incoming else self._outgoing
        formed = {group for (other, group), number in bound.items() if (other, number) == (peer, connection)}
        return frozenset(formed | (self._configured if connection == 0 else set()))

    def forget(self, group: GroupId) -> None:
        """We are not in that group any more, and will never be in one of its name that was formed before it."""
        name, epoch = name_of(group), epoch_of(group)
        for bound in (self._incoming, self._outgoing):
            for key in [key for key in bound if name_of(key[1]) == name and epoch_of(key[1]) <= epoch]:
                del bound[key]
