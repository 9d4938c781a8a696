"""The symmetric discipline: every member numbers its own messages, and nulls let blocks complete (Macedo94 ch. 3, 4).

This module decides when a member sends what: messages while the gate and the window permit, nulls that it
owes, and announcements of progress that no other frame carries.
"""

from typing import TYPE_CHECKING, ClassVar

from antiphon.core.effects import Effect, Scope, Transmit
from antiphon.core.vectors import MinVector
from antiphon.protocols.newtop import bounds
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Flow, Notice, ToSequencer
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup
    from antiphon.protocols.newtop.ordering.contract import Order


class Symmetric:
    """Invariant: `_named` is the largest number named by another group or stamp; perhaps no member has sent it."""

    __slots__ = (
        "_announces",
        "_by_block",
        "_flow",
        "_gate",
        "_group",
        "_heard_at",
        "_holdings",
        "_leaving",
        "_named",
        "_news",
        "_numbers",
        "_outgoing",
        "_progress",
        "_repair_max_ns",
        "_roster",
        "_voice",
        "_window_bytes",
    )
    sequenced: ClassVar[bool] = False

    def __init__(self, group: "NewtopGroup", settings: NewtopSettings, *, by_block: bool, announces: bool) -> None:
        # The parts that every frame needs are kept here, which saves a look-up for each
        self._group = group
        self._roster = group.roster
        self._numbers = group.numbers
        self._progress = group.progress
        self._holdings = group.holdings
        self._flow = group.flow
        self._news = group.news
        self._gate = group.gate
        self._outgoing = group.outgoing
        self._leaving = group.leaving
        self._voice = group.voice
        self._heard_at = group.suspector.clock  # entered in place, because a call per frame costs more
        self._by_block = by_block  # whether flow control counts blocks, nulls included
        self._announces = announces and len(group.roster.view.members) > 1
        self._named = 0
        self._window_bytes = settings.window_bytes
        self._repair_max_ns = settings.repair_max_ns

    @property
    def horizon(self) -> MinVector:
        """The receive vector: its minimum is D."""
        return self._progress.received

    @property
    def largest(self) -> int:
        """max(SENT, RECD)."""
        return self._numbers.largest

    @property
    def released(self) -> bool:
        """True if a refused message would be permitted now."""
        if not self._gate.blocked or (self._gate.shut and not self._outgoing.privileged):
            return False
        flow = self._flow
        return flow is None or flow.permits(self._next_number(flow), self._outgoing.least_bytes)

    @property
    def deadline(self) -> int | None:
        """The time of the next alarm of this group."""
        numbers, recovery = self._numbers, self._voice.recovery
        times = (
            self._news.at,
            self._group.suspector.at,
            None if numbers.stalled else numbers.silence.deadline,
            None if recovery is None else recovery.deadline,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def awaits_application(self) -> bool:
        """True if a message that our application consumes may have an effect at once.

        The new completion is news, but it can wait for the alarm that is already set.
        """
        flow, news = self._flow, self._news
        if self._gate.refused is not None or self._numbers.stalled or news.at is None:
            return True
        return flow is not None and news.presses(flow.largest)

    @property
    def awaits_return(self) -> bool:
        """Never: we number our messages ourselves."""
        return False

    @property
    def in_doubt(self) -> bool:
        """Never: we number our messages ourselves."""
        return False

    # Input

    def follows(self, frame: BlockFrame) -> bool:
        """True if it is the next frame of its sender."""
        return frame.previous_block == self._group.reached(frame.sender)

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member (5.3); None: it is a copy, or nothing of ours.

        True if it has consequences: an answer owed, a block complete, a block stable. In a large group most
        frames only fill a cell of a row.
        """
        roster = self._roster
        rank = roster.rank_of(frame.sender)
        if rank is None or rank == roster.my_rank:
            return None  # not in our view, or an echo of ourselves: own copies never travel (Macedo94 §7.1)
        self._heard_at[rank] = now
        progress, holdings, flow = self._progress, self._holdings, self._flow
        block, header, received, completed = frame.block, frame.flow, progress.received, progress.completed
        if not frame.previous_block == received.values[rank] < block:
            bounds.refuse_gap(frame, received.values[rank])
            return None  # a copy
        if frame.complete_block > self._numbers.sent:
            bounds.refuse("complete block", frame.complete_block, self._numbers.sent)  # we are not that far
        if header is None and holdings.unbounded:
            holdings.bounded.hold(block, frame)
        elif not self._hold(frame, rank):
            return None
        received.raise_to(rank, block)
        if frame.complete_block > completed.values[rank]:
            completed.raise_to(rank, frame.complete_block)
        follows = received.minimum != progress.complete or completed.minimum != progress.stable
        if header is not None and flow is not None and flow.heard(rank, header):
            follows = True
        numbers = self._numbers
        if block > numbers.received and numbers.raised(block, now):
            return True
        return follows

    def require(self, frame: AliveFrame) -> None:
        """Refuse an announcement of a complete block that we have not sent into."""
        if frame.complete_block > self._numbers.sent:
            bounds.refuse("complete block", frame.complete_block, self._numbers.sent)
        if frame.flow is not None and self._flow is not None:
            self._flow.require(frame.flow)

    def submitted(self, frame: ToSequencer) -> bool:  # noqa: ARG002
        """Refused: no member numbers messages of others here."""
        return False

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """The held end of its stream, without a gap: all members have the freed part."""
        held = self._holdings.stored(process, above)
        begin = len(held) - 1
        while begin > 0 and held[begin].previous_block == held[begin - 1].block:
            begin -= 1
        return tuple(held[max(begin, 0) :])

    def delivered(self, frame: BlockFrame) -> int | None:
        """Its flow number, if there is flow control."""
        flow, header = self._flow, frame.flow
        if flow is None or header is None:
            return None
        if header.number > flow.counter:
            flow.delivered(header.number)
        if frame.sender != self._roster.me:
            self._news.delivered(header.number, sum(map(len, frame.payloads)))
        return header.number

    # Output

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Compute completion, then stability, from what was received, sent and consumed."""
        progress, flow, news, leaving = self._progress, self._flow, self._news, self._leaving
        complete = progress.received.minimum
        if complete > progress.complete:
            progress.advance(complete)
        if flow is not None:
            self._holdings.settle(flow, effects)
        if progress.completed.minimum > progress.stable:
            self._stabilised(effects)
        if self._holdings.buffers.tracing:
            self._holdings.buffers.gauge(0 if flow is None else flow.ahead_bytes, effects)
        if self._announces and (
            news.at is None
            or (flow is not None and news.presses(flow.complete))
            or (progress.safe and news.awaits(min(complete, leaving.ceiling)))
        ):
            news.weigh(min(complete, leaving.ceiling), flow, now)
        if 0 < leaving.completion_requested <= complete:
            self._answer_request(now)
        if self._group.suspector.idle:
            self._watch(complete, now)

    def stabilise(self, effects: list[Effect]) -> None:
        """Compute stability before deliveries that depend on it (14, rule 1)."""
        progress = self._progress
        complete = progress.received.minimum
        if complete > progress.complete:
            progress.advance(complete)
        if progress.completed.minimum > progress.stable:
            self._stabilised(effects)

    def serve(self, order: "Order", now: int, effects: list[Effect]) -> int:  # noqa: ARG002
        """Nothing besides waiting messages."""
        return 0

    def _waited_for(self) -> ProcessId:
        """While the gate is shut: a member whose notice of a view is missing, or that has failed or is suspected."""
        group, agreement = self._group, self._group.agreement
        suspected = agreement.suspicions if self._gate.holds(Reason.MEMBER_SUSPECTED) else {}
        return min(group.change.awaited(group.view) or agreement.failed or suspected, default=self._roster.me)

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Send waiting notices and messages, as far as permitted; returns the last number, or 0."""
        block, outgoing, gate, flow = 0, self._outgoing, self._gate, self._flow
        notices, messages = outgoing.notices, outgoing.outbox.waiting  # read for each message, without a call
        header, room = None, self._window_bytes
        while messages or notices or outgoing.donation is not None:
            if notices and outgoing.flushes:
                block = self._flush(outgoing.next_notice(), now, effects)
                continue
            if gate.shut and not outgoing.privileged:
                gate.refuse(gate.standing(), self._waited_for(), now, effects)
                break
            if flow is not None:
                header = self._admit(flow, now, effects)
                if header is None:
                    break
                room = self._window_bytes - flow.ahead_bytes
            if gate.refused is not None and not gate.shut:
                gate.permit(effects)
            block = self._send_next(room, header, order, now, effects)
        if gate.refused is not None and not outgoing.waiting:
            gate.permit(effects)  # a notice had been refused, and no message of the application waits
        return block

    def answer(self, now: int, effects: list[Effect]) -> None:
        """Send the null that is owed and due (rule CA3), unless flow control counts nulls and delays it."""
        numbers = self._numbers
        if numbers.silence.due(now):
            self.null(numbers.received, now, effects)
        else:
            numbers.stall(stalled=False)

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """A null with this number (rules CA3, CA4), if it may leave now."""
        numbers, flow, header = self._numbers, self._flow, None
        assert block >= numbers.sent  # `Silence` ensures that own numbers never repeat (pr1', E-6)
        if flow is not None:
            self._holdings.account(flow)
            if self._by_block:
                if not flow.permits(block, 0):
                    self._step(block, flow, now, effects)
                    return
                flow.counted(block, 0)
            header = flow.header(block if self._by_block else flow.largest)
        if numbers.stalled:
            numbers.stall(stalled=False)
        numbers.counter.witness(block)
        roster = self._roster
        frame = BlockFrame(
            roster.view.group, roster.me, block, numbers.sent, self._acknowledged, (), 0, header,
            excluded=roster.excluded,
        )  # fmt: skip
        self._transmit(frame, now, effects)

    def reach(self, number: int, now: int) -> None:
        """Send a null with this number, if we have not reached it; for a formation, a leave or a sign of life.

        The number may be above the window of this group: then we reach it in steps (E-90, E-101).
        """
        numbers = self._numbers
        if numbers.sent < number:
            self._named = max(self._named, number)
            self.null(number, now, self._voice.early)
            numbers.expect(number, now)

    def begin(self, now: int) -> None:
        """If blocks are counted, our next number must be near the completed numbers of all (E-91).

        During the formation, nulls may have raised our counter above the base and the window of the group.
        """
        if self._flow is not None and self._by_block:
            self.reach(self._numbers.counter.value, now)

    def show_life(self, now: int) -> None:
        """A null with a new number: others refute a suspicion of us with it, or it probes an idle group."""
        self.reach(self._numbers.counter.value + 1, now)

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """A sign of life, outside the stream.

        So it carries nothing else: our completion and stability are valid only after earlier frames (E-66).
        """
        roster, numbers = self._roster, self._numbers
        stalled = numbers.stalled or self._group.concerns.stalled
        frame = AliveFrame(roster.view.group, roster.me, numbers.sent, 0, None, stalled, blocked)
        self._voice.say_aside(frame, now)

    def alive(self) -> AliveFrame:
        """An announcement."""
        roster, numbers, flow, header = self._roster, self._numbers, self._flow, None
        if flow is not None:
            header = flow.header(flow.sent if self._by_block else flow.largest)  # settled just before
            flow.carried(header.number)
        stalled = numbers.stalled or self._group.concerns.stalled
        return AliveFrame(roster.view.group, roster.me, numbers.sent, self._acknowledged, header, stalled)

    def finish(self, now: int, effects: list[Effect]) -> None:
        """Do what is due: announcements, repairs."""
        if self._news.at is not None and self._news.at <= now:
            self._announce(now, effects)
        if self._voice.recovery is not None:
            self._voice.recovery.drain(now, effects)

    # Members that fail, and groups that change

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:
        """The place of the view change follows from the last common numbers of the failed members."""
        return self._group.change.confirmed(detection), None if cut_after is None else detection.last + cut_after

    def installed(self, before: ProcessId) -> None:  # noqa: ARG002
        """A member that is left alone announces nothing."""
        flow, alone = self._flow, len(self._roster.view.members) == 1
        self._announces = self._announces and not alone
        if alone and flow is not None and not self._by_block:
            flow.carried(flow.largest)  # nothing else would raise it

    def waits_for(self, rank: int) -> bool:
        """True if flow control blocks our application because of that member."""
        flow = self._flow
        if flow is None or not self._gate.blocked or self._gate.shut:
            return False
        return flow.waits_for(rank)

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:  # noqa: ARG002
        """Messages that have not left; those that have left are numbered."""
        return self._outgoing.outbox.remove_all(), 0

    # Steps of the above

    @property
    def _acknowledged(self) -> int:
        """D, limited to what we may announce."""
        complete, ceiling = self._progress.received.minimum, self._leaving.ceiling
        return min(ceiling, complete)

    def _hold(self, frame: BlockFrame, rank: int) -> bool:
        """Give a frame a buffer, before its header is read (Macedo95 §3.2, remark); False: it is not taken in."""
        header, flow = frame.flow, self._flow
        if (header is None) is not (flow is None):
            return False  # its sender and we do not agree whether there is flow control
        if header is not None and flow is not None:
            flow.require(header)
        return self._holdings.hold(frame, rank)

    def _stabilised(self, effects: list[Effect]) -> None:
        stable = self._progress.completed.minimum
        self._progress.note_stable(stable)
        if self._holdings.unbounded:
            self._holdings.free(stable, effects)
        else:
            self._holdings.stabilised(stable, effects)

    def _answer_request(self, now: int) -> None:
        """We have completed the number that a leaving member waits for."""
        self._leaving.answered()
        self._voice.say(self.alive(), now, self._voice.early)

    def _watch(self, complete: int, now: int) -> None:
        """The suspector starts as soon as a member owes something."""
        numbers, group = self._numbers, self._group
        if numbers.received > complete or numbers.sent > complete or group.unanswered:
            group.suspector.begin(group, now)

    def _next_number(self, flow: FlowControl) -> int:
        """The flow number that our next data message would get."""
        return 1 + (self._numbers.counter.value if self._by_block else flow.counter)

    def _admit(self, flow: FlowControl, now: int, effects: list[Effect]) -> Flow | None:
        """The header of the next message, if the window has room for it."""
        self._holdings.account(flow)
        number = self._next_number(flow)
        if flow.permits(number, self._outgoing.least_bytes):
            return flow.header(number)
        self._gate.refuse(Reason.WINDOW_FULL, self._roster.slowest(flow.completed), now, effects)
        return None

    def _send_next(self, room_bytes: int, header: Flow | None, order: "Order", now: int, effects: list[Effect]) -> int:
        """Number the next message, and transmit it."""
        roster, flow = self._roster, self._flow
        outgoing, notice, state, ask = self._outgoing, None, None, None
        if outgoing.notices or outgoing.donation is not None:
            notice, state, (label, payloads, more) = outgoing.take(room_bytes)
            self._group.weigh_state()
        else:
            if outgoing.outbox.asks:
                ask = outgoing.outbox.next_ask
            label, payloads, more = outgoing.outbox.take(room_bytes)
        if flow is not None and header is not None:
            flow.unconsumed.add(header.number)
            flow.counted(header.number, sum(map(len, payloads)))
        block = self._numbers.counter.advance()  # rule CA1
        frame = BlockFrame(
            roster.view.group, roster.me, block, self._numbers.sent, self._acknowledged, payloads, label, header,
            order.stamp(self._group) if order.stamps else None, more,
            excluded=roster.excluded, notice=notice, state=state, ask=ask,
        )  # fmt: skip
        order.sent(self._group, self._transmit(frame, now, effects), now)
        return block

    def _flush(self, notice: Notice, now: int, effects: list[Effect]) -> int:
        """A flush must not wait for the window: messages after other flushes keep it closed until the view (E-79)."""
        roster, numbers, flow = self._roster, self._numbers, self._flow
        block = numbers.counter.advance()
        header = None if flow is None else flow.header(flow.largest)
        frame = BlockFrame(
            roster.view.group, roster.me, block, numbers.sent, self._acknowledged, (), 0, header,
            excluded=roster.excluded, notice=notice,
        )  # fmt: skip
        self._group.change.flushed(self._transmit(frame, now, effects))
        return block

    def _transmit(self, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        voice, holdings, flow, my_rank = self._voice, self._holdings, self._flow, self._roster.my_rank
        if voice.recovery is not None:
            frame = voice.place(frame, now)
        block, header = frame.block, frame.flow
        if holdings.unbounded:
            holdings.bounded.hold(block, frame)
        else:
            held = holdings.hold(frame, my_rank)
            assert held, "the window has room for our own"
        self._progress.received.raise_to(my_rank, block)
        if header is not None and flow is not None:
            flow.carried(header.number)
        self._numbers.left(block, now)
        self._news.spoken(frame.complete_block, header, now)
        effects.append(Transmit(frame, Scope.VIEW, voice.channel))
        return frame

    def _announce(self, now: int, effects: list[Effect]) -> None:
        """Announce our progress, if no message has carried it for some time."""
        numbers, news = self._numbers, self._news
        complete = self._acknowledged
        if numbers.silence.deadline is not None and not numbers.stalled:
            news.set_alarm(numbers.silence.deadline)  # the null that we owe will carry it
            return
        if not news.due(complete, self._flow, now) and not numbers.stalled:
            return
        self._voice.say(self.alive(), now, effects)
        if numbers.stalled:
            news.set_alarm(now + self._repair_max_ns)

    def _step(self, block: int, flow: FlowControl, now: int, effects: list[Effect]) -> None:
        """A null is refused. Its number may never be permitted: reach it in steps (E-76, E-90).

        Failed members had opened the window for it, or another group named it: no other member owes the numbers
        in between.
        """
        numbers = self._numbers
        step = min(block - 1, flow.limit) if self._roster.excluded or block <= self._named else 0
        if step > numbers.sent:
            self.null(step, now, effects)
            assert numbers.sent == step
            self.null(block, now, effects)
        else:
            self._stall(now)

    def _stall(self, now: int) -> None:
        """A null is refused: it leaves when permitted; until then we send signs of life."""
        self._numbers.stall(stalled=True)
        if self._news.at is None:
            self._news.set_alarm(now + self._repair_max_ns)
