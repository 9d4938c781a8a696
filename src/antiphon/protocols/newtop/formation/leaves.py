"""Leaving a group (docs/spec/newtop.md 11.2 rule 2): when all members have what we sent, or after a timeout."""

from antiphon.protocols.newtop.formation.acquaintances import Acquaintances
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.procedure import Leave, Stage
from antiphon.protocols.newtop.formation.steps import Steps
from antiphon.protocols.newtop.frames import WantFrame
from antiphon.protocols.newtop.gate import Reason
from antiphon.types import GroupId, ProcessId, name_of


class Leaves:
    """Invariant: while we leave a group, nothing above the number that must be stable is delivered."""

    __slots__ = ("_acquaintances", "_host", "_intentions", "_me", "_stage", "_steps")

    def __init__(
        self,
        me: ProcessId,
        host: FormationHost,
        stage: Stage,
        steps: Steps,
        intentions: Intentions,
        acquaintances: Acquaintances,
    ) -> None:
        self._me = me
        self._host = host
        self._stage = stage
        self._steps = steps
        self._intentions = intentions
        self._acquaintances = acquaintances

    def begin(self, now: int) -> bool:
        """When the application's messages have left: stop delivering, and ask all members to complete what was sent."""
        for name, until in [*self._intentions.leaves.items()]:
            group = self._host.current(name)
            if group is None:
                self.go(name, now, graceful=True)
                return True
            if group.outgoing.outbox.waiting or group.discipline.awaits_return or group.transfer is not None:
                continue
            if self._host.votes(group):
                continue  # a member that knows the outcome can pass its vote on (15 rule 7)
            number = self._host.counter.value
            self._stage.begin(Leave(group, number, until), number)
            group.gate.hold(Reason.STOPPED)
            self._host.reach(group, number, now)
            group.leaving.wait_for(number, now)
            group.multicast(WantFrame(group.view.group, self._me, group.numbers.sent, number), now)
            return True
        return False

    def go_on(self, leave: Leave, now: int) -> bool:
        """Check stability; True if everything is stable and we have left."""
        if not self._host.passed(leave.group, leave.number) or leave.group.progress.stable_block < leave.number:
            return False
        self.go(name_of(leave.group.view.group), now, graceful=True)
        return True

    def go(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """We are neither in the group nor joining it."""
        procedure, group = self._stage.procedure, self._host.current(name)
        formation = self._stage.formation
        if formation is not None and name_of(formation.group) == name:
            self._steps.abandon(formation, now)
        if isinstance(procedure, Leave) and procedure.group is group:
            self._stage.end()
        self._intentions.gone(name)
        self._acquaintances.forget(name)
        self._host.depart(name, now, graceful=graceful)
        self._host.stir()
