"""The steps of a formation (docs/spec/newtop.md 11.1): proposal, votes, base, ready, install, or abort.

Each participant stops delivering at a number, in all its groups; everybody delivers what there is up to the largest
of these numbers, the base; then all go over to the new group at once, whose numbers are above it.
"""

from typing import TYPE_CHECKING, Protocol

from antiphon.core.clocks import BlockCounter
from antiphon.protocols.newtop.formation.acquaintances import Acquaintances
from antiphon.protocols.newtop.formation.attempts import Attempts
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.procedure import Formation, Stage
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    FormationFrame,
    InstallFrame,
    ProposeFrame,
    ReadyFrame,
    VoteFrame,
)
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, epoch_of, name_of

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


class Grounds(Protocol):
    """What formations ask of the process they happen at."""

    @property
    def counter(self) -> BlockCounter: ...

    def current(self, name: GroupId) -> "NewtopGroup | None":
        """The group of that name that we are in."""

    def transmit(self, frame: FormationFrame, to: ProcessId) -> None:
        """To one process."""

    def reach(self, number: int, now: int) -> None:
        """A null with this number in every group that has none as large."""

    def passed(self, number: int) -> bool:
        """Whether everything up to that number is delivered, and every view up to there installed."""

    def go_over(self, frame: InstallFrame, now: int) -> "NewtopGroup":
        """Leave the group of that name, if we are in one, and enter the new one."""

    def depart(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """Be a member no longer, or never become one."""

    def stir(self) -> None:
        """What was held back may go on, in any group."""


class Steps:
    """Invariant: whatever ends a formation tells all its members, by `install` or by `abort`."""

    __slots__ = (
        "_acquaintances",
        "_attempts",
        "_datagrams",
        "_grounds",
        "_intentions",
        "_me",
        "_patience_ns",
        "_pause_ns",
        "_repeat_ns",
        "_stage",
        "introduced",
    )

    def __init__(
        self,
        me: ProcessId,
        settings: NewtopSettings,
        grounds: Grounds,
        stage: Stage,
        attempts: Attempts,
        intentions: Intentions,
        acquaintances: Acquaintances,
    ) -> None:
        self.introduced: dict[GroupId, tuple[InstallFrame, int]] = {}
        """On datagrams: what we told of a group, and when to tell it again."""
        self._me = me
        self._grounds = grounds
        self._stage = stage
        self._attempts = attempts
        self._intentions = intentions
        self._acquaintances = acquaintances
        self._repeat_ns = settings.repair_max_ns
        self._patience_ns = settings.form_within_ns
        self._pause_ns = settings.suspect_after_ns
        self._datagrams = settings.datagrams

    # Steps 0 to 2: who takes part, and where all stop

    def propose(self, name: GroupId, members: dict[ProcessId, GroupId | None], now: int) -> None:
        """Step 0."""
        predecessors = [group for group in members.values() if group is not None]
        group = self._attempts.next_group(name, self._me, predecessors)
        if group is None:
            return
        formation = self._take_part(group, self._me, dict(sorted(members.items())), now)
        formation.extend(now + self._pause_ns)  # a vote takes no time: while we wait for it, nothing is delivered
        complete = formation.vote(self._me, formation.number)
        self.ask(formation, now)
        if complete:
            self._count(formation, now)

    def ask(self, formation: Formation, now: int) -> None:
        """The proposal, or the base, to the members that have not answered."""
        frame, unanswered = formation.ask(self._me, now + self._repeat_ns)
        for member in unanswered:
            self._grounds.transmit(frame, member)

    def on_propose(self, frame: ProposeFrame, now: int) -> None:
        """Step 1."""
        current = self._grounds.current(name_of(frame.group))
        if current is not None and current.view.group == frame.group:
            return  # it is formed already
        known = self._stage.formation_of(frame.group)
        if known is not None:
            self._vote(known.group, known.initiator, known.number)
        elif self._yields(frame.sender) and self._may_join(frame) and self._is_settled(current):
            if (given_up := self._stage.formation) is not None:
                self.abandon(given_up)
            formation = self._take_part(frame.group, frame.sender, dict(frame.members), now)
            self._vote(formation.group, formation.initiator, formation.number)
        else:
            self._attempts.refuse(frame.group)
            self._vote(frame.group, frame.sender, None)

    def on_vote(self, frame: VoteFrame, now: int) -> None:
        """Step 2; or a no, step 6."""
        self._attempts.heard(name_of(frame.group), frame.epoch)
        self._attempts.voted(frame.sender)
        formation = self._stage.formation
        if formation is None or not formation.is_led_by(self._me, frame):
            return
        if frame.number is None:
            self.abandon(formation)
        elif formation.base is None and formation.vote(frame.sender, frame.number):
            self._count(formation, now)

    # Step 3: everything up to the base is delivered

    def on_base(self, frame: BaseFrame, now: int) -> None:
        """Only the initiator has seen all votes."""
        formation = self._stage.formation_of(frame.group)
        if formation is None or frame.sender != formation.initiator:
            return
        if formation.base is None:
            self._flush(formation, frame.base, now)
        elif formation.ready is not None:
            self._grounds.transmit(formation.ready, formation.initiator)

    def go_on(self, formation: Formation, now: int) -> bool:
        """Something may have been delivered; True if that ends the flush."""
        if formation.base is None or formation.ready is not None or not self._grounds.passed(formation.base):
            return False
        return self._get_ready(formation, now)

    def _get_ready(self, formation: Formation, now: int) -> bool:
        """All of it is delivered, and no view of the predecessor follows before the outcome is known (E-57)."""
        predecessor = self._grounds.current(name_of(formation.group))
        if predecessor is not None and (predecessor.parts or predecessor.discipline.in_doubt):
            # Its view does not tell what it has discarded (E-88), nor what others have delivered elsewhere (E-94).
            self.abandon(formation)
            return True
        if predecessor is None:
            ready = ReadyFrame(formation.group, self._me, None, (), False)
        else:
            view = predecessor.view
            ready = ReadyFrame(formation.group, self._me, view.id, view.members, view.primary)
        formation.get_ready(ready)
        if formation.initiator == self._me:
            self.on_ready(ready, now)
        else:
            self._grounds.transmit(ready, formation.initiator)
        return True

    @property
    def settled_group(self) -> GroupId | None:
        """The group whose views must not change now: what we are about to leave counts on it."""
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
            self.abandon(formation)
        else:
            self._install(InstallFrame(formation.group, self._me, formation.base, formation.companies), now)

    def on_install(self, frame: InstallFrame, now: int) -> None:
        """Step 5, if we take part in it; a member that is in it already has been heard now."""
        formation, group = self._stage.formation_of(frame.group), self._grounds.current(name_of(frame.group))
        if formation is not None:
            if {member for company in frame.companies for member in company.members} == formation.members.keys():
                self._install(frame, now)
        elif group is not None and group.view.group == frame.group:
            group.sign_of_life(frame.sender, now)
        else:
            self._attempts.refuse(frame.group)
            self.stranger(frame.group, frame.sender)

    def entered(self, group: "NewtopGroup", now: int) -> None:
        """We are in this group: its members are worth looking for when they are gone."""
        name = name_of(group.view.group)
        self._acquaintances.know(name, group.view.members)
        self._intentions.fulfilled(name)
        self._attempts.heard(name, epoch_of(group.view.group))
        self._acquaintances.look_later(name, now)

    def introduce(self, name: GroupId, frame: InstallFrame, now: int) -> None:
        """On datagrams: again, to members of which nothing has come in the group."""
        group = self._grounds.current(name_of(name))
        unheard = [] if group is None or group.view.group != name else group.unheard
        for member in unheard:
            self._grounds.transmit(frame, member)
        if unheard:
            self.introduced[name] = frame, now + self._repeat_ns
        else:
            del self.introduced[name]

    # Step 6: it comes to nothing

    def stranger(self, group: GroupId, sender: ProcessId) -> None:
        """A frame of a group that we are not in: its sender may believe that we are."""
        if group in self._attempts.refused:
            self._grounds.transmit(AbortFrame(group, self._me), sender)

    def on_abort(self, frame: AbortFrame, now: int) -> None:
        """The sender will never be in that group."""
        formation, group = self._stage.formation_of(frame.group), self._grounds.current(name_of(frame.group))
        if formation is not None:
            self.abandon(formation)
        elif group is not None and group.view.group == frame.group:
            group.agreement.renounced(frame.sender, now)
        else:
            self._attempts.refuse(frame.group)  # on datagrams its proposal may still be under way

    def abandon(self, formation: Formation) -> None:
        """Refuse it for ever, go on as before, and let all know."""
        self._attempts.refuse(formation.group)
        self._stage.end()
        group = self._grounds.current(name_of(formation.group))
        if group is not None:
            group.stop_at(None)
        for member in formation.members:
            if member != self._me:
                self._grounds.transmit(AbortFrame(formation.group, self._me), member)
        self._grounds.stir()

    def note_mute(self, formation: Formation, now: int) -> None:
        """A member that does not vote holds up all others: it is left out for a while, longer each time.

        If it is in our view, it is suspected: where nobody owes anything else, its crash would not be noticed (E-95).
        """
        if formation.initiator != self._me or formation.base is not None:
            return
        group = self._grounds.current(name_of(formation.group))
        self._attempts.forget_mute(now)
        for member in [member for member in formation.members if member not in formation.votes]:
            self._attempts.did_not_vote(member, now)
            if group is not None and member in group.roster.ranks:
                group.agreement.suspect(member, "mute", now)

    # Parts of steps

    def _take_part(
        self, group: GroupId, initiator: ProcessId, members: dict[ProcessId, GroupId | None], now: int
    ) -> Formation:
        """Step 1: stop delivering, and sending in the group that is to be left."""
        current = self._grounds.current(name_of(group))
        if current is not None:
            self._grounds.counter.witness(current.progress.promised)
        number = self._grounds.counter.value
        formation = Formation(group, initiator, members, now + self._patience_ns, number)
        self._stage.begin(formation, number)
        if current is not None:
            current.stop_at(number)
        return formation

    def _yields(self, initiator: ProcessId) -> bool:
        """Whether what we take part in gives way to a proposal: as long as votes are counted, to one of a lower id.

        Where many look for the same, they would refuse one another for ever (E-93). A group without predecessors may
        be there as soon as all have voted, so we do not go back on such a vote.
        """
        formation = self._stage.formation
        if formation is None:
            return self._stage.procedure is None
        return formation.base is None and initiator < formation.initiator and formation.has_predecessors

    def _may_join(self, frame: ProposeFrame) -> bool:
        """Whether it is new, names us with the group that we are in, and our application would be in it."""
        members, name, intentions = dict(frame.members), name_of(frame.group), self._intentions
        current = self._grounds.current(name)
        if name in intentions.leaves or self._me not in members or not self._attempts.is_new(frame.group):
            return False
        if current is not None:
            return members[self._me] == current.view.group
        return members[self._me] is None and (name in intentions.wishes or intentions.welcomes(name, members))

    def _is_settled(self, current: "NewtopGroup | None") -> bool:
        """Whether those of our view have one state, no view is about to change, and no message is in doubt."""
        if current is None:
            return True
        return current.transfer is None and not current.parts and not current.discipline.in_doubt

    def _vote(self, group: GroupId, initiator: ProcessId, number: int | None) -> None:
        epoch = self._attempts.epoch(name_of(group))
        self._grounds.transmit(VoteFrame(group, self._me, number, epoch), initiator)

    def _count(self, formation: Formation, now: int) -> None:
        """All have voted: with predecessors there is something to deliver first; without, the group is formed."""
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
        group = self._grounds.current(name_of(formation.group))
        if group is not None:
            group.stop_at(base)
        self._grounds.counter.witness(base)
        self._grounds.reach(base, now)
        self._grounds.stir()

    def _install(self, frame: InstallFrame, now: int) -> None:
        """Step 5: go over, and let all know."""
        own = InstallFrame(frame.group, self._me, frame.base, frame.companies)
        self._stage.end()
        group = self._grounds.go_over(own, now)
        self.entered(group, now)
        for member in group.view.members:
            if member != self._me:
                self._grounds.transmit(own, member)
        group.sign_of_life(frame.sender, now)
        if self._datagrams:
            self.introduced[frame.group] = own, now + self._repeat_ns
        self._grounds.stir()
