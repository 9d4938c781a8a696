"""What a receiver of the group timestamp order does: joins, follows changes of views, reports, asks to send, resets."""

from dataclasses import dataclass

from antiphon.protocols.intergroup.frames import JoinInfoFrame, ReportFrame
from antiphon.protocols.intergroup.membership.bootstrap import Bootstrap
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    ProposalFrame,
    SponsorRequestFrame,
)
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
        self._progress = _Progress()
        self._change: ChangeFrame | None = None
        """The change that we follow, while we recover what we must deliver before it."""
        self._ask_at = 0
        """When we next ask for a change, or for a sponsor."""
        self._asked = 0
        self._wished_at = 0
        self._is_behind = False
        """True if a message that we lack is gone."""

    # Joining

    def begin(self, now: int) -> None:
        """Look for senders."""
        self._change, self._is_behind = None, False
        self.bootstrap.begin(now)

    def admitted(self, info: JoinInfoFrame, now: int) -> None:
        """Begin where a sender says; an answer that does not fit is ignored."""
        seat, first = self._seat, dict(info.first)
        if info.to != self._context.me or seat.state is not State.BOOTSTRAP or info.start <= seat.floor:
            return
        fits = info.sender in first and self._context.me not in first and first.keys() == dict(info.stints).keys()
        if not fits:
            return
        seat.begin_joined(info)
        seat.standing.go(Event.ADMITTED)
        self.follow(now)

    def follow(self, now: int) -> None:
        """We are a receiver in a view: the first report says so (J9)."""
        self._change, self._is_behind = None, False
        self._progress = _Progress(self._seat.log.gate, now)
        self.reports.begin(now)

    # Asking to send

    def wish(self, now: int) -> None:
        """ToSender."""
        self._seat.standing.go(Event.WISH)
        self._ask_at = self._wished_at = now

    def ask_for_sponsor(self, now: int) -> None:
        """Ask a member to add us, another one each time; only when all that we do not hold is stable (J7)."""
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
        epoch = self._seat.epoch
        return bool(epoch.members) and self._seat.log.stable >= epoch.installed

    def is_unsponsored(self, now: int) -> bool:
        """True if no member adds us although the group goes on (J14)."""
        sponsor_ns = self._context.settings.sponsor_ns
        return now - self._wished_at >= sponsor_ns and now - self._progress.at < sponsor_ns

    # Following a change of the view

    def proposed(self, frame: ProposalFrame, now: int) -> None:
        """PJoin of a sender in our view: halt, and tell what we have (7.7.1)."""
        seat = self._seat
        epoch = seat.epoch
        if frame.epoch != epoch.id or (frame.sender not in epoch.stints and frame.sender not in epoch.left):
            return
        if seat.state in (State.RECEIVER, State.TO_SENDER):
            seat.standing.go(Event.PROPOSED)
            self._ask_at = now + self._context.settings.ask_ns
        if seat.log.stable >= epoch.installed:
            context = self._context
            self._outlet.transmit(CutFrame(context.group, context.me, epoch.id, seat.log.gate, seat.claims()))

    def changed(self, change: ChangeFrame, now: int) -> None:
        """MC: the first one that says how our epoch ends is the one that we follow."""
        seat = self._seat
        if self._change is not None or change.end_of(seat.epoch.id) is None:
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
        if seat.has_delivered_beyond(end):
            self.reset("beyond", now)
            return
        missing = seat.missing_before(end)
        for sender, seq in missing:
            seat.want(sender, seq, now)
        if not missing:
            seat.install(change, now)
            seat.standing.go(Event.REJOINED if seat.wants else Event.INSTALLED)
            self._wished_at = self._ask_at = now
            self.follow(now)

    def ask_for_change(self, now: int) -> None:
        """MCReq, once a second."""
        if now >= self._ask_at:
            context = self._context
            self._outlet.transmit(ChangeRequestFrame(context.group, context.me, self._seat.epoch.id))
            self._ask_at = now + self._context.settings.ask_ns

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
        if seat.state is State.RECOVER:
            return stall
        if seat.state is State.WAIT:
            return [self._ask_at, *stall]
        if seat.state is State.TO_SENDER:
            asks = [self._ask_at] if self._may_ask_for_sponsor else []
            return [self.reports.next_at, *asks, *stall]
        return [self.reports.next_at, *stall]
