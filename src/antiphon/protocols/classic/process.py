"""A process under the classic multicasts: its groups, independent of each other (Notes; docs/spec/multicast.md 1-4).

Implements the contract of `core/contract.py`. A group may be *open*: a process outside knows the members and sends to
them, but delivers nothing. There is no flow control and no packing: a message leaves at the next `drain`.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final, NamedTuple, Protocol

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Effect, Frame
from antiphon.core.timers import Timers
from antiphon.protocols.classic.frames import AnswerFrame, DataFrame, QueryFrame
from antiphon.protocols.classic.ordering.combined import CausalTotal, FifoTotal
from antiphon.protocols.classic.ordering.takeover import TwoPhaseWithTakeover
from antiphon.protocols.classic.relaying.causal import Causal
from antiphon.protocols.classic.relaying.fifo import Fifo
from antiphon.protocols.classic.relaying.reliable import Reliable
from antiphon.protocols.classic.relaying.synchronous import Synchronous
from antiphon.protocols.classic.requests import Requests, RequestTimers
from antiphon.protocols.classic.rules import ADOPTED, Rules
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings
from antiphon.protocols.classic.site import Handlers, Site
from antiphon.types import GroupId, ProcessId

_ALGORITHMS: Final = {"reliable": Reliable, "fifo": Fifo, "causal": Causal}
_TOTAL: Final = {"total": TwoPhaseWithTakeover, "fifo-total": FifoTotal, "causal-total": CausalTotal}
ROUND: Final = "round"
"""The timer of a group with rounds; the other timers are named by the number of a request."""


class Multicast(Protocol):
    """What the algorithms have in common."""

    @property
    def held(self) -> int:
        """Number of messages held."""

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """The application multicasts."""

    @property
    def handlers(self) -> Handlers:
        """The frames of live processes that the algorithm receives."""

    def lost(self) -> None:
        """A process was lost, member or not; the site knows it."""

    def reach(self, now: int) -> None:
        """It is that time by our clock; called before each frame."""

    def settle(self, now: int) -> None:
        """Deliver what was only marked while frames arrived; called by each drain."""


class _Group(NamedTuple):
    site: Site
    multicast: Multicast
    requests: Requests
    handlers: Handlers


class ClassicProcess:
    capabilities: ClassVar = Capabilities(told_of_losses=True, asks=True)
    needs_consumed: ClassVar[bool] = False

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
        """The time at which a request goes to the next member, or a round begins or ends."""
        return self._timers.deadline

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        self._groups[group].multicast.send(payload, label)

    def ask(self, group: GroupId, payload: bytes, answers: str, now: int, label: int = 0) -> int:
        """Send a request to the group; `Answered` follows when enough members have answered."""
        return self._groups[group].requests.ask(payload, answers, now, label)

    def withdraw(self, group: GroupId, request: int, now: int) -> tuple[tuple[ProcessId, bytes], ...]:  # noqa: ARG002
        """End a request; returns the answers so far."""
        return self._groups[group].requests.withdraw(request)

    def is_request(self, frame: Frame) -> bool:
        """Whether the sender of a delivered message waits for answers."""
        return isinstance(frame, DataFrame) and frame.request is not None

    def answer(self, frame: Frame, payload: bytes, now: int) -> None:  # noqa: ARG002
        """Answer the request that this frame brought, as a message or as a query."""
        assert isinstance(frame, DataFrame | QueryFrame)
        self._groups[frame.group].requests.answer(frame, payload)

    def receive(self, frame: Frame, now: int) -> None:
        """Receive a frame, unless its sender is lost; frames of other groups or families are ignored."""
        group = self._groups.get(frame.group)
        if group is None or (frame.sender in self._gone and self._rules.refuses_the_lost):
            return
        handler = group.handlers.get(type(frame))
        if handler is not None:
            group.multicast.reach(now)
            handler(frame)

    def lost(self, process: ProcessId, now: int) -> None:
        """A process is lost for good; all live processes are informed of the same losses in the same order."""
        if process in self._gone:
            return
        self._gone.add(process)
        for group in self._groups.values():
            group.site.lose(process)
            group.multicast.lost()
            group.requests.lost(now)

    def tick(self, now: int) -> None:
        """Send requests whose member has not answered in time to the next member; `drain` handles rounds."""
        for name, timer in self._timers.due(now):
            if timer != ROUND:
                self._groups[name].requests.retry(int(timer), now)

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """No effect: there is no flow control."""
        return False

    def writable(self, ready: bool, now: int) -> None:
        """No effect: there is no packing."""

    def drain(self, now: int) -> list[Effect]:
        """The effects since the last call, in order."""
        for group in self._groups.values():
            group.multicast.settle(now)
        effects = self._effects[:]
        self._effects.clear()  # the sites add to this very list
        return effects

    def unstable(self, group: GroupId) -> int:
        """Number of messages held; 0 for a group that the process is not in."""
        own = self._groups.get(group)
        return own.multicast.held if own is not None else 0

    def algorithm(self, group: GroupId) -> Multicast:
        """The algorithm of a group, for tests."""
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
        multicast = self._multicast(site, plan)
        requests = Requests(site, multicast.send, self._timers, settings.retry_ns)
        handlers: Handlers = {**multicast.handlers, QueryFrame: requests.query, AnswerFrame: requests.answered}
        return _Group(site, multicast, requests, handlers)

    def _multicast(self, site: Site, plan: ClassicGroupPlan) -> Multicast:
        if plan.service in _TOTAL:
            return _TOTAL[plan.service](site, self._rules.clock(plan.first_clock))
        if plan.service == "synchronous":
            return Synchronous(site, self._settings.round_ns, partial(self._timers.set, (site.group, ROUND)))
        return _ALGORITHMS[plan.service](site)
