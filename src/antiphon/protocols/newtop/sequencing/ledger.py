"""The numbers of the sequencer in an asymmetric group, and how many of them are complete and stable here."""

from antiphon.core.effects import Effect
from antiphon.protocols.newtop.consumption import Consumption
from antiphon.protocols.newtop.frames import BlockFrame, Ordering
from antiphon.protocols.newtop.holdings import Holdings
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.membership.roster import Roster
from antiphon.protocols.newtop.progress import Progress
from antiphon.protocols.newtop.sequencing.chains import Chains
from antiphon.protocols.newtop.sequencing.claims import Claims
from antiphon.protocols.newtop.sequencing.horizon import Horizon
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId


class Ledger:
    """Invariant: a number is complete when no number up to it can arrive and, with windows, it is consumed here."""

    __slots__ = ("_consumption", "_holdings", "_progress", "_roster", "chains", "claims", "horizon")

    def __init__(
        self,
        roster: Roster,
        progress: Progress,
        holdings: Holdings,
        consumption: Consumption,
        settings: NewtopSettings,
        base: int,
    ) -> None:
        self.horizon = Horizon(base)
        self.chains = Chains(base)
        self.claims = Claims(settings)
        self._roster = roster
        self._progress = progress
        self._holdings = holdings
        self._consumption = consumption

    def follows(self, frame: BlockFrame) -> bool:
        """True if nothing is missing before it."""
        before = self.chains.before(frame.sender, ordered=frame.ordering is not None)
        reached = self._progress.received.values[self._roster.columns[frame.sender]]
        return frame.previous_block == before and frame.block > reached

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """The frames that this member has ordered above that number, or its last evidence of life."""
        return tuple(self._holdings.stored(process, above)) or self.chains.evidence(process, above)

    def enter(self, frame: BlockFrame, ordering: Ordering) -> None:
        """The sequencer, perhaps we, has numbered a message: every member counts it at receipt (rule 6.6)."""
        buffers = self._holdings.buffers
        self.chains.link(frame.sender, frame.block)
        if frame.payloads:
            buffers.hold(frame.block, self._roster.columns[ordering.origin], frame)
        else:
            buffers.nulls.hold(frame.block, frame)  # places of view changes do not wait for a window
        if self.claims.counts and (frame.payloads or frame.notice is not None):
            self._consumption.unconsumed.add(frame.block)
            self.claims.came(sum(map(len, frame.payloads)))
        self.claims.heard_stable(ordering.stable)

    def reach(self, rank: int, block: int) -> None:
        """That member has reached this number; if it is the sequencer, the group has (rule 6.4)."""
        self._progress.received.raise_to(rank, block)
        self.look_ahead()

    def look_ahead(self) -> None:
        """The sequencer, or our last number of it, has changed (rule 6.4)."""
        sequencer = self._roster.view.members[0]
        self.horizon.look(self._progress.received.values[self._roster.columns[sequencer]])

    def cut(self, last: int, detection: Detection) -> int:
        """The sequencer has failed with this last number; returns the place of the view change."""
        number = self.horizon.cut(last, detection)
        self.look_ahead()
        return number

    def installed(self) -> None:
        """The view has changed."""
        self.horizon.installed(self._roster.ranks)
        self.look_ahead()

    def account(self) -> int:
        """Enter what the application has consumed; returns the complete number."""
        complete = self.horizon.minimum
        self._consumption.account()
        smallest = self._consumption.unconsumed.smallest
        if smallest is not None and smallest <= complete:
            complete = smallest - 1
        self._progress.note_complete(complete)
        return complete

    def settle(self, effects: list[Effect]) -> bool:
        """Compute completion, then stability; True if more is stable and freed."""
        progress = self._progress
        progress.advance(self.account())
        progress.note_stable(min(progress.complete, max(progress.completed.minimum, self.claims.stable_told)))
        if progress.stable <= self._holdings.freed:
            return False
        self._holdings.free(progress.stable, effects)
        self._holdings.free_nulls(progress.stable)
        return True
