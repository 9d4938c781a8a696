"""A process in the group timestamp order: it receives, or sends too, and changes between both (Berket00 §5.3).

Every sender is one, whichever service its application chose (D10); so is every receiver of the group timestamp order.
"""

from collections.abc import Iterable
from functools import partial

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    RequestFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    ProbeAnswerFrame,
    ProbeFrame,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.proposers import LatestProposals
from antiphon.protocols.intergroup.membership.states import Event, Standing, State
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, ViewId


class Participant(Role):
    """One process in one group: dispatches frames and time to what it is at the moment."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        rules = context.rules
        self._seat = rules.seat(context, outlet, views, handoff)
        self._senders = rules.senders(self._seat)
        self._receivers = rules.receivers(self._seat)
        self._proposals = LatestProposals(context.settings.suspect_after_ns)
        self._boots = 0
        self._alone = 0
        """How often this process began alone."""

    @property
    def standing(self) -> Standing:
        return self._seat.standing

    # Requests of the application

    def begin(self, now: int) -> None:
        plan, seat = self._context.plan, self._seat
        if plan.present and self._context.me in plan.view.members and not self._boots:
            seat.begin_configured(plan.view, now)
            seat.standing.go(Event.CONFIGURED)
            self._senders.begin(now)
        else:
            seat.standing.go(Event.JOIN)
            self._receivers.begin(now)
        self._boots += 1

    def end(self) -> None:
        context, seat = self._context, self._seat
        if seat.state is State.RECEIVER:
            frame = ReportFrame(context.group, context.me, seat.epoch.id, seat.log.gate, ())
            self._outlet.transmit(frame)
        if seat.state is not State.ABSENT:
            seat.end()

    @property
    def may_end(self) -> bool:
        """True if no view has the process as sender, and none will: it may leave the group without a repair.

        The only sender of a view leaves when everybody has what it sent (M24).
        """
        seat = self._seat
        if seat.state is State.BOOTSTRAP:
            return True
        alone = seat.state is State.SENDER and len(seat.epoch.members) < 2 and seat.outbox.is_stable
        return (alone or seat.state is State.RECEIVER) and not seat.wants

    def drop_unsent(self) -> bool:
        """The process leaves the group before it could send everything; True if there was anything."""
        return self._seat.outbox.drop_unsent()

    @property
    def is_only_receiver(self) -> bool:
        """True if the process is a receiver again, and does not want to send."""
        return self._seat.state is State.RECEIVER and not self._seat.wants

    def promote(self) -> None:
        self._seat.wish(sends=True)

    def demote(self) -> None:
        self._seat.wish(sends=False)

    def send(self, payload: bytes, label: int, name: bytes) -> None:
        """A receiver that sends becomes a sender; its messages wait meanwhile."""
        self._seat.outbox.send(payload, label, name)
        self._seat.wish(sends=True)

    def set_writable(self, ready: bool) -> None:
        self._seat.outbox.set_writable(ready)

    def suspect(self, process: ProcessId, now: int) -> None:
        """Take a member for failed, as a wrong timeout would."""
        if self._seat.state in (State.SENDER, State.TO_RECEIVER):
            self._senders.suspect(process, now, "injected")
        elif self._senders.repair is not None:
            self._senders.repair.suspect(process, now, "injected")

    # Frames of the streams

    def data(self, message: DataFrame, now: int) -> None:
        if self._note_heard(message, now):
            self._seat.log.acknowledged(message.sender, message.ack, now)
            self._take(message, now, repair=False)

    def repair(self, frame: RepairFrame, now: int) -> None:
        seat = self._seat
        seat.log.repaired(frame, now)
        if seat.is_in_epoch(frame.message.epoch):
            self._take(frame.message, now, repair=True)

    def _take(self, message: DataFrame, now: int, *, repair: bool) -> None:
        seat = self._seat
        if message.sender in seat.log.streams:
            seat.recovery.received(seat.log, message, now, repair=repair)
        elif Ticket(message.sender, message.seq) in seat.recovery:
            seat.recovery.done(Ticket(message.sender, message.seq))
            seat.log.keep(message)
        if self._senders.repair is not None:
            self._senders.repair.arrived(now)
        elif seat.state is State.RECOVER:
            self._receivers.follow_change(now)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        if self._note_heard(frame, now):
            seat = self._seat
            seat.log.acknowledged(frame.sender, frame.ack, now)
            if not seat.standing.is_halted:
                seat.recovery.keep_alive(seat.log, frame, now)

    def _note_heard(self, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        """A sender lives. True if it is in our epoch; a sender outside of our view may have to be merged (M11)."""
        seat, sender = self._seat, frame.sender
        self._receivers.bootstrap.heard(sender, now)
        if seat.state is State.BOOTSTRAP:
            return False
        if self._senders.repair is not None:
            self._senders.repair.heard(sender, now)
        epoch = seat.epoch
        if frame.epoch == epoch.id:
            self._senders.heard(sender, now)
            self._note_unknown(frame, now)
            return True
        if frame.epoch in epoch.predecessors:
            if frame.stamp > epoch.entered:
                self._meet(sender, now)
        elif sender not in epoch.stints:
            self._meet(sender, now)
        elif not seat.standing.is_sending and seat.state is not State.RECOVER:
            self._receivers.miss_change(now)
        return False

    def _note_unknown(self, frame: DataFrame | KeepAliveFrame, now: int) -> None:
        """A sender of our epoch that is not in our view: the message that adds it is probably on its way."""
        epoch, sender = self._seat.epoch, frame.sender
        left = epoch.left.get(sender)
        if sender in epoch.stints or sender == self._context.me or (left is not None and frame.seq <= left.seq):
            return
        if self._senders.foreign.is_overdue(sender, self._context.settings.suspect_after_ns, now):
            self._meet(sender, now)

    def _meet(self, process: ProcessId, now: int) -> None:
        if self._seat.standing.is_sending:
            self._senders.meet(process, now)

    # Other frames

    @property
    def handlers(self) -> Handlers:
        return {
            ReportFrame: self._reported,
            GoneFrame: self._gone,
            JoinRequestFrame: self._asked_to_admit,
            JoinInfoFrame: self._receivers.admitted,
            SourceRequestFrame: self._asked_as_source,
            SponsorRequestFrame: self._asked_to_sponsor,
            ProposalFrame: self._proposed,
            RecoveryInfoFrame: self._informed,
            ReadyFrame: self._readied,
            ChangeFrame: self._changed_by,
            ChangeRequestFrame: self._asked_for_change,
            CutFrame: self._cut,
            ProbeFrame: self._probed,
            ProbeAnswerFrame: self._answered,
        }

    def requested(self, frame: RequestFrame, now: int) -> None:
        seat = self._seat
        seat.recovery.heard(frame, now)
        seat.log.requested(frame, now)
        if seat.standing.is_sending:
            self._senders.requested(frame, now)

    def _reported(self, frame: ReportFrame, now: int) -> None:
        self._receivers.reports.note(frame, now)
        if self._seat.state is not State.BOOTSTRAP:
            self._seat.log.reported(frame, self._seat.epoch.id, now)

    def _gone(self, frame: GoneFrame, now: int) -> None:
        """A message that we lack is gone: we are behind stability (R9). For a sender in its view it cannot happen."""
        seat = self._seat
        if not seat.is_in_epoch(frame.epoch) or frame.ticket not in seat.recovery:
            return
        self._receivers.fall_behind()
        if seat.state is State.TO_RECEIVER:
            self._receivers.reset("behind", now)

    @property
    def _is_settled_sender(self) -> bool:
        return self._seat.state is State.SENDER

    def _asked_to_admit(self, frame: JoinRequestFrame, now: int) -> None:
        if self._is_settled_sender:
            self._senders.admit(frame, now)

    def _asked_as_source(self, frame: SourceRequestFrame, now: int) -> None:
        if self._is_settled_sender:
            self._senders.accept_as_source(frame, now)

    def _asked_to_sponsor(self, frame: SponsorRequestFrame, now: int) -> None:
        if self._is_settled_sender:
            self._senders.sponsor(frame, now)

    def _proposed(self, frame: ProposalFrame, now: int) -> None:
        seat, sender = self._seat, frame.sender
        self._receivers.bootstrap.heard(sender, now)
        if seat.state is State.BOOTSTRAP or not self._proposals.is_latest(sender, frame.number, now):
            return
        epoch, me = seat.epoch, self._context.me
        self._senders.changes.replay_to(sender, frame.epoch, now)
        if frame.epoch in epoch.predecessors:
            if sender not in epoch.stints and frame.stamp > epoch.entered:
                self._meet(sender, now)
            return
        is_told = frame.epoch == epoch.id and sender in epoch.stints and me in {*frame.processes} - {*frame.failed}
        if is_told and seat.state in (State.TO_SENDER, State.WAIT) and seat.wants:
            self._senders.start_repair(now)  # some process has delivered the PAdd for us (7.4.3)
        if seat.standing.is_sending:
            self._senders.proposed(frame, now)
        else:
            self._receivers.proposed(frame, now)

    def _informed(self, frame: RecoveryInfoFrame, now: int) -> None:
        if self._senders.repair is not None:
            self._senders.repair.informed(frame, now)
        else:
            self._replay(frame.sender, frame.epoch, now)

    def _readied(self, frame: ReadyFrame, now: int) -> None:
        if self._senders.repair is not None:
            self._senders.repair.readied(frame, now)
        else:
            self._replay(frame.sender, frame.epoch, now)

    def _replay(self, process: ProcessId, epoch: str, now: int) -> None:
        if self._is_settled_sender:
            self._senders.changes.replay_to(process, ViewId(epoch), now)

    def _changed_by(self, change: ChangeFrame, now: int) -> None:
        if self._senders.repair is not None:
            self._senders.decided(change, now)
        elif self._seat.state in (State.RECEIVER, State.TO_SENDER, State.WAIT):
            self._receivers.changed(change, now)

    def _asked_for_change(self, frame: ChangeRequestFrame, now: int) -> None:
        if self._seat.state is not State.BOOTSTRAP:
            self._senders.changes.replay_after(frame.epoch, now)
            self._receivers.others_ask(frame, now)

    def _cut(self, frame: CutFrame, now: int) -> None:  # noqa: ARG002
        seat = self._seat
        if seat.is_in_epoch(frame.epoch) and seat.may_have(frame.claims, frame.gate):
            self._senders.cuts.add(frame)

    def _probed(self, frame: ProbeFrame, now: int) -> None:  # noqa: ARG002
        if self._seat.standing.is_sending:
            self._outlet.transmit(ProbeAnswerFrame(self._context.group, self._context.me), frame.sender)

    def _answered(self, frame: ProbeAnswerFrame, now: int) -> None:
        self._senders.foreign.answered(frame.sender, now)

    # Consequences

    def conclude(self, now: int) -> None:
        """What follows in one state may lead to another one, and that has consequences too."""
        state = None
        while state is not self._seat.state:
            state = self._seat.state
            self._conclude_in_state(now)

    def _conclude_in_state(self, now: int) -> None:
        seat = self._seat
        if seat.state is State.BOOTSTRAP:
            self._look_for_senders(now)
            return
        seat.recovery.transmit_due(now)
        seat.log.expire(now)
        seat.log.transmit_repairs(now)
        if self._senders.repair is not None:
            self._senders.repair.advance(now)
        elif seat.standing.is_sending:
            self._conclude_sender(now)
        else:
            self._conclude_receiver(now)
        if seat.standing.is_sending and now >= seat.outbox.keep_alive_at:
            seat.outbox.transmit_keep_alive(seat.epoch.id, seat.log, now)

    def _look_for_senders(self, now: int) -> None:
        """If there are none, begin as the only one.

        Before anything else, the application consumes what it has: a stalled one must not begin again.
        """
        seat, bootstrap = self._seat, self._receivers.bootstrap
        if self._handoff:
            return
        bootstrap.forget_silent(now)
        if seat.wants and bootstrap.is_alone(now):
            self._alone += 1
            seat.begin_alone(self._alone)
            self._senders.start_repair(now)
        else:
            bootstrap.ask_if_due(seat.floor, now)

    def _advance(self, now: int) -> bool:
        """Deliver, and free what is stable. False if we had to begin again."""
        me, seat = self._context.me, self._seat
        for message in seat.log.advance(partial(self._view_changed, now), now):
            if message.sender == me:
                seat.outbox.freed(message)
        if seat.is_misplaced:
            self._receivers.reset("unsponsored", now)
        return seat.state is not State.BOOTSTRAP

    def _view_changed(self, now: int, message: DataFrame) -> None:
        self._seat.changed(message, partial(self._added, now), now)

    def _added(self, now: int, process: ProcessId, first: int) -> None:
        seat, me = self._seat, self._context.me
        if first and process == me and not seat.is_misplaced:
            seat.standing.go(Event.ADDED)
            self._senders.begin(now)
            seat.outbox.hurry(now)
        else:
            self._senders.added(process, first, now)

    def _conclude_sender(self, now: int) -> None:
        seat, settings = self._seat, self._context.settings
        if not self._advance(now):
            return
        while seat.state is State.SENDER and seat.outbox.transmit_waiting(seat.epoch.id, seat.log, now):
            self._advance(now)
        if seat.state is State.SENDER:
            idle = settings.idle_ns is not None and not len(seat.outbox)
            if idle and now - seat.outbox.sent_at >= (settings.idle_ns or 0):
                seat.wish(sends=False)
            self._senders.leave_if_wished(now)
        elif self._senders.has_left and not seat.is_member:
            seat.standing.go(Event.LEFT)
            self._receivers.follow(now)
            return
        self._senders.announce_if_due(now)
        self._senders.suspect_silent(now)

    def _conclude_receiver(self, now: int) -> None:
        seat, receivers = self._seat, self._receivers
        if not seat.standing.is_halted and not self._advance(now):
            return
        if seat.standing.is_sending or receivers.reset_if_stalled(now):
            return
        if seat.state is not State.RECOVER:
            receivers.ask_for_change_if_due(now)
        if seat.state is State.WAIT:
            receivers.tell_cut_if_due(self._senders.cuts, now)
            receivers.report_if_due(now)
        elif seat.state is State.RECOVER:
            receivers.follow_change(now)
            receivers.report_if_due(now)
        else:
            if seat.wants and seat.state is State.RECEIVER:
                receivers.wish(now)
            if seat.state is State.TO_SENDER:
                receivers.ask_for_sponsor(now)
                if receivers.is_unsponsored(now):
                    receivers.reset("unsponsored", now)
                    return
            receivers.report_if_due(now)

    def deadlines(self) -> Iterable[int]:
        seat = self._seat
        if seat.state is State.BOOTSTRAP:
            bootstrap = self._receivers.bootstrap
            alone = (bootstrap.alone_at,) if seat.wants else ()
            return () if self._handoff else (bootstrap.next_at, *alone)
        common = (*seat.recovery.deadlines(), *seat.log.deadlines())
        if not seat.standing.is_sending:
            return (*common, *self._receivers.deadlines())
        may_send = seat.state is State.SENDER
        return (*common, *self._senders.deadlines(), *seat.outbox.deadlines(may_send=may_send), *self._idle_at())

    def _idle_at(self) -> Iterable[int]:
        seat, idle_ns = self._seat, self._context.settings.idle_ns
        if idle_ns is None or seat.state is not State.SENDER or not seat.wants or len(seat.outbox):
            return ()
        return (seat.outbox.sent_at + idle_ns,)

    @property
    def unstable(self) -> int:
        return len(self._seat.log)

    @property
    def has_unsent(self) -> bool:
        return len(self._seat.outbox) > 0

    @property
    def unfinished(self) -> bool:
        """True while it recovers, joins, or changes: time alone may end that."""
        seat = self._seat
        settled = State.SENDER if seat.wants else State.RECEIVER
        alone = seat.state is State.SENDER and len(seat.epoch.members) < 2
        unheard = seat.state is State.BOOTSTRAP and not seat.wants and not self._receivers.bootstrap.hears_senders
        at_rest = alone or unheard or bool(self._handoff)
        return len(seat.recovery) > 0 or (seat.state is not settled and not at_rest)
