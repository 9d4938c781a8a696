"""A star: a source and n receivers, each one distance away from it, that lose the same messages (errata R1, R3).

Requests and repairs arrive after the distance between two processes, or are lost on the way to some.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from antiphon.protocols.intergroup.repair.adaptation import Profile
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.repair.requests import Requests
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

SOURCE = ProcessId("s")
DISTANCE = 30_000_000
APART = DISTANCE
"""The distance between receivers is that to the source: from leaf to leaf."""
ACROSS = 2 * DISTANCE
"""The source is the hub: the distance between receivers is twice that to the source."""
PAUSE = 10 * DISTANCE
"""Between the end of one repair and the next loss."""


@dataclass(frozen=True)
class Repaired:
    """The recovery of one loss."""

    requests: int
    repairs: int
    recovery: float
    """Mean over receivers, in distances."""
    longest: float
    """The longest of them."""


class Star:
    def __init__(
        self,
        receivers: int,
        seed: int,
        *,
        loss: float = 0.0,
        profile: Profile = "default",
        rules: Rules = ADOPTED,
        between: int = APART,
    ) -> None:
        self._random, self._loss, self._between = random.Random(seed), loss, between
        self._requests = [rules.requests(self._random.random, profile) for _ in range(receivers)]
        self._repairs = [Repairs(self._random.random, profile) for _ in range(receivers + 1)]  # the source is the last
        self._now = 0
        self._order = count()
        self._under_way: list[tuple[int, int, str, int, int]] = []
        self._lacking: set[int] = set()

    def losses(self, number: int) -> Iterator[Repaired]:
        for seq in range(number):
            yield self._lose(Ticket(SOURCE, seq))
            self._now += PAUSE

    def _lose(self, ticket: Ticket) -> Repaired:
        began, waits, sent = self._now, list[int](), {"request": 0, "repair": 0}
        self._lacking.update(range(len(self._requests)))
        for receiver in self._lacking:
            self._requests[receiver].missing(ticket, DISTANCE, self._now)
        while self._lacking or self._under_way:
            self._now = max(self._now, self._next())
            while self._under_way and self._under_way[0][0] <= self._now:
                _, _, kind, sender, receiver = heappop(self._under_way)
                if self._arrives(kind, sender, receiver, ticket):
                    waits.append(self._now - began)
            self._speak(ticket, sent)
        for each in self._repairs:
            each.freed(ticket)
        return Repaired(sent["request"], sent["repair"], statistics.mean(waits) / DISTANCE, max(waits) / DISTANCE)

    def _next(self) -> int:
        speakers: list[Requests | Repairs] = [*self._requests, *self._repairs]
        deadlines = [each.deadline for each in speakers if each.deadline is not None]
        return min(deadlines + [arrival[0] for arrival in self._under_way[:1]])

    def _distance(self, one: int, other: int) -> int:
        return DISTANCE if len(self._requests) in (one, other) else self._between

    def _arrives(self, kind: str, sender: int, receiver: int, ticket: Ticket) -> bool:
        """True if the frame brings the receiver its missing message."""
        lacks, distance = receiver in self._lacking, self._distance(sender, receiver)
        if kind == "repair":
            self._repairs[receiver].heard(ticket, distance, self._now)
            if lacks:
                self._lacking.discard(receiver)
                self._requests[receiver].done(ticket)
                return True
        elif lacks:
            self._requests[receiver].heard(ticket, self._now)
        else:
            self._repairs[receiver].asked(ticket, distance, self._now)
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
                            arrival = self._now + self._distance(speaker, other)
                            heappush(self._under_way, (arrival, next(self._order), kind, speaker, other))
