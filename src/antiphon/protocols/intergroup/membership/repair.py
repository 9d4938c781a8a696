"""The repair of the sender group after a failure, and the merge of sender groups: MRA (Berket00 §5.4, Figs 5.4 to 5.6).

From docs/spec/intergroup.md 7.6. Delivery stands still meanwhile. Everything that a process announces is repeated until
the repair ends, so no frame need arrive at its first transmission.
"""

from typing import Final, Protocol

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.stream import GAP_MAX
from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.membership.claims import Claim, Claims, Ends, Survivor
from antiphon.protocols.intergroup.membership.detector import FaultDetector
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    EpochEnd,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
)
from antiphon.protocols.intergroup.membership.plausible import PROCESSES_MAX, ROUNDS
from antiphon.protocols.intergroup.membership.steps import Cause, RepairSteps, Step
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.outlet import Outlet
from antiphon.types import ProcessId

ASKED_MAX: Final = 1_024
"""At most this number of missing messages is requested at once; the others follow when these have arrived."""


class RepairHost(Protocol):
    """The participant, as its repair sees it."""

    @property
    def epoch(self) -> Epoch: ...

    @property
    def steps(self) -> RepairSteps: ...

    def survivor(self, *, with_receivers: bool) -> Survivor:
        """What we have of our epoch."""

    def may_have(self, claims: Claims, gate: int) -> bool:
        """True if a process of our epoch may claim this."""

    def next_needed(self, sender: ProcessId, stint: int) -> int:
        """The number of the first message of that sender that we have not delivered."""

    def held(self, sender: ProcessId, seq: int) -> DataFrame | None: ...

    def want(self, sender: ProcessId, seq: int, now: int) -> None:
        """Request a message."""

    def is_foreign(self, process: ProcessId, now: int) -> bool:
        """Probe a process outside of our proposal; True if it has answered recently (J12)."""

    def has_parted(self, frame: ProposalFrame) -> bool:
        """True if the proposal is of a member of our view that has gone elsewhere (M26)."""

    def tell_suspicion(self, process: ProcessId, reason: str) -> None:
        """For the trace: we take a process for failed; `reason` as in `Departure`."""

    def next_number(self) -> int:
        """The number of the next proposal, over all repairs."""

    def next_view_number(self) -> int:
        """The number of the next view that we lead."""

    def decide(self, change: ChangeFrame, now: int) -> None:
        """We lead, and all are ready: install the view, and tell the others."""


class Repair:
    """One repair at one sender, from the first proposal to the installation."""

    def __init__(self, context: MemberContext, outlet: Outlet, host: RepairHost, run: int, now: int) -> None:
        self._context, self._outlet, self._host, self._steps = context, outlet, host, host.steps
        self._consensus = context.rules.consensus(context.me, host.epoch.id, run, frozenset(host.epoch.members))
        self._detector = FaultDetector(context.settings.suspect_after_ns)
        self._infos: dict[ProcessId, RecoveryInfoFrame] = {}
        self._readies: dict[ProcessId, ReadyFrame] = {}
        self._round = self._number = 0
        self._proposal = ""
        self._give_up_at = self._repeat_at = now
        self.ready: ReadyFrame | None = None
        """What we have said last: the only change that we may install is the one that fits it."""

    @property
    def step(self) -> Step:
        return self._steps.step

    def begin(
        self, now: int, *, failed: ProcessId | None = None, reason: str = "", met: ProcessId | None = None
    ) -> None:
        """Propose the members of our view, except one that has failed, or with a foreign one."""
        if failed is not None:
            self._consensus.fail(failed)
            self._host.tell_suspicion(failed, reason)
        if met is not None:
            self._consensus.add(met)
        self._propose(now)
        self._settle_consensus(now)

    # What others announce

    def proposed(self, frame: ProposalFrame, now: int) -> None:
        """PJoin of a process that is in no older epoch of ours."""
        consensus, me, sender = self._consensus, self._context.me, frame.sender
        if len(consensus.processes.union(frame.processes)) > PROCESSES_MAX:
            return
        if self._host.has_parted(frame):
            self.fail(sender, now, "parted")  # first apart, later together (M26)
        elif me in frame.failed:
            self.fail(sender, now, "parted")
        elif sender not in consensus.processes:
            self.meet(sender, now)
        elif sender not in consensus.failed:
            self._detector.heard(sender, now)
            self._agree(frame, now)

    def _agree(self, frame: ProposalFrame, now: int) -> None:
        consensus = self._consensus
        if self._is_bound and frame.sender != self._leader:
            return
        is_larger = consensus.is_larger(frame)
        is_in_vain = not self._is_bound and self.step is not Step.CONSENSUS and consensus.has_begun_anew(frame)
        if self.step is not Step.CONSENSUS and not is_larger and not is_in_vain:
            return
        consensus.hear(frame)
        if is_larger:
            consensus.incorporate(frame)
        if is_larger or is_in_vain:
            self._propose(now)
        self._settle_consensus(now)

    def informed(self, frame: RecoveryInfoFrame, now: int) -> None:
        """RecInfo. A higher round of our proposal takes us there: its first sender cannot be ready for ours (J5)."""
        if not self._is_credible(frame):
            return
        self._detector.heard(frame.sender, now)
        known = self._infos.get(frame.sender)
        if known is None or not self._fits(known) or self._fits(frame):
            self._infos[frame.sender] = frame
        gathered = self.step is not Step.CONSENSUS
        if gathered and frame.proposal == self._proposal and self._round < frame.round < ROUNDS:
            self._infos[frame.sender] = frame
            self._gather(frame.round, now)
        self._settle_info(now)

    def _is_credible(self, frame: RecoveryInfoFrame) -> bool:
        """True if we know its sender, and nothing that we know of our own epoch contradicts it."""
        own = (frame.sender, Claim(frame.stint, frame.last, frame.gate))
        gate = max(frame.gate, frame.receiver_gate)
        return frame.sender in self._consensus.processes and (
            frame.epoch != self._host.epoch.id
            or self._host.may_have((own, *frame.claims, *frame.receiver_claims), gate)
        )

    def readied(self, frame: ReadyFrame, now: int) -> None:
        """RTC."""
        if frame.sender not in self._consensus.processes:
            return
        self._detector.heard(frame.sender, now)
        known = self._readies.get(frame.sender)
        if known is None or not self._fits(known) or self._fits(frame):
            self._readies[frame.sender] = frame
        self._settle_ready(now)

    def heard(self, process: ProcessId, now: int) -> None:
        """Any other sign of life."""
        self._detector.heard(process, now)

    # Failures and new processes

    def fail(self, process: ProcessId, now: int, reason: str) -> None:
        """PFailure, or a process that cannot be in our next view."""
        if process == self._context.me or (self._is_bound and process != self._leader):
            return
        if self._consensus.fail(process):
            self._host.tell_suspicion(process, reason)
            self._propose(now)
            self._settle_consensus(now)

    def suspect(self, process: ProcessId, now: int, reason: str) -> None:
        """PFailure: counts only for a process that we propose (M25)."""
        if process in self._consensus.proposed:
            self.fail(process, now, reason)

    def meet(self, process: ProcessId, now: int) -> None:
        """PForeign: a process outside of our proposal is heard."""
        consensus = self._consensus
        if process in consensus.processes or self._is_bound or not self._host.is_foreign(process, now):
            return
        consensus.add(process)
        self._propose(now)

    def arrived(self, now: int) -> None:
        """A message has arrived: perhaps the last one that was missing."""
        if self.step is Step.RECOVERY:
            self._recover(now)

    # Steps

    @property
    def _leader(self) -> ProcessId:
        return self._consensus.proposed[0]

    @property
    def _is_bound(self) -> bool:
        """True if we are ready and do not lead: then only the leader can end this (M9)."""
        return self.step is Step.WAIT

    def _fits(self, frame: RecoveryInfoFrame | ReadyFrame) -> bool:
        return frame.proposal == self._proposal and frame.round == self._round

    def _go(self, cause: Cause, wait_ns: int, now: int) -> None:
        self._steps.go(cause)
        self._give_up_at, self._repeat_at = now + wait_ns, now

    def _propose(self, now: int) -> None:
        """(Re)start consensus: our sets are new."""
        settings = self._context.settings
        self._number, self._proposal = self._host.next_number(), ""
        self._detector.watch((each for each in self._consensus.proposed if each != self._context.me), now)
        self._go(Cause.PROPOSE, settings.consensus_ns, now)

    def _settle_consensus(self, now: int) -> None:
        if self.step is Step.CONSENSUS and not self._consensus.unmatched:
            self._proposal = self._consensus.proposal
            self._gather(0, now)
            self._settle_info(now)

    def _gather(self, round_: int, now: int) -> None:
        """Tell what we have, once for this round (J6)."""
        self._round = round_
        self._infos[self._context.me] = self._own_info(now)
        self._go(Cause.ROUND if round_ else Cause.AGREED, self._context.settings.consensus_ns, now)

    def _own_info(self, now: int) -> RecoveryInfoFrame:
        context = self._context
        own = self._host.survivor(with_receivers=self._round == 0)
        return RecoveryInfoFrame(
            context.group,
            context.me,
            self._host.epoch.id,
            self._proposal,
            self._round,
            context.clock.stamp(now // 1000),
            own.gate,
            own.last,
            own.stint,
            own.claims,
            own.receiver_claims,
            own.receiver_gate,
        )

    def _settle_info(self, now: int) -> None:
        if self.step is not Step.INFO or self._lacking(self._infos):
            return
        self._go(Cause.INFORMED, self._context.settings.recover_ns, now)
        self._recover(now)

    def _lacking(self, frames: dict[ProcessId, RecoveryInfoFrame] | dict[ProcessId, ReadyFrame]) -> list[ProcessId]:
        """The proposed members of which we have no frame of this proposal and round."""
        found = {process for process, frame in frames.items() if self._fits(frame)}
        return [process for process in self._consensus.proposed if process not in found]

    def _survivors(self) -> list[RecoveryInfoFrame]:
        """What the proposed members of our own epoch have told."""
        epoch = self._host.epoch.id
        infos = (self._infos[process] for process in self._consensus.proposed)
        return [info for info in infos if info.epoch == epoch]

    def _ends(self) -> Ends:
        return self._context.rules.ends(
            Survivor(
                info.sender, info.last, info.stint, info.gate, info.claims, info.receiver_claims, info.receiver_gate
            )
            for info in self._survivors()
        )

    def _recover(self, now: int) -> None:
        """Request what we lack of the old epoch; when nothing is missing, say that we are ready."""
        found = self._ends()
        final, missing = self._final(found)
        for sender, seq in missing[:ASKED_MAX]:
            self._host.want(sender, seq, now)
        if missing:
            return
        context = self._context
        first = found.survivors[context.me] + 1
        self.ready = ReadyFrame(
            context.group,
            context.me,
            self._host.epoch.id,
            self._proposal,
            self._round,
            context.clock.stamp(now // 1000),
            first,
            tuple(sorted(final.items())),
            tuple(sorted(found.stints.items())),
        )
        self._readies[context.me] = self.ready
        settings = context.settings
        if self._leader == context.me:
            self._go(Cause.LEADS, settings.consensus_ns + settings.recover_ns, now)
            self._settle_ready(now)
        else:
            self._detector.watch([self._leader], now)  # the only one that can end this (M9)
            self._go(Cause.FOLLOWS, 2 * settings.consensus_ns + settings.recover_ns, now)

    def _final(self, found: Ends) -> tuple[dict[ProcessId, int], list[tuple[ProcessId, int]]]:
        """For each sender the number of its last message that counts, and the messages that we lack."""
        final: dict[ProcessId, int] = {}
        missing: list[tuple[ProcessId, int]] = []
        for sender, last in found.survivors.items():
            final[sender] = last
            begin = self._host.next_needed(sender, found.stints[sender])
            upto = min(last, begin + GAP_MAX - len(missing))
            missing += [(sender, seq) for seq in range(begin, upto + 1) if self._host.held(sender, seq) is None]
        for sender, claim in found.lost.items():
            seq = self._host.next_needed(sender, claim.stint)
            while seq <= claim.seq and len(missing) <= GAP_MAX:
                message = self._host.held(sender, seq)
                if message is None:
                    missing.append((sender, seq))
                elif message.stamp > found.last_stamp:
                    break
                seq += 1
            final[sender] = seq - 1
        return final, missing

    def _settle_ready(self, now: int) -> None:
        """As leader: when all are ready, decide."""
        if self.step is not Step.READY or self._unready:
            return
        members = self._consensus.proposed
        readies = [self._readies[process] for process in members]
        by_epoch = {ready.epoch: ready for ready in readies}
        infos = [self._infos[process] for process in members]
        gates = {
            epoch: max(max(info.gate, info.receiver_gate) for info in infos if info.epoch == epoch)
            for epoch in by_epoch
        }
        clock = self._context.clock
        clock.merge(max(*(info.stamp for info in infos), *(ready.stamp for ready in readies)))
        start = clock.stamp(now // 1000)
        me, group = self._context.me, self._context.group
        change = ChangeFrame(
            group,
            me,
            view_id(start, Kind.CONSENSUS, me, self._host.next_view_number()),
            start,
            self._proposal,
            self._round,
            tuple((ready.sender, ready.epoch) for ready in readies),
            tuple(
                EpochEnd(ready.epoch, ready.final, ready.stints, gates[epoch])
                for epoch, ready in sorted(by_epoch.items())
            ),
            tuple((ready.sender, ready.first) for ready in readies),
        )
        self._host.decide(change, now)

    @property
    def _unready(self) -> list[ProcessId]:
        """The proposed members that have not said that they are ready, or contradict what was told before.

        All of one epoch compute the same ends from the same claims (J6), so a process that differs lies.
        """
        unready = self._lacking(self._readies)
        agreed = {} if self.ready is None else {self.ready.epoch: self.ready}
        for process in self._consensus.proposed:
            if process not in unready:
                ready, info = self._readies[process], self._infos[process]
                known = agreed.setdefault(info.epoch, ready)
                told = ready.epoch, ready.first, ready.final, ready.stints
                if told != (info.epoch, info.last + 1, known.final, known.stints):
                    unready.append(process)
        return unready

    def is_decided_by(self, change: ChangeFrame) -> bool:
        """True if the change is what we are ready for (7.6.6), and repeats what we have told for it."""
        ready = self.ready
        if ready is None or (ready.proposal, ready.round) != (change.proposal, change.round):
            return False
        end = change.end_of(ready.epoch)
        return (
            (ready.sender, ready.epoch) in change.origins
            and end is not None
            and (end.final, end.stints) == (ready.final, ready.stints)
            and change.start > ready.stamp
        )

    # Time

    def advance(self, now: int) -> None:
        """Give up those that do not answer, and repeat what we announce."""
        for process in self._detector.silent(now):
            self._suspect_in_repair(process, now, "silent")
        if now >= self._give_up_at:
            self._give_up(now)
        if self.step is not Step.NONE and now >= self._repeat_at:
            self._announce(now)

    def _suspect_in_repair(self, process: ProcessId, now: int, reason: str) -> None:
        """If the last suspicion has ended the repair, the next one has no effect."""
        if self.step is not Step.NONE:
            self.suspect(process, now, reason)

    def _give_up(self, now: int) -> None:
        """A step takes too long: the processes that it waits for have failed (M4)."""
        self._give_up_at = now + self._context.settings.consensus_ns
        if self.step is Step.RECOVERY:
            self._give_up_claimants(now)
            return
        for process in self._awaited():
            self._suspect_in_repair(process, now, "mute")

    def _awaited(self) -> list[ProcessId]:
        """The processes that must act before this step can end."""
        match self.step:
            case Step.CONSENSUS:
                return self._consensus.unmatched
            case Step.INFO:
                return self._lacking(self._infos)
            case Step.READY:
                return self._unready
            case Step.WAIT:
                return [self._leader]
            case _:
                return []

    def _give_up_claimants(self, now: int) -> None:
        """Those that claim a message must supply it; if only receivers claim it, go on without their claims (J5)."""
        survivors, found = self._survivors(), self._ends()
        claimants: set[ProcessId] = set()
        for sender, seq in self._final(found)[1]:
            if sender in found.survivors:
                claimants.add(sender)
                continue
            for info in survivors:
                claim = dict(info.claims).get(sender)
                if claim is not None and claim.seq >= seq:
                    claimants.add(info.sender)
        claimants.discard(self._context.me)
        if claimants:
            for process in sorted(claimants):
                self._suspect_in_repair(process, now, "mute")
        elif self._round + 1 < ROUNDS:
            self._gather(self._round + 1, now)
            self._settle_info(now)

    def _announce(self, now: int) -> None:
        """Transmit our proposal and everything that we have said about it."""
        context = self._context
        stamp = context.clock.stamp(now // 1000)
        self._outlet.transmit(self._consensus.frame(context.group, self._number, stamp))
        own = self._infos.get(context.me)
        if own is not None and self.step is not Step.CONSENSUS and self._fits(own):
            self._outlet.transmit(own)
        if self.ready is not None and self.step in (Step.READY, Step.WAIT):
            self._outlet.transmit(self.ready)
        self._repeat_at = now + context.settings.repeat_ns

    @property
    def deadline(self) -> int:
        times = [self._give_up_at, self._repeat_at]
        if self._detector.deadline is not None:
            times.append(self._detector.deadline)
        return min(times)
