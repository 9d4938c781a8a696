"""The family `fixed-group`: one group that no member leaves, in total order over streams."""

import random

from antiphon.protocols.newtop.options import NewtopOptions
from antiphon.scenario.draws import MS, draw_fault, draw_hosts, draw_latency, draw_workload
from antiphon.scenario.model import Group, Network, Scenario, Workload
from antiphon.scenario.units import Bandwidth, Duration


def draw_fixed_group(chance: random.Random) -> Scenario:
    """One group under all faults that it can survive."""
    members = tuple(f"p{number}" for number in range(1, chance.randint(1, 7) + 1))
    hosts = draw_hosts(chance)
    return Scenario(
        name="fixed-group",
        duration=Duration(120_000 * MS),
        options=NewtopOptions(
            suspect_after=Duration(0),
            time_silence=Duration(chance.choice([0, 0, 5, 40]) * MS),
            packing=chance.random() < 0.7,
            frame_bytes=chance.choice([64, 1_000, 65_536]),
        ),
        group=(Group(name="g", members=members),),
        network=Network(latency=draw_latency(chance), bandwidth=chance.choice([None, None, Bandwidth(500_000)])),
        workload=tuple(_workload(chance, members) for _ in range(chance.randint(1, 3))),
        hosts=hosts,
        fault=tuple(draw_fault(chance, members, hosts) for _ in range(chance.choice([0, 1, 2, 4]))),
    )


def _workload(chance: random.Random, members: tuple[str, ...]) -> Workload:
    senders = tuple(chance.sample(members, chance.randint(1, len(members))))
    messages, payload = chance.choice([1, 5, 20]), chance.choice([0, 8, 32, 500])
    return draw_workload(chance, "g", senders, messages=messages, payload=payload)
