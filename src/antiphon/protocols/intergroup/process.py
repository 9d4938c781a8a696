"""A process under InterGroup: a member of each of its groups, and one clock for all of them (Berket00 §4.3).

Implements the contract of `core/contract.py`. The cores have no randomness of their own: it comes in through `draw`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, get_args

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame, Missing
from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.frames import InterGroupFrame
from antiphon.protocols.intergroup.member import GroupMember
from antiphon.protocols.intergroup.membership.states import Standing
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import GroupId, ProcessId

_FRAMES: Final = get_args(InterGroupFrame)


class InterGroupProcess:
    """One participant; it is in a group from the start, or joins it later."""

    capabilities: ClassVar = Capabilities(joins=True, leaves_in_order=True, names_messages=True, changes_senders=True)
    needs_consumed: ClassVar[bool] = True

    def __init__(
        self,
        me: ProcessId,
        groups: Mapping[GroupId, InterGroupPlan],
        settings: InterGroupSettings,
        draw: Draw,
        rules: Rules = ADOPTED,
    ) -> None:
        self.deadline: int | None = None
        """A plain attribute, because drivers read it after every event."""
        clock = rules.clock(physical=True)
        self._members: dict[GroupId, GroupMember] = {
            name: GroupMember(MemberContext(me, plan, settings, clock, draw, rules)) for name, plan in groups.items()
        }
        self._to_join = [name for name, plan in groups.items() if plan.present]
        """The groups that the process is in from the start; it joins at the first input, which tells the time."""
        self._touched = dict.fromkeys(groups)
        """The groups in which something has happened since the last `drain`, in order."""
        self._timers: Timers[tuple[GroupId]] = Timers()

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0, name: bytes = b"") -> None:
        """Queue a message until `drain` transmits it; a name begins with a container, as in `bids/7`."""
        self._touch(group).send(payload, label, name, now)

    def receive(self, frame: Frame, now: int) -> None:
        """Receive a frame; those of other groups and families are ignored."""
        if frame.group in self._members and isinstance(frame, _FRAMES):
            self._start(now)
            self._touch(frame.group).receive(frame, now)

    def tick(self, now: int) -> None:
        """Note which groups are due; `drain` does the rest."""
        for (name,) in self._timers.due(now):
            self._touch(name)
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """The application has consumed messages, which may now be acknowledged."""
        self._touch(group).consumed(position)
        return True

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages wait. Everything else leaves, because others need it."""
        for name in self._members:
            self._touch(name).set_writable(ready)

    def request(self, effect: Missing, now: int) -> None:
        """The application of the framed service requests messages that it lacks."""
        member = self._touch(effect.group)
        for place in effect.places:
            member.request(Ticket(effect.sender, place, effect.container), now)

    def join(self, group: GroupId, now: int) -> None:
        self._touch(group).join(now)

    def leave(self, group: GroupId, now: int) -> None:  # noqa: ARG002
        self._touch(group).leave()

    def promote(self, group: GroupId, now: int) -> None:
        self._touch(group).promote(now)

    def demote(self, group: GroupId, now: int) -> None:  # noqa: ARG002
        self._touch(group).demote()

    def suspect(self, process: ProcessId, now: int) -> None:
        for name in self._members:
            self._touch(name).suspect(process, now)

    def standing(self, group: GroupId) -> Standing:
        """The state of the process in that group, for tests."""
        return self._members[group].standing

    @property
    def unfinished(self) -> bool:
        """True if it still joins some group, or messages wait to be transmitted."""
        return any(member.unfinished for member in self._members.values())

    def drain(self, now: int) -> list[Effect]:
        """The effects in every group in which something has happened."""
        self._start(now)
        effects: list[Effect] = []
        for name in self._touched:
            member = self._members[name]
            member.settle(now, effects)
            self._timers.set((name,), member.deadline)
        self._touched.clear()
        self.deadline = self._timers.deadline
        return effects

    def unstable(self, group: GroupId) -> int:
        return self._members[group].unstable

    def _start(self, now: int) -> None:
        for name in self._to_join:
            self._members[name].join(now)
        self._to_join.clear()

    def _touch(self, group: GroupId) -> GroupMember:
        self._touched[group] = None
        return self._members[group]
