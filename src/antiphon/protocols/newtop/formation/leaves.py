"""Leaving a group (docs/spec/newtop.md 11.2 rule 2): when all have what we sent, or too long has passed."""

from antiphon.protocols.newtop.formation.acquaintances import Acquaintances
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.procedure import Leave, Stage
from antiphon.protocols.newtop.formation.steps import Grounds, Steps
from antiphon.protocols.newtop.frames import WantFrame
from antiphon.protocols.newtop.gate import Reason
from antiphon.types import GroupId, ProcessId, name_of


class Leaves:
    """Invariant: while we leave a group, nothing above the number that must be stable is delivered."""

    __slots__ = ("_acquaintances", "_grounds", "_intentions", "_me", "_stage", "_steps")

    def __init__(
        self,
        me: ProcessId,
        grounds: Grounds,
        stage: Stage,
        steps: Steps,
        intentions: Intentions,
        acquaintances: Acquaintances,
    ) -> None:
        self._me = me
        self._grounds = grounds
        self._stage = stage
        self._steps = steps
        self._intentions = intentions
        self._acquaintances = acquaintances

    def begin(self, now: int) -> bool:
        """Once the application's messages have left: stop delivering, and ask all to complete what there is."""
        for name, until in [*self._intentions.leaves.items()]:
            group = self._grounds.current(name)
            if group is None:
                self.go(name, now, graceful=True)
                return True
            if group.outgoing.outbox.waiting or group.discipline.awaits_return or group.transfer is not None:
                continue
            number = self._grounds.counter.value
            self._stage.begin(Leave(group, number, until), number)
            group.gate.hold(Reason.STOPPED)
            self._grounds.reach(number, now)
            group.leaving.wait_for(number, now)
            group.multicast(WantFrame(group.view.group, self._me, group.numbers.sent, number), now)
            return True
        return False

    def go_on(self, leave: Leave, now: int) -> bool:
        """Something may have become stable; True if all of it has, and we are gone."""
        if not self._grounds.passed(leave.number) or leave.group.progress.stable_block < leave.number:
            return False
        self.go(name_of(leave.group.view.group), now, graceful=True)
        return True

    def go(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """We are not in the group any more, nor on our way into it."""
        procedure, group = self._stage.procedure, self._grounds.current(name)
        formation = self._stage.formation
        if formation is not None and name_of(formation.group) == name:
            self._steps.abandon(formation)
        if isinstance(procedure, Leave) and procedure.group is group:
            self._stage.end()
        self._intentions.gone(name)
        self._acquaintances.forget(name)
        self._grounds.depart(name, now, graceful=graceful)
        self._grounds.stir()
