"""What a receiver of the group timestamp order does: joins, follows changes of views, reports, asks to send, resets."""

from dataclasses import dataclass

from antiphon.protocols.intergroup.frames import JoinInfoFrame, ReportFrame
from antiphon.protocols.intergroup.membership.bootstrap import Bootstrap
from antiphon.protocols.intergroup.membership.cuts import Cuts, CutSchedule
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    ProposalFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.repair import ASKED_MAX
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.states import Event, State
from antiphon.protocols.intergroup.stability.schedule import ReportSchedule


@dataclass(slots=True)
class _Progress:
    ack: int = 0
    at: int = 0
    """When `ack` last rose."""


class ReceiverSide:
    """The membership of one process that does not send, or not yet."""

    def __init__(self, seat: Seat) -> None:
        context = seat.context
        self._seat, self._context, self._outlet = seat, context, seat.outlet
        self.bootstrap = Bootstrap(context, seat.outlet)
        self.reports = ReportSchedule(context.me, context.settings.report_every_ns, context.draw)
        self._cuts = CutSchedule(context.settings.report_every_ns, context.settings.repeat_ns, context.draw)
        self._progress = _Progress()
        self._change: ChangeFrame | None = None
        """The change that we follow, while we recover what we must deliver before it."""
        self._question_at: int | None = None
        """When we next ask for a change; None: we know of none that we lack."""
        self._ask_at = 0
        """When we next ask for a sponsor."""
        self._asked = 0
        self._wished_at = 0
        self._is_behind = False
        """True if a message that we lack is gone."""

    # Joining

    def begin(self, now: int) -> None:
        """Look for senders."""
        self._forget()
        self.bootstrap.begin(now)

    def _forget(self) -> None:
        self._change, self._question_at, self._is_behind = None, None, False
        self._cuts.begin()

    def admitted(self, info: JoinInfoFrame, now: int) -> None:
        """Begin where a sender says; an answer that does not fit is ignored."""
        seat, first = self._seat, dict(info.first)
        if info.to != self._context.me or seat.state is not State.BOOTSTRAP or info.start <= seat.floor:
            return
        if self._context.me in first or not self.bootstrap.hears(info.sender):
            return
        seat.begin_joined(info)
        seat.standing.go(Event.ADMITTED)
        self.follow(now)

    def follow(self, now: int) -> None:
        """We have become a receiver in a view: the first report says so at once (J9)."""
        self._go_on(now)
        self.reports.begin(now)

    def _go_on(self, now: int) -> None:
        """We are a receiver in a new view; if we only followed a change, our reports keep their pace."""
        self._forget()
        self._progress = _Progress(self._seat.log.gate, now)

    # Asking to send

    def wish(self, now: int) -> None:
        """ToSender."""
        self._seat.standing.go(Event.WISH)
        self._ask_at = self._wished_at = now

    def ask_for_sponsor(self, now: int) -> None:
        """Ask a member to add us, another one each time."""
        seat, context = self._seat, self._context
        epoch = seat.epoch
        if not self._may_ask_for_sponsor:
            self._wished_at = now
        if not self._may_ask_for_sponsor or now < self._ask_at:
            return
        frame = SponsorRequestFrame(context.group, context.me, epoch.id, seat.outbox.last + 1)
        self._outlet.transmit(frame, epoch.members[self._asked % len(epoch.members)])
        self._asked += 1
        self._ask_at = now + context.settings.ask_ns

    @property
    def _may_ask_for_sponsor(self) -> bool:
        return bool(self._seat.epoch.members) and self._lacks_only_stable

    @property
    def _lacks_only_stable(self) -> bool:
        """True if all that we do not hold of our view is stable: only then may others rely on us (J7)."""
        return self._seat.log.stable >= self._seat.epoch.installed

    def is_unsponsored(self, now: int) -> bool:
        """True if no member adds us although the group goes on (J14)."""
        sponsor_ns = self._context.settings.sponsor_ns
        return now - self._wished_at >= sponsor_ns and now - self._progress.at < sponsor_ns

    # Following a change of the view

    def proposed(self, frame: ProposalFrame, now: int) -> None:
        """PJoin of a sender in our view: halt, and tell soon what we have (7.7.1)."""
        seat = self._seat
        epoch = seat.epoch
        if frame.epoch != epoch.id or (frame.sender not in epoch.stints and frame.sender not in epoch.left):
            return
        if seat.state in (State.RECEIVER, State.TO_SENDER):
            seat.standing.go(Event.PROPOSED)
            self.miss_change(now)
        if seat.state is State.WAIT:
            self._cuts.proposed(self.reports.reporters, now)

    def tell_cut_if_due(self, heard: Cuts, now: int) -> None:
        """CutRecord, unless other receivers have told as much. A process that joined waits until it may (J7)."""
        seat, context = self._seat, self._context
        if self._cuts.is_due(now) and self._lacks_only_stable:
            frame = CutFrame(context.group, context.me, seat.epoch.id, seat.log.gate, seat.claims())
            if not heard.covers(frame):
                self._outlet.transmit(frame)

    def changed(self, change: ChangeFrame, now: int) -> None:
        """MC: the first one that says how our epoch ends is the one that we follow."""
        seat = self._seat
        end = change.end_of(seat.epoch.id)
        if self._change is not None or end is None:
            return
        if not seat.has_delivered_beyond(end) and not seat.may_follow(change, end):
            return
        self._change = change
        seat.standing.go(Event.CHANGED)
        self.follow_change(now)

    def follow_change(self, now: int) -> None:
        """Recover what we lack of our epoch, and install the next view; or begin again, if we are too far (7.7.2)."""
        seat, change = self._seat, self._change
        if change is None:
            return
        end = change.end_of(seat.epoch.id)
        assert end is not None
        if seat.has_delivered_beyond(end) or change.start <= seat.floor:
            self.reset("beyond", now)
            return
        missing = seat.missing_before(end)
        for sender, seq in missing[:ASKED_MAX]:
            seat.want(sender, seq, now)
        if not missing:
            seat.install(change, now)
            seat.standing.go(Event.REJOINED if seat.wants else Event.INSTALLED)
            self._wished_at = self._ask_at = now
            self._go_on(now)

    def miss_change(self, now: int) -> None:
        """Senders have gone on, or soon will. If we do not hear of the change, we ask after a while."""
        if self._question_at is None:
            self._question_at = now + self._patience_ns()

    def _patience_ns(self) -> int:
        """Random, so that the question of one receiver spares those of most others."""
        return int(self._context.settings.ask_ns * (0.5 + self._context.draw()))

    def ask_for_change_if_due(self, now: int) -> None:
        """MCReq. While we wait for a change, we ask again; else the next sign of it makes us ask again."""
        context, seat = self._context, self._seat
        if self._question_at is not None and now >= self._question_at:
            self._outlet.transmit(ChangeRequestFrame(context.group, context.me, seat.epoch.id))
            self._question_at = now + self._patience_ns() if seat.state is State.WAIT else None

    def others_ask(self, frame: ChangeRequestFrame, now: int) -> None:
        """Another receiver asks what we would ask: the answer is multicast."""
        if self._question_at is not None and self._seat.is_in_epoch(frame.epoch):
            self._question_at = now + self._patience_ns()

    # Reports, progress, resets

    def report_if_due(self, now: int) -> None:
        seat, context = self._seat, self._context
        if self.reports.is_due(now):
            ack = seat.log.ack(now)
            self._outlet.transmit(ReportFrame(context.group, context.me, seat.epoch.id, ack, None))
            self.reports.sent(now)

    def reset_if_stalled(self, now: int) -> bool:
        """The only rule by which a receiver gives up: no progress for RECV_STALL although senders are heard (J13)."""
        seat, progress = self._seat, self._progress
        ack = seat.log.ack(now)
        if ack > progress.ack:
            progress.ack, progress.at = ack, now
        elif now - progress.at >= self._context.settings.stall_ns and self._may_stall():
            self.reset("behind" if self._is_behind else "stalled", now)
            return True
        return False

    def _may_stall(self) -> bool:
        return self.bootstrap.last_heard() > self._progress.at or self._seat.wants

    def fall_behind(self) -> None:
        """A message that we lack is gone."""
        self._is_behind = True

    def reset(self, reason: str, now: int) -> None:
        self._seat.reset(reason)
        self.begin(now)

    def deadlines(self) -> list[int]:
        seat = self._seat
        stall = [self._progress.at + self._context.settings.stall_ns] if self._may_stall() else []
        times = [self.reports.next_at, *stall]
        if seat.state is State.WAIT and self._cuts.next_at is not None:
            times.append(self._cuts.next_at)
        if seat.state is not State.RECOVER and self._question_at is not None:
            times.append(self._question_at)
        if seat.state is State.TO_SENDER and self._may_ask_for_sponsor:
            times.append(self._ask_at)
        return times
