"""Requests that are messages in the group's order: which answers count, and when there are enough.

The view in which the asker delivers its own request decides. Its members are the *voters*: all of them that deliver the
request do so in that view. Before that delivery answers are kept and none counts. A voter that is missing in a later
view is not waited for, even if it comes back. An answer that has arrived keeps counting.

`first`: one answer of a voter. `majority`: answers of more than half of the voters; if too few are left for that, the
request fails. `all`, `available`: answers of all voters that have been members ever since. `available` differs only for
the application, which takes what there is when its time is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from antiphon.types import GroupId, ProcessId, View

Outcome = Literal["waits", "answered", "few"]
"""`few`: too few voters are left."""


@dataclass(slots=True)
class Request:
    """A request of ours that has not ended."""

    mode: str
    label: int
    """Of the message."""
    voters: frozenset[ProcessId] = frozenset()
    """Empty until we have delivered the request."""
    remaining: frozenset[ProcessId] = frozenset()
    """The voters that have been in each view since."""
    got: dict[ProcessId, bytes] = field(default_factory=dict)
    """The answers, in the order of their arrival; of each process the first."""

    @property
    def answers(self) -> tuple[tuple[ProcessId, bytes], ...]:
        """The answers that count."""
        return tuple((process, payload) for process, payload in self.got.items() if process in self.voters)

    @property
    def outcome(self) -> Outcome:
        if not self.voters:
            return "waits"
        answered = self.got.keys() & self.voters
        if self.mode == "majority":
            needed = len(self.voters) // 2 + 1
            if len(answered | self.remaining) < needed:
                return "few"
            return "answered" if len(answered) >= needed else "waits"
        enough = bool(answered) if self.mode == "first" else self.remaining <= answered
        return "answered" if enough else "waits"


class Requests:
    """Our requests, by group and number. Invariant: answers of at most the members of one view are kept for each."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[GroupId, dict[int, Request]] = {}

    def add(self, name: GroupId, number: int, request: Request) -> None:
        self._open.setdefault(name, {})[number] = request

    def find(self, name: GroupId, number: int) -> Request | None:
        return self._open.get(name, {}).get(number)

    def remove(self, name: GroupId, number: int) -> Request | None:
        """The request has ended; None if it had ended before."""
        return self._open.get(name, {}).pop(number, None)

    def of(self, name: GroupId) -> Iterable[int]:
        """The numbers of all requests to that group."""
        return [*self._open.get(name, ())]

    def delivered(self, name: GroupId, number: int, view: View) -> None:
        """We have delivered our own request in this view."""
        request = self.find(name, number)
        if request is not None:
            request.voters = request.remaining = frozenset(view.members)
            request.got = dict(request.answers)

    def answered(self, name: GroupId, number: int, process: ProcessId, payload: bytes, view: View) -> None:
        """A process has answered. Before our own delivery only members of the present view may become voters."""
        request = self.find(name, number)
        if request is not None and process in (request.voters or view.ranks):
            request.got.setdefault(process, payload)

    def entered(self, name: GroupId, view: View) -> None:
        """The group has this view from here on."""
        for request in self._open.get(name, {}).values():
            request.remaining &= view.ranks.keys()
