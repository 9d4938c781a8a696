"""One group at one member: its parts, and operations on several of them (Macedo94 ch. 3, 4, 6, 8; Macedo95).

Each part has a file of its own and owns its state; no other part writes to it:

    roster       who is in the view                          news         what to announce when no message says it
    numbers      sent, seen, owed                            outgoing     what waits to leave
    progress     who has sent and completed what             gate         whether the application may send
    flow         the windows (Macedo95)                      leaving      what leaving members wait for
    holdings     frames that a member may lack               voice        how frames leave
    consumption  what the application has taken              fragments    pieces to messages
    suspector, agreement, change   members that fail         transfer     states under way in a formed group
    concerns     what is wrong with members that stay

The discipline decides when a member sends and what a number means: `symmetric.py`, or `sequencing/asymmetric.py`. The
ordering part (`ordering/`) decides, over all groups of the process, when a frame may be delivered.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Effect
from antiphon.core.pending import Pending
from antiphon.core.services import GroupService
from antiphon.protocols.newtop.consumption import Consumption
from antiphon.protocols.newtop.discipline import Discipline
from antiphon.protocols.newtop.flow.buffers import Buffers
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.fragments import Fragments
from antiphon.protocols.newtop.frames import WORD, AliveFrame, BlockFrame, MembershipFrame
from antiphon.protocols.newtop.gate import Gate, Reason
from antiphon.protocols.newtop.holdings import Holdings
from antiphon.protocols.newtop.leaving import Leaving
from antiphon.protocols.newtop.membership.agreement import AgreementCallbacks, Detection
from antiphon.protocols.newtop.membership.concerns import Concerns
from antiphon.protocols.newtop.membership.roster import Roster
from antiphon.protocols.newtop.membership.views import ViewChange
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.numbers import Numbers
from antiphon.protocols.newtop.outbox import Outbox, Stream
from antiphon.protocols.newtop.outgoing import Outgoing
from antiphon.protocols.newtop.progress import Progress
from antiphon.protocols.newtop.recovery.streams import Recovery
from antiphon.protocols.newtop.sequencing.asymmetric import Asymmetric
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.protocols.newtop.symmetric import Symmetric
from antiphon.protocols.newtop.voice import Voice
from antiphon.types import ProcessId, View, name_of

if TYPE_CHECKING:
    from antiphon.protocols.newtop.formation.transfer import Transfer
    from antiphon.protocols.newtop.rules import Rules


class NewtopGroup:
    """Invariant: the parts are made once; only `transfer` comes and goes."""

    __slots__ = (
        "_awaits_acknowledgments",
        "_repair_max_ns",
        "agreement",
        "change",
        "concerns",
        "consumption",
        "discipline",
        "flow",
        "fragments",
        "gate",
        "holdings",
        "leaving",
        "news",
        "numbers",
        "outgoing",
        "progress",
        "roster",
        "suspector",
        "transfer",
        "voice",
    )

    def __init__(
        self,
        me: ProcessId,
        view: View,
        counter: BlockCounter,
        settings: NewtopSettings,
        rules: "Rules",
        callbacks: AgreementCallbacks,
        early: list[Effect],
        service: GroupService,
        base: int = 0,
        now: int = 0,
    ) -> None:
        name, size = name_of(view.group), len(view.members)
        sequenced, safe = service.sequencer, service.is_safe
        windows = settings
        if sequenced:  # the window of an origin replaces flow control
            settings = replace(settings, flow_control=0)
        self.roster = roster = Roster(me, view)
        self.flow: FlowControl | None = rules.flow(size, roster.my_rank, settings) if settings.flow_control else None
        by_block = self.flow is None or name in settings.block_numbered
        if self.flow is not None and by_block:
            self.flow.begin(base)
        self.numbers = Numbers(counter, rules.answering(settings), base, now)
        self.progress = Progress(size, roster.my_rank, base, safe=safe)
        self.consumption = Consumption(Pending() if self.flow is None else self.flow.unconsumed)
        self.news = News(settings, base, by_block=by_block, safe=safe)
        recovery = Recovery(me, view, settings) if settings.datagrams else None
        buffers = Buffers(view, windows, by_block=by_block and not sequenced, safe=safe)
        self.holdings = Holdings(roster, buffers, self.flow, self.consumption, recovery, by_block=by_block)
        self.fragments = Fragments(settings.message_bytes_max, rules.states)
        self.outgoing = Outgoing(Outbox(packing=settings.packing, frame_bytes_max=settings.frame_bytes_max))
        self.gate = Gate(view.group)
        self.leaving = Leaving()
        self.voice = Voice(self.numbers, self.news, recovery, early)
        self.transfer: Transfer | None = None
        """In a formed group, the state transfers between its members."""
        self.suspector = (rules.steady if sequenced else rules.suspector)(size, settings, now)
        self.concerns = Concerns(settings, sequenced=sequenced)
        self.agreement = rules.agreement(me, self, settings, callbacks)
        sequencer_change = rules.sequencing() if sequenced else None
        self.change: ViewChange = sequencer_change or rules.change(settings.service, service)
        self.discipline: Discipline = (
            Symmetric(self, settings, by_block=by_block, announces=rules.announces)
            if sequencer_change is None
            else Asymmetric(self, sequencer_change, windows, base, announces=rules.announces)
        )
        self._awaits_acknowledgments = safe and rules.awaits_acknowledgments
        self._repair_max_ns = settings.repair_max_ns

    @property
    def view(self) -> View:
        """The current view."""
        return self.roster.view

    @property
    def complete_block(self) -> int:
        """D: the largest number into which no member can still send."""
        return self.discipline.horizon.minimum

    def reached(self, process: ProcessId) -> int:
        """The last number of that member that we have."""
        return self.progress.received.values[self.roster.columns[process]]

    # Input

    def heard(self, frame: AliveFrame, now: int) -> bool:
        """An announcement of another member; True if it may have consequences."""
        if not self.sign_of_life(frame.sender, now):
            return False
        rank = self.roster.ranks[frame.sender]
        self.discipline.require(frame)
        self.concerns.said(rank, stalled=frame.stalled)
        self.progress.completed.raise_to(rank, frame.complete_block)
        if frame.flow is not None and self.flow is not None:
            self.flow.heard(rank, frame.flow)
        if frame.blocked and self.numbers.spoke_at + self._repair_max_ns <= now:
            self.discipline.say_alive(now)  # it asks which members are still there (9.2 d)
        return True

    def sign_of_life(self, process: ProcessId, now: int) -> bool:
        """A frame came directly from this process; False if it is not in our view, or is ourselves."""
        rank = self.roster.rank_of(process)
        if rank is None or rank == self.roster.my_rank:
            return False
        self.suspector.clock[rank] = now
        return True

    def deliver(self, frame: BlockFrame, *, held: bool) -> BlockFrame | None:
        """A frame is delivered; returns what the application gets, or None for a fragment or a notice.

        `held`: the application gets it later, because it waits for the state of some group.
        """
        whole = None
        if frame.notice is None:
            whole = self.fragments.join(frame) if frame.more or self.fragments.open else frame
        number = self.discipline.delivered(frame)
        if number is None:
            return whole
        if whole is not None and frame.state is None and self.transfer is None:
            self.consumption.hand(number)  # the usual case
        else:
            # A state must not be blocked (11.2): neither ours, nor one that others wait for in this group (E-100)
            waits = self.transfer is not None and (held or self.transfer.waits)
            self.consumption.delivered(number, whole=whole is not None, state=frame.state is not None, waits=waits)
        return whole

    def first_unstable(self) -> int | None:
        """The label of our first message that a member may lack: members that have failed do not count."""
        me, stable = self.roster.me, self.progress.stable
        held = (frame for frame in self.holdings.buffers.held() if frame.payloads and frame.author == me)
        return min((frame.label for frame in held if frame.block > stable and frame.state is None), default=None)

    # Output

    def multicast(self, frame: MembershipFrame, now: int) -> None:
        """Transmit a frame of the agreement, independent of flow control (E-20)."""
        self.voice.say(frame, now, self.voice.early)

    # Members that fail

    @property
    def unanswered(self) -> bool:
        """True if we wait for something other than a number: room in the window, a vote, a notice, a connection."""
        leaving, recovery = self.leaving, self.voice.recovery
        return (
            self.gate.blocked
            or self.agreement.wary
            or leaving.leave_barrier is not None
            or leaving.completion_requested > 0
            or self.unacknowledged
            or self.transfer is not None
            or self.suspector.cut_off(self)
            or (recovery is not None and recovery.waits)
        )

    @property
    def unacknowledged(self) -> bool:
        """True if deliveries may wait for acknowledgments of members (14, rule 3)."""
        return self._awaits_acknowledgments and self.progress.stable_block < self.awaited_block

    @property
    def awaited_block(self) -> int:
        """Up to this number we wait for acknowledgments: of messages, not of nulls (E-83)."""
        return min(self.progress.received.minimum, self.news.awaited)

    @property
    def unheard(self) -> list[ProcessId]:
        """Members from which nothing was received since the group was formed."""
        clock, roster = self.suspector.clock, self.roster
        return [process for process, rank in roster.ranks.items() if rank != roster.my_rank and not clock[rank]]

    def deaf_since(self, process: ProcessId) -> int | None:
        """On datagrams: since when a member has answered nothing; None if nothing is open."""
        return None if self.voice.recovery is None else self.voice.recovery.deaf_since(process)

    def exclude(self, detection: Detection, dropped: Iterable[BlockFrame]) -> None:
        """These have failed: stop waiting for them, and drop their messages that no member will deliver."""
        for process, _ in detection.failed:
            rank = self.roster.columns[process]
            self.progress.fail(rank)
            if self.flow is not None:
                self.flow.fail(rank)
            if self.voice.recovery is not None:
                self.voice.recovery.fail(process)
        self.holdings.drop(dropped)
        if self.change.holds_senders:
            self.gate.hold(Reason.VIEW_CHANGING)

    def install(self, view: View) -> None:
        """The view changes to one without some members."""
        before = self.roster.view.members[0]
        for process in self.roster.install(view):
            self.fragments.forget(process)
            if self.voice.recovery is not None:
                self.voice.recovery.forget(process)
        self.discipline.installed(before)
        self.await_application()

    def installed(self, now: int) -> None:
        """The view was reported to the application."""
        self.agreement.installed(now)
        self.gate.hold(Reason.VIEW_CHANGING, closed=self.change.holds_senders and bool(self.agreement.failed))
        self.mark()

    def await_application(self) -> None:
        """In closed mode, a message sent before the application reads the view would belong to the old view."""
        self.gate.hold(Reason.VIEW_UNSEEN, closed=self.change.closes and self.change.holds_senders)

    def viewed(self, view: View) -> None:
        """The application has read a view: its messages from now on belong to it."""
        self.gate.hold(Reason.NOT_ENTERED, closed=False)
        if self.view.id == view.id:
            self.gate.hold(Reason.VIEW_UNSEEN, closed=False)

    def mark(self) -> None:
        """From now on our messages carry the mark that excludes the failed members (E-45)."""
        self.roster.mark(self.agreement.failed)

    # Groups that change

    @property
    def parts(self) -> bool:
        """True if failures are agreed, and the view without the failed members begins at a message (E-88)."""
        return self.change.kind is not None and bool(self.change.open)

    @property
    def awaits_state(self) -> bool:
        """True if our application waits for the state of others, and reads nothing before it."""
        return self.transfer is not None and self.transfer.waits

    def request_completion(self, number: int, now: int) -> None:
        """A member is about to leave: complete this number, and say so (8)."""
        self.leaving.request(number)
        self.discipline.reach(number, now)

    def stop_at(self, number: int | None) -> None:
        """A formation takes us to another group when everything up to this number is delivered; None: no formation.

        In a safe group, a member that acknowledges a message must deliver it in that view: others may have done so.
        """
        self.gate.hold(Reason.STOPPED, closed=number is not None)
        self.leaving.stop_at(number if self.progress.safe else None)

    def begin_transfer(self, transfer: "Transfer") -> None:
        """The group is formed: the application has not read the first view, and states may be under way."""
        self.transfer = transfer
        self.fragments.owns(transfer.own)
        self.gate.hold(Reason.NOT_ENTERED)
        self.weigh_state()

    def end_transfer(self) -> None:
        """No state is under way any more."""
        self.transfer = None
        self.weigh_state()

    def donate(self, place: int, source: Outbox | Stream) -> None:
        """The state of our class leaves before anything of the application."""
        self.outgoing.donate(place, source)
        self.weigh_state()

    def tell_word(self, source: Outbox) -> None:
        """A word about primary views leaves before anything of the application (15)."""
        self.outgoing.donate(WORD, source)

    def weigh_state(self) -> None:
        """Our application must not send before our state has left."""
        transfer = self.transfer
        owed = transfer is not None and (transfer.owes or self.outgoing.donation is not None)
        self.gate.hold(Reason.STATE_OWED, closed=owed)
