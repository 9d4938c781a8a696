"""The family `newtop`: everything that Newtop promises without failures.

Groups that overlap as in the figures of Macedo94 and in other ways, each service, each algorithm of flow control from
its smallest window up, streams, and datagrams with loss, duplicates and reordering. Runs have about a thousand rows:
many small runs find more than a few large ones, and a violation is easy to read.
"""

import random
from collections.abc import Mapping
from typing import Final, Literal

from antiphon.protocols.newtop.options import WINDOW_MIN, NewtopOptions
from antiphon.scenario.draws import MS, draw_fault, draw_hosts, draw_latency, draw_workload
from antiphon.scenario.model import Group, Network, Scenario, Workload
from antiphon.scenario.shapes import SHAPES, members_by_group
from antiphon.scenario.units import Bandwidth, Duration

Service = Literal["total", "causal-slow", "causal-fast", "causal-relative", "causal-vector"]

SERVICES: Final[Mapping[Service, int]] = {
    "total": 40,
    "causal-slow": 15,
    "causal-fast": 15,
    "causal-relative": 15,
    "causal-vector": 15,
}
"""Percentage of runs in which all groups have this service."""
FRAMES_A_MESSAGE_MAX: Final = 10
ROWS: Final = 2_000
"""Estimated limit of the rows of a trace; packing and shared answers shorten it, repairs on datagrams lengthen it."""

_Groups = Mapping[str, tuple[str, ...]]


def draw_newtop(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    shape = chance.choice([*SHAPES])
    groups = members_by_group(chance, shape)
    processes = sorted({name for members in groups.values() for name in members})
    (service,) = chance.choices([*SERVICES], [*SERVICES.values()])
    options = _options(chance, service)
    network = _network(chance)
    hosts = draw_hosts(chance)
    datagrams = network.transport == "datagram"
    return Scenario(
        name=f"newtop-{shape}",
        duration=Duration(120_000 * MS),
        options=options,
        group=_groups(chance, groups, service),
        network=network,
        workload=_workloads(chance, groups, options.frame_bytes),
        hosts=hosts,
        fault=tuple(
            draw_fault(chance, processes, hosts, datagrams=datagrams) for _ in range(chance.choice([0, 1, 2, 4]))
        ),
    )


def _options(chance: random.Random, service: Service) -> NewtopOptions:
    frame_bytes = chance.choice([64, 1_000, 65_536])
    flow_control = chance.choice([0, *WINDOW_MIN])
    return NewtopOptions(
        suspect_after=Duration(0),
        time_silence=Duration(chance.choice([0, 0, 5, 40]) * MS),
        packing=chance.random() < 0.5,  # full buffers, and so evictions, need many frames
        frame_bytes=frame_bytes,
        flow_control=flow_control,
        window=chance.choice([WINDOW_MIN.get(flow_control, 1), 4, 8, 64]),
        window_bytes=chance.choice([frame_bytes, 2 * frame_bytes, 1_048_576, 1_048_576]),
        compression=service == "causal-fast" and chance.random() < 0.5,
    )


def _groups(chance: random.Random, groups: _Groups, service: Service) -> tuple[Group, ...]:
    """Block numbering needs members that are in no other group (docs/spec/flow-control.md 7)."""
    drawn = []
    for name, members in groups.items():
        alone = not any({*members} & {*groups[other]} for other in groups if other != name)
        blocks = alone and chance.random() < 0.5
        drawn.append(Group(name=name, members=members, service=service, numbering="block" if blocks else "separate"))
    return tuple(drawn)


def _network(chance: random.Random) -> Network:
    latency = draw_latency(chance)
    if chance.random() < 0.5:
        return Network(latency=latency, bandwidth=chance.choice([None, None, Bandwidth(500_000)]))
    return Network(
        transport="datagram",
        latency=latency,
        loss=chance.choice([0.0, 0.01, 0.05, 0.2]),
        duplicate=chance.choice([0.0, 0.02, 0.2]),
        reorder=chance.choice([0.0, 0.05, 0.3]),
    )


def _workloads(chance: random.Random, groups: _Groups, frame_bytes: int) -> tuple[Workload, ...]:
    count = chance.randint(1, 4)
    return tuple(_workload(chance, groups, frame_bytes, affordable=_frames_max(groups) // count) for _ in range(count))


def _workload(chance: random.Random, groups: _Groups, frame_bytes: int, affordable: int) -> Workload:
    group = chance.choice([*groups])
    payload = chance.choice([each for each in (0, 8, 32, 500, 3_000) if each <= FRAMES_A_MESSAGE_MAX * frame_bytes])
    frames_a_message = max(1, -(-payload // frame_bytes))
    members = groups[group]
    senders = chance.randint(1, max(1, min(len(members), affordable // frames_a_message)))
    messages = max(1, min(chance.choice([1, 5, 10, 20]), affordable // (senders * frames_a_message)))
    return draw_workload(chance, group, tuple(chance.sample(members, senders)), messages=messages, payload=payload)


def _frames_max(groups: _Groups) -> int:
    """Limit of data frames of a run: at worst all members of all groups answer each, to all others."""
    return ROWS // sum(len(members) * (len(members) + 2) for members in groups.values())
