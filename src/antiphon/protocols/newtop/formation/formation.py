"""How groups come to be and go over into others: formation, join, merge, leave (docs/spec/newtop.md 11.1, 11.2).

One procedure serves all of them. Whoever takes part stops delivering at a number, in all its groups; everybody delivers
what there is up to the largest of these numbers, the base; then all go over to the new group at once, whose numbers are
above it. So delivery stays one order over all groups, and those who come from one view have delivered the same. A group
that a process is in has one name, and one identity for each time it was formed. The steps are those of 11.1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from antiphon.core.clocks import BlockCounter
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    FormationFrame,
    FoundFrame,
    InstallFrame,
    ProbeFrame,
    ProposeFrame,
    ReadyFrame,
    VoteFrame,
    WantFrame,
)
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import (
    EPOCH_MAX,
    Company,
    GroupId,
    ProcessId,
    dice,
    epoch_of,
    formed_group,
    name_of,
    split_process_id,
)

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup

_DOUBLINGS_MAX: Final = 6
"""So often the pause is doubled after which somebody who has not answered is asked again."""
_REFUSED_MAX: Final = 4096
"""So many formations that came to nothing are remembered; nobody waits for older ones."""
_KNOWN_MAX: Final = 4096
"""So many processes of a group are remembered beside those that are told of now: those met last."""


class Grounds(Protocol):
    """What formations ask of the process they happen at."""

    counter: BlockCounter

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


@dataclass(slots=True)
class _Formation:
    """What we have agreed to take part in: until it ends nothing above `Formations.limit` is delivered."""

    group: GroupId
    initiator: ProcessId
    members: dict[ProcessId, GroupId | None]
    """Each with its predecessor."""
    until: int
    number: int
    """v: where we have stopped."""
    base: int | None = None
    ready: ReadyFrame | None = None
    votes: dict[ProcessId, int] = field(default_factory=dict)
    answers: dict[ProcessId, ReadyFrame] = field(default_factory=dict)
    repeat_at: int = 0
    """When the initiator asks again whoever has not answered."""


@dataclass(slots=True)
class _Leave:
    """Our last messages are to be stable before we go (11.2 rule 2)."""

    group: "NewtopGroup"
    number: int
    until: int


@dataclass(slots=True)
class _Wish:
    """What the application asked for and has not got."""

    processes: tuple[ProcessId, ...]
    forms: bool
    """Form a group of these; or be taken in by one of them."""
    at: int
    tries: int = 0


class Formations:
    """All that changes the groups of one process otherwise than by failures. One procedure at a time."""

    def __init__(self, me: ProcessId, settings: NewtopSettings, grounds: Grounds) -> None:
        self.limit = BEYOND
        """Nothing above this number is delivered now."""
        self.busy = False
        """Whether `advance` may find something to do; plain attributes, for they are read after every event."""
        self.at: int | None = None
        """When something must be repeated, given up or tried again."""
        self._me = me
        self._grounds = grounds
        self._procedure: _Formation | _Leave | None = None
        self._attempts = 0
        self._refused: dict[GroupId, None] = {}
        self._wishes: dict[GroupId, _Wish] = {}
        self._leaves: dict[GroupId, int] = {}  # by name, until when it may be graceful
        self._left: set[GroupId] = set()  # names that our application does not want to be in
        self._introduced: dict[GroupId, tuple[InstallFrame, int]] = {}  # what we told of a group, and when to again
        self._known: dict[GroupId, list[ProcessId]] = {}  # by name, whom we have ever been with
        self._probes: dict[GroupId, int] = {}  # by name, when to look for them
        self._epochs: dict[GroupId, int] = {}  # by name, the largest that we have heard of
        self._mute: dict[ProcessId, tuple[int, int]] = {}  # who has not voted: how often, and until when it is left out
        self._repeat_ns = settings.repair_max_ns
        self._patience_ns = settings.form_within_ns
        self._probe_ns = settings.merge_every_ns
        self._pause_ns = settings.suspect_after_ns
        self._datagrams = settings.datagrams
        self._probed = self._pauses = 0  # how often

    # What the application asks for

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """A new group; step 0."""
        self._left.discard(name)
        self._wishes[name] = wish = _Wish(members, True, now)
        self._try(name, wish, now)
        self._look_ahead()

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Be taken in (11.2 rule 3)."""
        self._left.discard(name)
        self._wishes[name] = wish = _Wish(tuple(each for each in contacts if each != self._me), False, now)
        self._try(name, wish, now)
        self._look_ahead()

    def merge(self, name: GroupId, others: tuple[ProcessId, ...]) -> None:
        """Look for these at once."""
        self._know(name, others)
        for other in others:
            self._grounds.transmit(ProbeFrame(name, self._me, False), other)

    def leave(self, name: GroupId, now: int) -> None:
        """Go, when all is stable or too long has passed."""
        self._wishes.pop(name, None)
        self._left.add(name)
        self._leaves.setdefault(name, now + self._patience_ns)
        self._look_ahead()

    def entered(self, group: "NewtopGroup", now: int) -> None:
        """We are in this group: those in it are worth looking for when they are gone."""
        name = name_of(group.view.group)
        self._know(name, group.view.members)
        self._wishes.pop(name, None)
        self._epochs[name] = max(self._epochs.get(name, 0), epoch_of(group.view.group))
        if self._probe_ns:
            self._probes[name] = now + self._probe_ns + self._spread(name)
        self._look_ahead()

    # What comes in

    def receive(self, frame: FormationFrame, now: int) -> None:
        """A frame that belongs to no stream."""
        self._take(frame, now)
        self._look_ahead()

    def _take(self, frame: FormationFrame, now: int) -> None:
        if isinstance(frame, ProposeFrame):
            self._on_propose(frame, now)
        elif isinstance(frame, VoteFrame):
            self._on_vote(frame, now)
        elif isinstance(frame, BaseFrame):
            self._on_base(frame, now)
        elif isinstance(frame, ReadyFrame):
            self._on_ready(frame, now)
        elif isinstance(frame, InstallFrame):
            self._on_install(frame, now)
        elif isinstance(frame, AbortFrame):
            self._on_abort(frame, now)
        elif isinstance(frame, ProbeFrame):
            self._on_probe(frame, now)
        else:
            self._on_found(frame, now)

    def stranger(self, group: GroupId, sender: ProcessId) -> None:
        """A frame of a group that we are not in: whoever sends it may believe that we are (step 6)."""
        if group in self._refused:
            self._grounds.transmit(AbortFrame(group, self._me), sender)

    # What time brings

    def _look_ahead(self) -> None:
        """Something may have changed: say when to be called again."""
        times = [wish.at for wish in self._wishes.values()]
        times += self._probes.values()
        times += self._leaves.values()
        times += [at for _, at in self._introduced.values()]
        procedure = self._procedure
        if procedure is not None:
            times.append(procedure.until)
            if isinstance(procedure, _Formation) and procedure.initiator == self._me:
                times.append(procedure.repeat_at)
        self.at = min(times, default=None)
        self.busy = procedure is not None or bool(self._leaves)

    def tick(self, now: int) -> None:
        """Repeat, give up, try again: whatever is due."""
        self._do_what_is_due(now)
        self._look_ahead()

    def _do_what_is_due(self, now: int) -> None:
        procedure = self._procedure
        if isinstance(procedure, _Formation):
            if procedure.until <= now:
                self._note_mute(procedure, now)
                self._abandon(procedure)
            elif procedure.initiator == self._me and procedure.repeat_at <= now:
                self._ask(procedure, now)
        for name, until in [*self._leaves.items()]:
            if until <= now:
                self._go(name, now, graceful=False)
        for group, (frame, at) in [*self._introduced.items()]:
            if at <= now:
                self._introduce(group, frame, now)
        for name, wish in [*self._wishes.items()]:
            if wish.at <= now:
                self._try(name, wish, now)
        for name, at in [*self._probes.items()]:
            if at <= now:
                self._look_around(name, now)

    def advance(self, now: int) -> bool:
        """Something may have been delivered or become stable: go on. True if there was something to do."""
        moved = self._go_on(now)
        if moved:
            self._look_ahead()
        return moved

    def _go_on(self, now: int) -> bool:
        procedure = self._procedure
        if procedure is None:
            return self._begin_to_leave(now)
        if isinstance(procedure, _Leave):
            name = name_of(procedure.group.view.group)
            if not self._grounds.passed(procedure.number) or procedure.group.progress.stable_block < procedure.number:
                return False
            self._go(name, now, graceful=True)
            return True
        if procedure.base is None or procedure.ready is not None or not self._grounds.passed(procedure.base):
            return False
        return self._get_ready(procedure, now)

    # Steps 0 to 2: who takes part, and where all stop

    def _propose(self, name: GroupId, members: dict[ProcessId, GroupId | None], now: int) -> None:
        """Step 0."""
        epochs = [epoch_of(group) for group in members.values() if group is not None]
        epoch = 1 + max(self._epochs.get(name, 0), *epochs, 0)
        if epoch > EPOCH_MAX:
            return  # only a peer that lies has counted so far
        self._attempts += 1
        group = formed_group(name, epoch, self._me, self._attempts)
        formation = self._take_part(group, self._me, dict(sorted(members.items())), now)
        formation.votes[self._me] = formation.number
        formation.until = now + self._pause_ns  # a vote takes no time: while we wait for it, nothing is delivered
        self._ask(formation, now)
        self._count(formation, now)

    def _take_part(
        self, group: GroupId, initiator: ProcessId, members: dict[ProcessId, GroupId | None], now: int
    ) -> _Formation:
        """Step 1: stop delivering, and sending in the group that is to be left."""
        current = self._grounds.current(name_of(group))
        if current is not None:
            self._grounds.counter.witness(current.progress.promised)
        number = self._grounds.counter.value
        formation = _Formation(group, initiator, members, now + self._patience_ns, number)
        self._procedure = formation
        self._stop_at(formation, number)
        return formation

    def _stop_at(self, formation: _Formation, number: int | None) -> None:
        """Deliver nothing above it in any group, and send nothing in the one that is to be left; None: go on."""
        self.limit = BEYOND if number is None else number
        group = self._grounds.current(name_of(formation.group))
        if group is not None:
            group.stop_at(number)

    def _ask(self, formation: _Formation, now: int) -> None:
        """To whoever has not answered: the proposal, or the base."""
        formation.repeat_at = now + self._repeat_ns
        answered = formation.votes if formation.base is None else formation.answers
        frame: FormationFrame = (
            ProposeFrame(formation.group, self._me, tuple(formation.members.items()))
            if formation.base is None
            else BaseFrame(formation.group, self._me, formation.base)
        )
        for member in formation.members:
            if member != self._me and member not in answered:
                self._grounds.transmit(frame, member)

    def _on_propose(self, frame: ProposeFrame, now: int) -> None:
        """Step 1."""
        members, name, procedure = dict(frame.members), name_of(frame.group), self._procedure
        current = self._grounds.current(name)
        if current is not None and current.view.group == frame.group:
            return  # it is formed already
        if isinstance(procedure, _Formation) and procedure.group == frame.group:
            self._vote(procedure.group, procedure.initiator, procedure.number)
            return
        predecessor = None if current is None else current.view.group
        willing = (
            (procedure is None or self._yields(procedure, frame.sender))
            and name not in self._leaves
            and frame.group not in self._refused
            and self._me in members
            and members[self._me] == predecessor
            and (current is None or current.transfer is None)  # those of one view must have one state
            and (current is None or not (current.parts or current.discipline.in_doubt))
            and (current is not None or name in self._wishes or self._welcomes(name, members))
            and epoch_of(frame.group) > self._epochs.get(name, 0)
        )
        if not willing:
            self._refuse(frame.group)
            self._vote(frame.group, frame.sender, None)
            return
        if isinstance(procedure, _Formation):
            self._abandon(procedure)
        formation = self._take_part(frame.group, frame.sender, members, now)
        self._vote(formation.group, formation.initiator, formation.number)

    def _yields(self, procedure: "_Formation | _Leave", initiator: ProcessId) -> bool:
        """Whether what we take part in gives way to a proposal: as long as votes are counted, to one of a lower id.

        Where many look for the same, they would refuse one another for ever (E-93). A group without predecessors may
        be there as soon as all have voted, so we do not go back on such a vote.
        """
        if not isinstance(procedure, _Formation) or procedure.base is not None:
            return False
        return initiator < procedure.initiator and any(procedure.members.values())

    def _welcomes(self, name: GroupId, members: dict[ProcessId, GroupId | None]) -> bool:
        """Whether we let others take us into a group that we did not ask for: into a new one, unless we left it."""
        return name not in self._left and not any(members.values())

    def _vote(self, group: GroupId, initiator: ProcessId, number: int | None) -> None:
        epoch = self._epochs.get(name_of(group), 0)
        self._grounds.transmit(VoteFrame(group, self._me, number, epoch), initiator)

    def _on_vote(self, frame: VoteFrame, now: int) -> None:
        """Step 2; or a no, step 6."""
        formation, name = self._procedure, name_of(frame.group)
        self._epochs[name] = max(self._epochs.get(name, 0), frame.epoch)  # what we try next must be above it
        self._mute.pop(frame.sender, None)
        if not self._leads(formation, frame) or not isinstance(formation, _Formation):
            return
        if frame.number is None:
            self._abandon(formation)
        elif formation.base is None:
            formation.votes[frame.sender] = frame.number
            self._count(formation, now)

    def _leads(self, procedure: _Formation | _Leave | None, frame: VoteFrame | ReadyFrame) -> bool:
        """Whether it is an answer to us, about what we are doing."""
        if not isinstance(procedure, _Formation) or procedure.group != frame.group:
            return False
        return procedure.initiator == self._me and frame.sender in procedure.members

    def _count(self, formation: _Formation, now: int) -> None:
        """All votes: with predecessors there is something to deliver first; without, the group is formed (step 4)."""
        if formation.votes.keys() != formation.members.keys():
            return
        base = max(formation.votes.values())
        formation.until = now + self._patience_ns
        if any(formation.members.values()):
            formation.base = base
            self._ask(formation, now)
            self._flush(formation, base, now)
        else:
            companies = tuple(Company((member,), None, 0, False) for member in formation.members)
            self._install(InstallFrame(formation.group, self._me, base, companies), now)

    # Step 3: everything up to the base is delivered

    def _on_base(self, frame: BaseFrame, now: int) -> None:
        formation = self._procedure
        if not isinstance(formation, _Formation) or formation.group != frame.group:
            return
        if frame.sender != formation.initiator:
            return  # nobody else has seen all votes
        if formation.base is None:
            self._flush(formation, frame.base, now)
        elif formation.ready is not None:
            self._grounds.transmit(formation.ready, formation.initiator)

    def _flush(self, formation: _Formation, base: int, now: int) -> None:
        formation.base = base
        self._stop_at(formation, base)
        self._grounds.counter.witness(base)
        self._grounds.reach(base, now)
        self._grounds.stir()

    def _get_ready(self, formation: _Formation, now: int) -> bool:
        """All of it is delivered, and no view of the predecessor follows before the outcome is known (E-57)."""
        predecessor = self._grounds.current(name_of(formation.group))
        if predecessor is not None and (predecessor.parts or predecessor.discipline.in_doubt):
            # Its view does not tell what it has discarded (E-88), nor what others have delivered elsewhere (E-94).
            self._abandon(formation)
            return True
        view = None if predecessor is None else predecessor.view
        if view is None:
            ready = ReadyFrame(formation.group, self._me, None, (), False)
        else:
            ready = ReadyFrame(formation.group, self._me, view.id, view.members, view.primary)
        formation.ready = ready
        if formation.initiator == self._me:
            self._on_ready(ready, now)
        else:
            self._grounds.transmit(ready, formation.initiator)
        return True

    @property
    def settled_group(self) -> GroupId | None:
        """The group whose views must not change now: what we are about to leave counts on it."""
        formation = self._procedure
        if not isinstance(formation, _Formation) or formation.ready is None:
            return None
        return formation.members[self._me]

    # Steps 4 and 5: the group is formed

    def _on_ready(self, frame: ReadyFrame, now: int) -> None:
        """Step 4."""
        formation = self._procedure
        if not self._leads(formation, frame) or not isinstance(formation, _Formation) or formation.base is None:
            return
        formation.answers[frame.sender] = frame
        if formation.answers.keys() != formation.members.keys():
            return
        if self._contradicts(formation):
            self._abandon(formation)
        else:
            companies = _companies(formation.answers)
            self._install(InstallFrame(formation.group, self._me, formation.base, companies), now)

    def _contradicts(self, formation: _Formation) -> bool:
        """Two views of one predecessor of which one has a member of the other: they have not agreed yet (E-57)."""
        return any(
            formation.members[a] == formation.members[b] is not None
            and one.view != other.view
            and (a in other.members or b in one.members)
            for a, one in formation.answers.items()
            for b, other in formation.answers.items()
        )

    def _on_install(self, frame: InstallFrame, now: int) -> None:
        """Step 5, if it is what we take part in; whoever is in it already has been heard now."""
        formation, group = self._procedure, self._grounds.current(name_of(frame.group))
        if isinstance(formation, _Formation) and formation.group == frame.group:
            if _members(frame.companies) == formation.members.keys():
                self._install(frame, now)
        elif group is not None and group.view.group == frame.group:
            group.sign_of_life(frame.sender, now)
        else:
            self._refuse(frame.group)
            self.stranger(frame.group, frame.sender)

    def _install(self, frame: InstallFrame, now: int) -> None:
        own = InstallFrame(frame.group, self._me, frame.base, frame.companies)
        self._procedure = None
        self.limit = BEYOND
        group = self._grounds.go_over(own, now)
        self.entered(group, now)
        for member in group.view.members:
            if member != self._me:
                self._grounds.transmit(own, member)
        group.sign_of_life(frame.sender, now)
        if self._datagrams:
            self._introduced[frame.group] = own, now + self._repeat_ns
        self._grounds.stir()

    def _introduce(self, name: GroupId, frame: InstallFrame, now: int) -> None:
        """On datagrams: again, to whom nothing of the group has come from."""
        group = self._grounds.current(name_of(name))
        unheard = [] if group is None or group.view.group != name else group.unheard
        for member in unheard:
            self._grounds.transmit(frame, member)
        if unheard:
            self._introduced[name] = frame, now + self._repeat_ns
        else:
            del self._introduced[name]

    # Step 6: it comes to nothing

    def _on_abort(self, frame: AbortFrame, now: int) -> None:
        formation, group = self._procedure, self._grounds.current(name_of(frame.group))
        if isinstance(formation, _Formation) and formation.group == frame.group:
            self._abandon(formation)
        elif group is not None and group.view.group == frame.group:
            group.agreement.renounced(frame.sender, now)
        else:
            self._refuse(frame.group)  # on datagrams its proposal may still be under way

    def _abandon(self, formation: _Formation) -> None:
        """Refuse it for ever, go on as before, and let all know."""
        self._refuse(formation.group)
        self._procedure = None
        self._stop_at(formation, None)
        for member in formation.members:
            if member != self._me:
                self._grounds.transmit(AbortFrame(formation.group, self._me), member)
        self._grounds.stir()

    def _note_mute(self, formation: _Formation, now: int) -> None:
        """Who does not vote holds up all others: it is left out for a while, longer each time.

        If it is in our view, it is suspected: where nobody owes anything else, its crash would not be noticed (E-95).
        """
        if formation.initiator != self._me or formation.base is not None:
            return
        group = self._grounds.current(name_of(formation.group))
        forgotten = now - (self._pause_ns << _DOUBLINGS_MAX)
        self._mute = {member: mute for member, mute in self._mute.items() if mute[1] > forgotten}
        for member in [member for member in formation.members if member not in formation.votes]:
            times = self._mute.get(member, (0, 0))[0] + 1
            self._mute[member] = times, now + (self._pause_ns << min(times, _DOUBLINGS_MAX))
            if group is not None and member in group.roster.ranks:
                group.agreement.suspect(member, "mute", now)

    def _answers(self, process: ProcessId, now: int) -> bool:
        return process not in self._mute or self._mute[process][1] <= now

    def _refuse(self, group: GroupId) -> None:
        self._refused[group] = None
        if len(self._refused) > _REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    # Leave (11.2 rule 2)

    def _begin_to_leave(self, now: int) -> bool:
        """Once the application's messages have left: stop delivering, and ask all to complete what there is."""
        for name, until in [*self._leaves.items()]:
            group = self._grounds.current(name)
            if group is None:
                self._go(name, now, graceful=True)
                return True
            if group.outgoing.outbox.waiting or group.discipline.awaits_return or group.transfer is not None:
                continue
            number = self._grounds.counter.value
            self._procedure = _Leave(group, number, until)
            self.limit = number
            group.gate.hold(Reason.STOPPED)
            self._grounds.reach(number, now)
            group.leaving.wait_for(number, now)
            group.multicast(WantFrame(group.view.group, self._me, group.numbers.sent, number), now)
            return True
        return False

    def _go(self, name: GroupId, now: int, *, graceful: bool) -> None:
        procedure, group = self._procedure, self._grounds.current(name)
        if isinstance(procedure, _Formation) and name_of(procedure.group) == name:
            self._abandon(procedure)
        if isinstance(procedure, _Leave) and procedure.group is group:
            self._procedure = None
            self.limit = BEYOND
        self._leaves.pop(name, None)
        self._probes.pop(name, None)
        self._known.pop(name, None)
        self._grounds.depart(name, now, graceful=graceful)
        self._grounds.stir()

    # Join and merge (11.2 rules 3 and 5)

    def _try(self, name: GroupId, wish: _Wish, now: int) -> None:
        """Ask the next contact; or propose."""
        wish.at = now + (self._pause_ns << min(wish.tries, _DOUBLINGS_MAX) * wish.forms) + self._spread(name)
        wish.tries += 1
        if self._grounds.current(name) is not None:
            del self._wishes[name]
        elif not wish.forms and wish.processes:
            contact = wish.processes[(wish.tries - 1) % len(wish.processes)]
            self._grounds.transmit(ProbeFrame(name, self._me, True), contact)
        elif wish.forms and self._procedure is None:
            self._propose(name, dict.fromkeys({*wish.processes, self._me}), now)

    def _look_around(self, name: GroupId, now: int) -> None:
        """Ask one of those whom we have been with and are not."""
        self._probes[name] = now + self._probe_ns + self._spread(name)
        group = self._grounds.current(name)
        lost = [] if group is None else [each for each in self._known[name] if each not in group.roster.ranks]
        if lost:
            self._probed += 1
            self._grounds.transmit(ProbeFrame(name, self._me, False), lost[self._probed % len(lost)])

    def _on_probe(self, frame: ProbeFrame, now: int) -> None:
        """Answer; or propose the group that we are in and whoever asks to be taken in."""
        name = name_of(frame.group)
        group = self._grounds.current(name)
        if group is None:
            return
        if not frame.joins:
            self._know(name, (frame.sender,))
            self._grounds.transmit(FoundFrame(group.view.group, self._me, group.view.members), frame.sender)
            return
        for old in _earlier(frame.sender, group.roster.ranks):
            group.agreement.renounced(old, now)  # whoever starts anew has crashed before
        if self._free(group) and self._answers(frame.sender, now):
            self._propose(name, {**self._with_us(group), frame.sender: None}, now)

    def _on_found(self, frame: FoundFrame, now: int) -> None:
        """Somebody out of view lives: unite with those whom it is with."""
        name = name_of(frame.group)
        group = self._grounds.current(name)
        if (
            group is None
            or frame.sender in group.roster.ranks
            or not self._free(group)
            or not self._answers(frame.sender, now)
        ):
            return
        others = {
            member: frame.group
            for member in frame.members
            if member not in group.roster.ranks and self._answers(member, now)
        }
        self._propose(name, {**others, **self._with_us(group)}, now)

    def _free(self, group: "NewtopGroup") -> bool:
        """Whether we may propose what takes its place."""
        leaves = name_of(group.view.group) in self._leaves
        settled = group.transfer is None and not group.parts and not group.discipline.in_doubt
        return self._procedure is None and settled and not leaves

    def _with_us(self, group: "NewtopGroup") -> dict[ProcessId, GroupId | None]:
        """The members of our view whom nothing speaks against."""
        agreement = group.agreement
        doubtful = agreement.failed.keys() | agreement.suspicions.keys()
        return {member: group.view.group for member in group.view.members if member not in doubtful}

    def _know(self, name: GroupId, processes: tuple[ProcessId, ...]) -> None:
        """Whoever has started anew is not what it was."""
        known = self._known.setdefault(name, [])
        fresh = [each for each in processes if each not in known and each != self._me]
        gone = {old for each in fresh for old in _earlier(each, known)}
        self._known[name] = [*[each for each in known if each not in gone][-_KNOWN_MAX:], *fresh]

    def _spread(self, name: GroupId) -> int:
        """A pause that others do not make at the same time; by chance, as far as a core can (11.2 rule 5)."""
        self._pauses += 1
        return dice(f"{self._me}/{name}/{self._pauses}", 2 * self._pause_ns + 1)


def _members(companies: tuple[Company, ...]) -> set[ProcessId]:
    return {member for company in companies for member in company.members}


def _companies(answers: dict[ProcessId, ReadyFrame]) -> tuple[Company, ...]:
    """Who comes from the same view; those from nowhere are alone."""
    found: dict[object, list[ProcessId]] = {}
    for member, ready in sorted(answers.items()):
        found.setdefault(ready.view or member, []).append(member)
    companies = []
    for members in found.values():
        ready = answers[members[0]]
        companies.append(Company(tuple(members), ready.view, len(ready.members), ready.primary))
    return tuple(sorted(companies))


def _earlier(process: ProcessId, others: "dict[ProcessId, int] | list[ProcessId]") -> list[ProcessId]:
    """Earlier incarnations of it among these."""
    name, incarnation = split_process_id(process)
    parts: Callable[[ProcessId], tuple[str, int]] = split_process_id
    return [other for other in others if parts(other)[0] == name and parts(other)[1] < incarnation]
