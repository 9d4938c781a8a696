"""The family `sequencer`: asymmetric groups, alone and mixed with symmetric ones, under all faults of members.

Faults, networks and workloads are those of the family `membership`. A share of the runs has no membership: they
test only the order over groups.
"""

import random
from collections.abc import Mapping
from typing import Final, Literal

from msgspec.structs import replace

from antiphon.protocols.newtop.options import NewtopOptions
from antiphon.protocols.newtop.scenarios.membership import (
    QUIET,
    SUSPECT_AFTER_MS,
    Faults,
    Members,
    draw_network,
    draw_workloads,
)
from antiphon.scenario.draws import MS, draw_hosts
from antiphon.scenario.model import Group, Hosts, Scenario
from antiphon.scenario.shapes import Groups, fork, pair, placed, ring, triangle
from antiphon.scenario.units import Duration

SHAPES: Final[Mapping[str, int]] = {"one": 30, "pair": 16, "fork": 18, "triangle": 14, "twins": 14, "ring": 8}
"""Percentage of runs with this overlap of groups: the figures of Macedo94, and more."""
MODES: Final[Mapping[str, int]] = {"asymmetric": 45, "mixed": 45, "symmetric": 10}
"""Percentage of runs with these modes of groups; a single group is asymmetric or symmetric."""
UNWATCHED: Final = 0.12
"""Share of the runs without suspicion."""
CALM: Final = 0.12
"""Share of the others without faults."""

_OVERLAPPING: Final = {"pair": pair, "fork": fork, "triangle": triangle, "ring": ring}


def draw_sequencer(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    unwatched, calm = chance.random() < UNWATCHED, chance.random() < CALM
    network = draw_network(chance, [0.0, 0.02] if calm or unwatched else [0.0, 0.0, 0.02, 0.02, 0.1, 0.25])
    (shape,) = chance.choices([*SHAPES], [*SHAPES.values()])
    groups = placed(chance, _shape(chance, shape))
    options = _options(chance)
    hosts = draw_hosts(chance) if chance.random() < 0.25 and not calm else Hosts()
    faults = Faults(chance, groups, options.suspect_after // MS, datagrams=network.transport == "datagram")
    return Scenario(
        name=f"sequencer-{shape}",
        duration=Duration(8_000 * MS),
        quiet=Duration(QUIET * options.suspect_after + options.idle_probe),
        options=replace(options, suspect_after=Duration(0), idle_probe=Duration(0)) if unwatched else options,
        group=_groups(chance, groups),
        network=network,
        workload=draw_workloads(chance, groups, options, faults.phase_ms),
        hosts=hosts,
        fault=() if calm or unwatched else faults.draw(),
    )


def _shape(chance: random.Random, shape: str) -> Groups:
    if shape == "one":
        return (tuple(range(chance.choice([3, 3, 3, 4, 4, 5, 6]))),)
    if shape == "twins":
        members = tuple(range(chance.randint(3, 4)))
        return members, members
    return _OVERLAPPING[shape](chance)


def _groups(chance: random.Random, groups: Members) -> tuple[Group, ...]:
    (mode,) = chance.choices([*MODES], [*MODES.values()])
    modes: list[Literal["symmetric", "asymmetric"]] = [
        "symmetric" if mode == "symmetric" else "asymmetric" for _ in groups
    ]
    if mode == "mixed" and len(groups) > 1:
        first, other = chance.sample(range(len(groups)), 2)
        modes = [chance.choice(["symmetric", "asymmetric"]) for _ in groups]
        modes[first], modes[other] = "symmetric", "asymmetric"
    return tuple(
        Group(name=name, members=members, service="total", mode=mode)
        for (name, members), mode in zip(groups.items(), modes, strict=True)
    )


def _options(chance: random.Random) -> NewtopOptions:
    frame_bytes = chance.choice([64, 65_536, 65_536])
    return NewtopOptions(
        time_silence=Duration(chance.choice([0, 0, 5, 20]) * MS),
        packing=chance.random() < 0.6,
        frame_bytes=frame_bytes,
        flow_control=chance.choice([0, 3, 3]),
        window=chance.choice([2, 4, 64]),
        window_bytes=chance.choice([frame_bytes, 1_048_576, 1_048_576]),
        suspect_after=Duration(chance.choice(SUSPECT_AFTER_MS) * MS),
        idle_probe=Duration(chance.choice([0, 150, 250, 300, 400, 400]) * MS),
    )
