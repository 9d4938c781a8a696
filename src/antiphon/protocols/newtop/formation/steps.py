"""The steps of a formation (docs/spec/newtop.md 11.1): proposal, votes, base, ready, install, or abort.

Each participant stops delivering at a number, in all its groups. Then all deliver everything up to the largest of these
numbers, the base. Then all go over to the new group at once; its numbers are above the base.
"""

from typing import TYPE_CHECKING

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.formation.acquaintances import Acquaintances, is_succeeded
from antiphon.protocols.newtop.formation.attempts import Attempts
from antiphon.protocols.newtop.formation.freezes import STRANGERS, Freezes
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.procedure import Formation, Stage
from antiphon.protocols.newtop.formation.terms import Terms
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    InstallFrame,
    ProposeFrame,
    ReadyFrame,
    VoteFrame,
)
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, epoch_of, name_of

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


class Steps:
    """Invariant: when a formation ends, all its members are told, by `install` or by `abort`."""

    __slots__ = (
        "_acquaintances",
        "_attempts",
        "_datagrams",
        "_freezes",
        "_host",
        "_intentions",
        "_me",
        "_patience_ns",
        "_pause_ns",
        "_repeat_ns",
        "_stage",
        "_terms",
        "introduced",
    )

    def __init__(
        self,
        me: ProcessId,
        settings: NewtopSettings,
        host: FormationHost,
        stage: Stage,
        attempts: Attempts,
        intentions: Intentions,
        acquaintances: Acquaintances,
        terms: Terms,
        freezes: Freezes,
    ) -> None:
        self.introduced: dict[GroupId, tuple[InstallFrame, int]] = {}
        """On datagrams: our `install` of a group, and when to repeat it."""
        self._me = me
        self._host = host
        self._stage = stage
        self._attempts = attempts
        self._intentions = intentions
        self._acquaintances = acquaintances
        self._terms = terms
        self._freezes = freezes
        self._repeat_ns = settings.repair_max_ns
        self._patience_ns = settings.form_within_ns
        self._pause_ns = settings.suspect_after_ns
        self._datagrams = settings.datagrams

    # Steps 0 to 2: which processes take part, and where all stop

    def propose(self, name: GroupId, members: dict[ProcessId, GroupId | None], now: int) -> None:
        """Step 0; not while our application is too far behind."""
        if self._host.is_unread(name):
            return
        group = self._attempts.next_group(name, self._me, members)
        if group is None:
            return
        formation = self._take_part(group, self._me, dict(sorted(members.items())), now)
        formation.extend(now + self._pause_ns)  # a short timeout: votes are quick, and nothing is delivered meanwhile
        complete = formation.vote(self._me, formation.number)
        self.ask(formation, now)
        if complete:
            self._count(formation, now)

    def ask(self, formation: Formation, now: int) -> None:
        """Send the proposal, or the base, to the members that have not answered."""
        settings = self._terms.of(name_of(formation.group))
        frame, unanswered = formation.ask(self._me, settings, now + self._repeat_ns)
        for member in unanswered:
            self._host.transmit(frame, member)

    def on_propose(self, frame: ProposeFrame, now: int) -> None:
        """Step 1."""
        self._require_epoch(frame, now)
        current = self._host.current(name_of(frame.group))
        if current is not None and current.view.group == frame.group:
            return  # it is formed already
        known = self._stage.formation_of(frame.group)
        if known is not None:
            self._vote(known.group, known.initiator, known.number)
        elif self._is_willing(frame, current, now) and not self._terms.refuses(frame):
            if (given_up := self._stage.formation) is not None:
                self.abandon(given_up, now)
            formation = self._take_part(frame.group, frame.sender, dict(frame.members), now)
            formation.extend(now + min(2 * self._pause_ns, self._patience_ns))  # its initiator waits half of that
            self._vote(formation.group, formation.initiator, formation.number)
        else:
            self._attempts.refuse(frame.group)
            self._vote(frame.group, frame.sender, None)

    def on_vote(self, frame: VoteFrame, now: int) -> None:
        """Step 2; or a no, step 6."""
        if frame.number is not None:
            self._host.bounds.require_vote(frame.number, now)
        self._attempts.heard(frame.group, frame.sender, frame.epoch, now)
        self._attempts.voted(frame.sender)
        formation = self._stage.formation
        if formation is None or not formation.is_led_by(self._me, frame):
            return
        if frame.number is None:
            self.abandon(formation, now)
        elif formation.base is None and formation.vote(frame.sender, frame.number):
            self._count(formation, now)

    # Step 3: everything up to the base is delivered

    def on_base(self, frame: BaseFrame, now: int) -> None:
        """Step 3. Only the initiator has seen all votes, so only its base counts."""
        formation = self._stage.formation_of(frame.group)
        if formation is None or frame.sender != formation.initiator:
            return
        if formation.base is None:
            self._host.bounds.require_base(frame.base, now)
            if frame.base < formation.number:
                raise ProtocolViolation("number", f"base {frame.base:,} is below our vote {formation.number:,}")
            formation.extend(formation.begun + self._patience_ns)
            self._flush(formation, frame.base, now)
        elif formation.ready is not None:
            self._host.transmit(formation.ready, formation.initiator)

    def go_on(self, formation: Formation, now: int) -> bool:
        """Something may have been delivered; True if that ends the flush."""
        if formation.base is None or formation.ready is not None:
            return False
        predecessor = self._host.current(name_of(formation.group))
        return self._host.passed(predecessor, formation.base) and self._get_ready(formation, now)

    def _get_ready(self, formation: Formation, now: int) -> bool:
        """All up to the base is delivered. No view of the predecessor follows before the outcome is known (E-57)."""
        predecessor = self._host.current(name_of(formation.group))
        if predecessor is not None and (predecessor.parts or predecessor.discipline.in_doubt):
            # Its view does not show what it has discarded (E-88), or what others have delivered elsewhere (E-94).
            self.abandon(formation, now)
            return True
        if predecessor is None:
            ready = ReadyFrame(formation.group, self._me, None, (), False)
        else:
            view = predecessor.view
            last = self._host.last_primary(name_of(formation.group))
            history = self._host.history(view.group)
            ready = ReadyFrame(formation.group, self._me, view.id, view.members, view.primary, last, history)
        formation.get_ready(ready)
        if formation.initiator == self._me:
            self.on_ready(ready, now)
        else:
            self._host.transmit(ready, formation.initiator)
        return True

    @property
    def settled_group(self) -> GroupId | None:
        """The group whose views must not change now: we have reported its view in `ready`."""
        formation = self._stage.formation
        if formation is None or formation.ready is None:
            return None
        return formation.members[self._me]

    # Steps 4 and 5: the group is formed

    def on_ready(self, frame: ReadyFrame, now: int) -> None:
        """Step 4."""
        formation = self._stage.formation
        if formation is None or not formation.is_led_by(self._me, frame) or formation.base is None:
            return
        if not formation.answer(frame):
            return
        if formation.contradicts:
            self.abandon(formation, now)
        else:
            self._install(InstallFrame(formation.group, self._me, formation.base, formation.companies), now)

    def on_install(self, frame: InstallFrame, now: int) -> None:
        """Step 5, if we take part; if we are already in the group, a sign of life of the sender."""
        formation, group = self._stage.formation_of(frame.group), self._host.current(name_of(frame.group))
        if formation is not None:
            if frame.sender not in formation.members or (formation.has_predecessors and formation.ready is None):
                return  # no member has seen all answers yet
            self._require_outcome(formation, frame, now)
            if {member for company in frame.companies for member in company.members} == formation.members.keys():
                self._install(frame, now)
        elif group is not None and group.view.group == frame.group:
            group.sign_of_life(frame.sender, now)
        else:
            self._attempts.refuse(frame.group)
            self.stranger(frame.group, frame.sender)

    def viewed(self, group: GroupId) -> None:
        """Our application has read a view of that group."""
        self._host.viewed(group)

    def entered(self, group: "NewtopGroup", now: int) -> None:
        """We have entered this group: remember its members, to search for them after a partition."""
        name = name_of(group.view.group)
        self._acquaintances.companions(name, group.view.members)
        self._intentions.fulfilled(name)
        self._attempts.entered(group.view.group, now)
        self._acquaintances.look_later(name, now)

    def introduce(self, name: GroupId, frame: InstallFrame, now: int) -> None:
        """On datagrams: repeat `install` to members that were not heard in the group yet."""
        group = self._host.current(name_of(name))
        unheard = [] if group is None or group.view.group != name else group.unheard
        for member in unheard:
            self._host.transmit(frame, member)
        if unheard:
            self.introduced[name] = frame, now + self._repeat_ns
        else:
            del self.introduced[name]

    # Step 6: the formation is aborted

    def stranger(self, group: GroupId, sender: ProcessId) -> None:
        """A frame of a group that we are not in: its sender may believe that we are."""
        if group in self._attempts.refused:
            self._host.transmit(AbortFrame(group, self._me), sender)

    def on_abort(self, frame: AbortFrame, now: int) -> None:
        """The sender will never be in that group."""
        formation, group = self._stage.formation_of(frame.group), self._host.current(name_of(frame.group))
        if formation is not None:
            if frame.sender in formation.members:
                self.abandon(formation, now)
        elif group is not None and group.view.group == frame.group:
            group.agreement.renounced(frame.sender, now)
        else:
            self._attempts.refuse(frame.group)  # on datagrams its proposal may still be under way

    def abandon(self, formation: Formation, now: int) -> None:
        """Abort a formation: refuse it for ever, continue in the old group, and tell all members."""
        self._freezes.cost(self._cause(formation), now - formation.begun, now)
        self._attempts.refuse(formation.group)
        self._stage.end()
        group = self._host.current(name_of(formation.group))
        if group is not None:
            group.stop_at(None)
        for member in formation.members:
            if member != self._me:
                self._host.transmit(AbortFrame(formation.group, self._me), member)
        self._host.stir()

    def _cause(self, formation: Formation) -> ProcessId:
        """The process that is charged for a failed formation: its initiator, if that is a member; else all strangers.

        A formation that we initiate may have been requested by a stranger.
        """
        group = self._host.current(name_of(formation.group))
        known = group is not None and formation.initiator != self._me and formation.initiator in group.roster.ranks
        return formation.initiator if known else STRANGERS

    def may_stop_us(self, process: ProcessId, name: GroupId, now: int) -> bool:
        """Whether this process has not yet cost us too much time by failed formations."""
        group = self._host.current(name)
        return self._freezes.allows(process if group is not None and process in group.roster.ranks else STRANGERS, now)

    def note_mute(self, formation: Formation, now: int) -> None:
        """A member that does not vote delays all others: leave it out for a while, longer each time.

        If it is in our view, suspect it: if no member owes anything, its crash would not be noticed otherwise (E-95).
        """
        if formation.initiator != self._me or formation.base is not None:
            return
        group = self._host.current(name_of(formation.group))
        self._attempts.forget_mute(now)
        for member in [member for member in formation.members if member not in formation.votes]:
            self._attempts.did_not_vote(member, now)
            if group is not None and member in group.roster.ranks:
                group.agreement.suspect(member, "mute", now)

    # Parts of steps

    def _require_epoch(self, frame: ProposeFrame, now: int) -> None:
        """Refuse an epoch that is not above those of the predecessors, or too far above all that we know."""
        self._attempts.require(frame.group, now)
        latest = max((epoch_of(before) for _, before in frame.members if before is not None), default=0)
        if epoch_of(frame.group) <= latest:
            raise ProtocolViolation("number", f"{frame.group} cannot replace a group of epoch {latest}")

    def _require_outcome(self, formation: Formation, frame: InstallFrame, now: int) -> None:
        """Refuse an outcome that differs from the known base, or from the view that we reported."""
        if formation.base is None:
            self._host.bounds.require_base(frame.base, now)
        elif frame.base != formation.base:
            raise ProtocolViolation("number", f"base {frame.base:,} is not the base {formation.base:,} of this group")
        ready = formation.ready
        own = next((company for company in frame.companies if self._me in company.members), None)
        if ready is None or own is None:
            return
        if (own.view, own.size) != (ready.view, len(ready.members)):
            raise ProtocolViolation("number", f"{self._me} comes from another view than {own.view} of {own.size}")
        if own.history not in (0, ready.history):
            raise ProtocolViolation("number", f"{self._me} has another history than the install frame tells")

    def _take_part(
        self, group: GroupId, initiator: ProcessId, members: dict[ProcessId, GroupId | None], now: int
    ) -> Formation:
        """Step 1: stop delivering in all groups, and sending in the predecessor."""
        current = self._host.current(name_of(group))
        if current is not None:
            self._host.counter.witness(current.progress.promised)
        number = self._host.counter.value
        formation = Formation(group, initiator, members, now, number)
        formation.extend(now + self._patience_ns)
        self._stage.begin(formation, number)
        if current is not None:
            current.stop_at(number)
        return formation

    def _is_willing(self, frame: ProposeFrame, current: "NewtopGroup | None", now: int) -> bool:
        ready = self._is_settled(current) and not self._host.is_unread(name_of(frame.group))
        return self._yields(frame.sender) and self._may_join(frame, now) and ready

    def _yields(self, initiator: ProcessId) -> bool:
        """Whether our current formation yields to a proposal: only while votes are counted, and to a lower initiator.

        Otherwise several processes with the same goal would refuse one another for ever (E-93). A group without
        predecessors may be formed as soon as all have voted, so we do not withdraw such a vote.
        """
        formation = self._stage.formation
        if formation is None:
            return self._stage.procedure is None
        return formation.base is None and initiator < formation.initiator and formation.has_predecessors

    def _may_join(self, frame: ProposeFrame, now: int) -> bool:
        """Whether the group is new, names us with our current group, and our application agrees to be in it.

        Its initiator must not have stopped us too often.
        """
        members, name, intentions = dict(frame.members), name_of(frame.group), self._intentions
        current = self._host.current(name)
        if name in intentions.leaves or self._me not in members or not self._attempts.is_new(frame.group):
            return False
        if is_succeeded(self._me, members) or not self.may_stop_us(frame.sender, name, now):
            return False  # no group can have two processes with one name
        if current is not None:
            return members[self._me] == current.view.group
        return members[self._me] is None and (name in intentions.wishes or intentions.welcomes(name, members))

    def _is_settled(self, current: "NewtopGroup | None") -> bool:
        """Whether no state transfer, no view change and no message in doubt is pending in our group."""
        if current is None:
            return True
        return current.transfer is None and not current.parts and not current.discipline.in_doubt

    def _vote(self, group: GroupId, initiator: ProcessId, number: int | None) -> None:
        epoch = self._attempts.epoch(name_of(group))
        self._host.transmit(VoteFrame(group, self._me, number, epoch), initiator)

    def _count(self, formation: Formation, now: int) -> None:
        """All have voted: flush the predecessors first; without any, the group is formed."""
        base = max(formation.votes.values())
        formation.extend(now + self._patience_ns)
        if formation.has_predecessors:
            formation.flush(base)
            self.ask(formation, now)
            self._flush(formation, base, now)
        else:
            self._install(InstallFrame(formation.group, self._me, base, formation.companies), now)

    def _flush(self, formation: Formation, base: int, now: int) -> None:
        formation.flush(base)
        self._stage.stop_at(base)
        group = self._host.current(name_of(formation.group))
        if group is not None:
            group.stop_at(base)
        self._host.counter.witness(base)
        self._host.reach(group, base, now)
        self._host.stir()

    def _install(self, frame: InstallFrame, now: int) -> None:
        """Step 5: go over, and tell all members."""
        own = InstallFrame(frame.group, self._me, frame.base, frame.companies)
        self._stage.end()
        group = self._host.go_over(own, now)
        self.entered(group, now)
        for member in group.view.members:
            if member != self._me:
                self._host.transmit(own, member)
        group.sign_of_life(frame.sender, now)
        if self._datagrams:
            self.introduced[frame.group] = own, now + self._repeat_ns
        self._host.stir()
