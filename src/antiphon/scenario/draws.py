"""Random parts of scenarios that families share: hosts, latencies, workloads, faults that end."""

import random
from collections.abc import Sequence
from typing import Final

from antiphon.scenario.model import (
    Delay,
    Fault,
    Fixed,
    Hosts,
    Latency,
    Lognormal,
    Loss,
    Pause,
    Skew,
    Slow,
    Stall,
    Uniform,
    Workload,
)
from antiphon.scenario.units import Duration

MS: Final = 1_000_000


def draw_hosts(chance: random.Random) -> Hosts:
    """Hosts: own or shared, fast or slow, with an inbox that is read at once or in batches."""
    return Hosts(
        count=chance.choice([None, 1, 2, 3]),
        service=Duration(chance.choice([0, 0, 50_000, 400_000])),
        tick=Duration(chance.choice([0, 0, 5 * MS])),
        wake=Duration(chance.choice([0, 0, 3 * MS, 20 * MS])),
        consume=Duration(chance.choice([0, 0, 0, 2 * MS, 15 * MS])),
    )


def draw_latency(chance: random.Random) -> Latency:
    """Latency, from zero to a long tail."""
    kinds: list[Latency] = [
        Fixed(value=Duration(chance.choice([0, 1, 5]) * MS)),
        Uniform(low=Duration(0), high=Duration(chance.choice([1, 10, 50]) * MS)),
        Lognormal(median=Duration(2 * MS), sigma=chance.choice([0.3, 1.5])),
    ]
    return chance.choice(kinds)


def draw_workload(
    chance: random.Random, group: str, senders: tuple[str, ...], *, messages: int, payload: int, replies: bool = True
) -> Workload:
    """Requests in a burst or spread over time, sometimes with replies where these are allowed."""
    return Workload(
        group=group,
        senders=senders,
        messages=messages,
        interval=Duration(chance.choice([0, 1, 7, 30]) * MS),
        jitter=chance.choice([0.0, 0.5, 1.0]),
        payload=payload,
        replies=chance.random() < 0.3 and replies,
    )


def draw_fault(chance: random.Random, processes: Sequence[str], hosts: Hosts, *, datagrams: bool = False) -> Fault:
    """A fault that begins within 200 ms and ends at most 300 ms later."""
    at, process, other = Duration(chance.randint(0, 200) * MS), chance.choice(processes), chance.choice(processes)
    until = Duration(at + chance.randint(1, 300) * MS)
    kinds: list[Fault] = [
        Pause(at=at, until=until, process=process),
        Stall(at=at, until=until, process=process),
        Skew(at=at, until=until, process=process, offset=Duration(50 * MS), rate=chance.choice([0.5, 1.7])),
        Delay(at=at, until=until, process=process, extra=Duration(60 * MS)),
        Delay(at=at, until=until, from_=process, to=other, extra=Duration(60 * MS)),
    ]
    if hosts.service:
        kinds.append(Slow(at=at, until=until, process=process, factor=4.0))
    if datagrams:
        kinds.append(Loss(at=at, until=until, process=process, rate=chance.choice([0.5, 1.0])))
        kinds.append(Loss(at=at, until=until, from_=process, to=other, rate=1.0))
    return chance.choice(kinds)
