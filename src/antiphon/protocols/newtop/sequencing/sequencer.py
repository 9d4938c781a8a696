"""An asymmetric group at one member: one of them, the sequencer, numbers the messages of all (newtop.md 11.3).

A message goes to the sequencer, gets its number there and comes back with everybody's copy. So a group is complete up
to the last number of its sequencer: nobody else needs to speak, and one process does more work than others. Members
that send in several groups take turns (`turns.py`). Whose message it is, a frame tells by its `Ordering`.

Nobody but the sequencer orders anything, yet everybody has a number: a null is how a member shows that it lives when
it is suspected (rule 6.1). Such evidence carries nothing, so the last of it says all; it is no link of any chain.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Effect, Scope, Transmit
from antiphon.core.pending import Pending
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.flow.buffers import Buffers
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    NeedFrame,
    Notice,
    Ordering,
    SubmitFrame,
    ToSequencer,
)
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection, Surroundings
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.protocols.newtop.recovery.streams import Patience
from antiphon.protocols.newtop.sequencing.submissions import Submissions
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, View

if TYPE_CHECKING:
    from antiphon.protocols.newtop.ordering.contract import Order
    from antiphon.protocols.newtop.rules import Rules


_REPEATED_MAX: Final = 16
"""How many submissions are sent again at once, on datagrams; those behind them may have arrived."""


class Horizon:
    """D of an asymmetric group: nothing with a number up to `minimum` can still come (rule 6.4)."""

    __slots__ = ("minimum",)

    def __init__(self, base: int) -> None:
        self.minimum = base


class _Cut(NamedTuple):
    """Where a view changes because its sequencer has failed."""

    number: int
    detection: Detection


class SequencedGroup(NewtopGroup):
    """Invariant: whoever orders in the view in force has `_chained` its numbers here without a gap."""

    __slots__ = (
        "_asked",
        "_base",
        "_chained",
        "_change",
        "_counts",
        "_cuts",
        "_doubtful",
        "_evidence",
        "_horizon",
        "_last",
        "_last_cut",
        "_need",
        "_patience",
        "_pressing",
        "_pressing_bytes",
        "_repeat_at",
        "_stable_told",
        "_submissions",
        "_submitted",
        "_unconsumed",
        "_unsent",
        "_untold",
        "_untold_bytes",
    )
    sequenced: ClassVar[bool] = True

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
        super().__init__(me, view, counter, replace(settings, flow_control=0), rules, around, early, base, now)
        self._base = base  # where all numbers begin
        self.horizon = self._horizon = Horizon(base)
        self.buffers = Buffers(view, settings, by_block=False)
        self.change = self._change = rules.sequencing()
        self.suspector = rules.steady(len(view.members), settings, now)
        self._heard_at = self.suspector.clock
        self._chained: dict[ProcessId, int] = {}  # by sequencer, the last number that it ordered something by
        self._evidence: dict[ProcessId, BlockFrame] = {}  # by member, its last null that orders nothing
        self._last: dict[ProcessId, int] = {}  # by origin, the place of its last message that was numbered
        self._submissions = Submissions(settings)  # our own
        self._unsent = False  # the sequencer has changed, and does not have them
        self._doubtful = 0  # places up to here were submitted to another sequencer, or sent in another group
        self._submitted: dict[ProcessId, dict[int, SubmitFrame]] = {}  # by origin and place: to be numbered by us
        self._need = 0  # the largest number that somebody needs this group to get to
        self._asked = 0  # what we have asked the sequencer for
        self._cuts: list[_Cut] = []  # pending, in the order of their numbers
        self._last_cut = self._base
        self._begin_completion(settings)

    def _begin_completion(self, settings: NewtopSettings) -> None:
        """Where there are windows, a message is complete here only when our application has taken it."""
        self._counts = bool(settings.flow_control)
        self._pressing = max(1, settings.window // 2) if self._counts else BEYOND
        self._pressing_bytes = settings.window_bytes // 2 if self._counts else BEYOND
        self._untold = self._untold_bytes = 0  # messages that came since we last said what we have completed
        self._unconsumed = Pending()
        self._stable_told = 0  # what an origin or a sequencer knew to be stable
        self._repeat_at: int | None = None  # on datagrams: when to send again what did not come back
        self._patience = Patience(settings)

    @property
    def sequencer(self) -> ProcessId:
        """q: the lowest of the view."""
        return self.view.members[0]

    @property
    def awaits_return(self) -> bool:
        """Whether a message of ours that has left has no number that we know of."""
        return bool(self._submissions.kept) or self.overdue > 0

    @property
    def in_doubt(self) -> bool:
        """Whether a message of ours may have got a number elsewhere: from a sequencer that we are not with any more.

        Those who have delivered it there may come along to a group that we enter; so it must get its number here first.
        """
        kept = self._submissions.kept
        return self.overdue > 0 or bool(kept and kept[0].place <= self._doubtful)

    @property
    def complete_block(self) -> int:
        """D."""
        return self._horizon.minimum

    @property
    def largest(self) -> int:
        """How far the group is, or has been asked to get."""
        return max(self._horizon.minimum, self._need)

    @property
    def released(self) -> bool:
        """Whether the window is open again, and somebody is there to submit to."""
        if not self.blocked or self._leaderless or (self._held and self.donation is None):
            return False
        return self._submissions.permits(self._next_bytes)

    @property
    def deadline(self) -> int | None:
        """When this group must be looked at again."""
        times = (super().deadline, self._repeat_at)
        return min((time for time in times if time is not None), default=None)

    @property
    def awaits_application(self) -> bool:
        """Whether something may follow at once when our application takes a message: somebody may wait for it."""
        return self.blocked or self.wanted > 0 or self._presses or self.news.at is None

    # What comes in

    def follows(self, frame: BlockFrame) -> bool:
        """Whether nothing is missing before it: evidence is in no chain, and refers to the beginning."""
        before = self._chained.get(frame.sender, self._base) if frame.ordering is not None else self._base
        return frame.previous_block == before and frame.block > self.reached(frame.sender)

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member: an order of the sequencer, or evidence of life."""
        rank = self._rank_of(frame.sender)
        if rank is None or rank == self.my_rank:
            return None
        self._heard_at[rank] = now
        ordering = frame.ordering
        if not self.follows(frame) or frame.flow is not None:
            return None
        if ordering is None:
            if frame.payloads or frame.notice is not None:
                return None  # nobody but a sequencer has something to say by numbers
            self._evidence[frame.sender] = frame
        else:
            if ordering.origin not in self.columns:
                return None
            self._enter(frame, ordering)
            self._complete_at.raise_to(rank, frame.complete_block)
        self.last_received.raise_to(rank, frame.block)
        if frame.block > self.received:
            self.received = frame.block
            self.row_at = now
        self._look_ahead()
        return True

    def submitted(self, frame: ToSequencer) -> bool:
        """Somebody asks us to number a message, or to get to a number; perhaps before we know that it is our turn."""
        if frame.sender not in self.ranks or frame.sender == self._me:
            return False
        if isinstance(frame, NeedFrame):
            self._need = max(self._need, frame.number)  # its need is ours from now on (rule 6.7)
        elif frame.place > self._last.get(frame.sender, 0):
            self._submitted.setdefault(frame.sender, {}).setdefault(frame.place, frame)
        return True

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """What it has ordered since, or else its last evidence."""
        held = [frame for frame in self.buffers.held() if frame.sender == process and frame.block > above]
        held.sort(key=lambda frame: frame.block)
        evidence = self._evidence.get(process)
        if held or evidence is None or evidence.block <= above:
            return tuple(held)
        return (evidence,)

    def _enter(self, frame: BlockFrame, ordering: Ordering) -> None:
        """The sequencer, perhaps we, has numbered something: everybody counts it, at receipt (rule 6.6)."""
        self._chained[frame.sender] = frame.block
        if frame.payloads:
            self.buffers.hold(frame.block, self.columns[ordering.origin], frame)
        else:
            self.buffers.nulls.hold(frame.block, frame)  # where views change does not wait for a window
        if self._counts and (frame.payloads or frame.notice is not None):
            self._unconsumed.add(frame.block)
            self._untold += 1
            self._untold_bytes += sum(map(len, frame.payloads))
        self._stable_told = max(self._stable_told, ordering.stable)
        if ordering.place:
            self._last[ordering.origin] = ordering.place
            if ordering.origin == self._me:
                self._came_back(frame, ordering.place)

    def _came_back(self, frame: BlockFrame, place: int) -> None:
        """A message of ours has its number: whatever we send next, in any group, is above it (rule 2)."""
        self.counter.witness(frame.block)
        if self._submissions.came_back(frame, place):
            self._patience.progress()

    def _look_ahead(self) -> None:
        """Rule 6.4."""
        if self._cuts:
            self._horizon.minimum = max(cut.number for cut in self._cuts)
        else:
            reached = self.last_received.values[self.columns[self.sequencer]]
            self._horizon.minimum = max(self._last_cut, reached)

    # What goes out

    def serve(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """What members owe each other, whatever applications want; gives the last number of ours, or 0.

        A new sequencer tells first where views change, then numbers what came early (rule 6.5).
        """
        block = 0
        if self.sequencer != self._me:
            self._resubmit(now, effects)
        else:
            while self.notices:
                block = self._tell_view(self.notices.popleft(), order, now, effects)
            for submission in () if self.frozen else self._next_submissions():
                self.counter.witness(submission.block)
                block = self._number(submission, self.counter.advance(), order, now, effects)
        self.meet_needs(now, effects)
        return block

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Submit what the application asked for, or number it if that is up to us; the last number given, or 0."""
        block = 0
        self._note_application()
        while (self.outbox.waiting or self.donation is not None) and not self._leaderless:
            if self._held and self.donation is None:
                self._tell_blocked(self._me, now, effects)
                break
            if not self._submissions.permits(self._next_bytes):
                self._tell_blocked(self._slowest_here(), now, effects)
                break
            if not self._held:
                self._tell_unblocked(effects)
            submission = self._next_submission()
            if self.sequencer == self._me:
                block = self._number(submission, submission.block, order, now, effects)
            else:
                self._submissions.kept.append(submission)
                self._submit(submission, now, effects)
        if not self.outbox.waiting and self.donation is None:
            self._tell_unblocked(effects)
        return block

    def _next_submission(self) -> SubmitFrame:
        """The next part of our state, if that is on its way, or of what our application wants."""
        state, room = None, self._submissions.room_bytes
        if self.donation is not None:
            state, source = self.donation
            label, payloads, more = source.take(room)
            if not source.waiting:
                self.donation = None
        else:
            label, payloads, more = self.outbox.take(room)
            if self.overdue:
                self._doubtful = self._submissions.places + 1
                self.overdue = max(0, self.overdue - (0 if more else len(payloads)))
        place, number = self._submissions.count(payloads), self.counter.advance()  # rule CA1
        return SubmitFrame(
            self.view.group, self._me, number, place, self._stable_block, payloads, label, more, self.excluded, state
        )

    def take_over(self, messages: list[Unsent], overdue: int) -> None:
        """What has left once goes before anything that we send elsewhere."""
        super().take_over(messages, overdue)
        self.overdue = overdue

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:
        """Some messages that have left are delivered by nobody who goes over with us (E-94)."""
        assert not self.overdue, "who has messages in doubt does not go over"
        lost = self._lost(undelivered)
        return lost + self.outbox.remove_all(), len(lost)

    def _lost(self, undelivered: list[BlockFrame]) -> list[Unsent]:
        """Either they have not come back; or a sequencer that does not go over has numbered them above the base.

        Pieces of a message of which not all have left are not among them: the outbox has all of it.
        """
        numbered = [frame for frame in undelivered if frame.payloads and frame.author == self._me]
        numbered.sort(key=lambda frame: frame.block)
        parts: list[BlockFrame | SubmitFrame] = [*numbered, *self._submissions.kept]
        pieces = self.fragments.open.get((self._me, None), [])
        found: list[Unsent] = []
        for frame in parts:
            if frame.more or pieces:
                pieces = [*pieces, *frame.payloads]
                if not frame.more:
                    found.append((b"".join(pieces), frame.label))
                    pieces = []
            else:
                found += [(payload, frame.label + place) for place, payload in enumerate(frame.payloads)]
        return found

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """A number of another group waits for ours: the sequencer is to get there (rule 5)."""
        self._need = max(self._need, block)
        self.meet_needs(now, effects)

    def meet_needs(self, now: int, effects: list[Effect]) -> None:
        """Get to the number that somebody needs, or ask the sequencer to (rules 5, 6.7)."""
        if self._need <= self._horizon.minimum or self._leaderless:
            return
        if self.sequencer == self._me:
            self._order_null(max(self.counter.value, self._need), now, effects)
        elif self._need > self._asked:
            self._asked = self._need
            self._ask(now, effects)

    def reach(self, number: int, now: int) -> None:
        """A formation or a leave asks for this number: the sequencer is to get there."""
        self.null(number, now, self.early)

    def show_life(self, now: int) -> None:
        """A null with a new number. Whoever does not order gives it as evidence alone (rule 6.1)."""
        block = max(self.counter.value, self.sent + 1)
        if self.sequencer == self._me:
            self._order_null(max(block, self._horizon.minimum + 1), now, self.early)
            return
        self.counter.witness(block)
        frame = BlockFrame(self.view.group, self._me, block, self._base, self._base, excluded=self.excluded)
        self._leave(frame, now, self.early)

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Draw the consequences of what has come, gone and been taken: completion, then stability."""
        self._note_application()
        if self._complete > self._complete_at.values[self.my_rank]:
            self._complete_at.raise_to(self.my_rank, self._complete)
        self._stable_block = min(self._complete, max(self._complete_at.minimum, self._stable_told))
        if self._stable_block > self._freed:
            self._let_go(self._stable_block, effects)
        if self.buffers.tracing:
            self.buffers.gauge(self._submissions.bytes, effects)
        if self.wanted and self._complete >= self.wanted:
            self.wanted = 0
            self._say(self._alive(), now, self.early)
        elif self._announces and self._complete > self.news.block:
            if self._presses:
                self.news.at = now
            elif self.news.at is None:
                self.news.weigh(self._complete, None, now)

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """Speak although there may be no news. On datagrams, if there is none, outside the stream: it may get lost.

        In the stream it would be asked for and acknowledged for ever, and whoever misses that for a while seems deaf.
        """
        self._note_application()
        if self.recovery is None or self.wary or blocked or self._complete > self.news.block:
            super().say_alive(now, blocked=blocked)
        else:
            self.spoke_at = now
            self.early.append(Transmit(self._alive(), Scope.VIEW, self._channel))

    def announce(self, now: int, effects: list[Effect]) -> None:
        """Say what we have completed, if nothing did for a while, or if others may wait for it."""
        if self._presses and self._complete > self.news.block:
            self.news.at = None
        elif not self.news.due(self._complete, None, now):
            return
        self._say(self._alive(), now, effects)

    def finish(self, now: int, effects: list[Effect]) -> None:
        """What time has brought; on datagrams, to send again what did not come back."""
        super().finish(now, effects)
        if self._repeat_at is None or self._repeat_at > now:
            return
        self._repeat_at = None
        if not self._leaderless and self.sequencer != self._me:
            for submission in islice(self._submissions.kept, _REPEATED_MAX):
                self._submit(submission, now, effects)
            if self._need > self._horizon.minimum:
                self._ask(now, effects)

    # Members that fail

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:
        """Whoever is first of those that had not failed before orders where the view changes, if it goes on itself.

        Otherwise it changes behind the last number of it that all have, or behind an earlier such place (rule 6.3).
        """
        notice, _ = super().confirmed(detection, cut_after)
        notice = notice if self.sequencer == self._me else None
        failed = dict(detection.failed)
        first = next(each for each in self.view.members if each in failed or each not in self.agreement.failed)
        if first not in failed:
            return notice, None
        number = max([failed[first], self._last_cut, *(cut.number for cut in self._cuts)])
        self._cuts.append(_Cut(number, detection))
        self._look_ahead()
        return None, number

    def install(self, view: View) -> None:
        """The view changes; if we are its first, we begin to order (rule 6.5), else resubmit to who is (rule 6.6)."""
        before = self.sequencer
        super().install(view)
        passed = [cut for cut in self._cuts if not any(process in self.ranks for process, _ in cut.detection.failed)]
        self._cuts = [cut for cut in self._cuts if cut not in passed]
        self._last_cut = max([self._last_cut, *(cut.number for cut in passed)])
        self._submitted = {origin: each for origin, each in self._submitted.items() if origin in self.ranks}
        self._look_ahead()
        if self.sequencer != before:
            self._asked = 0
            self._turn_to_sequencer()

    def _turn_to_sequencer(self) -> None:
        self._doubtful = self._submissions.places
        if self.sequencer == self._me:
            self.notices.extend(self._change.untold())
            self._submitted[self._me] = {submission.place: submission for submission in self._submissions.kept}
            self._repeat_at = None
        else:
            self._unsent = True

    def waits_for(self, rank: int) -> bool:
        """Whether the window is shut because of that member."""
        return self.blocked and self._complete_at.values[rank] == self._complete_at.minimum

    def deliver(self, frame: BlockFrame) -> BlockFrame | None:
        """The frame's turn has come; gives what the application gets, or None for a piece of a larger message."""
        whole = None
        if frame.notice is None:
            whole = self.fragments.join(frame) if frame.more or self.fragments.open else frame
        if self._counts:
            waits = self.transfer is not None and self.transfer.waits  # for a state, which must get through (11.2)
            if whole is None or frame.state is not None or waits:
                self._unconsumed.remove(frame.block)
            if whole is not None and frame.state is None:
                self._handed.append(None if waits else frame.block)
        return whole

    # Parts

    @property
    def _presses(self) -> bool:
        """Whether that we have completed so much does not wait: somebody may be blocked for it."""
        return self._untold >= self._pressing or self._untold_bytes >= self._pressing_bytes

    @property
    def _leaderless(self) -> bool:
        """Whether the sequencer has failed and the view without it is not there yet."""
        return self.sequencer in self.agreement.failed

    def _slowest_here(self) -> ProcessId:
        """Whom our application waits for: the member that has completed least, ourselves last among equals."""
        least = self._complete_at.minimum
        slowest = [process for process, rank in self.ranks.items() if self._complete_at.values[rank] == least]
        return slowest[0] if slowest[0] != self._me else slowest[-1]

    def _note_application(self) -> None:
        """Complete is what can come no more and, where windows count, our application has taken."""
        while self._accounted < self.position:
            self._accounted += 1
            if (number := self._handed.popleft()) is not None:
                self._unconsumed.remove(number)
        smallest = self._unconsumed.smallest
        self._complete = self._horizon.minimum if smallest is None else min(self._horizon.minimum, smallest - 1)

    def _let_go(self, stable: int, effects: list[Effect]) -> None:
        self._free(stable, effects)
        self._forget(self.buffers.nulls.free(stable))
        self._submissions.stable(stable)

    def _next_submissions(self) -> Iterator[SubmitFrame]:
        """In the order of origins, each its next ones; those of whoever has failed will never be numbered by us."""
        gone = self.agreement.failed
        for origin in sorted(self._submitted):
            waiting = self._submitted.pop(origin)
            if origin in gone or origin not in self.ranks:
                continue
            while (submission := waiting.get(self._last.get(origin, 0) + 1)) is not None:
                if not {*submission.excluded} <= {*self.excluded}:
                    break  # it has excluded somebody whom we have not: our own agreement comes first
                yield waiting.pop(submission.place)
            reached = self._last.get(origin, 0)
            if left := {place: each for place, each in waiting.items() if place > reached}:
                self._submitted[origin] = left

    def _number(self, submission: SubmitFrame, block: int, order: "Order", now: int, effects: list[Effect]) -> int:
        """Give a message its number (rule 2)."""
        stable = max(submission.stable, self._stable_block)
        frame = self._ordered(block, Ordering(submission.sender, submission.place, stable))
        frame = frame._replace(
            payloads=submission.payloads, label=submission.label, more=submission.more, state=submission.state
        )
        order.sent(self, self._leave(frame, now, effects), now)
        return frame.block

    def _tell_view(self, notice: Notice, order: "Order", now: int, effects: list[Effect]) -> int:
        """The view changes here (rule 6.3)."""
        ordering = Ordering(self._me, 0, self._stable_block)
        frame = self._leave(self._ordered(self.counter.advance(), ordering, notice), now, effects)
        order.sent(self, frame, now)
        return frame.block

    def _order_null(self, block: int, now: int, effects: list[Effect]) -> None:
        self.counter.witness(block)
        self._leave(self._ordered(block, Ordering(self._me, 0, self._stable_block)), now, effects)

    def _ordered(self, block: int, ordering: Ordering, notice: Notice | None = None) -> BlockFrame:
        """A frame of ours as sequencer, without payloads."""
        self._note_application()
        before = self._chained.get(self._me, self._base)
        return BlockFrame(
            self.view.group, self._me, block, before, self._complete,
            excluded=self.excluded, notice=notice, ordering=ordering,
        )  # fmt: skip

    def _leave(self, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        if self.recovery is not None:
            frame = self.recovery.outgoing(frame, now)
        if frame.ordering is not None:
            self._enter(frame, frame.ordering)
            self.news.spoken(frame.complete_block, None, now)
            self._untold = self._untold_bytes = 0
        self.sent = frame.block
        self.row_at = self.spoke_at = now
        self.last_received.raise_to(self.my_rank, frame.block)
        self._look_ahead()
        effects.append(Transmit(frame, Scope.VIEW, self._channel))
        return frame

    def _resubmit(self, now: int, effects: list[Effect]) -> None:
        """All that the new sequencer does not have of us (rule 6.6)."""
        if self._unsent and not self._leaderless:
            self._unsent = False
            self._patience.reset()
            for submission in self._submissions.kept:
                self._submit(submission, now, effects)

    def _submit(self, submission: SubmitFrame, now: int, effects: list[Effect]) -> None:
        effects.append(Transmit(submission, self.sequencer, self._channel))
        self._repeat_later(now)

    def _ask(self, now: int, effects: list[Effect]) -> None:
        effects.append(Transmit(NeedFrame(self.view.group, self._me, self._need), self.sequencer, self._channel))
        self._repeat_later(now)

    def _repeat_later(self, now: int) -> None:
        """On datagrams anything may be lost."""
        if self.recovery is not None and self._repeat_at is None:
            self._repeat_at = now + self._patience.wait()

    def _alive(self, *, blocked: bool = False) -> AliveFrame:
        self._note_application()
        self._untold = self._untold_bytes = 0
        last = max(self.sent, self._complete)  # what is complete here need not be numbered by us
        return AliveFrame(self.view.group, self._me, last, self._complete, blocked=blocked)
