"""Every service side by side in one run: throughput with all members active, and latency, by service.

Services take turns within each round, so that a change of the machine's speed affects all of them.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from antiphon.bench.measure import LATENCY_BYTES, RATES, TURNS, Figures, Plan, Report, figures, rate_of
from antiphon.bench.team import Team
from antiphon.bench.worker import SERVICES

_COMPARED = "total"
"""Ratios are over this service."""


def measure_services(plan: Plan, advance: Callable[[], None] = lambda: None) -> Report:
    """Measure all services that groups can have; `advance` is called after each round."""
    report = Report(plan, [], [])
    for members in plan.members:
        with Team(members, plan.transport, SERVICES, batch=plan.batch) as team:
            report.throughput.extend(_throughputs(team, plan, advance))
            report.latency.extend(_latencies(team, plan, advance))
    return report


def _throughputs(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Figures]:
    for size in plan.sizes:
        rounds: list[dict[str, float]] = []
        for _ in range(plan.rounds):
            rounds.append({name: rate_of(partial(_rate, team, size, name), plan.seconds) for name in SERVICES})
            advance()
        yield figures(team.members, size, rounds, *((name, _COMPARED) for name in SERVICES))


def _rate(team: Team, size: int, service: str, seconds: float) -> float:
    senders = [*range(team.members)]
    return float(team.order(size, seconds, senders=senders, service=service)["rate"])


def _latencies(team: Team, plan: Plan, advance: Callable[[], None]) -> Iterator[Figures]:
    for rate in RATES:
        rounds: list[dict[str, float]] = []
        for _ in range(plan.rounds):
            took: dict[str, list[int]] = {name: [] for name in SERVICES}
            for _ in range(TURNS):
                for name in SERVICES:
                    took[name] += team.latency(LATENCY_BYTES, max(plan.seconds, 10 / rate) / TURNS, rate, service=name)
            rounds.append({name: statistics.median(own) / 1e3 for name, own in took.items()})
            advance()
        yield figures(team.members, rate, rounds, *((name, _COMPARED) for name in SERVICES))
