"""One group at one member: blocks, silence, stability, flow control, views (Macedo94 ch. 3, 4, 6, 8; Macedo95).

This file shows the coupling of the parts in one place: when a member speaks, and what it says. What it holds is in
`holdings.py`; each part has a file of its own. When a frame may be delivered is not decided here but over all groups of
the process, by the ordering part (`orders/`).
"""

from collections import deque
from typing import TYPE_CHECKING, ClassVar

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Blocked, Channel, Effect, Scope, Transmit, Unblocked
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, MembershipFrame, Notice
from antiphon.protocols.newtop.holdings import Holdings
from antiphon.protocols.newtop.membership.agreement import Detection, Surroundings
from antiphon.protocols.newtop.outbox import Outbox, Parcel, Stream, Unsent
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, View

if TYPE_CHECKING:
    from antiphon.protocols.newtop.ordering.contract import Order
    from antiphon.protocols.newtop.rules import Rules


class NewtopGroup(Holdings):
    """Invariant: `sent` is our own entry of the receive vector; `received` never falls (E-48)."""

    __slots__ = (  # CPython looks attributes up more slowly where an instance has more than thirty in its dict
        "_announces",
        "_awaits_acknowledgments",
        "_channel",
        "_heard_at",
        "_named",
        "_rank_of",
        "_settings",
        "_stalled",
        "_waits_for",
        "_window_bytes",
        "agreement",
        "armed",
        "blocked",
        "blocked_at",
        "ceiling",
        "change",
        "counter",
        "donation",
        "early",
        "entered",
        "excluded",
        "frozen",
        "notices",
        "outbox",
        "overdue",
        "place",
        "received",
        "row_at",
        "sent",
        "silence",
        "spoke_at",
        "suspector",
        "unseen",
        "wanted",
        "wants",
        "wary",
    )
    sequenced: ClassVar[bool] = False
    """Whether one member numbers the messages of all (docs/spec/newtop.md 11.3)."""

    def __init__(
        self,
        me: ProcessId,
        view: View,
        counter: BlockCounter,
        settings: NewtopSettings,
        rules: "Rules",
        around: Surroundings,
        early: list[Effect],
        base: int = 0,
        now: int = 0,
    ) -> None:
        super().__init__(me, view, settings, rules, base)
        self.early = early
        """What membership lets happen between two drains, in order; one list for all groups of the process."""
        self.counter = counter
        self.sent = base
        """SENT: our own last number in this group."""
        self.received = base
        """RECD: the largest number received."""
        self.silence = rules.silence(settings.silence_timeout_ns)
        self.outbox = Outbox(packing=settings.packing, frame_bytes_max=settings.frame_bytes_max)
        self.overdue = 0
        """How many of these had left in the group before this one, and were on their way to its sequencer."""
        self.blocked = False
        """Whether flow control, or a change of views, holds a message of our application back."""
        self.blocked_at = 0
        """Since when."""
        self.armed: int | None = None
        """The deadline that the process has an alarm for."""
        self._settings = settings
        self._window_bytes = settings.window_bytes
        self._channel = Channel.DATAGRAM if settings.datagrams else Channel.STREAM
        self._announces = rules.announces and len(view.members) > 1
        self._awaits_acknowledgments = self.safe and rules.awaits_acknowledgments
        self._waits_for = me  # the slowest member, while our application is blocked
        self._stalled = False  # a null is due and flow control holds it back
        self._named = 0  # up to this number, nobody need have sent what comes before
        self.donation: tuple[int, Outbox | Stream] | None = None
        """The state of our class, on its way to those who come from elsewhere; before anything of the application."""
        self.entered = True
        """Whether our application has got to the first view."""
        self.frozen = False
        """Whether our application's messages wait for the end of a formation, or of the group."""
        self.ceiling = BEYOND
        """Above this number we acknowledge nothing now: we may go elsewhere without delivering it (E-96)."""
        self.wants: tuple[int, int] | None = None
        """The number that must be stable before we leave, and since when we wait for that."""
        self.wanted = 0
        """The number that somebody who leaves wants us to complete."""
        self._begin_membership(me, view, settings, rules, around, now)

    def _begin_membership(
        self, me: ProcessId, view: View, settings: NewtopSettings, rules: "Rules", around: Surroundings, now: int
    ) -> None:
        self.place = view.ranks[me]
        """Our own rank in the view in force."""
        self.notices: deque[Notice] = deque()
        """What members are to be told by a numbered message, before anything of the application."""
        self.excluded: tuple[ProcessId, ...] = ()
        """Whom we have excluded or confirmed failed: the mark on our messages (E-45)."""
        self.wary = False
        """Whether frames must pass the filter of agreement: somebody is suspected, accused or failed."""
        self.unseen = False
        """In closed mode: our application has not got to the view in force yet."""
        self.row_at = now
        """When the last number above all others came or left."""
        self.spoke_at = now
        """When we last multicast something here."""
        self.suspector = rules.suspector(len(view.members), settings, now)
        self._heard_at = self.suspector.clock
        self.agreement = rules.agreement(me, self, settings, around)
        self.change = rules.change(settings)
        self._rank_of = self.ranks.get

    @property
    def largest(self) -> int:
        """max(SENT, RECD)."""
        return max(self.sent, self.received)

    @property
    def released(self) -> bool:
        """Whether what had held our application back would let it go on."""
        if not self.blocked or (self._held and not self.notices and self.donation is None):
            return False
        flow = self.flow
        return flow is None or flow.permits(self._next_number(flow), self._next_bytes)

    @property
    def _held(self) -> bool:
        """Whether our application must not send until the view has changed, the group, or its state is told."""
        if (
            self.frozen
            or not self.entered
            or (self.transfer is not None and (self.transfer.owes or self.donation is not None))
        ):
            return True
        return self.change.holds_senders and bool(self.agreement.failed or self.unseen)

    @property
    def _next_bytes(self) -> int:
        """How much the next numbered message that wants to leave carries at least."""
        if self.notices:
            return 0
        outbox: Outbox | Stream = self.outbox if self.donation is None else self.donation[1]
        return outbox.least_bytes if outbox.waiting else 0

    @property
    def deadline(self) -> int | None:
        """When this group must be looked at again."""
        first, owed, watch = self.news.at, self.silence.deadline, self.suspector.at
        if watch is not None and (first is None or watch < first):
            first = watch
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
        self._heard_at[rank] = now
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
                self.row_at = now
                self.silence.owe(block, now)
                return True
        return follows

    def heard(self, frame: AliveFrame, now: int) -> bool:
        """An announcement of another member; True if something may follow."""
        rank = self._rank_of(frame.sender)
        if rank is None or rank == self.my_rank:
            return False
        self._heard_at[rank] = now
        self._complete_at.raise_to(rank, frame.complete_block)
        if frame.flow is not None and self.flow is not None:
            self.flow.heard(rank, frame.flow)
        if frame.blocked and self.spoke_at + self._settings.repair_max_ns <= now:
            self.say_alive(now)  # it wonders who is still there (9.2 d)
        return True

    def sign_of_life(self, process: ProcessId, now: int) -> bool:
        """Something came directly from there; False if that is nobody in our view, or we."""
        rank = self._rank_of(process)
        if rank is None or rank == self.my_rank:
            return False
        self._heard_at[rank] = now
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
            self._stabilised(stable, effects)
        if not self._unbounded and self.buffers.tracing:
            self.buffers.gauge(0 if flow is None else flow.ahead_bytes, effects)
        if self._announces and (
            news.at is None
            or (flow is not None and news.presses(flow.complete))
            or (self.safe and news.awaits(min(complete, self.ceiling)))
        ):
            news.weigh(min(complete, self.ceiling), flow, now)
        if self.wanted and complete >= self.wanted:
            self.wanted = 0
            self._say(self._alive(), now, self.early)
        if self.suspector.idle and (self.received > complete or self.sent > complete or self.unanswered):
            self.suspector.begin(self, now)

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Let leave what members and the application asked for, as far as that is permitted; the last number, or 0."""
        block, flow, outbox, header = 0, self.flow, self.outbox, None
        while self.notices or outbox.waiting or self.donation is not None:
            if self.notices and self.notices[0].kind == "flush":
                block = self._flush(self.notices.popleft(), now, effects)
                continue
            room, held = self._window_bytes, self._held
            if held and not self.notices and self.donation is None:
                self._tell_blocked(min(self.agreement.failed, default=self._me), now, effects)
                break
            if flow is not None:
                self._account(flow)
                number = self._next_number(flow)
                if not flow.permits(number, self._next_bytes):
                    self._tell_blocked(self._slowest(flow), now, effects)
                    break
                room -= flow.ahead_bytes
                header = flow.header(number)
            if self.blocked and not held:
                self._tell_unblocked(effects)
            notice, state = self.notices.popleft() if self.notices else None, None
            parcel: Parcel = (0, (), False)
            if notice is None and self.donation is not None:
                state, source = self.donation
                parcel = source.take(room)
                if not source.waiting:
                    self.donation = None
            elif notice is None:
                parcel = outbox.take(room)
            label, payloads, more = parcel
            if flow is not None:
                flow.unconsumed.add(number)
                flow.counted(number, sum(map(len, payloads)))
            block = self.counter.advance()  # rule CA1
            complete, stamp = self._acknowledged, order.stamp(self) if order.stamps else None
            frame = BlockFrame(
                self.view.group, self._me, block, self.sent, complete, payloads, label, header, stamp, more,
                excluded=self.excluded, notice=notice, state=state,
            )  # fmt: skip
            order.sent(self, self._transmit(frame, now, effects), now)
        if self.blocked and not outbox.waiting and not self.notices and self.donation is None:
            self._tell_unblocked(effects)  # a notice had been refused, and the application has nothing to wait for
        return block

    def _flush(self, notice: Notice, now: int, effects: list[Effect]) -> int:
        """A line that must not wait for the window: messages behind other lines keep it shut until the view (E-79)."""
        block, complete = self.counter.advance(), self._acknowledged
        header = None if self.flow is None else self.flow.header(self.flow.largest)
        frame = BlockFrame(
            self.view.group, self._me, block, self.sent, complete, (), 0, header, excluded=self.excluded, notice=notice
        )
        self.change.flushed(self._transmit(frame, now, effects))
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
                    self._step(block, flow, now, effects)
                    return
                flow.counted(block, 0)
            header = flow.header(block if self._by_block else flow.largest)
        self._stalled = False
        self.counter.witness(block)
        complete = self._acknowledged
        frame = BlockFrame(self.view.group, self._me, block, self.sent, complete, (), 0, header, excluded=self.excluded)
        self._transmit(frame, now, effects)

    def finish(self, now: int, effects: list[Effect]) -> None:
        """What time has brought: announcements, repairs."""
        if self.news.at is not None and self.news.at <= now:
            self.announce(now, effects)
        if self.recovery is not None:
            self.recovery.drain(now, effects)

    def announce(self, now: int, effects: list[Effect]) -> None:
        """Say what nobody has heard from us yet, if no message did for a while."""
        complete = self._acknowledged
        if self.silence.deadline is not None and not self._stalled:
            self.news.at = self.silence.deadline  # the null that we owe will say it
            return
        if not self.news.due(complete, self.flow, now) and not self._stalled:
            return
        self._say(self._alive(), now, effects)
        if self._stalled:
            self.news.at = now + self._settings.repair_max_ns

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """A sign of life, outside the stream: what is said again soon need not be repaired.

        So it tells nothing else: what we call complete or stable is true only behind what we agreed on before (E-66).
        """
        self.spoke_at = now
        frame = AliveFrame(self.view.group, self._me, self.sent, 0, None, self._stalled, blocked)
        self.early.append(Transmit(frame, Scope.VIEW, self._channel))

    # Members that fail

    def multicast(self, frame: MembershipFrame, now: int) -> None:
        """Let a frame of the agreement leave, whatever flow control says (E-20)."""
        self._say(frame, now, self.early)

    def show_life(self, now: int) -> None:
        """A null with a new number: what others can refute a suspicion of us with, or a probe of an idle group."""
        block = self.counter.value + 1
        self.null(block, now, self.early)
        if self.sent < block:
            self.expect(block, now)  # flow control holds it back for now

    @property
    def unanswered(self) -> bool:
        """Whether something else than a number is owed to us: room in the window, a vote, a word, a connection."""
        return (
            self.blocked
            or self.wary
            or self.wants is not None
            or self.wanted > 0
            or self.unacknowledged
            or self.transfer is not None
            or self.suspector.cut_off(self)
            or (self.recovery is not None and self.recovery.waits)
        )

    def flushes(self, number: int, now: int) -> None:
        """We are about to leave, and wait for everybody to have completed this number."""
        self.wants = number, now

    def flush_owed(self, rank: int) -> int | None:
        """Since when we wait for that member to say so (9.2 e); None if we do not."""
        if self.wants is None or self._complete_at.values[rank] >= self.wants[0]:
            return None
        return self.wants[1]

    def reach(self, number: int, now: int) -> None:
        """A null with this number, if we have sent none as large; a formation or a leave asks for it.

        It may come from another group, far beyond the window of this one: then we go there in steps (E-90).
        """
        if self.sent < number:
            self._named = max(self._named, number)
            self.null(number, now, self.early)
            self.expect(number, now)

    def begin(self, now: int) -> None:
        """The first view has its turn. Where blocks are counted, our next number must be near what all have (E-91).

        While the group was formed, nulls may have taken us beyond its base, and beyond its window.
        """
        if self.flow is not None and self._by_block:
            self.reach(self.counter.value, now)

    def want(self, number: int, now: int) -> None:
        """Somebody is about to leave: complete this number, and say so (docs/spec/newtop.md 8)."""
        self.wanted = max(self.wanted, number)
        self.reach(number, now)

    @property
    def awaits_return(self) -> bool:
        """Whether a message of ours that has left has no number that we know of; never, where we number it."""
        return False

    @property
    def in_doubt(self) -> bool:
        """Whether a message of ours may have got a number elsewhere; never, where we number it."""
        return False

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:  # noqa: ARG002
        """What is left to the group that takes our place; and how many of these messages are overdue: had left here."""
        return self.outbox.remove_all(), 0

    def take_over(self, messages: list[Unsent], overdue: int) -> None:  # noqa: ARG002
        """What the group before this one has left to us."""
        for payload, label in messages:
            self.outbox.put(payload, label)

    @property
    def parts(self) -> bool:
        """Whether somebody is agreed to have failed, and the view without it begins at a message (E-88)."""
        return self.change.kind is not None and bool(self.change.open)

    @property
    def unheard(self) -> list[ProcessId]:
        """Members of whom nothing has come since the group was formed."""
        return [process for process, rank in self.ranks.items() if rank != self.my_rank and not self._heard_at[rank]]

    @property
    def unacknowledged(self) -> bool:
        """Whether deliveries may wait for the word of a member that it has what we have (newtop.md 14, rule 3)."""
        return self._awaits_acknowledgments and self._complete_at.minimum < self.awaited_block

    @property
    def awaited_block(self) -> int:
        """Up to where we wait to hear that others have what we have: for messages, not for nulls (E-83)."""
        return min(self.last_received.minimum, self.news.awaited)

    def deaf_since(self, process: ProcessId) -> int | None:
        """On datagrams: since when a member has answered nothing; None if nothing is open."""
        return None if self.recovery is None else self.recovery.deaf_since(process)

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:
        """These have failed: gives what members are to be told by a numbered message, and where the view changes."""
        return self.change.confirmed(detection), None if cut_after is None else detection.last + cut_after

    def waits_for(self, rank: int) -> bool:
        """Whether flow control holds our application back because of that member (9.2 d)."""
        flow = self.flow
        if flow is None or not self.blocked or self._held:
            return False
        completed, stable_at = flow.completed, flow.stable_at
        return completed.values[rank] == completed.minimum or (
            self._settings.flow_control == 1 and stable_at.values[rank] == stable_at.minimum
        )

    def install(self, view: View) -> None:
        """The view changes to one without some of us."""
        for process in [process for process in self.ranks if process not in view.ranks]:
            del self.ranks[process]
            self.fragments.forget(process)
            if self.recovery is not None:
                self.recovery.forget(process)
        self.view = view
        self.place = view.ranks[self._me]
        self._announces = self._announces and len(view.members) > 1
        if len(view.members) == 1 and self.flow is not None and not self._by_block:
            self.flow.carried(self.flow.largest)  # nobody is left to announce it to, and nothing else would raise it

    def mark(self) -> None:
        """Whom our messages from now on are marked as not being for."""
        gone = [process for process in self.columns if process not in self.ranks]
        self.excluded = tuple(sorted([*gone, *self.agreement.failed]))

    def stop_at(self, number: int | None) -> None:
        """A formation takes us to another group when everything up to there is delivered; None: it does not.

        In a safe group whoever acknowledges a message will deliver it in that view, for others have done so then.
        """
        self.frozen = number is not None
        self.ceiling = number if self.safe and number is not None else BEYOND

    @property
    def promised(self) -> int:
        """Up to here others may have delivered because we have acknowledged it (E-96)."""
        return self.acknowledged(self.my_rank) if self.safe else 0

    # Parts

    @property
    def _acknowledged(self) -> int:
        """D, as far as others may hear of it."""
        complete = self.last_received.minimum
        return min(complete, self.ceiling)

    def _alive(self) -> AliveFrame:
        """An announcement."""
        flow, header, complete = self.flow, None, self._acknowledged
        if flow is not None:
            header = flow.header(flow.sent if self._by_block else flow.largest)  # settled just before
            flow.carried(header.number)
        return AliveFrame(self.view.group, self._me, self.sent, complete, header, self._stalled)

    def _say(self, frame: AliveFrame | MembershipFrame, now: int, effects: list[Effect]) -> None:
        """Let an unnumbered frame leave, in its place on the channel of the group."""
        if self.recovery is not None:
            frame = self.recovery.outgoing(frame, now)
        self.spoke_at = now
        if isinstance(frame, AliveFrame):
            self.news.spoken(frame.complete_block, frame.flow, now)
        effects.append(Transmit(frame, Scope.VIEW, self._channel))

    def _next_number(self, flow: FlowControl) -> int:
        """The flow number that our next data message would get."""
        return 1 + (self.counter.value if self._by_block else flow.counter)

    def _transmit(self, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        if self.recovery is not None:
            frame = self.recovery.outgoing(frame, now)
        block, header, silence = frame.block, frame.flow, self.silence
        if block > self.received:
            self.row_at = now
        self.sent = block
        self.spoke_at = now
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

    def _tell_blocked(self, by: ProcessId, now: int, effects: list[Effect]) -> None:
        if not self.blocked or by != self._waits_for:
            self._waits_for = by
            effects.append(Blocked(self.view.group, by))
        if not self.blocked:
            self.blocked = True
            self.blocked_at = now

    def _tell_unblocked(self, effects: list[Effect]) -> None:
        if self.blocked:
            self.blocked = False
            effects.append(Unblocked(self.view.group))

    def _step(self, block: int, flow: FlowControl, now: int, effects: list[Effect]) -> None:
        """A null is refused. Its number may be out of reach for ever: go there in steps (E-76, E-90).

        Members that have failed had opened the window for it, or it was named elsewhere: nobody else owes the numbers
        between.
        """
        step = min(block - 1, flow.limit) if self.excluded or block <= self._named else 0
        if step > self.sent:
            self.null(step, now, effects)
            assert self.sent == step
            self.null(block, now, effects)
        else:
            self._stall(now)

    def _stall(self, now: int) -> None:
        """A null is refused: it goes out when state allows; until then say every so often that we live (README 12)."""
        self._stalled = True
        if self.news.at is None:
            self.news.at = now + self._settings.repair_max_ns
