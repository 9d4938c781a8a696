"""Bugs to plant where processes of InterGroup become senders and receivers: one rule left out, or turned, at a time.

As in `tests/planted/intergroup_membership.py`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from antiphon.core.effects import Reset
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame
from antiphon.protocols.intergroup.membership.bootstrap import Bootstrap
from antiphon.protocols.intergroup.membership.claims import NO_END
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.frames import ChangeFrame, CutFrame, EpochEnd, ProposalFrame
from antiphon.protocols.intergroup.membership.receivers import ReceiverSide
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.senders import SenderSide
from antiphon.protocols.intergroup.membership.states import Event, State
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.protocols.intergroup.participant import Participant
from antiphon.protocols.intergroup.receiving.framed import FramedReceiver
from antiphon.protocols.intergroup.receiving.heard import HeardSenders
from antiphon.protocols.intergroup.receiving.source_order import SourceOrderReceiver
from antiphon.protocols.intergroup.sending.outbox import Outbox
from antiphon.protocols.intergroup.settings import InterGroupSettings
from antiphon.protocols.intergroup.stability.log import OrderedLog
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import ProcessId, ViewId
from tests.planted.intergroup_membership import bugs_in

Patch = pytest.MonkeyPatch
_FAR: Final = 2**62
_NOTHING: Final = lambda *_, **__: None  # noqa: E731


# -------------------------------------------------------------------------------- senders that are added and leave


def the_added_are_not_waited_for(patch: Patch) -> None:
    """7.4.2: messages are delivered without waiting for the horizon of a sender that was just added."""
    add = OrderedLog.add
    patch.setattr(OrderedLog, "add", lambda self, member, first, _stamp: add(self, member, first, NO_END))


def the_added_do_not_count(patch: Patch) -> None:
    """7.4.2: stability does not wait for a sender that was added."""
    add = Stability.add

    def trusting(self: Stability, member: ProcessId) -> None:
        add(self, member)
        if member in self._members:
            self._members[member] = _FAR

    patch.setattr(Stability, "add", trusting)


def the_added_are_added_again(patch: Patch) -> None:
    """J11: a PAdd has an effect although the process has left since."""

    def add(self: Epoch, process: ProcessId, first: int, by: ProcessId, seq: int, stamp: int) -> bool:
        if process in self.stints:
            return False
        self.left.pop(process, None)
        self.stints[process] = first
        self._begin_view(stamp, by, seq)
        return True

    patch.setattr(Epoch, "add", add)


def sponsors_add_every_time(patch: Patch) -> None:
    """J11: a sponsor adds a process as often as it asks, in any epoch."""

    def sponsor(self: SenderSide, frame: Any, now: int) -> None:
        seat, asker = self._seat, frame.sender
        seat.outbox.transmit_change(seat.epoch.id, seat.log, (asker, frame.first), now)

    patch.setattr(SenderSide, "sponsor", sponsor)


def sponsors_are_asked_early(patch: Patch) -> None:
    """J7: a process asks to be added before everything that it lacks is stable."""
    patch.setattr(ReceiverSide, "_may_ask_for_sponsor", property(lambda self: bool(self._seat.epoch.members)))


def the_unsponsored_wait(patch: Patch) -> None:
    """J14: a process that no member adds goes on asking."""
    patch.setattr(ReceiverSide, "is_unsponsored", lambda *_: False)


def the_added_take_no_part(patch: Patch) -> None:
    """7.4.3: a process that others have added takes no part in a repair before it knows that."""
    proposed = Participant._proposed

    def passive(self: Participant, frame: ProposalFrame, now: int) -> None:
        me = self._context.me
        if self._seat.state in (State.TO_SENDER, State.WAIT):
            frame = replace(frame, processes=tuple(each for each in frame.processes if each != me))
        proposed(self, frame, now)

    patch.setattr(Participant, "_proposed", passive)


def leavers_hold_the_others(patch: Patch) -> None:
    """J2: a received PLeave does not end the waiting for its sender."""

    def end(self: Any) -> None:
        self.has_ended = True
        self._stored.clear()

    patch.setattr(Stream, "_end", end)


def leavers_go_at_once(patch: Patch) -> None:
    """J3: a sender is a receiver as soon as its own PLeave is delivered to it."""
    patch.setattr(SenderSide, "has_left", property(lambda self: self._leave_stamp is not None))


def leavers_do_not_count(patch: Patch) -> None:
    """J3: stability does not wait for a sender that leaves."""
    patch.setattr(Stability, "remove", lambda self, member, *_: self._members.pop(member, None))


def leavers_are_silent(patch: Patch) -> None:
    """D9: a sender that leaves transmits no keep-alives."""
    transmit = Outbox.transmit_keep_alive

    def silent(self: Outbox, epoch: ViewId, log: OrderedLog, now: int) -> None:
        if self.__dict__.get("_is_leaving"):
            self.rearm(now)
        else:
            transmit(self, epoch, log, now)

    leave = SenderSide.leave_if_wished

    def left(self: SenderSide, now: int) -> None:
        leave(self, now)
        self._seat.outbox.__dict__["_is_leaving"] = self._seat.state is State.TO_RECEIVER

    patch.setattr(Outbox, "transmit_keep_alive", silent)
    patch.setattr(SenderSide, "leave_if_wished", left)


def leavers_take_no_part(patch: Patch) -> None:
    """J3: a sender that leaves ignores repairs."""
    proposed = Participant._proposed

    def deaf(self: Participant, frame: ProposalFrame, now: int) -> None:
        if self._seat.state is not State.TO_RECEIVER:
            proposed(self, frame, now)

    patch.setattr(Participant, "_proposed", deaf)


def leaving_before_sending(patch: Patch) -> None:
    """7.4.5: a sender leaves although messages of its application wait."""
    patch.setattr(Seat, "wants", property(lambda self: self._wishes))


def the_last_sender_leaves(patch: Patch) -> None:
    """7.4.5: the only sender of a view leaves."""

    def leave_if_wished(self: SenderSide, now: int) -> None:
        seat = self._seat
        if not seat.wants:
            message = seat.outbox.transmit_change(seat.epoch.id, seat.log, (self._context.me, 0), now)
            self._leave_stamp = message.stamp
            seat.standing.go(Event.LEAVE)

    patch.setattr(SenderSide, "leave_if_wished", leave_if_wished)


def groups_are_left_at_once(patch: Patch) -> None:
    """M24: a sender leaves the group without leaving the sender group."""
    patch.setattr(Participant, "may_end", property(lambda _self: True))


def idle_receivers_do_not_return(patch: Patch) -> None:
    """7.4.5: a receiver whose application sends does not become a sender by itself."""

    def send(self: Participant, payload: bytes, label: int, name: bytes) -> None:
        self._seat.outbox.send(payload, label, name)

    patch.setattr(Participant, "send", send)
    patch.setattr(Seat, "wants", property(lambda self: self._wishes))


# -------------------------------------------------------------------------------- receivers


def receipt_is_acknowledged(patch: Patch) -> None:
    """J0: a process acknowledges what it has received, also while delivery stands still."""

    def ack(self: OrderedLog, now: int) -> int:
        horizons = [int(min(stream.horizon, NO_END)) for stream in self._order.streams.values()]
        return self._stability.own_ack(max(self._order.gate, min(horizons, default=0)), now)

    patch.setattr(OrderedLog, "ack", ack)


def receivers_go_beyond(patch: Patch) -> None:
    """M14, M16: a receiver that delivered what the senders leave out goes on."""
    patch.setattr(Seat, "has_delivered_beyond", lambda *_: False)


def receivers_keep_their_view(patch: Patch) -> None:
    """J1, 7.7.2: a receiver goes on although its view began later than the senders' changes take effect."""

    def beyond(self: Seat, end: EpochEnd) -> bool:
        return any(self.log.delivered.get(sender, 0) > last for sender, last in end.final)

    patch.setattr(Seat, "has_delivered_beyond", beyond)


def cut_by_time(patch: Patch) -> None:
    """M14: a receiver delivers before a view all that it has with earlier stamps."""
    install = Seat.install

    def by_time(self: Seat, change: ChangeFrame, now: int) -> None:
        end = change.end_of(self.epoch.id)
        if end is not None and not self.is_member and not self.standing.is_sending:
            final = {}
            for sender, last in end.final:
                message = self.held(sender, last + 1)
                while message is not None and message.stamp < change.start:
                    last += 1  # noqa: PLW2901
                    message = self.held(sender, last + 1)
                final[sender] = last
            others = tuple(each for each in change.ends if each.epoch != end.epoch)
            change = replace(change, ends=(*others, end._replace(final=tuple(sorted(final.items())))))
        install(self, change, now)

    patch.setattr(Seat, "install", by_time)


def resets_without_a_view(patch: Patch) -> None:
    """M16: a process that begins again shows no view of its own."""

    def reset(self: Seat, reason: str) -> None:
        self._resets += 1
        self._floor = self.floor
        self.outlet.add(Reset(self.context.group, reason))
        self._forget()
        self.standing.go(Event.RESET)

    patch.setattr(Seat, "reset", reset)


def no_floor(patch: Patch) -> None:
    """J8: a joiner does not tell what it has seen, and takes any answer."""
    patch.setattr(Seat, "floor", property(lambda _self: 0))


def askers_forget_the_floor(patch: Patch) -> None:
    """J8: a joiner does not tell what it has seen; it still ignores answers that begin too early."""
    ask = Bootstrap.ask_if_due
    patch.setattr(Bootstrap, "ask_if_due", lambda self, _floor, now: ask(self, 0, now))


def members_forget_the_floor(patch: Patch) -> None:
    """J8: a joiner takes an answer that begins below what it has seen."""
    admitted = ReceiverSide.admitted

    def credulous(self: ReceiverSide, info: Any, now: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Seat, "floor", property(lambda _self: 0))
            admitted(self, info, now)

    patch.setattr(ReceiverSide, "admitted", credulous)
    ask = Bootstrap.ask_if_due
    patch.setattr(Bootstrap, "ask_if_due", lambda self, _floor, now: ask(self, 0, now))


def changes_below_the_floor(patch: Patch) -> None:
    """7.7: a receiver follows a change that begins below what it has seen."""

    def follow(self: ReceiverSide, now: int) -> None:
        seat, change = self._seat, self._change
        end = change.end_of(seat.epoch.id) if change is not None else None
        if change is None or end is None:
            return
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

    patch.setattr(ReceiverSide, "follow_change", follow)


def joiners_begin_with_what_was_received(patch: Patch) -> None:
    """J8: a joiner is told to begin after what the member has received, not after what it has delivered."""
    transmit = Outlet.transmit
    admit = SenderSide.admit

    def offer(self: SenderSide, frame: Any, now: int) -> None:
        streams = self._seat.log.streams

        def told(outlet: Outlet, info: Any, *to: Any) -> None:
            first = tuple((x, max(n, streams[x].last + 1) if x in streams else n) for x, n in info.first)
            transmit(outlet, replace(info, first=first), *to)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Outlet, "transmit", told)
            admit(self, frame, now)

    patch.setattr(SenderSide, "admit", offer)


def joiners_do_not_know_who_left(patch: Patch) -> None:
    """J8: a joiner is not told which senders have left in its epoch."""
    begin = Seat.begin_joined
    patch.setattr(Seat, "begin_joined", lambda self, info: begin(self, replace(info, left=())))


def no_watchdog(patch: Patch) -> None:
    """J13: a receiver that makes no progress goes on waiting."""

    def note(self: ReceiverSide, now: int) -> bool:
        self._progress.ack, self._progress.at = self._seat.log.ack(now), now
        return False

    patch.setattr(ReceiverSide, "reset_if_stalled", note)


def receivers_go_on_in_a_repair(patch: Patch) -> None:
    """7.7.1: a receiver goes on delivering while the senders agree on the end of the epoch."""

    def proposed(self: ReceiverSide, frame: ProposalFrame, _now: int) -> None:
        seat = self._seat
        if frame.epoch == seat.epoch.id and seat.log.stable >= seat.epoch.installed:
            context = self._context
            self._outlet.transmit(CutFrame(context.group, context.me, seat.epoch.id, seat.log.gate, seat.claims()))

    patch.setattr(ReceiverSide, "proposed", proposed)


def receivers_are_forgotten_by_views(patch: Patch) -> None:
    """J16, T5: in a new view, nothing is kept for receivers that have not reported in it yet."""
    begin = Stability.begin

    def forgetful(self: Stability, members: Iterable[ProcessId], start: int, now: int) -> None:
        begin(self, members, start, now)
        self._receivers.clear()

    patch.setattr(Stability, "begin", forgetful)


def old_messages_are_dropped(patch: Patch) -> None:
    """J18: the messages of an epoch are dropped when it ends."""
    patch.setattr(InterGroupSettings, "old_keep_ns", property(lambda _self: 1))


# -------------------------------------------------------------------------------- receivers in other orders


def lost_sources_stay(patch: Patch) -> None:
    """6.2: a receiver in source order waits for a source that is silent."""
    patch.setattr(SourceOrderReceiver, "_is_lost", lambda *_: False)
    deadlines = SourceOrderReceiver.deadlines

    def quiet(self: SourceOrderReceiver) -> Iterable[int]:
        return [at for at in deadlines(self) if at > 0 and at not in self._lost_at()]  # type: ignore[attr-defined]

    def lost_at(self: SourceOrderReceiver) -> set[int]:
        settings = self._context.settings
        waits = {2 * settings.suspect_after_ns + self._heard[source] for source in self._order.streams}
        gone = {at + settings.suspect_after_ns for at in self._gone.values()}
        return waits | gone | {self._consumed_at + settings.stall_ns}

    patch.setattr(SourceOrderReceiver, "_lost_at", lost_at, raising=False)
    patch.setattr(SourceOrderReceiver, "deadlines", quiet)


def sources_do_not_leave(patch: Patch) -> None:
    """6.2: the last message of a source that leaves does not end its stream."""
    patch.setattr(SourceOrderReceiver, "_end_if_left", _NOTHING)


def leaving_sources_are_asked(patch: Patch) -> None:
    """D9: a source that left, and repeats its last number, is asked where to begin."""
    patch.setattr(SourceOrderReceiver, "_is_leaving", lambda *_: False)


def leaving_sources_are_ignored(patch: Patch) -> None:
    """D9: a source that left and became a sender again is not asked before its next message."""

    def is_leaving(self: SourceOrderReceiver, source: ProcessId, seq: int, _now: int) -> bool:
        return seq <= self._left.get(source, (-1, 0))[0]

    patch.setattr(SourceOrderReceiver, "_is_leaving", is_leaving)


def new_sources_are_not_asked(patch: Patch) -> None:
    """6.2: a receiver in source order asks the configured senders only."""
    heard = SourceOrderReceiver._note_heard

    def note_heard(self: SourceOrderReceiver, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        return frame.sender in self._context.plan.view.members and heard(self, frame, now)

    patch.setattr(SourceOrderReceiver, "_note_heard", note_heard)


def requests_to_the_lost_stay(patch: Patch) -> None:
    """6.4: requests of the framed service to a lost sender stay open."""

    def conclude(self: FramedReceiver, now: int) -> None:
        self._senders.forget_silent(now)
        self._recovery.transmit_due(now)

    patch.setattr(FramedReceiver, "conclude", conclude)


def the_silent_stay_heard(patch: Patch) -> None:
    """6.1, 6.4: a sender that is silent stays in the views of receivers of weak services."""
    patch.setattr(HeardSenders, "forget_silent", lambda *_: [])
    patch.setattr(HeardSenders, "deadlines", lambda _self: ())


BUGS: Final = bugs_in(globals())
"""Each function above."""
