"""Bugs to plant where the sender groups of InterGroup change: agreement on the next view, and the end of an epoch.

As in `tests/planted/intergroup.py`. The docstring of a bug names its rule in docs/spec/intergroup.md 6 and 7 or in the
errata. `test_intergroup_membership.py` has the runs that show a bug, `test_intergroup_schedules.py` the schedules.
"""

from dataclasses import replace
from typing import Any, Final

import pytest

from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame
from antiphon.protocols.intergroup.membership import repair as repair_module
from antiphon.protocols.intergroup.membership.changes import KnownChanges
from antiphon.protocols.intergroup.membership.claims import NO_END, Claim, Ends
from antiphon.protocols.intergroup.membership.consensus import Consensus
from antiphon.protocols.intergroup.membership.foreign import Foreigners
from antiphon.protocols.intergroup.membership.frames import ChangeFrame, ProposalFrame
from antiphon.protocols.intergroup.membership.proposers import LatestProposals
from antiphon.protocols.intergroup.membership.receivers import ReceiverSide
from antiphon.protocols.intergroup.membership.repair import Repair
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.senders import SenderSide
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.steps import Step
from antiphon.protocols.intergroup.membership.view_ids import Kind
from antiphon.protocols.intergroup.participant import Participant
from antiphon.protocols.intergroup.sending.outbox import Outbox
from antiphon.protocols.intergroup.stability.log import OrderedLog
from antiphon.types import ProcessId, ViewId, split_process_id
from tests.planted.newtop import Bug

Patch = pytest.MonkeyPatch
_FAR: Final = 2**62
_NOTHING: Final = lambda *_, **__: None  # noqa: E731


def bugs_in(module: dict[str, Any]) -> tuple[Bug, ...]:
    """The functions of a module that plant a bug; the docstring of each is its rule and its effect."""
    found = []
    for plant in module.values():
        if callable(plant) and getattr(plant, "__annotations__", {}).get("patch") is Patch:
            rule, _, sentence = (plant.__doc__ or "").partition(": ")
            found.append(Bug(rule, sentence.rstrip("."), plant))
    return tuple(found)


# -------------------------------------------------------------------------------- agreement on the next view


def the_mute_are_awaited(patch: Patch) -> None:
    """M4: a process that lives and never agrees is waited for."""

    def wait(self: Repair, now: int) -> None:
        self._give_up_at = now + _FAR

    patch.setattr(Repair, "_give_up", wait)


def announcements_are_not_repeated(patch: Patch) -> None:
    """M4: what a process says in a repair, it says once."""
    announce = Repair._announce

    def once(self: Repair, now: int) -> None:
        announce(self, now)
        self._repeat_at = _FAR

    patch.setattr(Repair, "_announce", once)


def proposals_are_their_sets(patch: Patch) -> None:
    """M5: the id of a proposal does not tell in which repair of each process it was made."""

    def proposal(self: Consensus) -> str:
        return f"{sorted(self.processes)} {sorted(self.failed)}"

    patch.setattr(Consensus, "proposal", property(proposal))


def any_change_will_do(patch: Patch) -> None:
    """M5: a process installs every change that includes it, also one that is not what it is ready for."""

    def is_decided_by(self: Repair, change: ChangeFrame) -> bool:
        return (self._context.me, self._host.epoch.id) in change.origins

    patch.setattr(Repair, "is_decided_by", is_decided_by)


def the_ready_change_their_mind(patch: Patch) -> None:
    """M9: a process that waits for the leader's decision follows other processes too."""

    def agree(self: Repair, frame: ProposalFrame, now: int) -> None:
        consensus = self._consensus
        is_larger = consensus.is_larger(frame)
        if self.step is not Step.CONSENSUS and not is_larger:
            return
        consensus.hear(frame)
        if is_larger:
            consensus.incorporate(frame)
            self._propose(now)
        self._settle_consensus(now)

    def fail(self: Repair, process: ProcessId, now: int, reason: str) -> None:
        if process != self._context.me and self._consensus.fail(process):
            self._host.tell_suspicion(process, reason)
            self._propose(now)
            self._settle_consensus(now)

    patch.setattr(Repair, "_agree", agree)
    patch.setattr(Repair, "fail", fail)


def the_ready_forget_what_they_said(patch: Patch) -> None:
    """7.6.6: a process that begins a new proposal still installs nothing of the last one that it was ready for."""
    propose = Repair._propose

    def forgetful(self: Repair, now: int) -> None:
        self.ready = None
        propose(self, now)

    patch.setattr(Repair, "_propose", forgetful)


def the_parted_are_merged(patch: Patch) -> None:
    """M26: a member of our view that is in another epoch takes part in our next view."""

    def proposed(self: Repair, frame: ProposalFrame, now: int) -> None:
        consensus, sender = self._consensus, frame.sender
        if self._context.me in frame.failed:
            self.fail(sender, now, "parted")
        elif sender not in consensus.processes:
            self.meet(sender, now)
        elif sender not in consensus.failed:
            self._detector.heard(sender, now)
            self._agree(frame, now)

    def proposed_outside(self: SenderSide, frame: ProposalFrame, now: int) -> None:
        epoch, sender = self._seat.epoch, frame.sender
        if self.repair is None and (sender in epoch.stints or frame.epoch == epoch.id):
            self.start_repair(now, met=sender)
        if self.repair is not None:
            self.repair.proposed(frame, now)
        elif self._context.me not in frame.failed:
            self.meet(sender, now)

    patch.setattr(Repair, "proposed", proposed)
    patch.setattr(SenderSide, "proposed", proposed_outside)


def those_that_exclude_us_are_kept(patch: Patch) -> None:
    """Fig. 5.5: a process that takes us for failed is not failed for us."""

    def proposed(self: Repair, frame: ProposalFrame, now: int) -> None:
        consensus, sender, epoch = self._consensus, frame.sender, self._host.epoch
        if sender in epoch.stints and frame.epoch != epoch.id:
            self.fail(sender, now, "parted")
        elif sender not in consensus.processes:
            self.meet(sender, now)
        elif sender not in consensus.failed:
            self._detector.heard(sender, now)
            self._agree(frame, now)

    patch.setattr(Repair, "proposed", proposed)


def old_proposals_count(patch: Patch) -> None:
    """M29 (1): a proposal that comes late counts like the last one."""
    proposed = Participant._proposed

    def forgetful(self: Participant, frame: ProposalFrame, now: int) -> None:
        self._proposals = LatestProposals(0)
        proposed(self, frame, now)

    patch.setattr(Participant, "_proposed", forgetful)


def proposals_of_old_epochs_restart(patch: Patch) -> None:
    """M5, M8: a proposal of a member that is still in an epoch before ours starts a repair."""
    proposed = Participant._proposed

    def credulous(self: Participant, frame: ProposalFrame, now: int) -> None:
        seat = self._seat
        known = seat.state is not State.BOOTSTRAP and seat.standing.is_sending
        if known and frame.epoch in seat.epoch.predecessors and frame.sender in seat.epoch.stints:
            self._senders.proposed(frame, now)
        else:
            proposed(self, frame, now)

    patch.setattr(Participant, "_proposed", credulous)


def those_that_exclude_us_are_met(patch: Patch) -> None:
    """M29 (2): a proposal from outside that lists us as failed starts a repair."""
    proposed = SenderSide.proposed

    def eager(self: SenderSide, frame: ProposalFrame, now: int) -> None:
        epoch = self._seat.epoch
        outside = frame.sender not in epoch.stints and frame.epoch != epoch.id
        if self.repair is None and outside and self._context.me in frame.failed:
            self.start_repair(now, met=frame.sender)
        else:
            proposed(self, frame, now)

    patch.setattr(SenderSide, "proposed", eager)


def no_pause_between_merges(patch: Patch) -> None:
    """M29 (3): foreign senders count directly after a view was installed."""
    renew = SenderSide._renew

    def at_once(self: SenderSide, now: int) -> None:
        renew(self, now)
        self._merge_at = now

    patch.setattr(SenderSide, "_renew", at_once)


# -------------------------------------------------------------------------------- foreign senders


def foreign_senders_are_not_probed(patch: Patch) -> None:
    """J12: a sender that is heard counts, also if it does not hear us."""
    patch.setattr(SenderSide, "is_foreign", lambda *_: True)


def senders_of_old_epochs_are_ignored(patch: Patch) -> None:
    """M11: a sender in an epoch before ours is never merged."""

    meet = Participant._meet
    heard, proposed = Participant._note_heard, Participant._proposed

    def deaf(self: Participant, process: ProcessId, now: int) -> None:
        if not self.__dict__.get("_old"):
            meet(self, process, now)

    def note_heard(self: Participant, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        epoch = self._seat._epoch
        self.__dict__["_old"] = epoch is not None and frame.epoch in epoch.predecessors
        return heard(self, frame, now)

    def note_proposed(self: Participant, frame: ProposalFrame, now: int) -> None:
        epoch = self._seat._epoch
        self.__dict__["_old"] = epoch is not None and frame.epoch in epoch.predecessors
        proposed(self, frame, now)

    patch.setattr(Participant, "_meet", deaf)
    patch.setattr(Participant, "_note_heard", note_heard)
    patch.setattr(Participant, "_proposed", note_proposed)


def late_frames_of_old_epochs_count(patch: Patch) -> None:
    """M11: a delayed frame of an epoch before ours counts as a foreign sender."""
    heard = Participant._note_heard

    def note_heard(self: Participant, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        epoch = self._seat._epoch
        if epoch is not None and frame.epoch in epoch.predecessors:
            self._meet(frame.sender, now)
        return heard(self, frame, now)

    patch.setattr(Participant, "_note_heard", note_heard)


def no_grace_for_the_added(patch: Patch) -> None:
    """M11: the first frame of a sender of our epoch that is not yet in our view counts as a foreign sender."""
    patch.setattr(Foreigners, "is_overdue", lambda *_: True)


def leavers_are_foreign(patch: Patch) -> None:
    """M11: frames of a sender that left in order count, if it goes on for long."""

    def note_unknown(self: Participant, frame: DataFrame | KeepAliveFrame, now: int) -> None:
        epoch, sender = self._seat.epoch, frame.sender
        if sender in epoch.stints or sender == self._context.me:
            return
        if self._senders.foreign.is_overdue(sender, 0, now):
            self._meet(sender, now)

    patch.setattr(Participant, "_note_unknown", note_unknown)


def other_epochs_show_life(patch: Patch) -> None:
    """J4: a frame of any epoch is a sign of life."""
    heard = Participant._note_heard

    def note_heard(self: Participant, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        self._senders.heard(frame.sender, now)
        return heard(self, frame, now)

    patch.setattr(Participant, "_note_heard", note_heard)


# -------------------------------------------------------------------------------- the end of an epoch


def epochs_do_not_count(patch: Patch) -> None:
    """M8 (a): a message of any epoch is delivered."""
    heard = Participant._note_heard

    def note_heard(self: Participant, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        heard(self, frame, now)
        return self._seat.state is not State.BOOTSTRAP

    patch.setattr(Participant, "_note_heard", note_heard)
    patch.setattr(Seat, "is_in_epoch", lambda self, _epoch: self._epoch is not None)


def changes_are_not_replayed(patch: Patch) -> None:
    """M8 (b): a process that missed a change is not told of it, except by its leader."""
    patch.setattr(KnownChanges, "_transmit", _NOTHING)


def changes_are_told_once(patch: Patch) -> None:
    """M21: the leader announces a change once; others replay it to those that ask."""

    def forget(self: SenderSide, _now: int) -> None:
        self._announced = None

    patch.setattr(SenderSide, "announce_if_due", forget)


def changes_are_told_once_and_never_replayed(patch: Patch) -> None:
    """M8 (b), M21: the leader announces a change once, and no process repeats it."""
    changes_are_not_replayed(patch)
    changes_are_told_once(patch)


def receivers_do_not_ask(patch: Patch) -> None:
    """M21: a receiver that waits for a change does not ask for it."""

    def wait(self: ReceiverSide, now: int) -> None:
        self._question_at = None

    patch.setattr(ReceiverSide, "ask_for_change_if_due", wait)


def changes_are_told_once_and_not_asked_for(patch: Patch) -> None:
    """M21: the leader announces a change once, and receivers that missed it do not ask."""
    changes_are_told_once(patch)
    receivers_do_not_ask(patch)


def the_last_messages_are_dropped(patch: Patch) -> None:
    """7.6.6: the last messages of an epoch are not delivered."""
    patch.setattr(OrderedLog, "flush", _NOTHING)


def delivery_goes_on_in_a_repair(patch: Patch) -> None:
    """7.6.1: messages are delivered while the senders agree on the end of the epoch."""
    conclude = Participant._conclude_in_state

    def going_on(self: Participant, now: int) -> None:
        seat = self._seat
        if self._senders.repair is not None and seat.state is State.REPAIR and seat.is_member:
            self._advance(now)
        conclude(self, now)

    patch.setattr(Participant, "_conclude_in_state", going_on)


def sends_go_on_in_a_repair(patch: Patch) -> None:
    """M19: a process transmits messages while the senders agree on the end of the epoch."""
    conclude = Participant._conclude_in_state

    def going_on(self: Participant, now: int) -> None:
        seat = self._seat
        if self._senders.repair is not None and seat.state is State.REPAIR and seat.is_member:
            seat.outbox.transmit_waiting(seat.epoch.id, seat.log, now)
        conclude(self, now)

    patch.setattr(Participant, "_conclude_in_state", going_on)


def sends_of_a_repair_are_lost(patch: Patch) -> None:
    """M19: what waits during a repair is dropped when it ends."""
    install = SenderSide.install

    def forgetful(self: SenderSide, change: ChangeFrame, now: int) -> None:
        self._seat.outbox.drop_unsent()
        install(self, change, now)

    patch.setattr(SenderSide, "install", forgetful)


def longest_prefix(patch: Patch) -> None:
    """M15: everything that was received of a failed sender counts, whatever another failed sender said after it."""
    found = Repair._ends
    patch.setattr(Repair, "_ends", lambda self: found(self)._replace(last_stamp=NO_END))


def least_claims(patch: Patch) -> None:
    """7.6.4: of a failed sender, only what all survivors have counts."""
    ends = Repair._ends

    def least(self: Repair) -> Ends:
        found = ends(self)
        claims: dict[ProcessId, Claim] = {}
        for survivor in self._survivors():
            for process, claim in survivor.claims:
                claims[process] = min(claims.get(process, claim), claim)
        lost = {process: claims.get(process, claim) for process, claim in found.lost.items()}
        return found._replace(lost=lost, last_stamp=min((each.horizon for each in lost.values()), default=NO_END))

    patch.setattr(Repair, "_ends", least)


def claims_of_receivers_do_not_count(patch: Patch) -> None:
    """7.6.3: what only receivers have of a failed sender is lost."""
    survivor = SenderSide.survivor
    patch.setattr(SenderSide, "survivor", lambda self, *, with_receivers: survivor(self, with_receivers=False))  # noqa: ARG005


def receivers_are_believed_forever(patch: Patch) -> None:
    """J5: what only a receiver claims is waited for."""
    patch.setattr(repair_module, "ROUNDS", 1)


def claims_go_on(patch: Patch) -> None:
    """J6: what a process claims to have may change in the same round."""
    announce = Repair._announce

    def renewed(self: Repair, now: int) -> None:
        own = self._infos.get(self._context.me)
        if own is not None and self.step is not Step.CONSENSUS and self._fits(own):
            told = self._host.survivor(with_receivers=self._round == 0)
            self._infos[self._context.me] = replace(own, claims=told.claims, receiver_claims=told.receiver_claims)
        announce(self, now)

    patch.setattr(Repair, "_announce", renewed)


def all_changes_take_effect_at_the_end(patch: Patch) -> None:
    """J1: every PAdd and PLeave among the last messages of an epoch changes the view."""
    changed = Seat._changed_at_end
    patch.setattr(Seat, "_changed_at_end", lambda self, _gate, message: changed(self, _FAR, message))


def no_change_takes_effect_at_the_end(patch: Patch) -> None:
    """J1: no PAdd and no PLeave among the last messages of an epoch changes the view."""
    patch.setattr(Seat, "_changed_at_end", _NOTHING)


def leavers_claim_nothing(patch: Patch) -> None:
    """J2: claims do not tell which senders have left in order."""

    def claims(self: Seat) -> tuple[tuple[ProcessId, Claim], ...]:
        found = {
            process: Claim(
                self.epoch.stints.get(process, 0), stream.last, min(NO_END, int(min(stream.horizon, NO_END)))
            )
            for process, stream in self.log.streams.items()
        }
        return tuple(sorted(found.items()))

    patch.setattr(Seat, "claims", claims)


def everybody_comes_along(patch: Patch) -> None:
    """M13: the transitional set is the intersection of two memberships."""
    patch.setattr(ChangeFrame, "together", lambda self, _epoch: self.members)


def views_begin_early(patch: Patch) -> None:
    """M19: a view begins at the leader's clock, whatever the other members have stamped."""
    settle = Repair._settle_ready

    def hasty(self: Repair, now: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(self._context.clock), "merge", _NOTHING)
            settle(self, now)

    patch.setattr(Repair, "_settle_ready", hasty)


def numbers_begin_again(patch: Patch) -> None:
    """D12: a sender numbers its messages from 1 in each epoch."""
    begin = Outbox.begin

    def again(self: Outbox, senders: int, now: int) -> None:
        self._window.last = 0
        begin(self, senders, now)

    patch.setattr(Outbox, "begin", again)


def the_window_stays_full(patch: Patch) -> None:
    """7.6.6: messages of the epoch before stay in the window of their sender."""

    def begin(self: Outbox, senders: int, now: int) -> None:
        self.set_senders(senders)
        self.sent_at = now
        self.rearm(now)

    patch.setattr(Outbox, "begin", begin)


# -------------------------------------------------------------------------------- ids of views


def views_without_a_time(patch: Patch) -> None:
    """M7: the id of a view does not tell when it began, and nothing about the incarnation of its leader."""

    def view_id(_start: int, kind: Kind, leader: ProcessId, number: int) -> ViewId:
        return ViewId(f"{kind:d}.{split_process_id(leader)[0]}.{number:06d}")

    patch.setattr(repair_module, "view_id", view_id)


def joiners_show_the_id_of_members(patch: Patch) -> None:
    """M27, J10: a process that joins a view shows it under the id that its members show."""
    show = Seat._show
    patch.setattr(Seat, "_show", lambda self, _shown: show(self, self.epoch.view))


BUGS: Final = bugs_in(globals())
"""Each function above."""
