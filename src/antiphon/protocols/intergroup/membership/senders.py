"""What a sender does for the group: detects failures, repairs the sender group, admits receivers and adds senders."""

from typing import Final

from antiphon.core.effects import Suspected
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    RequestFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.membership.changes import KnownChanges
from antiphon.protocols.intergroup.membership.claims import Claims, Survivor
from antiphon.protocols.intergroup.membership.cuts import Cuts
from antiphon.protocols.intergroup.membership.detector import FaultDetector
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.foreign import Foreigners
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ProbeFrame,
    ProposalFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.plausible import PROCESSES_MAX
from antiphon.protocols.intergroup.membership.repair import Repair
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.states import Event, State
from antiphon.protocols.intergroup.membership.steps import Cause, RepairSteps
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

ANNOUNCEMENTS_MIN: Final = 3
"""A change is transmitted at least this number of times."""


class SenderSide:
    """The membership of one sender, and its repair."""

    def __init__(self, seat: Seat) -> None:
        context = seat.context
        self._seat, self._context, self._outlet = seat, context, seat.outlet
        self._detector = FaultDetector(context.settings.suspect_after_ns)
        self.foreign = Foreigners(context.settings.suspect_after_ns)
        self.changes = KnownChanges(context, seat.outlet)
        self.cuts = Cuts()
        self.repair: Repair | None = None
        self._runs = self._numbers = self._views_led = 0
        self._merge_at = 0
        """Until then, foreign senders start no repair (M29)."""
        self._announced: ChangeFrame | None = None
        """The change that we lead, while some member may not have it (M21)."""
        self._announce_at = self._announcements = 0
        self._leave_stamp: int | None = None
        """The stamp of our own PLeave."""
        self._sponsored: dict[ProcessId, int] = {}
        """The processes for which our PAdd is on its way, with their first numbers (J11)."""
        self._refused: dict[tuple[ProcessId, Ticket], int] = {}
        """By requester and ticket that it was told is gone: until when it is not told again."""

    # Entering and leaving the sender group

    def begin(self, now: int) -> None:
        """We are a sender of our view."""
        seat = self._seat
        others = [each for each in seat.epoch.members if each != self._context.me]
        self._detector.watch(others, now)
        self._leave_stamp = None
        seat.outbox.begin(len(others) + 1, now)
        self._renew(now)

    def _renew(self, now: int) -> None:
        """A new epoch: what we knew about the last one is over."""
        self.foreign.clear()
        self.cuts.clear()
        self._sponsored.clear()
        wait = self._context.settings.suspect_after_ns
        self._merge_at = now + wait // 2 + int(self._context.draw() * wait)

    def added(self, process: ProcessId, first: int, now: int) -> None:
        """The view has just changed in order: `first` is 0 if the process left."""
        self._sponsored.pop(process, None)
        if not first:
            self._detector.remove(process)
        elif process != self._context.me:
            self._detector.add(process, now + self._context.settings.suspect_after_ns)  # JOIN_GRACE
        self._seat.outbox.set_senders(len(self._seat.epoch.members))

    def leave_if_wished(self, now: int) -> None:
        """PLeave, when nothing waits to be sent. The last sender stays: without one, no receiver could be admitted."""
        seat = self._seat
        if seat.wants or len(seat.epoch.members) < 2:
            return
        message = seat.outbox.transmit_change(seat.epoch.id, seat.log, (self._context.me, 0), now)
        self._leave_stamp = message.stamp
        seat.standing.go(Event.LEAVE)

    @property
    def has_left(self) -> bool:
        """True if everybody has our PLeave, so that no process has us in its view (J3)."""
        return self._leave_stamp is not None and self._seat.log.stable >= self._leave_stamp

    # Failures, foreign processes, repairs

    def heard(self, process: ProcessId, now: int) -> None:
        """A frame of our own epoch."""
        self._detector.heard(process, now)

    def suspect_silent(self, now: int) -> None:
        for process in self._detector.silent(now):
            self.suspect(process, now, "silent")

    def suspect(self, process: ProcessId, now: int, reason: str) -> None:
        """PFailure."""
        if process not in self._seat.epoch.stints or process == self._context.me:
            return
        if self.repair is not None:
            self.repair.suspect(process, now, reason)
        else:
            self.start_repair(now, failed=process, reason=reason)

    def meet(self, process: ProcessId, now: int) -> None:
        """PForeign: a sender outside of our view is heard. It counts once it has answered a probe (J12)."""
        if self.repair is not None:
            self.repair.meet(process, now)
        elif self._seat.state is State.SENDER and now >= self._merge_at and self.is_foreign(process, now):
            self.start_repair(now, met=process)

    def is_foreign(self, process: ProcessId, now: int) -> bool:
        if self.foreign.is_reachable(process, now):
            return True
        if self.foreign.should_probe(process, now):
            self._outlet.transmit(ProbeFrame(self._context.group, self._context.me), process)
        return False

    def proposed(self, frame: ProposalFrame, now: int) -> None:
        """PJoin, in a state in which we take part in repairs."""
        epoch, sender = self._seat.epoch, frame.sender
        if self.repair is not None:
            self.repair.proposed(frame, now)
        elif self.has_parted(frame):
            self.start_repair(now, failed=sender, reason="parted")
        elif frame.epoch == epoch.id and (sender in epoch.stints or sender in epoch.left):
            self.start_repair(now, met=sender)
            self._proposed_in_repair(frame, now)
        elif self._context.me not in frame.failed:
            self.meet(sender, now)

    def _proposed_in_repair(self, frame: ProposalFrame, now: int) -> None:
        if self.repair is not None:  # it may have ended at once
            self.repair.proposed(frame, now)

    def start_repair(
        self, now: int, *, failed: ProcessId | None = None, reason: str = "", met: ProcessId | None = None
    ) -> None:
        """Halt, and propose the members of our view, except a failed one, or with a foreign one."""
        self._runs += 1
        self._seat.standing.go(Event.REPAIR if self._seat.state is not State.BOOTSTRAP else Event.ALONE)
        self.repair = self._context.rules.repair(self._context, self._outlet, self, self._runs, now)
        self.repair.begin(now, failed=failed, reason=reason, met=met)

    # The repair's view of us

    @property
    def epoch(self) -> Epoch:
        return self._seat.epoch

    @property
    def steps(self) -> RepairSteps:
        return self._seat.standing.repair

    def survivor(self, *, with_receivers: bool) -> Survivor:
        seat, me = self._seat, self._context.me
        epoch, last = seat.epoch, seat.outbox.last
        left = epoch.left.get(me)
        stint = epoch.stints.get(me, left.stint if left else last + 1)
        claims = self.cuts.claims(epoch.id) if with_receivers else ()
        gate = self.cuts.gate(epoch.id) if with_receivers else 0
        return Survivor(me, last, stint, seat.log.gate, seat.claims(), claims, gate)

    def may_have(self, claims: Claims, gate: int) -> bool:
        return self._seat.may_have(claims, gate)

    def next_needed(self, sender: ProcessId, stint: int) -> int:
        return self._seat.next_needed(sender, stint)

    def held(self, sender: ProcessId, seq: int) -> DataFrame | None:
        return self._seat.held(sender, seq)

    def want(self, sender: ProcessId, seq: int, now: int) -> None:
        self._seat.want(sender, seq, now)

    def has_parted(self, frame: ProposalFrame) -> bool:
        epoch = self._seat.epoch
        return frame.sender in epoch.stints and frame.epoch != epoch.id

    def tell_suspicion(self, process: ProcessId, reason: str) -> None:
        if self._context.settings.tracing:
            delivered = self._seat.log.delivered.get(process, 0)
            self._outlet.add(Suspected(self._context.group, process, delivered, reason))

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def next_view_number(self) -> int:
        self._views_led += 1
        return self._views_led

    def decide(self, change: ChangeFrame, now: int) -> None:
        self._outlet.transmit(change)
        self._announced, self._announce_at = change, now + self._context.settings.repeat_ns
        self._announcements = 1
        self.install(change, now)

    def decided(self, change: ChangeFrame, now: int) -> None:
        """MC, while we repair: it counts if it is the one that we are ready for."""
        if self.repair is not None and self.repair.is_decided_by(change):
            self._announced = None
            self.install(change, now)

    def install(self, change: ChangeFrame, now: int) -> None:
        self.repair = None
        self.steps.go(Cause.DECIDED)
        self._seat.install(change, now)
        self.changes.add(change)
        self._seat.standing.go(Event.INSTALLED)
        self.begin(now)
        self._seat.outbox.hurry(now)

    def announce_if_due(self, now: int) -> None:
        """Repeat the change that we led, until all its members have shown that they have it (M21).

        Receivers that miss it ask. There may be many, so we do not wait for them; but some repetitions spare questions.
        """
        change = self._announced
        if change is None or now < self._announce_at:
            return
        known = self._announcements >= ANNOUNCEMENTS_MIN and self._seat.log.is_with_members(change.start)
        if change.epoch != self._seat.epoch.id or known:
            self._announced = None
            return
        self._announcements += 1
        self._announce_at = now + self._context.settings.repeat_ns
        self._outlet.transmit(change)

    # Requests of other processes

    def admit(self, frame: JoinRequestFrame, now: int) -> None:
        """Tell a joiner where to begin; it must be above everything that the joiner has seen (J8)."""
        seat, context = self._seat, self._context
        epoch, gate = seat.epoch, seat.log.gate
        context.clock.merge(frame.floor + 1)
        if gate <= frame.floor or frame.sender in epoch.stints or not seat.is_member:
            return  # the joiner asks again, and by then our gate is higher
        if not seat.log.hold(frame.sender, gate, now):
            return
        delivered = seat.log.delivered
        info = JoinInfoFrame(
            context.group,
            context.me,
            frame.sender,
            epoch.id,
            epoch.view,
            epoch.view_began,
            gate,
            tuple((member, delivered[member] + 1) for member in epoch.members),
            tuple(sorted(epoch.stints.items())),
            self._left(),
            epoch.predecessors,
        )
        self._outlet.transmit(info, frame.sender)

    def _left(self) -> tuple[tuple[ProcessId, int, int], ...]:
        """The senders that left in this epoch: without them a joiner would ask for messages that are gone (J8)."""
        return tuple((process, claim.stint, claim.seq) for process, claim in sorted(self._seat.epoch.left.items()))

    def accept_as_source(self, frame: SourceRequestFrame, now: int) -> None:
        """Offer everything that we send from now on; what is stamped above our gate cannot vanish before (T5)."""
        seat, context = self._seat, self._context
        gate, epoch = seat.log.gate, seat.epoch
        if not seat.log.hold(frame.sender, gate, now):
            return
        first = seat.outbox.last + 1
        accept = SourceAcceptFrame(
            context.group, context.me, frame.sender, frame.nonce, epoch.id, epoch.members, first, gate
        )
        self._outlet.transmit(accept, frame.sender)

    def sponsor(self, frame: SponsorRequestFrame, now: int) -> None:
        """Add a receiver of our epoch to the senders: one PAdd for each of its first numbers (7.4.1, J11)."""
        seat, asker = self._seat, frame.sender
        epoch, left = seat.epoch, seat.epoch.left.get(asker)
        known = max(seat.log.delivered.get(asker, 0), left.seq if left else 0)
        if frame.epoch != epoch.id or asker in epoch.stints or frame.first <= known:
            return
        if not seat.log.knows(asker) or len(epoch.stints) + len(self._sponsored) >= PROCESSES_MAX:
            return  # a receiver that asks has reported, and no frame could name more members
        if self._sponsored.get(asker, 0) < frame.first:
            self._sponsored[asker] = frame.first
            seat.outbox.transmit_change(epoch.id, seat.log, (asker, frame.first), now)

    def requested(self, frame: RequestFrame, now: int) -> None:
        """Another process lacks a message; of our own messages we know whether they are gone."""
        seat, ticket = self._seat, frame.ticket
        if ticket.sender != self._context.me:
            return
        held, distance = seat.log.get(ticket), self._context.settings.distance(frame.sender)
        if held is not None:
            seat.outbox.requested(held, distance, now)
        elif ticket.container or ticket.seq <= seat.outbox.last:
            self._refuse(frame, distance, now)

    def _refuse(self, frame: RequestFrame, distance: int, now: int) -> None:
        """The message is stable and gone (R9); a requester is told so once per round trip."""
        key = frame.sender, frame.ticket
        if now >= self._refused.get(key, now):
            self._refused = {each: until for each, until in self._refused.items() if until > now}
            self._refused[key] = now + 2 * distance
            context, seat = self._context, self._seat
            gone = GoneFrame(context.group, context.me, frame.ticket, seat.epoch.id, seat.log.stable)
            self._outlet.transmit(gone, frame.sender)

    # Time

    def deadlines(self) -> list[int]:
        if self.repair is not None:
            return [self.repair.deadline]
        times = [] if self._detector.deadline is None else [self._detector.deadline]
        if self._announced is not None:
            times.append(self._announce_at)
        return times
