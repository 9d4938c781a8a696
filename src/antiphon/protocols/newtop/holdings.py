"""What one member holds of a group: who has sent and completed what, frames that others may lack, the window.

The base of `NewtopGroup`, which decides when to speak; here nothing is ever sent.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from antiphon.core.effects import Effect
from antiphon.core.vectors import BEYOND, Completion, MinVector
from antiphon.protocols.newtop.flow.buffers import Buffers
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.fragments import Fragments
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.recovery.streams import Recovery
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, View, name_of

if TYPE_CHECKING:
    from antiphon.protocols.newtop.formation.transfer import Transfer
    from antiphon.protocols.newtop.rules import Rules


class Holdings:
    """Vectors, buffers and flow control of one member in one group, together with what its application has taken."""

    __slots__ = (
        "_accounted",
        "_bounded",
        "_by_block",
        "_complete",
        "_complete_at",
        "_freed",
        "_handed",
        "_me",
        "_stable_block",
        "_unbounded",
        "buffers",
        "columns",
        "flow",
        "fragments",
        "horizon",
        "last_received",
        "my_rank",
        "news",
        "position",
        "ranks",
        "recovery",
        "safe",
        "transfer",
        "view",
    )

    def __init__(self, me: ProcessId, view: View, settings: NewtopSettings, rules: "Rules", base: int) -> None:
        size = len(view.members)
        self._me = me
        self.my_rank = view.ranks[me]
        self.view = view
        """The view in force; whoever failed stays in it until the next one is installed."""
        self.columns: Mapping[ProcessId, int] = view.ranks
        """Places in all vectors, those of the first view, whoever leaves."""
        self.ranks = dict(view.ranks)
        """The same of those who are in the view in force."""
        self.last_received = MinVector(size, base)
        """LRV (RV in Macedo95): per member its last block number here, our own included."""
        self.safe = settings.service == "total-safe" and name_of(view.group) not in settings.merely_total
        """Whether messages of this group are delivered only when they are stable (docs/spec/newtop.md 14)."""
        self.horizon: Completion = self.last_received
        """What knows D."""
        self.flow = rules.flow(size, self.my_rank, settings) if settings.flow_control else None
        self.recovery = Recovery(me, view, settings) if settings.datagrams else None
        self._by_block = self.flow is None or name_of(view.group) in settings.block_numbered
        if self.flow is not None and self._by_block:
            self.flow.begin(base)
        self.buffers = Buffers(view, settings, by_block=self._by_block, safe=self.safe)
        self._bounded = self.buffers.bounded
        self._unbounded = self.flow is None and not settings.tracing  # the short way, for nobody counts
        self.news = News(settings, base, by_block=self._by_block, safe=self.safe)
        self._complete_at = MinVector(size, base)  # what each member said it had completed, in blocks (lcb)
        self._complete = base  # our own entry of it
        self._stable_block = base  # the smallest entry of it when we last looked
        self._freed = 0  # the stable number up to which buffers were freed
        self.fragments = Fragments(settings.message_bytes_max, rules.states)
        self._handed: deque[int | None] = deque()  # flow numbers of what the application has not taken, if they count
        self.position = 0
        """How many `Deliver` effects the application has taken."""
        self._accounted = 0  # how many of them flow control knows of
        self.transfer: Transfer | None = None
        """Of a formed group, the states that are under way between its members."""

    @property
    def complete_block(self) -> int:
        """D: the largest block that nobody can still send into."""
        return self.last_received.minimum

    @property
    def stable_block(self) -> int:
        """S: the largest block that all who have not failed are known to have completed."""
        return self._complete_at.minimum

    @property
    def safe_block(self) -> int:
        """Up to where messages need not wait to become stable."""
        return self._complete_at.minimum if self.safe else BEYOND

    def acknowledged(self, rank: int) -> int:
        """What that member said it had completed."""
        return self._complete_at.values[rank]

    def stabilise(self, effects: list[Effect]) -> None:
        """Learn what is stable before anything is delivered for it (docs/spec/newtop.md 14, rule 1)."""
        complete = self.last_received.minimum
        if complete > self._complete:
            self._complete = complete
            self._complete_at.raise_to(self.my_rank, complete)
        if self._complete_at.minimum > self._stable_block:
            self._stabilised(self._complete_at.minimum, effects)

    def _stabilised(self, stable: int, effects: list[Effect]) -> None:
        """All have every block up to there: where flow control does not count them, they may go."""
        self._stable_block = stable
        self.buffers.tell_safe(stable, effects)
        if self.flow is None:
            self._free(stable, effects)
        elif not self._by_block:
            self._forget(self.buffers.nulls.free(stable))

    def reached(self, process: ProcessId) -> int:
        """The last number of that member that we have."""
        return self.last_received.values[self.columns[process]]

    def follows(self, frame: BlockFrame) -> bool:
        """Whether it is the next one of its sender."""
        return frame.previous_block == self.reached(frame.sender)

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """All that we hold of a member above a number, in order: the end of its stream, for all have what is freed."""
        held = [frame for frame in self.buffers.held() if frame.sender == process and frame.block > above]
        held.sort(key=lambda frame: frame.block)
        begin = len(held) - 1
        while begin > 0 and held[begin].previous_block == held[begin - 1].block:
            begin -= 1
        return tuple(held[max(begin, 0) :])

    def deliver(self, frame: BlockFrame) -> BlockFrame | None:
        """The frame's turn has come; gives what the application gets, or None for a piece of a larger message."""
        flow = self.flow
        if frame.notice is not None:
            whole = None
        else:
            whole = self.fragments.join(frame) if frame.more or self.fragments.open else frame
        if flow is not None and frame.flow is not None:
            number = frame.flow.number
            if number > flow.counter:
                flow.counter = number
            if frame.sender != self._me:
                self.news.delivered(number, sum(map(len, frame.payloads)))
            waits = self.transfer is not None and self.transfer.waits  # for a state, which must get through (11.2)
            if whole is None or frame.state is not None or waits:
                flow.unconsumed.remove(number)  # the reassembly takes any piece (spec/README 14), we take the rest
            if whole is not None and frame.state is None:
                self._handed.append(None if waits else number)
        return whole

    # Members that fail

    def exclude(self, detection: Detection, dropped: Iterable[BlockFrame]) -> None:
        """These have failed: nobody waits for them any more, and what is dropped of them nobody will deliver."""
        for process, _ in detection.failed:
            rank = self.columns[process]
            for vector in self._vectors():
                vector.raise_to(rank, BEYOND)  # virtual nulls: nobody waits for it
            if self.recovery is not None:
                self.recovery.fail(process)
        self.drop(dropped)

    def drop(self, frames: Iterable[BlockFrame]) -> None:
        """Forget messages that nobody will deliver."""
        for frame in frames:
            number = frame.block if self.flow is None or frame.flow is None else frame.flow.number
            self.buffers.drop(number, self.columns[frame.sender], frame)
            if self.flow is not None:
                self.flow.unconsumed.remove(number)

    def _vectors(self) -> list[MinVector]:
        vectors, flow = [self.last_received, self._complete_at], self.flow
        return vectors if flow is None else [*vectors, flow.received, flow.completed, flow.stable_at]

    # Buffers

    def _hold(self, frame: BlockFrame, rank: int) -> bool:
        """Keep a frame until everybody has it; one that flow control counts takes a buffer of the pool.

        False if there is none: no correct peer sends so much.
        """
        buffers, flow = self.buffers, self.flow
        if flow is None or frame.flow is None:
            buffers.hold(frame.block, rank, frame)
        elif self._by_block or frame.payloads or (frame.notice is not None and frame.notice.kind == "remove"):
            number = frame.flow.number
            if buffers.bounded.frames >= buffers.size and not self._make_room(flow):
                return False
            if rank != self.my_rank and (frame.payloads or frame.notice is not None):
                flow.unconsumed.add(number)  # it is not complete before our application has taken it (Δ, E-18)
            buffers.hold(number, rank, frame)
        else:
            buffers.nulls.hold(frame.block, frame)
        return True

    def _make_room(self, flow: FlowControl) -> bool:
        """Rules fb1 and fb2: free what is stable, else evict."""
        buffers = self.buffers
        self._free(flow.stable, buffers.told)
        if buffers.bounded.frames < buffers.size:
            return True
        self._note_taken(flow)
        evicted = buffers.evict(flow.unconsumed.smallest)
        self._forget([evicted] if evicted is not None else [])
        return evicted is not None

    def _free(self, stable: int, effects: list[Effect]) -> None:
        self._freed = stable
        self._forget(self.buffers.free(stable, effects))

    def _forget(self, freed: list[BlockFrame]) -> None:
        """Nobody will ask for these again."""
        if freed and self.recovery is not None:
            self.recovery.stable(freed)

    # Flow control

    def _settle_flow(self, flow: FlowControl, effects: list[Effect]) -> None:
        told = self.buffers.told
        if told:
            effects += told  # first what happened first
            told.clear()
        self._account(flow)
        if flow.stable > self._freed:
            self._free(flow.stable, effects)

    def _account(self, flow: FlowControl) -> None:
        """Tell flow control what the application has taken, and let it draw its consequences."""
        if self._accounted < self.position:
            self._note_taken(flow)
        flow.settle()

    def _note_taken(self, flow: FlowControl) -> None:
        while self._accounted < self.position:
            self._accounted += 1
            if (number := self._handed.popleft()) is not None:
                flow.unconsumed.remove(number)

    def _slowest(self, flow: FlowControl) -> ProcessId:
        """Whom our application waits for: the member that has completed least, ourselves last among equals."""
        least = flow.completed.minimum
        slowest = [process for process, rank in self.ranks.items() if flow.completed.values[rank] == least]
        return slowest[0] if slowest[0] != self._me else slowest[-1]
