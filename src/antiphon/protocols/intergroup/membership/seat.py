"""The place of one process in a group: its epoch, its log, and how it goes from one view to the next.

Senders and receivers enter, change and leave views in the same way, so this is common to both (`senders.py`,
`receivers.py`).
"""

from collections.abc import Callable
from functools import partial

from antiphon.core.effects import Confirmed, Reset, Wished
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.stream import GAP_MAX
from antiphon.protocols.intergroup.frames import DataFrame, JoinInfoFrame
from antiphon.protocols.intergroup.membership.claims import NO_END, Claim, Claims
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.frames import ChangeFrame, EpochEnd
from antiphon.protocols.intergroup.membership.states import Event, Standing, State
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.repair.recovery import Recovery
from antiphon.protocols.intergroup.sending.outbox import Outbox
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, View, ViewId

Added = Callable[[ProcessId, int], None]


class Seat:
    """What a process has in one group, as sender or receiver."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        self.context, self.outlet, self.handoff = context, outlet, handoff
        self._views = views
        self.standing = Standing()
        self.outbox = Outbox(context, outlet, handoff)
        self.recovery = Recovery(context, outlet, handoff)
        self.log = context.rules.log(context, outlet, handoff)
        self._epoch: Epoch | None = None
        self._floor = 0
        self._resets = 0
        self._wishes = False

    @property
    def state(self) -> State:
        return self.standing.state

    @property
    def epoch(self) -> Epoch:
        assert self._epoch is not None, "a process that is in no view has no epoch"
        return self._epoch

    @property
    def floor(self) -> int:
        """The largest stamp that the application has seen: of a message, or of the beginning of a view (J8)."""
        return max(self._floor, self.log.gate, self._views.began)

    @property
    def is_member(self) -> bool:
        """True if we are in our own view as sender."""
        return self._epoch is not None and self.context.me in self._epoch.stints

    @property
    def is_misplaced(self) -> bool:
        """True if a message has added us with a first number that we did not ask for.

        Others would wait forever for the numbers before it.
        """
        return self.is_member and self.epoch.stints[self.context.me] > self.outbox.last + 1

    def wish(self, *, sends: bool) -> None:
        """The application wants the process to send, or no longer."""
        if sends != self._wishes and self.context.settings.tracing:
            self.outlet.add(Wished(self.context.group, sends))
        self._wishes = sends

    @property
    def wants(self) -> bool:
        """True if the process wants to send, or has something to send first."""
        return self._wishes or len(self.outbox) > 0

    # Beginning

    def begin_configured(self, view: View, now: int) -> None:
        """All senders of a configured group begin in the same view."""
        stints = dict.fromkeys(view.members, 1)
        self._epoch = Epoch(view.id, 0, 0, stints, view.id, 0)
        self.log.begin(stints, 0, now, is_sender=True)
        self._views.install(view)

    def begin_alone(self, number: int) -> None:
        """A private epoch, with no view: the repair of it makes the first view (7.3.4)."""
        context = self.context
        private = view_id(0, Kind.CONSENSUS, context.me, number)
        self._epoch = Epoch(private, self.floor, self.floor, {}, private, self.floor)
        context.clock.merge(self.floor)

    def begin_joined(self, info: JoinInfoFrame) -> None:
        """Enter a view where one of its members says (7.3.3)."""
        self._epoch = Epoch(
            info.epoch,
            info.entered,
            info.start,
            dict(info.stints),
            info.view,
            info.entered,
            {process: Claim(stint, seq, NO_END) for process, stint, seq in info.left},
            info.predecessors,
        )
        self._floor = info.start
        self.log.follow(dict(info.stints), dict(info.first), info.start)
        self._show(self.context.rules.joined_id(info.start, info.view, self.context.me))

    # Messages

    def is_in_epoch(self, epoch: ViewId) -> bool:
        return self._epoch is not None and self._epoch.id == epoch

    def changed(self, message: DataFrame, added: Added, now: int) -> None:
        """A message that changes the view is delivered: PAdd or PLeave (7.4)."""
        if not self._apply(message):
            return
        process, first = message.change or (message.sender, 0)
        if message.is_leave:
            self.log.remove(process, message.stamp, now)
        else:
            self.log.add(process, first, message.stamp)
        self._show(self.epoch.view)
        added(process, first)

    def _apply(self, message: DataFrame) -> bool:
        """Change the view of the epoch; False if the message has no effect."""
        assert message.change is not None
        if message.is_leave:
            return self.epoch.leave(message.sender, message.seq, message.stamp)
        process, first = message.change
        return self.epoch.add(process, first, message.sender, message.seq, message.stamp)

    # The end of an epoch

    def claims(self) -> Claims:
        """What we have of each other sender of our epoch (7.6.3)."""
        epoch, me = self.epoch, self.context.me
        found = {process: claim for process, claim in epoch.left.items() if process != me}
        for process, stream in self.log.streams.items():
            horizon = NO_END if stream.horizon > NO_END else int(stream.horizon)
            found[process] = Claim(epoch.stints.get(process, 0), stream.last, horizon)
        return tuple(sorted(found.items()))

    def next_needed(self, sender: ProcessId, stint: int) -> int:
        """The number of the first message of that sender that we have not delivered."""
        delivered, left = self.log.delivered.get(sender), self.epoch.left.get(sender)
        known = [each for each in (delivered, left.seq if left else None) if each is not None]
        return max(known) + 1 if known else stint

    def may_have(self, claims: Claims, gate: int) -> bool:
        """True if a process of our epoch may claim this.

        No sender is further ahead of a member than a window, and no gate is beyond the clock of a member.
        """
        near = all(claim.seq - self.next_needed(process, claim.stint) < GAP_MAX for process, claim in claims)
        return near and (gate <= self.context.clock.value or not self.is_member)

    def held(self, sender: ProcessId, seq: int) -> DataFrame | None:
        return self.log.get(Ticket(sender, seq))

    def want(self, sender: ProcessId, seq: int, now: int) -> None:
        """Request a message."""
        self.recovery.request(Ticket(sender, seq), now)

    def missing_before(self, end: EpochEnd) -> list[tuple[ProcessId, int]]:
        """The messages that we must deliver before the next view, and lack."""
        return [(sender, seq) for sender, seq in self._last_messages(end) if self.held(sender, seq) is None]

    def may_follow(self, change: ChangeFrame, end: EpochEnd) -> bool:
        """True if the change may be one of our epoch: it knows all senders of it, and some of them survive."""
        final, stints, epoch = dict(end.final), dict(end.stints), self.epoch
        survives = any(each in epoch.stints or each in epoch.left for each in change.together(epoch.id))
        near = all(last - self.next_needed(sender, stints[sender]) < GAP_MAX for sender, last in final.items())
        return survives and near and final.keys() >= epoch.stints.keys()

    def has_delivered_beyond(self, end: EpochEnd) -> bool:
        """True if we have delivered what the others will not, or changed a view that they will not (7.7.2)."""
        delivered = self.log.delivered
        too_far = any(delivered.get(sender, 0) > last for sender, last in end.final)
        epoch = self.epoch
        return too_far or (epoch.view != epoch.id and epoch.view_began > end.gate)

    def _last_messages(self, end: EpochEnd) -> list[tuple[ProcessId, int]]:
        stints = dict(end.stints)
        needed = []
        for sender, last in end.final:
            begin = self.next_needed(sender, stints.get(sender, last + 1))
            needed += [(sender, seq) for seq in range(begin, min(last, begin + GAP_MAX) + 1)]
        return needed

    def install(self, change: ChangeFrame, now: int) -> None:
        """Deliver the last messages of our epoch, and enter the next one (7.6.6). Nothing is missing."""
        epoch, context = self.epoch, self.context
        end = change.end_of(epoch.id)
        assert end is not None, "the change says how our epoch ends"
        messages = [self.held(sender, seq) for sender, seq in self._last_messages(end)]
        last = sorted((each for each in messages if each is not None), key=lambda each: (each.stamp, each.sender))
        self.log.flush(last, partial(self._changed_at_end, end.gate))
        shown = self._views.current
        together = tuple(each for each in change.together(epoch.id) if shown is not None and each in shown.members)
        first = dict(change.first)
        before = [origin for _, origin in change.origins]
        self._epoch = Epoch(
            change.epoch,
            change.start,
            change.start,
            first,
            change.epoch,
            change.start,
            predecessors=epoch.with_predecessors(*before),
        )
        self._floor = max(self._floor, change.start)
        context.clock.merge(change.start)
        self.recovery.reset()
        self._tell_lost(epoch, end)
        self.log.begin(first, change.start, now, is_sender=context.me in first)
        self._views.install(self._view(change.epoch, self.epoch.members, together, classes=change.classes))

    def _tell_lost(self, before: Epoch, end: EpochEnd) -> None:
        """For the trace: what the senders have agreed on, at the time when the protocol knows it."""
        lost = tuple((process, last) for process, last in end.final if process not in self.epoch.stints)
        members = tuple(member for member in before.members if member in self.epoch.stints)
        if lost and self.context.settings.tracing:
            self.outlet.add(Confirmed(self.context.group, lost, members))

    def _changed_at_end(self, gate: int, message: DataFrame) -> None:
        """In the last messages of an epoch, a change of the view has an effect only if some gate has passed it (J1)."""
        if message.stamp <= gate and self._apply(message):
            self._show(self.epoch.view)

    def reset(self, reason: str) -> None:
        """We cannot follow: a view of our own ends what the view before it promised (M16)."""
        self._floor = self.floor
        self._tell_reset(reason)
        self._forget()
        self.standing.go(Event.RESET)

    def _tell_reset(self, reason: str) -> None:
        context = self.context
        self._resets += 1
        self._views.install(
            self._view(view_id(self._floor, Kind.RESET, context.me, self._resets), (context.me,), (), receives=True)
        )
        self.outlet.add(Reset(context.group, reason))

    def end(self) -> None:
        """The process leaves the group."""
        self._floor = self.floor
        self._views.begin_above(self._floor)
        self._forget()
        self.standing.go(Event.END)

    def _forget(self) -> None:
        self._epoch = None
        self.recovery.reset()
        self.log = self.context.rules.log(self.context, self.outlet, self.handoff)

    # Views

    def _show(self, shown: ViewId) -> None:
        """Install a view in the same epoch as the one before: all its members come along."""
        members, current = self.epoch.members, self._views.current
        together = tuple(each for each in members if current is not None and each in current.members)
        self._views.install(self._view(shown, members, together))

    def _view(
        self,
        shown: ViewId,
        members: tuple[ProcessId, ...],
        together: tuple[ProcessId, ...],
        classes: tuple[tuple[ProcessId, ...], ...] = (),
        *,
        receives: bool = False,
    ) -> View:
        current = self._views.current
        return View(
            self.context.group,
            shown,
            members,
            previous=None if current is None else current.id,
            transitional=together,
            classes=classes,
            receives=receives or self.context.me not in members,
        )
