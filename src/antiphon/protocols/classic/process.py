"""A process under the classic multicasts: its groups, independent of each other (Notes; docs/spec/multicast.md 1-4).

Offers the contract of `core/contract.py`. A group may be *open*: a process that stands outside it knows its members and
sends to them, but delivers nothing. There is no flow control and no packing: a message leaves at the next `drain`.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple, Protocol

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame
from antiphon.core.timers import Timers
from antiphon.protocols.classic.causal import Causal
from antiphon.protocols.classic.fifo import Fifo
from antiphon.protocols.classic.frames import AnswerFrame, ClassicFrame, DataFrame, QueryFrame
from antiphon.protocols.classic.reliable import Reliable
from antiphon.protocols.classic.requests import Requests, RequestTimers
from antiphon.protocols.classic.rules import ADOPTED, Rules
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings
from antiphon.protocols.classic.site import Site
from antiphon.protocols.classic.takeover import TwoPhaseWithTakeover
from antiphon.types import GroupId, ProcessId

_ALGORITHMS: Final = {"reliable": Reliable, "fifo": Fifo, "causal": Causal}


class Multicast(Protocol):
    """What the four algorithms have in common."""

    @property
    def held(self) -> int:
        """How many messages are kept."""

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """The application multicasts."""

    def receive(self, frame: ClassicFrame) -> None:
        """A frame came from a process that lives."""

    def lost(self) -> None:
        """A process was lost, member or not; the site knows which."""

    def settle(self) -> None:
        """Deliver what was only marked while frames came in."""


class _Group(NamedTuple):
    site: Site
    multicast: Multicast
    requests: Requests


class ClassicProcess:
    """One process, from its first views on."""

    capabilities: ClassVar = Capabilities(told_of_losses=True, asks=True)
    heeds_application: ClassVar[bool] = False

    def __init__(
        self,
        me: ProcessId,
        groups: Mapping[GroupId, ClassicGroupPlan],
        settings: ClassicSettings,
        rules: Rules = ADOPTED,
    ) -> None:
        self._me = me
        self._settings, self._rules = settings, rules
        self._effects: list[Effect] = []
        self._timers: RequestTimers = Timers()
        self._gone: set[ProcessId] = set()
        self._groups = {name: self._group(plan) for name, plan in groups.items()}

    @property
    def deadline(self) -> int | None:
        """When a request goes to the next member."""
        return self._timers.deadline

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Multicast a message."""
        self._groups[group].multicast.send(payload, label)

    def ask(self, group: GroupId, payload: bytes, answers: str, now: int, label: int = 0) -> None:
        """Ask the group; `Answered` follows when so many members have answered."""
        self._groups[group].requests.ask(payload, answers, now, label)

    def answer(self, frame: Frame, payload: bytes, now: int) -> None:  # noqa: ARG002
        """Answer the request that was delivered, or handed over as a query, with this frame."""
        assert isinstance(frame, DataFrame | QueryFrame)
        self._groups[frame.group].requests.answer(frame, payload)

    def receive(self, frame: Frame, now: int) -> None:  # noqa: ARG002
        """Take a frame, unless whoever transmitted it is lost; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is None or (frame.sender in self._gone and self._rules.refuses_the_lost):
            return
        if isinstance(frame, QueryFrame):
            group.requests.query(frame)
        elif isinstance(frame, AnswerFrame):
            group.requests.answered(frame)
        elif isinstance(frame, ClassicFrame):
            group.multicast.receive(frame)

    def lost(self, process: ProcessId, now: int) -> None:
        """That process is gone for good; everybody is told of the same ones in the same order."""
        if process in self._gone:
            return
        self._gone.add(process)
        for group in self._groups.values():
            group.site.lose(process)
            group.multicast.lost()
            group.requests.lost(now)

    def tick(self, now: int) -> None:
        """Time has passed: who was asked and has not answered is not waited for alone."""
        for name, request in self._timers.due(now):
            self._groups[name].requests.retry(int(request), now)

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """There is no flow control: nobody counts what applications take."""
        return False

    def writable(self, ready: bool, now: int) -> None:
        """There is no packing: nothing gathers."""

    def drain(self, now: int) -> list[Effect]:  # noqa: ARG002
        """Everything to do, in order."""
        for group in self._groups.values():
            group.multicast.settle()
        effects = self._effects[:]
        self._effects.clear()  # the groups add to this very list
        return effects

    def unstable(self, group: GroupId) -> int:
        """Messages held; none of a group we are not in."""
        own = self._groups.get(group)
        return own.multicast.held if own is not None else 0

    def algorithm(self, group: GroupId) -> Multicast:
        """The algorithm at work in a group, for those who look on."""
        return self._groups[group].multicast

    def _group(self, plan: ClassicGroupPlan) -> _Group:
        settings = self._settings
        site = Site(
            self._me,
            plan.view,
            delivers=plan.delivers,
            datagrams=settings.datagrams,
            gone=self._gone,
            effects=self._effects,
        )
        multicast: Multicast
        if plan.service == "total":
            multicast = TwoPhaseWithTakeover(site, self._rules.clock(plan.first_clock))
        else:
            multicast = _ALGORITHMS[plan.service](site)
        return _Group(site, multicast, Requests(site, multicast.send, self._timers, settings.retry_ns))
