"""Requests and answers of one process, in all its groups (docs/spec/newtop.md 16).

Requests are known by the name of the group, so they outlive formations and merges. A request ends with its answers, or
because too few members are left, or because we leave the group; deadlines belong to the application.
"""

from collections import defaultdict
from typing import Final

from antiphon.core.effects import Answered, Channel, Deliver, Effect, InstallView, Query, Transmit, Unanswered
from antiphon.protocols.newtop.asking.queries import Queries
from antiphon.protocols.newtop.asking.replies import Replies
from antiphon.protocols.newtop.asking.requests import Request, Requests
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.frames import AnsweredFrame, AnswerFrame, Ask, AskingFrame, BlockFrame, QueryFrame
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, name_of

_RETRY_NS: Final = 100_000_000
"""Where members are never suspected: the time after which a request of mode `any` goes to the next member."""


class Asking:
    """Invariant: a request has one place, among the requests or among the queries, until it ends."""

    __slots__ = (
        "_channel",
        "_counts",
        "_early",
        "_groups",
        "_held_back",
        "_me",
        "_queries",
        "_replies",
        "_requests",
        "_views",
        "at_changed",
    )

    def __init__(
        self, me: ProcessId, groups: Groups, early: list[Effect], settings: NewtopSettings, held_back: HeldBack
    ) -> None:
        self._me = me
        self._groups = groups
        self._early = early
        self._held_back = held_back
        held_back.tell(self.shown)
        self._channel = Channel.DATAGRAM if settings.datagrams else Channel.STREAM
        self._counts: defaultdict[GroupId, int] = defaultdict(int)
        self._requests = Requests()
        self._views: dict[GroupId, View] = {}
        """By name, the view at the application's place in the order. A view that it never gets counts for nothing."""
        self._queries = Queries(settings.suspect_after_ns or _RETRY_NS)
        self._replies = Replies(settings.repair_ns, settings.repair_max_ns) if settings.datagrams else None
        self.at_changed = False
        """Whether `at` may have changed since it was read; a plain attribute, because every drain reads it."""

    @property
    def at(self) -> int | None:
        """When `tick` is due."""
        self.at_changed = False
        times = (self._queries.at, None if self._replies is None else self._replies.at)
        return min((time for time in times if time is not None), default=None)

    # Asking

    def ask(self, name: GroupId, payload: bytes, mode: str, now: int, label: int) -> int:
        """Send a request; returns its number."""
        number = self._counts[name]
        self._counts[name] = number + 1
        if mode == "any":
            self._queries.add(name, number, payload)
            self._ask_next(name, number, now)
        else:
            self._requests.add(name, number, Request(mode, label))
            self._send(name, payload, label, Ask(number))
        return number

    def withdraw(self, name: GroupId, number: int) -> tuple[tuple[ProcessId, bytes], ...]:
        """Our application no longer waits; returns the answers so far."""
        self._queries.remove(name, number)
        request = self._requests.remove(name, number)
        return () if request is None else request.answers

    def left(self, name: GroupId) -> None:
        """We leave the group: no request to it can end otherwise."""
        for number in [*self._requests.of(name), *self._queries.of(name)]:
            request = self._requests.find(name, number)
            label = None if request is None else request.label
            self._early.append(Unanswered(name, number, "left", self.withdraw(name, number), label))

    def _ask_next(self, name: GroupId, number: int, now: int) -> None:
        group = self._groups.names.get(name)
        if group is None:
            return  # we are joining: `entered` follows
        view = group.view
        member, payload = self._queries.next(name, number, view, now)
        if member == self._me and len(view.members) > 1 and self._held_back.delays_queries(view.group):
            member, payload = self._queries.next(name, number, view, now)  # our application has no state yet
        self.at_changed = True
        frame = QueryFrame(view.group, self._me, number, payload)
        if member == self._me:
            self._held_back.put_query(Query(frame), self._early)
        else:
            self._transmit(frame, member)

    # Answering

    def answer(self, frame: BlockFrame | QueryFrame, payload: bytes, now: int) -> None:
        """Our application answers, outside the order. There is no answer to a process that is not in our view."""
        name, asker, number = _request_of(frame)
        group = self._groups.names.get(name)
        if group is None or asker not in group.view.ranks:
            return
        if asker == self._me:
            self._take(name, number, self._me, payload, self._early)
            return
        answer, key = AnswerFrame(group.view.group, self._me, number, payload), (name, asker, number)
        if self._replies is not None:
            if key in self._replies:
                return  # a second answer must not arrive instead of the first
            self._replies.put(key, answer, now)
            self.at_changed = True
        self._transmit(answer, asker)

    def answer_in_order(self, frame: BlockFrame | QueryFrame, payload: bytes, label: int) -> None:
        """Our application answers with a message to the whole group."""
        name, asker, number = _request_of(frame)
        self._send(name, payload, label, Ask(number, asker))

    def _send(self, name: GroupId, payload: bytes, label: int, ask: Ask) -> None:
        group = self._groups.names.get(name)
        if group is None:
            self._groups.send_early(name, payload, label, ask)
            return
        self._groups.stir(group)
        group.outgoing.outbox.put(payload, label, ask)

    # What happens

    def receive(self, frame: AskingFrame, now: int) -> None:  # noqa: ARG002
        """A frame outside the order. Its number changes nothing unless it is that of an open request of ours."""
        name = name_of(frame.group)
        group = self._groups.names.get(name)
        if isinstance(frame, QueryFrame):
            if group is not None and frame.sender in group.view.ranks:
                self._held_back.put_query(Query(frame), self._early)
        elif isinstance(frame, AnswerFrame):
            if self._replies is not None:
                self._transmit(AnsweredFrame(frame.group, self._me, frame.request), frame.sender)
            self._take(name, frame.request, frame.sender, frame.payload, self._early)
        elif self._replies is not None:
            self._replies.drop((name, frame.sender, frame.request))

    def shown(self, effect: Effect, effects: list[Effect]) -> None:
        """The application gets this effect: a view, a request or an answer may end requests."""
        if isinstance(effect, InstallView):
            self._count_again(effect.view, effects)
        elif isinstance(effect, Deliver) and isinstance(effect.frame, BlockFrame) and effect.frame.ask is not None:
            self._delivered(effect.frame, effect.frame.ask, effects)

    def _delivered(self, frame: BlockFrame, ask: Ask, effects: list[Effect]) -> None:
        name = name_of(frame.group)
        if ask.asker == self._me:
            self._take(name, ask.number, frame.author, frame.payloads[0], effects)
        elif ask.asker is None and frame.author == self._me:
            self._requests.delivered(name, ask.number, self._views[name])
            self._conclude(name, ask.number, effects)

    def _count_again(self, view: View, effects: list[Effect]) -> None:
        """Count without the members that are gone."""
        name = name_of(view.group)
        self._views[name] = view
        self._requests.entered(name, view)
        for number in self._requests.of(name):
            self._conclude(name, number, effects)

    def entered(self, view: View, now: int) -> None:
        """The group has this view: do not wait for the answer to a query of a member that is gone."""
        name = name_of(view.group)
        for number in self._queries.stranded(name, view):
            self._ask_next(name, number, now)

    def tick(self, now: int) -> None:
        """Ask the next members, and repeat answers."""
        for name, number in self._queries.due(now):
            self._ask_next(name, number, now)
        for key, answer in [] if self._replies is None else self._replies.due(now):
            self._repeat(key, answer)

    def _repeat(self, key: tuple[GroupId, ProcessId, int], answer: AnswerFrame) -> None:
        name, asker, _ = key
        group = self._groups.names.get(name)
        if group is not None and asker in group.view.ranks:
            self._transmit(answer, asker)
        elif self._replies is not None:
            self._replies.drop(key)

    def _take(self, name: GroupId, number: int, process: ProcessId, payload: bytes, effects: list[Effect]) -> None:
        """A process has answered a request of ours."""
        group = self._groups.names.get(name)
        if group is None:
            return
        if (name, number) in self._queries:
            if process in group.view.ranks:
                self._queries.remove(name, number)
                effects.append(Answered(name, number, ((process, payload),)))
            return
        self._requests.answered(name, number, process, payload, group.view)
        self._conclude(name, number, effects)

    def _conclude(self, name: GroupId, number: int, effects: list[Effect]) -> None:
        """End a request that has its answers, or can never have them."""
        request = self._requests.find(name, number)
        outcome = "waits" if request is None else request.outcome
        if request is None or outcome == "waits":
            return
        self._requests.remove(name, number)
        answers = request.answers[:1] if request.mode == "first" else request.answers
        view = self._views[name].id
        if outcome == "answered":
            effects.append(Answered(name, number, answers, request.label, view))
        else:
            effects.append(Unanswered(name, number, "few", answers, request.label, view))

    def _transmit(self, frame: AskingFrame, to: ProcessId) -> None:
        self._early.append(Transmit(frame, to, self._channel))


def _request_of(frame: BlockFrame | QueryFrame) -> tuple[GroupId, ProcessId, int]:
    """Group by name, asker and number of the request that a frame brought."""
    name = name_of(frame.group)
    if isinstance(frame, QueryFrame):
        return name, frame.sender, frame.request
    assert frame.ask is not None
    assert frame.ask.asker is None, "it is an answer"
    return name, frame.author, frame.ask.number
