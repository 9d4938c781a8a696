"""Frames of a group that one member keeps because another may lack them: their buffers, and when they are freed."""

from collections.abc import Iterable

from antiphon.core.effects import Effect
from antiphon.protocols.newtop.consumption import Consumption
from antiphon.protocols.newtop.flow.buffers import Buffers
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.membership.roster import Roster
from antiphon.protocols.newtop.recovery.streams import Recovery
from antiphon.types import ProcessId


class Holdings:
    """Invariant: a frame stays until its number is stable, it is evicted (rule fb2), or no member will deliver it."""

    __slots__ = (
        "_by_block",
        "_columns",
        "_consumption",
        "_flow",
        "_my_rank",
        "_recovery",
        "bounded",
        "buffers",
        "freed",
        "unbounded",
    )

    def __init__(
        self,
        roster: Roster,
        buffers: Buffers,
        flow: FlowControl | None,
        consumption: Consumption,
        recovery: Recovery | None,
        *,
        by_block: bool,
    ) -> None:
        self.buffers = buffers
        self.bounded = buffers.bounded
        """Frames that flow control bounds; the symmetric discipline adds frames directly while `unbounded`."""
        self.unbounded = flow is None and not buffers.tracing
        """True if frames are not counted: then they need no bookkeeping besides their number."""
        self.freed = 0
        """The stable number up to which buffers were freed."""
        self._columns = roster.columns
        self._my_rank = roster.my_rank
        self._flow = flow
        self._consumption = consumption
        self._recovery = recovery
        self._by_block = by_block

    def hold(self, frame: BlockFrame, rank: int) -> bool:
        """Keep a frame until all members have it; one that flow control counts takes a buffer of the pool.

        False if no buffer is free: a correct peer never sends that much.
        """
        buffers, flow = self.buffers, self._flow
        if flow is None or frame.flow is None:
            buffers.hold(frame.block, rank, frame)
        elif self._by_block or frame.payloads or (frame.notice is not None and frame.notice.kind == "remove"):
            number = frame.flow.number
            if buffers.bounded.frames >= buffers.size and not self._make_room(flow):
                return False
            if rank != self._my_rank and (frame.payloads or frame.notice is not None):
                flow.unconsumed.add(number)  # it is not complete before our application has consumed it (Δ, E-18)
            buffers.hold(number, rank, frame)
        else:
            buffers.nulls.hold(frame.block, frame)
        return True

    def stored(self, process: ProcessId, above: int) -> list[BlockFrame]:
        """All frames of a member above a number that we hold, in the order of numbers."""
        held = [frame for frame in self.buffers.held() if frame.sender == process and frame.block > above]
        held.sort(key=lambda frame: frame.block)
        return held

    def drop(self, frames: Iterable[BlockFrame]) -> None:
        """Forget messages that no member will deliver."""
        flow = self._flow
        for frame in frames:
            number = frame.block if flow is None or frame.flow is None else frame.flow.number
            self.buffers.drop(number, self._columns[frame.sender], frame)
            if flow is not None:
                flow.unconsumed.remove(number)

    def free(self, stable: int, effects: list[Effect]) -> None:
        """All members have everything up to that number."""
        self.freed = stable
        freed = self.buffers.free(stable, effects)
        if self._recovery is not None:
            self._recovery.stable(freed)

    def free_nulls(self, stable: int) -> None:
        """The same for the nulls that flow control does not count."""
        freed = self.buffers.nulls.free(stable)
        if self._recovery is not None:
            self._recovery.stable(freed)

    def stabilised(self, stable: int, effects: list[Effect]) -> None:
        """All members have every block up to this number: free the blocks that flow control does not count."""
        self.buffers.tell_safe(stable, effects)
        if self._flow is None:
            self.free(stable, effects)
        elif not self._by_block:
            self.free_nulls(stable)

    def account(self, flow: FlowControl) -> None:
        """Report consumption to flow control, and update its numbers."""
        consumption = self._consumption
        if consumption.accounted < consumption.position:
            consumption.account()
        flow.settle()

    def settle(self, flow: FlowControl, effects: list[Effect]) -> None:
        """The same; then free the frames that are stable for flow control."""
        told = self.buffers.told
        if told:
            effects += told  # in the order of the events
            told.clear()
        if self._consumption.accounted < self._consumption.position:
            self._consumption.account()
        flow.settle()
        if flow.stable > self.freed:
            self.free(flow.stable, effects)

    def _make_room(self, flow: FlowControl) -> bool:
        """Rules fb1 and fb2: free what is stable, else evict."""
        buffers = self.buffers
        self.free(flow.stable, buffers.told)
        if buffers.bounded.frames < buffers.size:
            return True
        self._consumption.account()
        evicted = buffers.evict(flow.unconsumed.smallest)
        if evicted is None:
            return False
        if self._recovery is not None:
            self._recovery.stable([evicted])
        return True
