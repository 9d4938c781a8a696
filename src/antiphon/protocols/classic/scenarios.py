"""The families of the multicasts of the lecture notes: alone, total order with others, and in synchronous rounds.

Links lose nothing, but they reorder and repeat, because the notes require no more. Senders are inside and outside the
group. All members but one may crash, each at any point of its work.
"""

import random
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from antiphon.protocols.classic.options import ClassicOptions
from antiphon.scenario.draws import MS, draw_fault, draw_hosts, draw_latency, draw_workload
from antiphon.scenario.model import (
    Crash,
    Fault,
    Fixed,
    Group,
    Hosts,
    Latency,
    Lognormal,
    Member,
    Network,
    Pause,
    Scenario,
    Skew,
    Uniform,
    Workload,
)
from antiphon.scenario.shapes import members_by_group
from antiphon.scenario.units import Bandwidth, Duration

Service = Literal["reliable", "fifo", "causal", "total"]
SERVICES: Final[tuple[Service, ...]] = ("reliable", "fifo", "causal", "total")
_LATENCIES: Final[tuple[Latency, ...]] = (
    Uniform(low=Duration(0), high=Duration(10 * MS)),
    Lognormal(median=Duration(1 * MS), sigma=2.0),
)
"""With a long tail, one frame is far behind the others: that reveals a wrong clock (N1) most often."""
CRASHING: Final = 0.5
"""Share of the runs in which a process crashes."""
MESSAGES: Final = 40
"""Largest number of application messages in a run; flooding transmits each of them n² times."""


def draw_classic(chance: random.Random) -> Scenario:
    """One run of the family; the name of the scenario tells the shape of its groups."""
    shape = chance.choice(["one", "one", "open", "pair", "fork"])
    groups = {"g": _names(chance.randint(1, 6))} if shape == "open" else members_by_group(chance, shape)
    outside = [f"c{number}" for number in range(1, chance.randint(1, 2) + 1)] if shape == "open" else []
    members = {name: (*inside, *outside) for name, inside in groups.items()}
    processes = sorted({name for each in members.values() for name in each})
    hosts, crashes = draw_hosts(chance), _crashes(chance, processes)
    return Scenario(
        name=f"classic-{shape}",
        protocol="classic",
        duration=Duration(120_000 * MS),
        options=ClassicOptions(suspect_after=Duration(chance.choice([80, 200]) * MS)),
        group=tuple(Group(name=name, members=each, service=chance.choice(SERVICES)) for name, each in members.items()),
        member=tuple(Member(process=name, group="g", role="sender") for name in outside),
        network=_network(chance),
        workload=_workloads(chance, members, replies=not outside),
        hosts=hosts,
        fault=(*crashes, *(draw_fault(chance, processes, hosts) for _ in range(chance.choice([0, 1, 2])))),
    )


def draw_two_phase(chance: random.Random) -> Scenario:
    """A few sites that all multicast at once over links that reorder: the schedules that order depends on (N1)."""
    members = _names(chance.choice([2, 3, 3, 3, 4, 5]))
    senders = tuple(chance.sample(members, chance.randint(2, len(members))))
    return Scenario(
        name="two-phase",
        protocol="classic",
        duration=Duration(120_000 * MS),
        options=ClassicOptions(suspect_after=Duration(80 * MS)),
        group=(Group(name="g", members=members, service="total"),),
        network=Network(
            transport="datagram",
            latency=chance.choice(_LATENCIES),
            duplicate=chance.choice([0.0, 0.0, 0.2]),
        ),
        workload=(
            Workload(
                group="g",
                senders=senders,
                messages=chance.randint(1, 4),
                interval=Duration(chance.choice([1, 3, 8]) * MS),
                jitter=1.0,
                payload=8,
                answers="majority" if chance.random() < 0.2 else "none",
            ),
        ),
        fault=(*_crashes(chance, members, share=0.4), *_pauses(chance, members)),
    )


def draw_combined(chance: random.Random) -> Scenario:
    """Bursts, and answers to them, over links that reorder; originators crash with what they have under way."""
    members = _names(chance.choice([2, 3, 3, 4, 5]))
    outside = ("c1",) if chance.random() < 0.2 else ()
    service = chance.choice(["fifo-total", "causal-total"])
    senders = (*members, *outside)
    workloads = tuple(
        Workload(
            group="g",
            senders=tuple(chance.sample(senders, chance.randint(1, len(senders)))),
            messages=chance.randint(1, 4),
            interval=Duration(chance.choice([0, 3, 20]) * MS),
            jitter=1.0,
            payload=8,
            replies=not outside and chance.random() < 0.5,
        )
        for _ in range(chance.randint(1, 2))
    )
    return Scenario(
        name="combined",
        protocol="classic",
        duration=Duration(120_000 * MS),
        options=ClassicOptions(suspect_after=Duration(80 * MS)),
        group=(Group(name="g", members=senders, service=service),),
        member=tuple(Member(process=name, group="g", role="sender") for name in outside),
        network=Network(
            transport=chance.choice(["datagram", "datagram", "stream"]),
            latency=chance.choice(_LATENCIES),
        ),
        workload=tuple(_asking(chance, each) if chance.random() < 0.2 else each for each in workloads),
        fault=(*_crashes(chance, members, share=0.5), *_pauses(chance, members)),
    )


def draw_synchronous(chance: random.Random) -> Scenario:
    """Rounds that are just long enough: the latest frames, clocks that differ as much as allowed, chains of crashes."""
    members = _names(chance.choice([1, 2, 3, 4, 4, 5, 6]))
    outside = ("c1",) if chance.random() < 0.2 else ()
    crashes, delay = _crashes(chance, members), Duration(chance.choice([2, 10, 40]) * MS)
    apart, tick = Duration(chance.choice([0, 0, 3, 15]) * MS), Duration(chance.choice([0, 0, 5 * MS]))
    slack = chance.choice([1, 1, int(delay)])
    latencies: tuple[Latency, ...] = (Uniform(low=Duration(0), high=delay), Fixed(value=delay))
    return Scenario(
        name="synchronous",
        protocol="classic",
        duration=Duration(120_000 * MS),
        options=ClassicOptions(
            suspect_after=Duration(chance.choice([80, 200]) * MS),
            round=Duration((len(crashes) + 1) * delay + apart + tick + slack),
        ),
        group=(Group(name="g", members=(*members, *outside), service="synchronous"),),
        member=tuple(Member(process=name, group="g", role="sender") for name in outside),
        network=Network(
            transport=chance.choice(["datagram", "datagram", "stream"]),
            latency=chance.choice(latencies),
        ),
        workload=_workloads(chance, {"g": (*members, *outside)}, replies=not outside),
        hosts=Hosts(tick=tick),
        fault=(
            *(Skew(at=Duration(0), process=name, offset=apart) for name in members if apart and chance.random() < 0.5),
            *crashes,
        ),
    )


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"p{number}" for number in range(1, count + 1))


def _crashes(
    chance: random.Random, processes: list[str] | tuple[str, ...], share: float = CRASHING
) -> tuple[Fault, ...]:
    """Crashes; at least one process survives."""
    if len(processes) < 2 or chance.random() > share:
        return ()
    victims = chance.sample([*processes], chance.randint(1, min(3, len(processes) - 1)))
    return tuple(Crash(at=Duration(chance.randint(0, 150_000) * 1_000), process=name) for name in victims)


def _pauses(chance: random.Random, processes: tuple[str, ...]) -> tuple[Fault, ...]:
    """A process is paused for a while, and learns nothing meanwhile, not even of losses."""
    if chance.random() > 0.3:
        return ()
    at = chance.randint(0, 150) * MS
    until = Duration(at + chance.randint(1, 300) * MS)
    return (Pause(at=Duration(at), until=until, process=chance.choice(processes)),)


def _network(chance: random.Random) -> Network:
    latency = draw_latency(chance)
    if chance.random() < 0.3:
        return Network(latency=latency, bandwidth=chance.choice([None, None, Bandwidth(500_000)]))
    return Network(
        transport="datagram",
        latency=latency,
        duplicate=chance.choice([0.0, 0.02, 0.2]),
        reorder=chance.choice([0.0, 0.05, 0.3]),
    )


def _workloads(chance: random.Random, members: Mapping[str, tuple[str, ...]], *, replies: bool) -> tuple[Workload, ...]:
    count = chance.randint(1, 3)
    drawn = []
    for _ in range(count):
        group = chance.choice([*members])
        senders = tuple(chance.sample(members[group], chance.randint(1, min(len(members[group]), 4))))
        messages = max(1, min(chance.choice([1, 3, 8]), MESSAGES // (count * len(senders))))
        payload = chance.choice([0, 8, 300])
        workload = draw_workload(chance, group, senders, messages=messages, payload=payload, replies=replies)
        if chance.random() < 0.25:
            workload = _asking(chance, workload)
        drawn.append(workload)
    return tuple(drawn)


def _asking(chance: random.Random, workload: Workload) -> Workload:
    """The same workload with requests instead of messages."""
    return msgspec.structs.replace(workload, replies=False, answers=chance.choice(["any", "first", "majority", "all"]))
