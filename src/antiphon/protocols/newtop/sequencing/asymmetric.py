"""The asymmetric discipline: one member, the sequencer, numbers the messages of all (docs/spec/newtop.md 11.3).

A message goes to the sequencer, gets its number there and comes back when the sequencer multicasts it. So a group is
complete up to the last number of its sequencer: no other member needs to send, and one process does more work. Members
that send in several groups take turns (`turns.py`). The `Ordering` of a frame names the author of the message.
"""

from typing import TYPE_CHECKING, ClassVar

from antiphon.core.effects import Effect
from antiphon.protocols.newtop import bounds
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    NeedFrame,
    Notice,
    Ordering,
    SubmitFrame,
    ToSequencer,
)
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.membership.views import SequencerChange
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.protocols.newtop.sequencing.horizon import Horizon
from antiphon.protocols.newtop.sequencing.ledger import Ledger
from antiphon.protocols.newtop.sequencing.origin import Origin
from antiphon.protocols.newtop.sequencing.queue import Queue
from antiphon.protocols.newtop.sequencing.submissions import whole_messages
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup
    from antiphon.protocols.newtop.ordering.contract import Order


class Asymmetric:
    """Invariant: we have the numbers of the current sequencer without a gap."""

    __slots__ = (
        "_announces",
        "_change",
        "_gate",
        "_group",
        "_heard_at",
        "_ledger",
        "_news",
        "_numbers",
        "_origin",
        "_outgoing",
        "_progress",
        "_queue",
        "_roster",
        "_voice",
    )
    sequenced: ClassVar[bool] = True

    def __init__(
        self, group: "NewtopGroup", change: SequencerChange, settings: NewtopSettings, base: int, *, announces: bool
    ) -> None:
        self._group = group
        self._roster = group.roster
        self._numbers = group.numbers
        self._progress = group.progress
        self._news = group.news
        self._gate = group.gate
        self._outgoing = group.outgoing
        self._voice = group.voice
        self._change = change
        self._heard_at = group.suspector.clock  # entered in place, as in the symmetric discipline
        self._announces = announces and len(group.roster.view.members) > 1
        self._ledger = Ledger(group.roster, group.progress, group.holdings, group.consumption, settings, base)
        self._queue = Queue()
        self._origin = Origin(settings)

    @property
    def horizon(self) -> Horizon:
        """Knows D."""
        return self._ledger.horizon

    @property
    def sequencer(self) -> ProcessId:
        """q: the lowest member of the view."""
        return self._roster.view.members[0]

    @property
    def awaits_return(self) -> bool:
        """True if a message of ours has left and we do not know its number yet."""
        return self._origin.awaits_return or self._outgoing.overdue > 0

    @property
    def in_doubt(self) -> bool:
        """True if a message of ours may have been numbered elsewhere, by a sequencer that is no longer in our view.

        Members that have delivered it there may join a new group with us; so it must get its number first.
        """
        return self._outgoing.overdue > 0 or self._origin.in_doubt

    @property
    def largest(self) -> int:
        """The number that the group has reached, or must reach."""
        return max(self._ledger.horizon.minimum, self._origin.need)

    @property
    def released(self) -> bool:
        """True if the window is open again, and there is a sequencer to submit to."""
        gate = self._gate
        if not gate.blocked or self._leaderless or self._held:
            return False
        return self._origin.submissions.permits(self._outgoing.least_bytes)

    @property
    def deadline(self) -> int | None:
        """The time of the next alarm of this group."""
        recovery = self._voice.recovery
        repair = None if recovery is None else recovery.deadline
        times = (self._news.at, self._group.suspector.at, repair, self._origin.repeat_at)
        return min((time for time in times if time is not None), default=None)

    @property
    def awaits_application(self) -> bool:
        """True if a message that our application consumes may have an effect at once: a member may wait for it."""
        requested = self._group.leaving.completion_requested > 0
        return self._gate.blocked or requested or self._ledger.claims.presses or self._news.at is None

    # Input

    def follows(self, frame: BlockFrame) -> bool:
        """True if nothing is missing before it."""
        return self._ledger.follows(frame)

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member: an order of the sequencer, or evidence of life."""
        roster, ordering = self._roster, frame.ordering
        rank = roster.rank_of(frame.sender)
        if rank is None or rank == roster.my_rank:
            return None
        self._heard_at[rank] = now
        if not self._ledger.follows(frame) or frame.flow is not None:
            bounds.refuse_gap(frame, self._progress.received.values[rank])
            return None
        if ordering is None:
            if frame.payloads or frame.notice is not None:
                return None  # only a sequencer sends contents in numbered frames
            self._ledger.chains.show(frame)
        else:
            if ordering.origin not in roster.columns:
                return None
            self._require_ordering(ordering)
            self._enter(frame, ordering)
            self._progress.completed.raise_to(rank, frame.complete_block)
        self._ledger.reach(rank, frame.block)
        return True

    def submitted(self, frame: ToSequencer) -> bool:
        """A member asks us to number a message, or to reach a number."""
        if frame.sender not in self._roster.ranks or frame.sender == self._roster.me:
            return False
        if isinstance(frame, NeedFrame):
            self._origin.needs(frame.number)
        else:
            self._require_stable(frame.stable)
            self._queue.require_near(frame.sender, frame.place)
            self._queue.add(frame)
        return True

    def require(self, frame: AliveFrame) -> None:
        """No check beyond the bounds of every number: another member may be ahead of us with the sequencer."""

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """The frames that this member has ordered above that number, or its last evidence of life."""
        return self._ledger.stored(process, above)

    def delivered(self, frame: BlockFrame) -> int | None:
        """Its number if there are windows, else None."""
        return frame.block if self._ledger.claims.counts else None

    # Output

    def serve(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Send what members owe each other, independent of applications; returns our last number, or 0.

        A new sequencer first announces view changes, then numbers early submissions (rule 6.5).
        """
        block, counter = 0, self._numbers.counter
        if self.sequencer != self._roster.me:
            self._resubmit(now, effects)
        else:
            while self._outgoing.notices:
                block = self._tell_view(self._outgoing.next_notice(), order, now, effects)
            stopped = self._gate.holds(Reason.STOPPED)
            for submission in () if stopped else self._queue.next(self._roster, self._group.agreement.failed):
                counter.witness(submission.block)
                block = self._number(submission, counter.advance(), order, now, effects)
        self._meet_needs(now, effects)
        return block

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Submit messages of the application, or number them if we are the sequencer; returns the last number, or 0."""
        block, outgoing, gate, origin = 0, self._outgoing, self._gate, self._origin
        self._ledger.account()
        while (outgoing.outbox.waiting or outgoing.donation is not None) and not self._leaderless:
            if self._held:
                if outgoing.outbox.waiting:
                    gate.refuse(gate.standing(), self._roster.me, now, effects)
                break
            if not origin.submissions.permits(outgoing.least_bytes):
                gate.refuse(Reason.WINDOW_FULL, self._roster.slowest(self._progress.completed), now, effects)
                break
            if not gate.shut:
                gate.permit(effects)
            submission = self._next_submission()
            if self.sequencer == self._roster.me:
                block = self._number(submission, submission.block, order, now, effects)
            else:
                origin.submissions.keep(submission)
                self._submit(submission, now, effects)
        if not outgoing.outbox.waiting and outgoing.donation is None:
            gate.permit(effects)
        return block

    def answer(self, now: int, effects: list[Effect]) -> None:
        """Nothing: the sequencer's numbers complete the group without nulls."""

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """A number of another group waits for this one: the sequencer must reach it (rule 5)."""
        self._origin.needs(block)
        self._meet_needs(now, effects)

    def reach(self, number: int, now: int) -> None:
        """A formation or a leave needs this number: the sequencer must reach it."""
        self.null(number, now, self._voice.early)

    def begin(self, now: int) -> None:
        """Nothing: no window counts blocks here."""

    def show_life(self, now: int) -> None:
        """Send a null with a new number. From a member that does not order it is only evidence of life (rule 6.1)."""
        roster, numbers = self._roster, self._numbers
        block = max(numbers.counter.value, numbers.sent + 1)
        if self.sequencer == roster.me:
            self._order_null(max(block, self._ledger.horizon.minimum + 1), now, self._voice.early)
            return
        numbers.counter.witness(block)
        base = self._ledger.chains.base
        frame = BlockFrame(roster.view.group, roster.me, block, base, base, excluded=roster.excluded)
        self._leave(frame, now, self._voice.early)

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Compute completion, then stability, from what was received, sent and consumed."""
        progress, news, leaving = self._progress, self._news, self._group.leaving
        buffers, submissions = self._group.holdings.buffers, self._origin.submissions
        if self._ledger.settle(effects):
            submissions.stable(progress.stable)
        if buffers.tracing:
            buffers.gauge(submissions.bytes, effects)
        if 0 < leaving.completion_requested <= progress.complete:
            leaving.answered()
            self._voice.say(self.alive(), now, self._voice.early)
        elif self._announces and progress.complete > news.block:
            if self._ledger.claims.presses:
                news.set_alarm(now)
            elif news.at is None:
                news.weigh(progress.complete, None, now)

    def stabilise(self, effects: list[Effect]) -> None:
        """Nothing: asymmetric groups have no safe delivery."""

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """Send a sign of life. On datagrams and without news it is outside the stream, so it may be lost.

        In the stream it would need repair and acknowledgment each time, and a member that misses it would seem deaf.
        """
        roster, group = self._roster, self._group
        self._ledger.account()
        news = self._progress.complete > self._news.block
        if self._voice.recovery is None or group.agreement.wary or blocked or news:
            stalled = group.concerns.stalled
            frame = AliveFrame(roster.view.group, roster.me, self._numbers.sent, 0, stalled=stalled, blocked=blocked)
        else:
            frame = self.alive()
        self._voice.say_aside(frame, now)

    def alive(self) -> AliveFrame:
        """An announcement."""
        self._ledger.account()
        self._ledger.claims.told()
        complete = self._progress.complete
        last = max(self._numbers.sent, complete)  # completion is announced without a number of ours
        stalled = self._group.concerns.stalled
        return AliveFrame(self._roster.view.group, self._roster.me, last, complete, stalled=stalled)

    def finish(self, now: int, effects: list[Effect]) -> None:
        """Do what is due; on datagrams, submit again what did not come back."""
        if self._news.at is not None and self._news.at <= now:
            self._announce(now, effects)
        if self._voice.recovery is not None:
            self._voice.recovery.drain(now, effects)
        if self._origin.due(now) and not self._leaderless and self.sequencer != self._roster.me:
            for submission in self._origin.repeated():
                self._submit(submission, now, effects)
            if self._origin.need > self._ledger.horizon.minimum:
                self._ask(now, effects)

    # Members that fail, and groups that change

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:  # noqa: ARG002
        """The first member that had not failed before orders the place of the view change, if it survives.

        Otherwise the view changes after its last common number, or after an earlier such place (rule 6.3).
        """
        view = self._roster.view
        notice = self._change.confirmed(detection)
        failed = dict(detection.failed)
        first = next(each for each in view.members if each in failed or each not in self._group.agreement.failed)
        if first not in failed:
            return notice if self.sequencer == self._roster.me else None, None
        return None, self._ledger.cut(failed[first], detection)

    def installed(self, before: ProcessId) -> None:
        """If we are first in the view, we begin to order (rule 6.5); else we resubmit to a new sequencer (rule 6.6)."""
        roster, origin = self._roster, self._origin
        self._announces = self._announces and len(roster.view.members) > 1
        self._ledger.installed()
        self._queue.keep(roster.ranks)
        if self.sequencer == before:
            return
        origin.turn(to_me=self.sequencer == roster.me)
        if self.sequencer == roster.me:
            self._outgoing.tell(*self._change.untold())
            self._queue.put_own(roster.me, origin.submissions.kept)

    def waits_for(self, rank: int) -> bool:
        """True if the window is closed because of that member."""
        completed = self._progress.completed
        return self._gate.blocked and completed.values[rank] == completed.minimum

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:
        """The messages to take over into the successor group (E-94): no member that goes over with us delivers them.

        They have not come back, or a sequencer that does not go over has numbered them above the base.
        """
        assert not self._outgoing.overdue, "a member with messages in doubt does not go over"
        me = self._roster.me
        numbered = [frame for frame in undelivered if frame.payloads and frame.author == me]
        numbered.sort(key=lambda frame: frame.block)
        pieces = self._group.fragments.open.get((me, None), [])
        gone: list[BlockFrame | SubmitFrame] = [*numbered, *self._origin.submissions.kept]
        lost = whole_messages(
            [frame for frame in gone if frame.state is None], pieces
        )  # words about primary views belong to the old view
        return lost + self._outgoing.outbox.remove_all(), len(lost)

    # Steps of the above

    @property
    def _held(self) -> bool:
        """Whether nothing may be submitted now.

        A state passes the gate. While a formation has stopped us, nothing does: our earlier messages wait for their
        numbers, and a word about primary views must not overtake them.
        """
        gate = self._gate
        return gate.shut and (self._outgoing.donation is None or gate.holds(Reason.STOPPED))

    @property
    def _leaderless(self) -> bool:
        """True if the sequencer has failed and the view without it is not installed yet."""
        return self.sequencer in self._group.agreement.failed

    def _require_ordering(self, ordering: Ordering) -> None:
        """Refuse what no correct sequencer says: places are consecutive, and we have all that is stable."""
        self._require_stable(ordering.stable)
        if ordering.place:
            self._queue.require_next(ordering.origin, ordering.place)
            if ordering.origin == self._roster.me and ordering.place > self._origin.submissions.places:
                bounds.refuse("place of a message of ours", ordering.place, self._origin.submissions.places)

    def _require_stable(self, stable: int) -> None:
        """Refuse a number as stable that we have not completed."""
        complete = max(self._progress.complete, self._progress.acknowledged(self._roster.my_rank))
        if stable > complete:
            bounds.refuse("stable number", stable, complete)

    def _enter(self, frame: BlockFrame, ordering: Ordering) -> None:
        """The sequencer, perhaps we, has numbered something."""
        self._ledger.enter(frame, ordering)
        if ordering.place:
            self._queue.numbered(ordering.origin, ordering.place)
            if ordering.origin == self._roster.me:
                self._came_back(frame, ordering.place)

    def _came_back(self, frame: BlockFrame, place: int) -> None:
        """A message of ours has its number: all our later messages, in any group, are above it (rule 2)."""
        self._numbers.counter.witness(frame.block)
        self._origin.came_back(frame, place)

    def _next_submission(self) -> SubmitFrame:
        """The next part of our state, if it is being sent, or the next messages of our application."""
        roster, outgoing, submissions = self._roster, self._outgoing, self._origin.submissions
        ask = outgoing.next_ask
        _, state, (label, payloads, more) = outgoing.take(submissions.room_bytes)
        if state is not None:
            self._group.weigh_state()
        elif outgoing.overdue:
            self._origin.sends_again()
            outgoing.caught_up(0 if more else len(payloads))
        place, number = submissions.count(payloads), self._numbers.counter.advance()  # rule CA1
        return SubmitFrame(
            roster.view.group, roster.me, number, place, self._progress.stable, payloads, label, more,
            roster.excluded, state, ask,
        )  # fmt: skip

    def _number(self, submission: SubmitFrame, block: int, order: "Order", now: int, effects: list[Effect]) -> int:
        """Assign a number to a message (rule 2)."""
        stable = max(submission.stable, self._progress.stable)
        frame = self._ordered(block, Ordering(submission.sender, submission.place, stable))
        frame = frame._replace(
            payloads=submission.payloads,
            label=submission.label,
            more=submission.more,
            state=submission.state,
            ask=submission.ask,
        )
        order.sent(self._group, self._leave(frame, now, effects), now)
        return frame.block

    def _tell_view(self, notice: Notice, order: "Order", now: int, effects: list[Effect]) -> int:
        """The view changes here (rule 6.3)."""
        ordering = Ordering(self._roster.me, 0, self._progress.stable)
        frame = self._leave(self._ordered(self._numbers.counter.advance(), ordering, notice), now, effects)
        order.sent(self._group, frame, now)
        return frame.block

    def _order_null(self, block: int, now: int, effects: list[Effect]) -> None:
        self._numbers.counter.witness(block)
        self._leave(self._ordered(block, Ordering(self._roster.me, 0, self._progress.stable)), now, effects)

    def _ordered(self, block: int, ordering: Ordering, notice: Notice | None = None) -> BlockFrame:
        """A frame of ours as sequencer, without payloads."""
        roster = self._roster
        self._ledger.account()
        before = self._ledger.chains.before(roster.me, ordered=True)
        return BlockFrame(
            roster.view.group, roster.me, block, before, self._progress.complete,
            excluded=roster.excluded, notice=notice, ordering=ordering,
        )  # fmt: skip

    def _leave(self, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        frame = self._voice.place(frame, now)
        if frame.ordering is not None:
            self._enter(frame, frame.ordering)
            self._news.spoken(frame.complete_block, None, now)
            self._ledger.claims.told()
        self._numbers.left(frame.block, now)
        self._ledger.reach(self._roster.my_rank, frame.block)
        self._voice.multicast(frame, effects)
        return frame

    def _announce(self, now: int, effects: list[Effect]) -> None:
        """Announce what we have completed, after some silence or if others may wait for it."""
        complete = self._progress.complete
        if self._ledger.claims.presses and complete > self._news.block:
            self._news.set_alarm(None)
        elif not self._news.due(complete, None, now):
            return
        self._voice.say(self.alive(), now, effects)

    def _meet_needs(self, now: int, effects: list[Effect]) -> None:
        """Reach the number that a member needs, or ask the sequencer for it (rules 5, 6.7)."""
        need = self._origin.need
        if need <= self._ledger.horizon.minimum or self._leaderless:
            return
        if self.sequencer == self._roster.me:
            self._order_null(max(self._numbers.counter.value, need), now, effects)
        elif self._origin.asks():
            self._ask(now, effects)

    def _resubmit(self, now: int, effects: list[Effect]) -> None:
        """Resubmit all messages that the new sequencer does not have (rule 6.6)."""
        if not self._leaderless:
            for submission in self._origin.unsent():
                self._submit(submission, now, effects)

    def _submit(self, submission: SubmitFrame, now: int, effects: list[Effect]) -> None:
        self._voice.submit(submission, self.sequencer, effects)
        self._origin.repeat_later(now)

    def _ask(self, now: int, effects: list[Effect]) -> None:
        need = NeedFrame(self._roster.view.group, self._roster.me, self._origin.need)
        self._voice.submit(need, self.sequencer, effects)
        self._origin.repeat_later(now)
