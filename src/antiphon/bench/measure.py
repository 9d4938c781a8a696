"""What is measured, in which order, and what comes of it: medians over rounds, and ratios within one round.

A machine is never as idle as one thinks. So the floor and the group take turns, and what is compared was measured
within seconds; a ratio is that of one round, and the median of these is told with the smallest and largest.
"""

import platform
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from antiphon.bench.team import Team

LATENCY_BYTES: Final = 32
RATES: Final = (10, 100)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    members: tuple[int, ...] = (3, 4, 6)
    sizes: tuple[int, ...] = (32, 1024, 10_240)
    rounds: int = 5
    seconds: float = 1.0
    transport: str = "tcp"

    @property
    def steps(self) -> int:
        """How many rounds of all kinds there are."""
        return len(self.members) * (len(self.sizes) + len(RATES)) * self.rounds


QUICK: Final = Plan(members=(3,), sizes=(32, 10_240), rounds=3, seconds=0.5)


@dataclass(frozen=True, slots=True)
class Series:
    """One figure, as it was in each round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """What is told of it."""
        return statistics.median(self.values)

    def over(self, other: "Series") -> "Series":
        """Round by round."""
        return Series(tuple(mine / its for mine, its in zip(self.values, other.values, strict=True)))

    def document(self) -> dict[str, float]:
        """For programs."""
        return {"median": self.median, "smallest": min(self.values), "largest": max(self.values)}


@dataclass(frozen=True, slots=True)
class Throughput:
    """Messages a second at the slowest member, for one number of members and one size."""

    members: int
    size: int
    unpacked: Series
    packed: Series
    all_active: Series
    one_active: Series


@dataclass(frozen=True, slots=True)
class Latency:
    """For one number of members and one rate of each, in microseconds: the median of each round."""

    members: int
    per_second: int
    bare: Series
    """A request to one other, and its reply."""
    bare_to_all: Series
    """To all others, until the last has replied: so many answers any total order needs."""
    ordered: Series
    ordered_p99: Series
    sequenced: Series
    """In a group in which one member numbers the messages of all."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured."""

    plan: Plan
    throughput: list[Throughput]
    latency: list[Latency]

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "machine": {"python": platform.python_version(), "system": platform.system(), "cpu": platform.machine()},
            "transport": self.plan.transport,
            "rounds": self.plan.rounds,
            "seconds": self.plan.seconds,
            "throughput": [
                {
                    "members": each.members,
                    "bytes": each.size,
                    "messages_per_second": {
                        "bare_unpacked": each.unpacked.document(),
                        "bare_packed": each.packed.document(),
                        "all_active": each.all_active.document(),
                        "one_active": each.one_active.document(),
                    },
                    "ratios": {
                        "all_active_to_bare_unpacked": each.all_active.over(each.unpacked).document(),
                        "all_active_to_bare_packed": each.all_active.over(each.packed).document(),
                        "one_active_to_all_active": each.one_active.over(each.all_active).document(),
                    },
                }
                for each in self.throughput
            ],
            "latency": [
                {
                    "members": each.members,
                    "messages_per_second_and_member": each.per_second,
                    "microseconds": {
                        "bare_request_and_reply": each.bare.document(),
                        "bare_request_to_all_and_replies": each.bare_to_all.document(),
                        "ordered": each.ordered.document(),
                        "ordered_99_percent": each.ordered_p99.document(),
                        "sequenced": each.sequenced.document(),
                    },
                    "ratios": {
                        "ordered_to_bare": each.ordered.over(each.bare).document(),
                        "ordered_to_bare_to_all": each.ordered.over(each.bare_to_all).document(),
                        "sequenced_to_bare": each.sequenced.over(each.bare).document(),
                    },
                }
                for each in self.latency
            ],
        }


def measure(plan: Plan, advance: Callable[[], None] = lambda: None) -> Report:
    """All of a plan; `advance` is called after each round."""
    report = Report(plan, [], [])
    for members in plan.members:
        with Team(members, plan.transport) as team:
            report.throughput.extend(_throughputs(team, plan, advance))
            report.latency.extend(_latencies(team, plan, advance))
    return report


def profile(plan: Plan) -> list[tuple[str, float]]:
    """Where the slowest of the smallest group spends its time, all members sending the smallest messages."""
    with Team(min(plan.members), plan.transport) as team:
        team.order(min(plan.sizes), plan.seconds, senders=[*range(team.members)])
        profiled = team.order(min(plan.sizes), plan.seconds, senders=[*range(team.members)], profile=True)
        return [(str(where), float(share)) for where, share in profiled["costs"]]


def _throughputs(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Throughput]:
    everybody, last = [*range(team.members)], [team.members - 1]
    for size in plan.sizes:
        figures: list[tuple[float, float, float, float]] = []
        for _ in range(plan.rounds):
            figures.append(
                (
                    team.fan_out(size, plan.seconds, packed=False),
                    team.fan_out(size, plan.seconds, packed=True),
                    team.order(size, plan.seconds, senders=everybody)["rate"],
                    team.order(size, plan.seconds, senders=last)["rate"],
                )
            )
            advance()
        yield Throughput(team.members, size, *map(Series, zip(*figures, strict=True)))


def _latencies(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Latency]:
    for rate in RATES:
        figures: list[tuple[float, ...]] = []
        seconds = max(plan.seconds, 10 / rate)
        for _ in range(plan.rounds):
            bare = team.ask(LATENCY_BYTES, seconds, rate, peers=1)
            to_all = team.ask(LATENCY_BYTES, seconds, rate, peers=team.members - 1)
            ordered = sorted(team.latency(LATENCY_BYTES, seconds, rate, mode="symmetric"))
            sequenced = team.latency(LATENCY_BYTES, seconds, rate, mode="sequenced")
            late = ordered[len(ordered) * 99 // 100]
            medians = [*map(_median_us, (bare, to_all, ordered, sequenced))]
            figures.append((*medians[:3], late / 1e3, medians[3]))
            advance()
        yield Latency(team.members, rate, *map(Series, zip(*figures, strict=True)))


def _median_us(samples_ns: list[int]) -> float:
    return statistics.median(samples_ns) / 1e3
