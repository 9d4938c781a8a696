"""A process under an acknowledgment protocol: its groups, which have nothing to do with one another.

Offers the contract of `core/contract.py`, and beyond it what comes from outside the group: who is lost, and when this
process joins and leaves.
"""

from collections.abc import Mapping
from typing import ClassVar

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame
from antiphon.core.timers import Timers
from antiphon.protocols.acks.frames import AcksFrame
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.rules import ADOPTED, Rules
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings, sends
from antiphon.types import GroupId, ProcessId


class AcksProcess:
    """One participant, in its groups from the start or not yet."""

    capabilities: ClassVar = Capabilities(told_of_losses=True, joins=True, counts_costs=True)
    heeds_application: ClassVar[bool] = False
    unfinished: ClassVar[bool] = False

    def __init__(
        self, me: ProcessId, groups: Mapping[GroupId, AcksGroupPlan], settings: AcksSettings, rules: Rules = ADOPTED
    ) -> None:
        self.deadline: int | None = None
        """When time alone makes something due; a plain attribute, for it is read after every event."""
        self._groups: dict[GroupId, AcksGroup] = {
            name: rules.group(me, name, plan, settings, rules) for name, plan in groups.items()
        }
        self._sends = {name: sends(plan.roles[me]) for name, plan in groups.items()}
        self._lost: set[ProcessId] = set()
        self._stirred = dict(self._groups)
        """Groups in which something may follow from what was fed since the last drain."""
        self._timers: Timers[tuple[GroupId]] = Timers()

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` stamps it; outside the group it waits for the next session."""
        assert self._sends[group], "who only receives has nothing to send"
        self._stir(group).outbox.append((payload, label))

    def receive(self, frame: Frame, now: int) -> None:  # noqa: ARG002
        """Take a frame; those of other groups and families, and of processes that are gone, are not ours."""
        if frame.group in self._groups and isinstance(frame, AcksFrame) and frame.sender not in self._lost:
            self._stir(frame.group).receive(frame)

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        for (name,) in self._timers.due(now):
            self._stir(name).armed = None
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """Of no consequence: a message is received when it is here, taken or not."""
        return False

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages wait; nulls and acknowledgments leave, others need them."""
        for name in self._groups:
            self._stir(name).writable = ready

    def lost(self, process: ProcessId, now: int) -> None:  # noqa: ARG002
        """Both channels to a process are broken for good; what is still under way from it no longer counts."""
        self._lost.add(process)
        for name in self._groups:
            self._stir(name).drop(process)

    def join(self, group: GroupId, now: int) -> None:  # noqa: ARG002
        """Connect with everybody in the group; nothing, if we are in it."""
        self._stir(group).join()

    def leave(self, group: GroupId, now: int) -> None:
        """Disconnect from everybody; nothing, if we are not in it."""
        self._stir(group).leave(now)

    def drain(self, now: int) -> list[Effect]:
        """What follows in every group that something has happened in."""
        effects: list[Effect] = []
        for name, group in self._stirred.items():
            group.settle(now, effects)
            if group.deadline != group.armed:
                group.armed = group.deadline
                self._timers.set((name,), group.armed)
                self.deadline = self._timers.deadline
        self._stirred.clear()
        return effects

    def unstable(self, group: GroupId) -> int:
        """How many messages of our own some receiver may still lack."""
        return self._groups[group].unstable

    def costs(self) -> Mapping[str, int]:
        """What acknowledging has cost so far, in entries written, compared or walked."""
        protocols = [group.protocol for group in self._groups.values()]
        return {
            "receiver_work": sum(protocol.receiver_work for protocol in protocols),
            "sender_work": sum(protocol.sender_work for protocol in protocols),
        }

    def _stir(self, group: GroupId) -> AcksGroup:
        self._stirred[group] = own = self._groups[group]
        return own
