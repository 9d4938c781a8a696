"""Random scenarios: everything but the seed is drawn from the seed, so a failing one is one number."""

import random

from antiphon.scenario.model import (
    Delay,
    Fault,
    Fixed,
    Group,
    Hosts,
    Latency,
    Lognormal,
    Network,
    Options,
    Pause,
    Scenario,
    Skew,
    Slow,
    Stall,
    Uniform,
    Workload,
)
from antiphon.scenario.read import parse_scenario, scenario_toml
from antiphon.scenario.units import Bandwidth, Duration

MS = 1_000_000


def fixed_group(seed: int) -> Scenario:
    """One group that nobody leaves, under everything that such a group can survive."""
    chance = random.Random(f"fixed group {seed}")
    members = chance.randint(1, 7)
    hosts = Hosts(
        count=chance.choice([None, 1, 2, 3]),
        service=Duration(chance.choice([0, 0, 50_000, 400_000])),
        tick=Duration(chance.choice([0, 0, 5 * MS])),
        wake=Duration(chance.choice([0, 0, 3 * MS, 20 * MS])),
    )
    scenario = Scenario(
        name="fixed-group",
        seed=seed,
        duration=Duration(120_000 * MS),
        options=Options(
            time_silence=Duration(chance.choice([0, 0, 5, 40]) * MS),
            packing=chance.random() < 0.7,
            frame_bytes=chance.choice([64, 1_000, 65_536]),
        ),
        group=(Group(name="g", members=members),),
        network=Network(latency=_latency(chance), bandwidth=chance.choice([None, None, Bandwidth(500_000)])),
        workload=tuple(_workload(chance, members) for _ in range(chance.randint(1, 3))),
        hosts=hosts,
        fault=tuple(_fault(chance, members, hosts) for _ in range(chance.choice([0, 1, 2, 4]))),
    )
    return parse_scenario(scenario_toml(scenario))


def _latency(chance: random.Random) -> Latency:
    kinds: list[Latency] = [
        Fixed(value=Duration(chance.choice([0, 1, 5]) * MS)),
        Uniform(low=Duration(0), high=Duration(chance.choice([1, 10, 50]) * MS)),
        Lognormal(median=Duration(2 * MS), sigma=chance.choice([0.3, 1.5])),
    ]
    return chance.choice(kinds)


def _workload(chance: random.Random, members: int) -> Workload:
    senders = [f"p{number}" for number in range(1, members + 1)]
    return Workload(
        group="g",
        senders=tuple(chance.sample(senders, chance.randint(1, members))),
        messages=chance.choice([1, 5, 20]),
        interval=Duration(chance.choice([0, 1, 7, 30]) * MS),
        jitter=chance.choice([0.0, 0.5, 1.0]),
        payload=chance.choice([0, 8, 32, 500]),
        replies=chance.random() < 0.3,
    )


def _fault(chance: random.Random, members: int, hosts: Hosts) -> Fault:
    at, process = Duration(chance.randint(0, 200) * MS), f"p{chance.randint(1, members)}"
    until = Duration(at + chance.randint(1, 300) * MS)
    kinds: list[Fault] = [
        Pause(at=at, until=until, process=process),
        Stall(at=at, until=until, process=process),
        Skew(at=at, until=until, process=process, offset=Duration(50 * MS), rate=chance.choice([0.5, 1.7])),
        Delay(at=at, until=until, process=process, extra=Duration(60 * MS)),
        Delay(at=at, until=until, from_=process, to="p1", extra=Duration(60 * MS)),
    ]
    if hosts.service:
        kinds.append(Slow(at=at, until=until, process=process, factor=4.0))
    return chance.choice(kinds)
