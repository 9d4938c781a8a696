"""The family `intergroup`: a fixed sender group, receivers that join and leave, and all services side by side.

The network loses up to a quarter of all datagrams, repeats and reorders them. Clocks have a skew. Processes are paused,
and applications stall. Members are at one site or at several.
"""

import random
from typing import Final

from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.protocols.intergroup.validation import SERVICES
from antiphon.scenario.draws import MS, draw_fault, draw_latency, draw_workload
from antiphon.scenario.model import (
    Crash,
    Cut,
    Fault,
    Fixed,
    Group,
    Hosts,
    Join,
    Leave,
    Member,
    Network,
    Partition,
    Path,
    Pause,
    Scenario,
    Site,
    Skew,
    Stall,
    Uniform,
    Workload,
)
from antiphon.scenario.units import Bandwidth, Duration

SHAPES: Final = ("total", "mixed", "mixed", "moving", "moving", "stalled", "sites", "pressed")
_SUSPECT_AFTER: Final = 200
"""Milliseconds: more than twice the longest keep-alive."""


def draw_intergroup(chance: random.Random) -> Scenario:
    """One run of the family; the name of the scenario tells what is special about it."""
    shape = chance.choice(SHAPES)
    count = chance.randint(2, 8) if shape == "pressed" or chance.random() < 0.75 else chance.randint(9, 30)
    names = tuple(f"p{number}" for number in range(1, count + 1))
    senders = names[: chance.randint(1, min(count, 6))]
    receivers = names[len(senders) :]
    hosts = Hosts(service=Duration(chance.choice([0, 0, 20_000])), consume=Duration(chance.choice([0, 0, MS])))
    sites, paths = _topology(chance, names) if shape == "sites" else ((), ())
    return Scenario(
        name=f"intergroup-{shape}",
        protocol="intergroup",
        duration=Duration(120_000 * MS),
        quiet=Duration(2_500 * MS),
        options=_options(chance, shape),
        group=(Group(name="g", members=names, service="total"),),
        member=_members(chance, shape, names, senders),
        network=Network(
            transport="datagram",
            latency=draw_latency(chance),
            loss=chance.choice([0.0, 0.02, 0.1, 0.25]),
            duplicate=chance.choice([0.0, 0.1]),
            reorder=chance.choice([0.0, 0.2]),
        ),
        site=sites,
        path=paths,
        workload=_workloads(chance, shape, senders),
        hosts=hosts,
        fault=(
            *_moves(chance, shape, receivers),
            *_hindrances(chance, shape, names, receivers),
            *_apart(chance, names),
            *(draw_fault(chance, names, hosts, datagrams=True) for _ in range(chance.choice([0, 0, 1, 2]))),
        ),
    )


def _options(chance: random.Random, shape: str) -> InterGroupOptions:
    kinds: list[Fixed | Uniform] = [
        Uniform(low=Duration(25 * MS), high=Duration(75 * MS)),
        Uniform(low=Duration(10 * MS), high=Duration(40 * MS)),
        Fixed(value=Duration(50 * MS)),
    ]
    return InterGroupOptions(
        keep_alive=chance.choice(kinds),
        report_every=Duration(chance.choice([10, 20]) * MS),
        suspect_after=Duration(_SUSPECT_AFTER * MS),
        window=chance.choice([2, 8]) if shape == "pressed" else chance.choice([16, 256]),
        repair_timers=chance.choice(["default", "default", "srm"]),
        rate=Bandwidth(chance.choice([100_000, 1_000_000])) if chance.random() < 0.3 else None,
        wait=Duration(chance.choice([20, 200]) * MS),
    )


def _members(chance: random.Random, shape: str, names: tuple[str, ...], senders: tuple[str, ...]) -> tuple[Member, ...]:
    """Each member chooses a service, or most choose total order."""
    services = SERVICES
    members = []
    for name in names:
        service = chance.choice(services) if shape in ("mixed", "sites") else chance.choice(["", "", "total", "fifo"])
        receives = name not in senders
        some = receives and service == "fifo" and chance.random() < 0.5
        members.append(
            Member(
                process=name,
                group="g",
                role="receiver" if receives else "both",
                service=service,
                sources=tuple(chance.sample(senders, chance.randint(1, len(senders)))) if some else None,
            )
        )
    return tuple(members)


def _workloads(chance: random.Random, shape: str, senders: tuple[str, ...]) -> tuple[Workload, ...]:
    messages = [20, 60] if shape == "pressed" else [1, 5, 20]
    return tuple(
        draw_workload(
            chance,
            "g",
            tuple(chance.sample(senders, chance.randint(1, len(senders)))),
            messages=chance.choice(messages),
            payload=chance.choice([0, 8, 300]),
            replies=False,
        )
        for _ in range(chance.randint(1, 2))
    )


def _topology(chance: random.Random, names: tuple[str, ...]) -> tuple[tuple[Site, ...], tuple[Path, ...]]:
    """Two or three sites, far apart; a process at no site is near all others."""
    labels = ("north", "south", "west")[: chance.choice([2, 3])]
    at = {name: chance.choice([*labels, *labels, ""]) for name in names}
    sites = tuple(Site(name=label, processes=tuple(name for name in names if at[name] == label)) for label in labels)
    pairs = [(a, b) for rank, a in enumerate(labels) for b in labels[rank + 1 :]]
    return sites, tuple(
        Path(
            between=pair,
            latency=Uniform(low=Duration(20 * MS), high=Duration(chance.choice([20, 60]) * MS)),
            loss=chance.choice([0.0, 0.02]),
        )
        for pair in pairs
    )


def _moves(chance: random.Random, shape: str, receivers: tuple[str, ...]) -> list[Fault]:
    """Receivers join late, leave, join again, crash."""
    moves: list[Fault] = []
    for name in receivers if shape in ("moving", "mixed") else ():
        at, later = chance.randint(0, 600) * MS, chance.choice([1, 10, chance.randint(1, 800)]) * MS
        kind = chance.choice(["stays", "joins", "leaves", "returns", "comes and goes", "crashes"])
        if kind in ("joins", "comes and goes"):
            moves.append(Join(at=Duration(at), process=name, group="g"))
        if kind in ("leaves", "returns"):
            moves.append(Leave(at=Duration(at), process=name, group="g"))
        if kind == "returns":
            moves.append(Join(at=Duration(at + later), process=name, group="g"))
        if kind == "comes and goes":
            moves.append(Leave(at=Duration(at + later), process=name, group="g"))
        if kind == "crashes":
            moves.append(Crash(at=Duration(at), process=name))
    return moves


def _hindrances(chance: random.Random, shape: str, names: tuple[str, ...], receivers: tuple[str, ...]) -> list[Fault]:
    """Applications that consume nothing, paused processes, and partitions, all for a long time."""
    if shape not in ("stalled", "mixed") or chance.random() < 0.3:
        return []
    hindered: list[Fault] = []
    for name in chance.sample(names, min(len(names), chance.randint(1, 3))):
        at = Duration(chance.randint(0, 500) * MS)
        until = Duration(at + chance.choice([300, 900, 2_500]) * MS)
        others = tuple(other for other in names if other != name)
        kinds: list[Fault] = [Stall(at=at, until=until, process=name), Pause(at=at, until=until, process=name)]
        kinds += [Partition(at=at, until=until, sides=((name,), others))]
        kinds += [Cut(at=at, until=until, from_=chance.choice(others), to=name)]
        hindered.append(chance.choice(kinds))
    if receivers and chance.random() < 0.3:
        hindered.append(Stall(at=Duration(100 * MS), process=chance.choice(receivers)))  # until the end
    return hindered


def _apart(chance: random.Random, names: tuple[str, ...]) -> list[Fault]:
    """Clocks that differ."""
    return [
        Skew(at=Duration(0), process=name, offset=Duration(chance.choice([5, 60, 2_000]) * MS))
        for name in names
        if chance.random() < 0.15
    ]
