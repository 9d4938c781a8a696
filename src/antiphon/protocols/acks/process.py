"""A process under an acknowledgment protocol: its groups, which are independent of one another.

Implements the contract of `core/contract.py`.
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
    """One participant; it is in a group from the start, or joins it later."""

    capabilities: ClassVar = Capabilities(told_of_losses=True, joins=True, counts_costs=True)
    needs_consumed: ClassVar[bool] = False
    unfinished: ClassVar[bool] = False

    def __init__(
        self, me: ProcessId, groups: Mapping[GroupId, AcksGroupPlan], settings: AcksSettings, rules: Rules = ADOPTED
    ) -> None:
        self.deadline: int | None = None
        """A plain attribute, because drivers read it after every event."""
        self._groups: dict[GroupId, AcksGroup] = {
            name: rules.group(me, name, plan, settings, rules) for name, plan in groups.items()
        }
        self._sends = {name: sends(plan.roles[me]) for name, plan in groups.items()}
        self._lost: set[ProcessId] = set()
        self._touched = dict(self._groups)
        """The groups in which something has happened since the last `drain`, in order."""
        self._timers: Timers[tuple[GroupId]] = Timers()

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Queue a message until `drain` stamps it; outside the group it waits for the next session."""
        assert self._sends[group], "a receiver cannot send"
        self._touch(group).send(payload, label)

    def receive(self, frame: Frame, now: int) -> None:  # noqa: ARG002
        """Receive a frame; those of other groups and families, and of lost processes, are ignored."""
        if frame.group in self._groups and isinstance(frame, AcksFrame) and frame.sender not in self._lost:
            self._touch(frame.group).receive(frame)

    def tick(self, now: int) -> None:
        """Note which groups are due; `drain` does the rest."""
        for (name,) in self._timers.due(now):
            self._touch(name)
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """No effect: a message counts as received before the application consumes it."""
        return False

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages wait; nulls and acknowledgments leave: others need them."""
        for name in self._groups:
            self._touch(name).set_writable(ready)

    def lost(self, process: ProcessId, now: int) -> None:  # noqa: ARG002
        """Both channels to a process are broken for good; frames of it that still arrive do not count."""
        self._lost.add(process)
        for name in self._groups:
            self._touch(name).drop(process)

    def join(self, group: GroupId, now: int) -> None:  # noqa: ARG002
        """Connect with the processes in the group; no effect on a member."""
        self._touch(group).join()

    def leave(self, group: GroupId, now: int) -> None:
        """Disconnect from all processes; no effect outside the group."""
        self._touch(group).leave(now)

    def drain(self, now: int) -> list[Effect]:
        """The effects in every group in which something has happened."""
        effects: list[Effect] = []
        for name, group in self._touched.items():
            group.settle(now, effects)
            self._timers.set((name,), group.deadline)
        self._touched.clear()
        self.deadline = self._timers.deadline
        return effects

    def unstable(self, group: GroupId) -> int:
        """Number of our messages that some receiver may lack."""
        return self._groups[group].unstable

    def costs(self) -> Mapping[str, int]:
        """What acknowledging has cost so far, in entries written, compared or walked."""
        protocols = [group.protocol for group in self._groups.values()]
        return {
            "receiver_work": sum(protocol.receiver_work for protocol in protocols),
            "sender_work": sum(protocol.sender_work for protocol in protocols),
        }

    def _touch(self, group: GroupId) -> AcksGroup:
        self._touched[group] = own = self._groups[group]
        return own
