"""Stability latency over random latency matrices, against the bounds of Berket98 §4 (docs/spec/stability.md 5).

Periods, phases, and sets of senders and receivers are random too. Latencies are fixed and nothing is lost.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from antiphon.protocols.acks.bounds import Latencies, tight_timestamp_bound, timestamp_bound, vector_bound
from antiphon.protocols.acks.settings import Role
from antiphon.types import ProcessId
from tools.lab.acks_cluster import UNIT, AcksCluster

MESSAGES: Final = 3
"""Of each sender, in each run."""
BOUNDS: Final = ("t1", "t2", "t2'")


@dataclass
class Worst:
    """The messages of all runs against one bound."""

    messages: int = 0
    above: int = 0
    ratio: float = 0.0
    """The largest share of the bound that a message has waited."""
    case: str = ""

    def add(self, waited: int, bound: int, case: str) -> None:
        """One message."""
        self.messages += 1
        self.above += waited > bound
        if waited / bound > self.ratio:
            self.ratio, self.case = waited / bound, case


@dataclass
class Matrix:
    """One draw: the processes, their distances, periods and phases."""

    chance: random.Random
    roles: dict[ProcessId, Role] = field(init=False)
    latencies: Latencies = field(init=False)

    def __post_init__(self) -> None:
        chance = self.chance
        self.roles = {}
        for role, least in (("sender", 1), ("receiver", 1), ("both", 0)):
            for number in range(chance.randint(least, 3 if least else 2)):
                self.roles[ProcessId(f"{role}{number}")] = role  # type: ignore[assignment]
        pairs = [*product(self.senders, self.receivers)]
        longest = chance.choice([2, 5, 10]) * UNIT
        self.latencies = Latencies(
            {(s, r): 0 if s == r else chance.randint(1, longest) for s, r in pairs},
            {(r, s): 0 if s == r else chance.randint(1, longest) for s, r in pairs},
        )
        self.send_every = chance.randint(UNIT, 3 * UNIT)
        self.ack_every = chance.randint(UNIT, 3 * UNIT)
        self.first_sends = {process: chance.randrange(self.send_every) for process in self.roles}
        self.first_acks = {process: chance.randrange(self.ack_every) for process in self.roles}
        self.requests = [(s, chance.randint(1, 4 * UNIT)) for s in self.senders for _ in range(MESSAGES)]

    @property
    def senders(self) -> list[ProcessId]:
        """S."""
        return [process for process, role in self.roles.items() if role != "receiver"]

    @property
    def receivers(self) -> list[ProcessId]:
        """R."""
        return [process for process, role in self.roles.items() if role != "sender"]

    def waits(self, kind: str) -> Iterator[tuple[ProcessId, int]]:
        """How long each message was unstable."""
        cluster = AcksCluster(
            roles={str(process): role for process, role in self.roles.items()},
            messages=self.latencies.messages,
            acks=self.latencies.acks,
            first_sends=self.first_sends,
            first_acks=self.first_acks,
            kind=kind,
            send_every_ns=self.send_every,
            ack_every_ns=self.ack_every,
        )
        for sender, at in self.requests:
            cluster.at(at, cluster.send, sender)
        cluster.run(4 * UNIT)
        while any(cluster.unstable(sender) for sender in self.senders):
            cluster.run(cluster.now + UNIT)
            assert cluster.now < 1_000 * UNIT, "a message never becomes stable"
        for sender in self.senders:
            for label in range(MESSAGES):
                yield sender, cluster.stable_after(sender, label)

    def bounds(self, of: ProcessId) -> dict[str, int]:
        """The three formulas; a process does not wait for its own acknowledgment."""
        others = [process for process in self.receivers if process != of]
        periods: dict[str, Any] = {"send_every": self.send_every, "ack_every": self.ack_every}
        return {
            "t1": vector_bound(of, others, self.latencies, ack_every=self.ack_every),
            "t2": timestamp_bound(of, self.senders, others, self.latencies, **periods),
            "t2'": tight_timestamp_bound(of, self.senders, others, self.latencies, **periods),
        }


def measure(matrices: int, seed: int) -> dict[str, Worst]:
    """All draws, both protocols."""
    worst = {name: Worst() for name in BOUNDS}
    for number in range(matrices):
        matrix = Matrix(random.Random(f"{seed}/{number}"))
        bounds = {sender: matrix.bounds(sender) for sender in matrix.senders}
        for kind, names in (("vector", BOUNDS[:1]), ("timestamp", BOUNDS[1:])):
            for sender, waited in matrix.waits(kind):
                for name in names:
                    worst[name].add(waited, bounds[sender][name], f"matrix {number}, {sender}")
    return worst
