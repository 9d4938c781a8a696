"""Requests to a group and their answers (Notes: a client and a service; docs/spec/multicast.md 4).

`any`: one member answers, and the state of the service does not change. The request goes to one member after another,
best effort, until one answers. It is no multicast and has no place in the group's order; a member may get it twice.

`first`, `majority`, `all`: the request is a multicast like any other, so all members perform it alike. The modes differ
only in the number of answers that the client waits for. Only live members count: a lost member is not waited for, and
its answer does not replace that of a live one. A second answer of a member is ignored, and so are late answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon.core.effects import Answered, Query
from antiphon.core.timers import Timers
from antiphon.protocols.classic.frames import AnswerFrame, DataFrame, QueryFrame
from antiphon.protocols.classic.settings import ANSWERS
from antiphon.protocols.classic.site import Site
from antiphon.types import GroupId, ProcessId

Multicast = Callable[[bytes, int, int], None]
"""Sends a payload to the group, with its label and request number."""
RequestTimers = Timers[tuple[GroupId, str]]
"""By group and request number: when an unanswered request goes to the next member. A group may also time rounds."""


@dataclass(slots=True)
class _Pending:
    """A request that does not have enough answers yet."""

    answers: str
    payload: bytes = b""
    asked: ProcessId | None = None
    """`any`: the member whose turn it is."""
    attempts: int = 0
    got: dict[ProcessId, bytes] = field(default_factory=dict)


class Requests:
    """The requests of one process to one group, and its answers there."""

    def __init__(self, site: Site, multicast: Multicast, timers: RequestTimers, retry_ns: int) -> None:
        assert retry_ns > 0
        self._site = site
        self._multicast = multicast
        self._timers = timers
        self._retry_ns = retry_ns
        self._count = 0
        self._pending: dict[int, _Pending] = {}

    def ask(self, payload: bytes, answers: str, now: int, label: int) -> int:
        """Send a request; returns its number. Requests of a process to a group count from 0, in all modes."""
        assert answers in ANSWERS
        request, self._count = self._count, self._count + 1
        if answers == "any":
            self._pending[request] = _Pending(answers, payload)
            self._ask_next(request, now)
        else:
            self._pending[request] = _Pending(answers)
            self._multicast(payload, label, request)
        self._conclude(request)  # at once, if no member is left
        return request

    def withdraw(self, request: int) -> tuple[tuple[ProcessId, bytes], ...]:
        """The application no longer waits; returns the answers so far."""
        pending = self._pending.pop(request, None)
        self._timers.set((self._site.group, str(request)), None)
        return () if pending is None else tuple(pending.got.items())

    def query(self, frame: QueryFrame) -> None:
        """A client asks us, as one of the members."""
        if self._site.delivers:
            self._site.effects.append(Query(frame))

    def answer(self, frame: DataFrame | QueryFrame, payload: bytes) -> None:
        """Our application answers. An answer to our own request needs no frame."""
        site, client, request = self._site, frame.sender, frame.request
        if request is None or client in site.gone:
            return
        answer = AnswerFrame(site.group, site.me, request, payload)
        if client == site.me:
            self.answered(answer)
        else:
            site.tell(client, answer)

    def answered(self, frame: AnswerFrame) -> None:
        """A member answers; its first answer counts, while we still wait."""
        pending = self._pending.get(frame.request)
        if pending is not None and frame.sender in self._site.members:
            pending.got.setdefault(frame.sender, frame.payload)
            self._conclude(frame.request)

    def retry(self, request: int, now: int) -> None:
        """The member that we asked has not answered in time."""
        if request in self._pending:
            self._ask_next(request, now)

    def lost(self, now: int) -> None:
        """Count again with the live members; where the lost one was asked, ask the next."""
        for request, pending in list(self._pending.items()):
            for process in self._site.gone & pending.got.keys():
                del pending.got[process]
            if pending.asked in self._site.gone:
                self._ask_next(request, now)
            self._conclude(request)

    def _ask_next(self, request: int, now: int) -> None:
        """Ask members in turn. Different requests begin with different members, so that the load is shared."""
        site, pending = self._site, self._pending[request]
        if not site.members:
            return
        candidates = site.view.members
        pending.asked = chosen = candidates[(request + pending.attempts) % len(candidates)]
        pending.attempts += 1
        frame = QueryFrame(site.group, site.me, request, pending.payload)
        if chosen == site.me:
            self.query(frame)
        else:
            site.tell(chosen, frame)
        self._timers.set((site.group, str(request)), now + self._retry_ns)

    def _conclude(self, request: int) -> None:
        """Tell the application when there are enough answers."""
        pending, live = self._pending[request], len(self._site.members)
        needed = {"majority": live // 2 + 1, "all": live}.get(pending.answers, 1)
        if len(pending.got) < min(needed, live):
            return
        del self._pending[request]
        if pending.answers == "any":
            self._timers.set((self._site.group, str(request)), None)
        self._site.effects.append(Answered(self._site.group, request, tuple(pending.got.items())))
