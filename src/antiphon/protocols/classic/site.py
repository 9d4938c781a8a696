"""One process in one group, as all four algorithms see it: who is there, and how frames leave.

Processes are lost for good, and everybody who lives is told of the same losses in the same order. So the number of
losses that a process has been told of means the same everywhere: it numbers the *epochs* of a group. A new epoch is
also a new view, if a member was lost and not a sender outside.

A frame that was transmitted by somebody we were told is lost is refused, however late it comes. This gives an epoch its
meaning: what we say in it of the lost stays true, for nothing of theirs reaches us any more but through somebody who
lives. Algorithm R loses nothing by it: a live member has the message and relays it, or nobody has. F would not know
which gaps close, and the takeover of A would be wrong (`takeover.py`).
"""

from antiphon.core.effects import Channel, Deliver, Effect, InstallView, Scope, Transmit
from antiphon.protocols.classic.frames import ClassicFrame, DataFrame
from antiphon.types import GroupId, ProcessId, View, next_view


class Site:
    """A member, or a sender outside the group; what it does is added to `effects`, in order."""

    __slots__ = ("_channel", "delivers", "effects", "gone", "group", "me", "members", "peers", "view")

    def __init__(
        self,
        me: ProcessId,
        view: View,
        *,
        delivers: bool,
        datagrams: bool,
        gone: set[ProcessId],
        effects: list[Effect],
    ) -> None:
        self.me = me
        self.group: GroupId = view.group
        self.view = view
        self.delivers = delivers
        self.effects = effects
        self.gone = gone
        """Whom we were told is lost, members of this group or not."""
        self.members: frozenset[ProcessId]
        """Those of the view that live; empty when a sender outside has survived the group."""
        self.peers: tuple[ProcessId, ...]
        """The same without us."""
        self._channel = Channel.DATAGRAM if datagrams else Channel.STREAM
        self._count_members()
        effects.append(InstallView(view))

    @property
    def losses(self) -> int:
        """The number of our epoch."""
        return len(self.gone)

    def lose(self, process: ProcessId) -> None:
        """The process is gone now; if it was a member, from the view too."""
        if process in self.view.ranks and self.members != {process}:  # a view has members: the last one stays
            self.view = next_view(self.view, process)
            self.effects.append(InstallView(self.view))
        self._count_members()

    def multicast(self, frame: ClassicFrame) -> None:
        """To every other member; also if there is none, for then too the message is sent."""
        self.effects.append(Transmit(frame, Scope.VIEW, self._channel))

    def tell(self, process: ProcessId, frame: ClassicFrame) -> None:
        """To one process."""
        self.effects.append(Transmit(frame, process, self._channel))

    def deliver(self, frame: DataFrame) -> None:
        """Hand a message to the application."""
        self.effects.append(Deliver(frame))

    def _count_members(self) -> None:
        self.members = frozenset(self.view.members) - self.gone
        self.peers = tuple(member for member in self.view.members if member in self.members and member != self.me)
