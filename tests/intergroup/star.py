"""A star: a source and n receivers, all as far from one another, who lose the same messages (errata R1, R3).

Requests and repairs reach everybody after one distance, or are lost on the way to some.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from antiphon.core.intergroup.adaptation import Profile
from antiphon.core.intergroup.repairs import Repairs
from antiphon.core.intergroup.requests import Requests, Ticket
from antiphon.core.intergroup.rules import ADOPTED, Rules
from antiphon.types import ProcessId

SOURCE = ProcessId("s")
DISTANCE = 30_000_000
PAUSE = 10 * DISTANCE
"""Between the end of one repair and the next loss."""


@dataclass(frozen=True)
class Repaired:
    """What became of one loss."""

    requests: int
    repairs: int
    recovery: float
    """Mean over receivers, in distances."""


class Star:
    def __init__(
        self, receivers: int, seed: int, loss: float, profile: Profile = "default", rules: Rules = ADOPTED
    ) -> None:
        self._random, self._loss = random.Random(seed), loss
        self._requests = [rules.requests(self._random.random, profile) for _ in range(receivers)]
        self._repairs = [Repairs(self._random.random, profile) for _ in range(receivers + 1)]  # the source is the last
        self._now = 0
        self._order = count()
        self._under_way: list[tuple[int, int, str, int]] = []
        self._lacking: set[int] = set()

    def losses(self, number: int) -> Iterator[Repaired]:
        for seq in range(number):
            yield self._lose(Ticket(SOURCE, seq))
            self._now += PAUSE

    def _lose(self, ticket: Ticket) -> Repaired:
        began, waits, sent = self._now, 0, {"request": 0, "repair": 0}
        self._lacking.update(range(len(self._requests)))
        for receiver in self._lacking:
            self._requests[receiver].missing(ticket, DISTANCE, self._now)
        while self._lacking or self._under_way:
            self._now = max(self._now, self._next())
            while self._under_way and self._under_way[0][0] <= self._now:
                _, _, kind, receiver = heappop(self._under_way)
                if self._arrives(kind, receiver, ticket):
                    waits += self._now - began
            self._speak(ticket, sent)
        for each in self._repairs:
            each.freed(ticket)
        return Repaired(sent["request"], sent["repair"], waits / DISTANCE / len(self._requests))

    def _next(self) -> int:
        speakers: list[Requests | Repairs] = [*self._requests, *self._repairs]
        deadlines = [each.deadline for each in speakers if each.deadline is not None]
        return min(deadlines + [arrival[0] for arrival in self._under_way[:1]])

    def _arrives(self, kind: str, receiver: int, ticket: Ticket) -> bool:
        """Whether the receiver has recovered by it."""
        lacks = receiver in self._lacking
        if kind == "repair":
            self._repairs[receiver].heard(ticket, DISTANCE, self._now)
            if lacks:
                self._lacking.discard(receiver)
                self._requests[receiver].done(ticket)
                return True
        elif lacks:
            self._requests[receiver].heard(ticket, self._now)
        else:
            self._repairs[receiver].asked(ticket, DISTANCE, self._now)
        return False

    def _speak(self, ticket: Ticket, sent: dict[str, int]) -> None:
        everybody: tuple[tuple[str, Sequence[Requests | Repairs]], ...] = (
            ("request", self._requests),
            ("repair", self._repairs),
        )
        for kind, speakers in everybody:
            for speaker, each in enumerate(speakers):
                for due in each.due(self._now):
                    assert due == ticket
                    sent[kind] += 1
                    for other in range(len(self._repairs)):
                        if other != speaker and self._random.random() >= self._loss:
                            heappush(self._under_way, (self._now + DISTANCE, next(self._order), kind, other))
