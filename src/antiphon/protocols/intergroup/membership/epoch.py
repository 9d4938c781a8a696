"""What a process knows about the epoch that it is in: its senders, who left it, and which epochs came before."""

from dataclasses import dataclass, field
from typing import Final

from antiphon.protocols.intergroup.membership.claims import NO_END, Claim
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.types import ProcessId, ViewId

PREDECESSORS_MAX: Final = 64


@dataclass(slots=True)
class Epoch:
    """Begins with an MC message; within it, senders are added and leave in order."""

    id: ViewId
    entered: int
    """timeEntered: the stamp at which it begins."""
    installed: int
    """The stamp at which it begins for us: later, if we joined it."""
    stints: dict[ProcessId, int]
    """For each sender in the view, the number of its first message in this membership."""
    view: ViewId
    """The base id of the current view."""
    view_began: int
    """The stamp at which that view begins."""
    left: dict[ProcessId, Claim] = field(default_factory=dict)
    """The senders that left in order, each with all that it has sent (J2)."""
    predecessors: tuple[ViewId, ...] = ()
    """Earlier epochs of processes that are in this one; the latest last."""

    @property
    def members(self) -> tuple[ProcessId, ...]:
        return tuple(sorted(self.stints))

    def add(self, process: ProcessId, first: int, by: ProcessId, seq: int, stamp: int) -> bool:
        """PAdd, sent by `by` as its message `seq`; False if it has no effect (J11)."""
        left = self.left.get(process)
        if first < 1 or process in self.stints or (left is not None and first <= left.seq):
            return False
        self.left.pop(process, None)
        self.stints[process] = first
        self._begin_view(stamp, by, seq)
        return True

    def leave(self, process: ProcessId, seq: int, stamp: int) -> bool:
        """PLeave, the message `seq` of that process; False if it is in no view."""
        stint = self.stints.pop(process, None)
        if stint is None:
            return False
        self.left[process] = Claim(stint, seq, NO_END)
        self._begin_view(stamp, process, seq)
        return True

    def _begin_view(self, stamp: int, by: ProcessId, seq: int) -> None:
        self.view, self.view_began = view_id(stamp, Kind.CHANGE, by, seq), stamp

    def with_predecessors(self, *epochs: ViewId) -> tuple[ViewId, ...]:
        """The epochs before the next one: ours, those before it, and these."""
        return tuple(dict.fromkeys((*self.predecessors, *epochs, self.id)))[-PREDECESSORS_MAX:]
