"""One group at one member, without failures: blocks, silence, stability, flow control (Macedo94 ch. 3, 4, 8; Macedo95).

This file shows the coupling of the parts in one place; each part has its own. When a frame may be delivered is not
decided here but over all groups of the process, by the ordering part (`orders/`).
"""

from collections import deque
from typing import TYPE_CHECKING

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Blocked, Channel, Effect, Scope, Transmit, Unblocked
from antiphon.core.newtop.buffers import Buffers
from antiphon.core.newtop.flow import FlowControl
from antiphon.core.newtop.fragments import Fragments
from antiphon.core.newtop.frames import AliveFrame, BlockFrame
from antiphon.core.newtop.news import News
from antiphon.core.newtop.outbox import Outbox
from antiphon.core.newtop.recovery import Recovery
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.vectors import MinVector
from antiphon.types import ProcessId, View

if TYPE_CHECKING:
    from antiphon.core.newtop.orders.contract import Order
    from antiphon.core.newtop.rules import Rules


class NewtopGroup:
    """Invariant: `sent` is our own entry of the receive vector; `received` never falls (E-48)."""

    __slots__ = (  # CPython looks attributes up more slowly where an instance has more than thirty in its dict
        "_accounted",
        "_announces",
        "_bounded",
        "_by_block",
        "_channel",
        "_complete",
        "_complete_at",
        "_freed",
        "_handed",
        "_me",
        "_rank_of",
        "_settings",
        "_stable_block",
        "_stalled",
        "_unbounded",
        "_waits_for",
        "_window_bytes",
        "armed",
        "blocked",
        "buffers",
        "counter",
        "flow",
        "fragments",
        "last_received",
        "my_rank",
        "news",
        "outbox",
        "position",
        "received",
        "recovery",
        "sent",
        "silence",
        "view",
    )

    def __init__(
        self, me: ProcessId, view: View, counter: BlockCounter, settings: NewtopSettings, rules: "Rules"
    ) -> None:
        size = len(view.members)
        self.view = view
        self.counter = counter
        self.my_rank = view.ranks[me]
        self.last_received = MinVector(size)
        """LRV (RV in Macedo95): per member its last block number here, our own included."""
        self.sent = 0
        """SENT: our own last number in this group."""
        self.received = 0
        """RECD: the largest number received."""
        self.silence = rules.silence(settings.silence_timeout_ns)
        self.outbox = Outbox(packing=settings.packing, frame_bytes_max=settings.frame_bytes_max)
        self.flow = rules.flow(size, self.my_rank, settings) if settings.flow_control else None
        self.recovery = Recovery(me, view, settings) if settings.datagrams else None
        self.blocked = False
        """Whether flow control holds a message of our application back."""
        self.armed: int | None = None
        """The deadline that the process has an alarm for."""
        self._by_block = self.flow is None or view.group in settings.block_numbered
        self.buffers = Buffers(view, settings, by_block=self._by_block)
        self._bounded = self.buffers.bounded
        self._unbounded = self.flow is None and not settings.tracing  # the short way, for nobody counts
        self.news = News(settings, by_block=self._by_block)
        self._me = me
        self._complete_at = MinVector(size)  # what each member said it had completed, in blocks (lcb)
        self._complete = 0  # our own entry of it
        self._stable_block = 0  # the smallest entry of it when we last looked
        self._freed = 0  # the stable number up to which buffers were freed
        self.fragments = Fragments(settings.message_bytes_max)
        self._handed: deque[int] = deque()  # flow numbers of what the application has not taken
        self.position = 0
        """How many `Deliver` effects the application has taken."""
        self._accounted = 0  # how many of them flow control knows of
        self._settings = settings
        self._window_bytes = settings.window_bytes
        self._channel = Channel.DATAGRAM if settings.datagrams else Channel.STREAM
        self._rank_of = view.ranks.get
        self._announces = rules.announces and size > 1
        self._waits_for = me  # the slowest member, while our application is blocked
        self._stalled = False  # a null is due and flow control holds it back

    @property
    def complete_block(self) -> int:
        """D: the largest block that nobody can still send into."""
        return self.last_received.minimum

    @property
    def largest(self) -> int:
        """max(SENT, RECD)."""
        return max(self.sent, self.received)

    @property
    def released(self) -> bool:
        """Whether flow control, which had blocked our application, would let it go on."""
        flow = self.flow
        return self.blocked and flow is not None and flow.permits(self._next_number(flow), self.outbox.least_bytes)

    @property
    def deadline(self) -> int | None:
        """When this group must be looked at again."""
        first, owed = self.news.at, self.silence.deadline
        if owed is not None and not self._stalled and (first is None or owed < first):
            first = owed
        if self.recovery is not None:
            repair = self.recovery.deadline
            if repair is not None and (first is None or repair < first):
                first = repair
        return first

    # What comes in

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member (5.3); anything but the next one of its sender is refused: None.

        True if something follows from it: an answer owed, a block complete, a block stable. In a large group most
        frames only fill a cell of a row.
        """
        rank = self._rank_of(frame.sender)
        if rank is None or rank == self.my_rank:
            return None  # not in our view, or an echo of ourselves: own copies never travel (Macedo94 §7.1)
        block, header, last_received, complete_at = frame.block, frame.flow, self.last_received, self._complete_at
        if not frame.previous_block == last_received.values[rank] < block:
            return None  # a copy or a gap: below us the channel is FIFO and lossless
        if header is None and self._unbounded:
            self._bounded.hold(block, frame)
        elif (header is None) is not (self.flow is None):
            return None  # its sender and we do not agree whether there is flow control
        elif not self._hold(frame, rank):  # it takes a buffer before its header is read (Macedo95 §3.2, remark)
            return None
        last_received.raise_to(rank, block)
        if frame.complete_block > complete_at.values[rank]:
            complete_at.raise_to(rank, frame.complete_block)
        follows = last_received.minimum != self._complete or complete_at.minimum != self._stable_block
        if header is not None and self.flow is not None and self.flow.heard(rank, header):
            follows = True
        if block > self.received:
            self.received = block
            if block > self.sent:
                self.silence.owe(block, now)
                return True
        return follows

    def heard(self, frame: AliveFrame) -> bool:
        """An announcement of another member; True if something may follow."""
        rank = self._rank_of(frame.sender)
        if rank is None or rank == self.my_rank:
            return False
        self._complete_at.raise_to(rank, frame.complete_block)
        if frame.flow is not None and self.flow is not None:
            self.flow.heard(rank, frame.flow)
        return True

    def expect(self, block: int, now: int) -> bool:
        """A number of this group was named elsewhere; whoever sent it may be gone, so we owe it an answer (E-63)."""
        if block <= self.largest:
            return False
        self.silence.owe(block, now)
        self.received = block
        return True

    @property
    def awaits_application(self) -> bool:
        """Whether something may follow at once when our application takes a message.

        That we have completed more is news, but it can wait for the alarm that is set already.
        """
        flow, news = self.flow, self.news
        if self.blocked or self._stalled or news.at is None:
            return True
        return flow is not None and news.presses(flow.largest)

    # What goes out

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Draw the consequences of what has come, gone and been taken: completion, then stability."""
        complete_at, flow, news = self._complete_at, self.flow, self.news
        complete = self.last_received.minimum
        if complete > self._complete:
            self._complete = complete
            complete_at.raise_to(self.my_rank, complete)
        if flow is not None:
            self._settle_flow(flow, effects)
        stable = complete_at.minimum
        if stable > self._stable_block:
            self._stable_block = stable
            if flow is None:
                self._free(stable, effects)
            elif not self._by_block:
                self._forget(self.buffers.nulls.free(stable))
        if not self._unbounded and self.buffers.tracing:
            self.buffers.gauge(0 if flow is None else flow.ahead_bytes, effects)
        if self._announces and (news.at is None or (flow is not None and news.presses(flow.complete))):
            news.weigh(complete, flow, now)

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Let leave what the application asked for, as far as flow control permits; the last number used, or 0."""
        block, flow, outbox, header = 0, self.flow, self.outbox, None
        while outbox.waiting:
            room = self._window_bytes
            if flow is not None:
                self._account(flow)
                number = self._next_number(flow)
                if not flow.permits(number, outbox.least_bytes):
                    self._tell_blocked(flow, effects)
                    break
                room -= flow.ahead_bytes
                header = flow.header(number)
            if self.blocked:
                self.blocked = False
                effects.append(Unblocked(self.view.group))
            label, payloads, more = outbox.take(room)
            if flow is not None:
                flow.unconsumed.add(number)
                flow.counted(number, sum(map(len, payloads)))
            block = self.counter.advance()  # rule CA1
            complete, stamp = self.last_received.minimum, order.stamp(self) if order.stamps else None
            frame = BlockFrame(
                self.view.group, self._me, block, self.sent, complete, payloads, label, header, stamp, more
            )
            order.sent(self, self._transmit(frame, now, effects), now)
        return block

    def answer(self, now: int, effects: list[Effect]) -> None:
        """Send the null that is owed and due (rule CA3), unless flow control counts nulls and holds it back."""
        if self.silence.due(now):
            self.null(self.received, now, effects)
        else:
            self._stalled = False

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """A null with this number (rules CA3, CA4), if it may leave now."""
        assert block >= self.sent  # that own numbers never even repeat (pr1') is the rule of `Silence` (E-6)
        flow, header = self.flow, None
        if flow is not None:
            self._account(flow)
            if self._by_block:
                if not flow.permits(block, 0):
                    self._stall(now)
                    return
                flow.counted(block, 0)
            header = flow.header(block if self._by_block else flow.largest)
        self._stalled = False
        self.counter.witness(block)
        complete = self.last_received.minimum
        self._transmit(BlockFrame(self.view.group, self._me, block, self.sent, complete, (), 0, header), now, effects)

    def finish(self, now: int, effects: list[Effect]) -> None:
        """What time has brought: announcements, repairs."""
        if self.news.at is not None and self.news.at <= now:
            self.announce(now, effects)
        if self.recovery is not None:
            self.recovery.drain(now, effects)

    def announce(self, now: int, effects: list[Effect]) -> None:
        """Say what nobody has heard from us yet, if no message did for a while."""
        flow, header, complete = self.flow, None, self.last_received.minimum
        if self.silence.deadline is not None and not self._stalled:
            self.news.at = self.silence.deadline  # the null that we owe will say it
            return
        if not self.news.due(complete, flow, now) and not self._stalled:
            return
        if flow is not None:
            header = flow.header(flow.sent if self._by_block else flow.largest)  # settled just before
            flow.carried(header.number)
        frame = AliveFrame(self.view.group, self._me, self.sent, complete, header, self._stalled)
        if self.recovery is not None:
            frame = self.recovery.outgoing(frame, now)
        self.news.spoken(complete, header, now)
        effects.append(Transmit(frame, Scope.VIEW, self._channel))
        if self._stalled:
            self.news.at = now + self._settings.repair_max_ns

    def deliver(self, frame: BlockFrame) -> BlockFrame | None:
        """The frame's turn has come; gives what the application gets, or None for a piece of a larger message."""
        flow = self.flow
        whole = self.fragments.join(frame) if frame.more or self.fragments.open else frame
        if flow is not None and frame.flow is not None:
            number = frame.flow.number
            if number > flow.counter:
                flow.counter = number
            if whole is None:
                flow.unconsumed.remove(number)  # it waits in the reassembly, which takes any message (spec/README 14)
            else:
                self._handed.append(number)
        return whole

    # Parts

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
            flow.unconsumed.remove(self._handed.popleft())

    def _next_number(self, flow: FlowControl) -> int:
        """The flow number that our next data message would get."""
        return 1 + (self.counter.value if self._by_block else flow.counter)

    def _transmit(self, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        if self.recovery is not None:
            frame = self.recovery.outgoing(frame, now)
        block, header, silence = frame.block, frame.flow, self.silence
        self.sent = block
        if self._unbounded:
            self._bounded.hold(block, frame)
        else:
            held = self._hold(frame, self.my_rank)
            assert held, "the window has room for our own"
        self.last_received.raise_to(self.my_rank, block)
        if header is not None and self.flow is not None:
            self.flow.carried(header.number)
        if silence.deadline is not None:
            silence.spoke(block)
            self._stalled = self._stalled and silence.deadline is not None
        self.news.spoken(frame.complete_block, header, now)
        effects.append(Transmit(frame, Scope.VIEW, self._channel))
        return frame

    def _hold(self, frame: BlockFrame, rank: int) -> bool:
        """Keep a frame until everybody has it; one that flow control counts takes a buffer of the pool.

        False if there is none: no correct peer sends so much.
        """
        buffers, flow = self.buffers, self.flow
        if flow is None or frame.flow is None:
            buffers.hold(frame.block, rank, frame)
        elif frame.payloads or self._by_block:
            number = frame.flow.number
            if buffers.bounded.frames >= buffers.size and not self._make_room(flow):
                return False
            if frame.payloads and rank != self.my_rank:
                flow.unconsumed.add(number)  # it is not complete before our application has taken it (Δ, E-18)
                self.news.bytes += sum(map(len, frame.payloads))
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

    def _tell_blocked(self, flow: FlowControl, effects: list[Effect]) -> None:
        """Name whom our application waits for: the member that has completed least, ourselves last among equals."""
        least = flow.completed.minimum
        ranks = [rank for rank, value in enumerate(flow.completed.values) if value == least]
        slowest = self.view.members[ranks[0] if ranks[0] != self.my_rank else ranks[-1]]
        if not self.blocked or slowest != self._waits_for:
            self._waits_for = slowest
            effects.append(Blocked(self.view.group, slowest))
        self.blocked = True

    def _stall(self, now: int) -> None:
        """A null is refused: it goes out when state allows; until then say every so often that we live (README 12)."""
        self._stalled = True
        if self.news.at is None:
            self.news.at = now + self._settings.repair_max_ns
