"""Join and merge (docs/spec/newtop.md 11.2 rules 3 and 5): how processes find the groups that they want to be in."""

from typing import TYPE_CHECKING

from antiphon.protocols.newtop.formation.acquaintances import Acquaintances, earlier, is_succeeded
from antiphon.protocols.newtop.formation.attempts import Attempts
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.intentions import Intentions, Wish
from antiphon.protocols.newtop.formation.procedure import Stage
from antiphon.protocols.newtop.formation.steps import Steps
from antiphon.protocols.newtop.formation.terms import Terms
from antiphon.protocols.newtop.frames import FoundFrame, ProbeFrame
from antiphon.types import GroupId, ProcessId, name_of

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


class Search:
    """Invariant: a process proposes only while it takes part in nothing else."""

    __slots__ = (
        "_acquaintances",
        "_attempts",
        "_doubts_restarts",
        "_host",
        "_intentions",
        "_me",
        "_pause_ns",
        "_stage",
        "_steps",
        "_terms",
    )

    def __init__(
        self,
        me: ProcessId,
        pause_ns: int,
        host: FormationHost,
        stage: Stage,
        steps: Steps,
        attempts: Attempts,
        intentions: Intentions,
        acquaintances: Acquaintances,
        terms: Terms,
        *,
        doubts_restarts: bool,
    ) -> None:
        self._me = me
        self._pause_ns = pause_ns
        self._host = host
        self._stage = stage
        self._steps = steps
        self._attempts = attempts
        self._intentions = intentions
        self._acquaintances = acquaintances
        self._terms = terms
        self._doubts_restarts = doubts_restarts

    def attempt(self, name: GroupId, wish: Wish, now: int) -> None:
        """Ask the next contact; or propose."""
        wish.tried(now, self._pause_ns, self._acquaintances.spread(name))
        if self._host.current(name) is not None:
            self._intentions.fulfilled(name)
        elif not wish.forms and wish.processes:
            self._probe(name, wish.contact, joins=True)
        elif wish.forms and self._stage.procedure is None:
            self._steps.propose(name, dict.fromkeys({*wish.processes, self._me}), now)

    def merge(self, name: GroupId, others: tuple[ProcessId, ...]) -> None:
        """Probe these processes at once."""
        self._acquaintances.hear_of(name, others)
        for other in others:
            self._probe(name, other, joins=False)

    def look_around(self, name: GroupId, now: int) -> None:
        """Probe one lost process of the group."""
        self._acquaintances.look_later(name, now)
        group = self._host.current(name)
        lost = None if group is None else self._acquaintances.lost(name, group.roster.ranks)
        if lost is not None:
            self._probe(name, lost, joins=False)

    def on_probe(self, frame: ProbeFrame, now: int) -> None:
        """Answer; or propose the group that we are in and the joiner."""
        name = name_of(frame.group)
        group = self._host.current(name)
        if group is None or self._terms.refuses(frame):
            return
        if not frame.joins:
            self._acquaintances.hear_of(name, (frame.sender,))
            self._host.transmit(FoundFrame(group.view.group, self._me, group.view.members), frame.sender)
            return
        for old in earlier(frame.sender, group.roster.ranks):
            if not self._may_live(group, old):
                group.agreement.renounced(old, now)  # a restarted process has crashed before
        if (
            self._free(group)
            and self._attempts.answers(frame.sender, now)
            and self._steps.may_stop_us(frame.sender, name, now)
        ):
            self._steps.propose(name, {**self._with_us(group), frame.sender: None}, now)

    def on_found(self, frame: FoundFrame, now: int) -> None:
        """A process outside our view is alive: propose to merge with its view."""
        name = name_of(frame.group)
        group = self._host.current(name)
        if group is None or frame.sender in group.roster.ranks or not self._free(group):
            return
        self._attempts.require(frame.group, now)
        if is_succeeded(self._me, frame.members):
            return  # two processes with our name run: no group can have both
        if not self._attempts.answers(frame.sender, now) or not self._steps.may_stop_us(frame.sender, name, now):
            return
        others = {
            member: frame.group
            for member in frame.members
            if member not in group.roster.ranks and self._attempts.answers(member, now)
        }
        self._steps.propose(name, {**others, **self._with_us(group)}, now)

    def _probe(self, name: GroupId, process: ProcessId, *, joins: bool) -> None:
        self._host.transmit(ProbeFrame(name, self._me, joins, self._terms.of(name)), process)

    def _may_live(self, group: "NewtopGroup", old: ProcessId) -> bool:
        """Whether an earlier incarnation may run beside the later one: then it is proposed too, and votes no.

        If it has crashed, it does not vote and is suspected. A broken connection is taken for a crash.
        """
        return self._doubts_restarts and not group.suspector.is_severed(group.roster.ranks[old])

    def _free(self, group: "NewtopGroup") -> bool:
        """Whether we may propose a successor of this group."""
        leaves = name_of(group.view.group) in self._intentions.leaves
        settled = group.transfer is None and not group.parts and not group.discipline.in_doubt
        return self._stage.procedure is None and settled and not leaves

    def _with_us(self, group: "NewtopGroup") -> dict[ProcessId, GroupId | None]:
        """The members of our view that are neither suspected nor failed."""
        agreement = group.agreement
        doubtful = agreement.failed.keys() | agreement.suspicions.keys()
        return {member: group.view.group for member in group.view.members if member not in doubtful}
