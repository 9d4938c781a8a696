"""One process in one group, as all algorithms see it: the members, and how frames leave.

A lost process never returns, and all live processes are told of the same losses in the same order. So the number of
losses that a process has been told of means the same everywhere: it numbers the *epochs* of a group. If a member was
lost, a new epoch is also a new view; the loss of a sender outside the group changes no view.

A frame from a process that we were told is lost is refused, however late it arrives. This gives an epoch its meaning:
what we say in it about a lost process stays true, because its frames now reach us only through live processes.
Algorithm R loses nothing by this: either a live member has the message and relays it, or no live member has it.
Without it, F would not know which gaps close, and the takeover of A would be wrong (`ordering/takeover.py`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from antiphon.core.effects import Channel, Deliver, Effect, InstallView, Scope, Transmit
from antiphon.protocols.classic.frames import ClassicFrame, DataFrame
from antiphon.types import GroupId, ProcessId, View, next_view

Handlers = Mapping[type[Any], Callable[[Any], None]]
"""By class of frame, what receives it; frames of other classes are ignored."""


class Site:
    """A member, or a sender outside the group. It adds its effects to `effects`, in order."""

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
        """The processes that we were told are lost, members of this group or not."""
        self.members: frozenset[ProcessId]
        """The live members of the view; empty if a sender outside has survived all members."""
        self.peers: tuple[ProcessId, ...]
        """The live members without us."""
        self._channel = Channel.DATAGRAM if datagrams else Channel.STREAM
        self._count_members()
        effects.append(InstallView(view))

    @property
    def losses(self) -> int:
        """Number of losses so far, which is the number of our epoch."""
        return len(self.gone)

    def lose(self, process: ProcessId) -> None:
        """A process is lost; if it was a member, install a view without it."""
        if process in self.view.ranks and self.members != {process}:  # a view has members: the last one stays
            self.view = next_view(self.view, process)
            self.effects.append(InstallView(self.view))
        self._count_members()

    def multicast(self, frame: ClassicFrame) -> None:
        """Transmit to every other member; also if there is none, because the message counts as sent even then."""
        self.effects.append(Transmit(frame, Scope.VIEW, self._channel))

    def tell(self, process: ProcessId, frame: ClassicFrame) -> None:
        self.effects.append(Transmit(frame, process, self._channel))

    def deliver(self, frame: DataFrame) -> None:
        self.effects.append(Deliver(frame))

    def _count_members(self) -> None:
        self.members = frozenset(self.view.members) - self.gone
        self.peers = tuple(member for member in self.view.members if member in self.members and member != self.me)
