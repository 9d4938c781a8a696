"""What is measured and in which order; medians over rounds, and ratios within one round.

No machine is ever quite idle. So the baseline and the group take turns, and compared figures are measured within
seconds. A ratio is taken within one round; the report shows the median, the smallest and the largest of them.
"""

import os
import platform
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from antiphon.bench.team import BenchmarkFailed, Team

LATENCY_BYTES: Final = 32
RATES: Final = (10, 100)
TURNS: Final = 4
"""How many turns each kind of latency has in a round."""
_SERVICES: Final = ("total", "sequencer")
_DOUBLINGS_MAX: Final = 6
"""How often a measurement in which a member read nothing is repeated, each time twice as long."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    members: tuple[int, ...] = (3, 4, 6)
    sizes: tuple[int, ...] = (32, 1024, 10_240)
    rounds: int = 5
    seconds: float = 1.0
    transport: str = "tcp"
    batch: bool = True
    """Run all as batch processes, so that a woken process does not preempt the one that woke it."""

    @property
    def steps(self) -> int:
        """The number of rounds of all kinds."""
        return len(self.members) * (len(self.sizes) + len(RATES)) * self.rounds


QUICK: Final = Plan(members=(3,), sizes=(32, 10_240), rounds=3, seconds=0.5)


@dataclass(frozen=True, slots=True)
class Series:
    """One figure in each round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The reported value."""
        return statistics.median(self.values)

    def over(self, other: "Series") -> "Series":
        """The ratios, round by round."""
        return Series(tuple(mine / its for mine, its in zip(self.values, other.values, strict=True)))

    def document(self) -> dict[str, float]:
        """The JSON document."""
        return {"median": self.median, "smallest": min(self.values), "largest": max(self.values)}


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one load, and their ratios."""

    members: int
    load: int
    """Bytes of a message, or messages per second of each member."""
    measured: dict[str, Series]
    ratios: dict[str, Series]

    def document(self, load: str, measured: str) -> dict[str, Any]:
        """The JSON document; the arguments name the load and the measured unit."""
        return {
            "members": self.members,
            load: self.load,
            measured: {name: series.document() for name, series in self.measured.items()},
            "ratios": {name: series.document() for name, series in self.ratios.items()},
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured."""

    plan: Plan
    throughput: list[Figures]
    """Messages per second at the slowest member."""
    latency: list[Figures]
    """Microseconds."""

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "machine": {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()},
            "transport": self.plan.transport,
            "batch": self.plan.batch,
            "rounds": self.plan.rounds,
            "seconds": self.plan.seconds,
            "throughput": [each.document("bytes", "messages_per_second") for each in self.throughput],
            "latency": [each.document("messages_per_second_and_member", "microseconds") for each in self.latency],
        }


def measure(plan: Plan, advance: Callable[[], None] = lambda: None) -> Report:
    """Measure everything in a plan; `advance` is called after each round."""
    report = Report(plan, [], [])
    for members in plan.members:
        with Team(members, plan.transport, _SERVICES, batch=plan.batch) as team:
            report.throughput.extend(_throughputs(team, plan, advance))
            report.latency.extend(_latencies(team, plan, advance))
    return report


def profile(plan: Plan) -> list[tuple[str, float]]:
    """Where the slowest member of the smallest group spends its time, when all send the smallest messages."""
    with Team(min(plan.members), plan.transport, _SERVICES, batch=plan.batch) as team:
        team.order(min(plan.sizes), plan.seconds, senders=[*range(team.members)])
        profiled = team.order(min(plan.sizes), plan.seconds, senders=[*range(team.members)], profile=True)
        return [(str(where), float(share)) for where, share in profiled["costs"]]


def _throughputs(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Figures]:
    all_members, last = [*range(team.members)], [team.members - 1]
    for size in plan.sizes:
        rounds: list[dict[str, float]] = []
        for _ in range(plan.rounds):
            kinds: dict[str, Callable[[float], float]] = {
                "bare_unpacked": partial(team.fan_out, size, packed=False, senders=all_members),
                "bare_packed": partial(team.fan_out, size, packed=True, senders=all_members),
                "bare_one_active": partial(team.fan_out, size, packed=True, senders=last),
                "all_active": partial(_ordered_rate, team, size, all_members),
                "one_active": partial(_ordered_rate, team, size, last),
            }
            rounds.append({name: rate_of(measured, plan.seconds) for name, measured in kinds.items()})
            advance()
        yield figures(
            team.members,
            size,
            rounds,
            ("all_active", "bare_unpacked"),
            ("all_active", "bare_packed"),
            ("one_active", "all_active"),
            ("bare_one_active", "bare_packed"),  # what a single sender can reach here
        )


def _ordered_rate(team: Team, size: int, senders: list[int], seconds: float) -> float:
    return float(team.order(size, seconds, senders=senders)["rate"])


def rate_of(measured: Callable[[float], float], seconds: float) -> float:
    """Messages per second; measured again for longer if the slowest member got no processor time and read nothing."""
    for doublings in range(_DOUBLINGS_MAX + 1):
        rate = measured(seconds * 2**doublings)
        if rate:
            return rate
    raise BenchmarkFailed(
        f"a member read nothing for {seconds * 2**_DOUBLINGS_MAX:g} s: this machine is too busy to measure anything"
    )


def _latencies(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Figures]:
    """A request to one peer and its reply; a request to all peers until the last reply; ordered messages."""
    for rate in RATES:
        rounds: list[dict[str, float]] = []
        for _ in range(plan.rounds):
            took = _in_turns(team, rate, max(plan.seconds, 10 / rate) / TURNS)
            ordered = sorted(took["ordered"])
            rounds.append(
                {
                    **{name: statistics.median(each) / 1e3 for name, each in took.items()},
                    "ordered_99_percent": ordered[len(ordered) * 99 // 100] / 1e3,
                }
            )
            advance()
        yield figures(
            team.members,
            rate,
            rounds,
            ("ordered", "bare_one_replies"),
            ("ordered", "bare_all_reply"),
            ("sequenced", "bare_one_replies"),
        )


def _in_turns(team: Team, rate: int, seconds: float) -> dict[str, list[int]]:
    """Nanoseconds of every kind, measured in several short turns.

    The wake-up time of processes changes within a round: where the system schedules them can make a request twice as
    fast from one second to the next.
    """
    kinds: dict[str, Callable[[], list[int]]] = {
        "bare_one_replies": lambda: team.ask(LATENCY_BYTES, seconds, rate, peers=1),
        "ordered": lambda: team.latency(LATENCY_BYTES, seconds, rate, service="total"),
        "bare_all_reply": lambda: team.ask(LATENCY_BYTES, seconds, rate, peers=team.members - 1),
        "sequenced": lambda: team.latency(LATENCY_BYTES, seconds, rate, service="sequencer"),
    }
    took: dict[str, list[int]] = {name: [] for name in kinds}
    for _ in range(TURNS):
        for name, measured in kinds.items():
            took[name] += measured()
    return took


def figures(members: int, load: int, rounds: list[dict[str, float]], *compared: tuple[str, str]) -> Figures:
    measured = {name: Series(tuple(each[name] for each in rounds)) for name in rounds[0]}
    return Figures(
        members, load, measured, {f"{mine}_to_{its}": measured[mine].over(measured[its]) for mine, its in compared}
    )
