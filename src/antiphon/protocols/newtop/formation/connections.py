"""Which connection a group uses, and which frames of a connection count (docs/spec/newtop.md 1, E-47).

The network numbers the connections from one process to another, from 0. After a loss the number rises, and a group
that used the old connection is dead on the new one, because its members cannot see the gap. A configured group uses
the first connection. A formed group uses, from each peer, the connection that brought the peer's `install`, which is
the peer's first frame in the group. An `install` that finds no connection severs its group from that peer.
"""

from collections.abc import Iterable
from typing import Final

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.formation.proposals import EarlyProposals
from antiphon.protocols.newtop.frames import AskingFrame, BlockFrame, FormationFrame, InstallFrame, ProposeFrame
from antiphon.types import GroupId, ProcessId, epoch_of, name_of

_BROKEN_MAX: Final = 1024
"""Remembered broken connections, one per peer; nothing more arrives on older ones."""
_EARLY_EACH_MAX: Final = 64
_EARLY_MAX: Final = 1024
"""Groups that we are not in whose `install` is remembered: of one peer, and of all."""


class Connections:
    """The connections of one process, and the groups that use them."""

    def __init__(self, configured: frozenset[GroupId], proposals: EarlyProposals | None = None) -> None:
        self._configured = configured
        self._proposals = proposals
        self._numbers: dict[ProcessId, int] = {}
        """By peer, the connection that takes frames to it."""
        self._counted = False
        """Whether the driver has reported a connection. A driver on datagrams reports none."""
        self._incoming: dict[tuple[ProcessId, GroupId], int] = {}
        self._early: dict[tuple[ProcessId, GroupId], None] = {}
        """`install` frames of groups that we are not in, the oldest first: a peer can invent them."""
        self._entered: set[GroupId] = set()
        """Groups that we are in."""
        self._outgoing: dict[tuple[ProcessId, GroupId], int] = {}
        self._broken: dict[ProcessId, int] = {}
        """By peer, the last incoming connection that broke."""

    def admits(self, frame: Frame, connection: int, /) -> bool:
        """True if a frame from this connection is accepted. Formations and requests belong to no connection."""
        if type(frame) is BlockFrame and self._incoming.get((frame.sender, frame.group)) == connection:
            return True  # the usual case
        if isinstance(frame, FormationFrame):
            if isinstance(frame, InstallFrame):
                self._note(frame.sender, frame.group, connection)
            return self._proposals is None or not self._proposals.postpone(frame, self._numbers)
        if isinstance(frame, AskingFrame):
            return True
        if name_of(frame.group) == frame.group:
            return connection == 0
        return self._incoming.get((frame.sender, frame.group)) == connection

    def _note(self, peer: ProcessId, group: GroupId, connection: int) -> None:
        """The peer's first frame in a group came by this connection."""
        key = peer, group
        if key in self._incoming:
            return
        self._incoming[key] = connection
        if group in self._entered:
            return
        self._early[key] = None
        same = [early for early in self._early if early[0] == peer]
        oldest = same[0] if len(same) > _EARLY_EACH_MAX else next(iter(self._early))
        if len(same) > _EARLY_EACH_MAX or len(self._early) > _EARLY_MAX:
            del self._early[oldest], self._incoming[oldest]

    def is_bound(self, frame: Frame) -> bool:
        """Whether a frame belongs to the connection that its group uses."""
        return not isinstance(frame, FormationFrame | AskingFrame)

    def connected(self, peer: ProcessId, connection: int) -> list[ProposeFrame]:
        """Frames to that peer use this connection; returns the proposals that waited for it."""
        self._counted = True
        self._numbers[peer] = connection
        return [] if self._proposals is None else self._proposals.take_ready(self._numbers)

    def disconnected(self, peer: ProcessId) -> None:
        """Frames to that peer are lost from now on."""
        self._numbers.pop(peer, None)
        if self._proposals is not None:
            self._proposals.forget(peer)

    def bind(self, group: GroupId, peers: Iterable[ProcessId]) -> list[ProcessId]:
        """We transmit our `install` to these now; returns the peers without a connection."""
        self._entered.add(group)
        for key in [key for key in self._early if key[1] == group]:
            del self._early[key]
        if not self._counted:
            return []
        unreachable = []
        for peer in peers:
            if peer in self._numbers:
                self._outgoing[peer, group] = self._numbers[peer]
            else:
                unreachable.append(peer)
        return unreachable

    def sent(self, frame: InstallFrame, to: ProcessId, connection: int) -> None:
        """Our own first frame of a group uses this connection."""
        self._outgoing[to, frame.group] = connection

    def came_too_late(self, frame: InstallFrame) -> bool:
        """True if the connection that brought it has broken: the peer is silent from the start."""
        arrived_by = self._incoming.get((frame.sender, frame.group))
        return arrived_by is not None and arrived_by <= self._broken.get(frame.sender, -1)

    def broke(self, peer: ProcessId, connection: int, *, incoming: bool) -> frozenset[GroupId]:
        """A connection with a peer has lost frames; returns the groups that used it."""
        if incoming:
            self._broken[peer] = max(connection, self._broken.pop(peer, -1))
            if len(self._broken) > _BROKEN_MAX:
                del self._broken[next(iter(self._broken))]
        bound = self._incoming if incoming else self._outgoing
        formed = {group for (other, group), number in bound.items() if (other, number) == (peer, connection)}
        return frozenset(formed | (self._configured if connection == 0 else set()))

    def forget(self, group: GroupId) -> None:
        """We have left that group, and will never be in one of its name that was formed before it."""
        name, epoch = name_of(group), epoch_of(group)
        self._entered.discard(group)
        for bound in (self._incoming, self._outgoing):
            for key in [key for key in bound if name_of(key[1]) == name and epoch_of(key[1]) <= epoch]:
                del bound[key]
                self._early.pop(key, None)
