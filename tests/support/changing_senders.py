"""Runs with many changes of the sender group within a short time, for bugs that rare coincidences show."""

import random
from typing import Final

from antiphon.campaign.families import Family
from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.protocols.intergroup.scenarios.mixed import _change
from antiphon.scenario.changes import possible_changes
from antiphon.scenario.draws import MS, draw_workload
from antiphon.scenario.model import Fault, Fixed, Group, Hosts, Member, Network, Scenario, Skew, Uniform
from antiphon.scenario.units import Duration

_KINDS: Final = ("promote", "demote", "crash", "crash", "leave", "suspect", "suspect", "suspect", "partition", "cut")
_SUSPECT_MS: Final = 200
_BUSY_MS: Final = 1_000


def _draw(chance: random.Random) -> Scenario:
    """Three to five processes, and four to fourteen changes within a second."""
    names = tuple(f"p{number}" for number in range(1, chance.randint(4, 6)))
    senders = names[: chance.randint(2, len(names))]
    latencies: list[Fixed | Uniform] = [
        Fixed(value=Duration(2 * MS)),
        Uniform(low=Duration(MS), high=Duration(20 * MS)),
    ]
    loss = chance.choice([0.0, 0.1, 0.25])
    changes: list[Fault] = []
    for _ in range(chance.randint(4, 14)):
        at = Duration(chance.randint(0, _BUSY_MS) * MS)
        later = Duration(at + chance.choice([1, 50, 250, chance.randint(1, _BUSY_MS)]) * MS)
        changes += _change(chance, chance.choice(_KINDS), chance.choice(names), names, at, later)
    changes += [
        Skew(at=Duration(0), process=name, offset=Duration(chance.choice([5, 60, 2_000]) * MS))
        for name in names
        if chance.random() < 0.2
    ]
    scenario = Scenario(
        name="intergroup-changing",
        protocol="intergroup",
        duration=Duration(90_000 * MS),
        quiet=Duration(20 * _SUSPECT_MS * MS),
        options=InterGroupOptions(
            keep_alive=Fixed(value=Duration(20 * MS)),
            report_every=Duration(20 * MS),
            suspect_after=Duration(_SUSPECT_MS * MS),
            window=chance.choice([4, 64]),
        ),
        group=(Group(name="g", members=names, service="total"),),
        member=tuple(
            Member(process=name, group="g", role="both" if name in senders else "receiver", service="total")
            for name in names
        ),
        network=Network(
            transport="datagram",
            latency=chance.choice(latencies),
            loss=loss,
            duplicate=chance.choice([0.0, 0.1]),
            reorder=chance.choice([0.0, 0.2]),
        ),
        workload=tuple(
            draw_workload(chance, "g", senders, messages=chance.choice([10, 30]), payload=8, replies=False)
            for _ in range(2)
        ),
        hosts=Hosts(),
        fault=tuple(changes),
    )
    return possible_changes(scenario)


CHANGING_SENDERS: Final = Family("changing senders", "", _draw)
