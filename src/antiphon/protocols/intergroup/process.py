"""A process under InterGroup: its groups, each with its own part in it, and one clock for all of them (Berket00 §4.3).

Offers the contract of `core/contract.py`. `draw` is where chance comes in: the cores have none of their own.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, get_args

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame, Missing
from antiphon.core.timers import Timers
from antiphon.protocols.intergroup.bystander import Bystander
from antiphon.protocols.intergroup.follower import Follower
from antiphon.protocols.intergroup.framer import Framer
from antiphon.protocols.intergroup.frames import InterGroupFrame
from antiphon.protocols.intergroup.listener import Listener
from antiphon.protocols.intergroup.party import Part, Party
from antiphon.protocols.intergroup.requests import Draw, Ticket
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.sender import Sender
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings, Service
from antiphon.types import GroupId, ProcessId


class InterGroupProcess:
    """One participant, in its groups from the start or not yet."""

    capabilities: ClassVar = Capabilities(joins=True, leaves_in_order=True, names_messages=True)
    heeds_application: ClassVar[bool] = True

    def __init__(
        self,
        me: ProcessId,
        groups: Mapping[GroupId, InterGroupPlan],
        settings: InterGroupSettings,
        draw: Draw,
        rules: Rules = ADOPTED,
    ) -> None:
        self.deadline: int | None = None
        """When time alone makes something due; a plain attribute, for it is read after every event."""
        clock = rules.clock(physical=True)
        self._parties: dict[GroupId, Party] = {
            name: _party(me, plan)(Part(me, plan, settings, clock, draw, rules)) for name, plan in groups.items()
        }
        self._absent = [name for name, plan in groups.items() if plan.present]
        """Groups that it is in from the start: that is when time is first known."""
        self._stirred = dict.fromkeys(groups)
        self._timers: Timers[tuple[GroupId]] = Timers()

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0, name: bytes = b"") -> None:  # noqa: ARG002
        """Keep a message until `drain` lets it leave; a name begins with a container, as in `bids/7`."""
        assert isinstance(self._parties[group], Sender), "who only receives has nothing to send"
        self._stir(group).outbox.append((payload, label, name))

    def receive(self, frame: Frame, now: int) -> None:
        """Take a frame; those of other groups and families are not ours."""
        if frame.group in self._parties and isinstance(frame, get_args(InterGroupFrame)):
            self._start(now)
            self._stir(frame.group).receive(frame, now)

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        for (name,) in self._timers.due(now):
            self._stir(name)
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """What the application has taken may be acknowledged."""
        self._stir(group).consumed(position)
        return True

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages wait; all else leaves, others need it."""
        for name in self._parties:
            self._stir(name).writable = ready

    def request(self, effect: Missing, now: int) -> None:
        """The application, which frames its data, wants messages that it lacks."""
        party = self._stir(effect.group)
        assert isinstance(party, Framer), "others are given what they miss, or do not want it"
        for place in effect.places:
            party.request(Ticket(effect.sender, place, effect.container), now)

    def join(self, group: GroupId, now: int) -> None:
        """Be in a group from now on."""
        self._stir(group).join(now)

    def leave(self, group: GroupId, now: int) -> None:  # noqa: ARG002
        """Be in it no more."""
        self._stir(group).leave()

    @property
    def unfinished(self) -> bool:
        """Whether it is on its way into some group, or messages wait to leave."""
        return any(party.unfinished for party in self._parties.values())

    def drain(self, now: int) -> list[Effect]:
        """What follows in every group that something has happened in."""
        self._start(now)
        effects: list[Effect] = []
        for name in self._stirred:
            party = self._parties[name]
            party.settle(now, effects)
            self._timers.set((name,), party.deadline)
        self._stirred.clear()
        self.deadline = self._timers.deadline
        return effects

    def unstable(self, group: GroupId) -> int:
        """How many messages are held because somebody may lack them."""
        return self._parties[group].unstable

    def _start(self, now: int) -> None:
        for name in self._absent:
            self._parties[name].join(now)
        self._absent.clear()

    def _stir(self, group: GroupId) -> Party:
        self._stirred[group] = None
        return self._parties[group]


def _party(me: ProcessId, plan: InterGroupPlan) -> type[Party]:
    if me in plan.view.members:
        return Sender
    return _RECEIVERS.get(plan.service, Bystander)


_RECEIVERS: Final[Mapping[Service, type[Party]]] = {"total": Follower, "fifo": Listener, "framed": Framer}
"""Who only receives, by what it wants; others take what comes."""
