"""The family `acks`: stability by four kinds of acknowledgments (Berket98).

Messages travel on streams; acknowledgments are lost, repeated and reordered. Clocks are logical, or physical with a
skew. The sets of senders and receivers differ. Processes join, leave and crash.
"""

import random
from typing import Final

from antiphon.protocols.acks.options import ACKS, AcksOptions
from antiphon.scenario.draws import MS, draw_fault, draw_hosts, draw_latency, draw_workload
from antiphon.scenario.model import (
    Crash,
    Delay,
    Fault,
    Group,
    Join,
    Leave,
    Member,
    Network,
    Scenario,
    Skew,
)
from antiphon.scenario.units import Duration

SHAPES: Final = ("static", "everybody", "roles", "sources", "moving", "moving")


def draw_acks(chance: random.Random) -> Scenario:
    """One run of the family; the name of the scenario tells what is special about its group."""
    shape = chance.choice(SHAPES)
    members = tuple(f"p{number}" for number in range(1, chance.randint(2, 6) + 1))
    roles = _roles(chance, shape, members)
    senders = [name for name in members if roles.get(name, Member(process=name, group="g")).role != "receiver"]
    hosts = draw_hosts(chance)
    kinds = [kind for kind in ACKS if shape != "everybody" or kind != "explicit"]
    moving = _moves(chance, members) if shape == "moving" else ()
    workloads = tuple(
        draw_workload(
            chance,
            "g",
            tuple(chance.sample(senders, chance.randint(1, len(senders)))),
            messages=chance.choice([1, 4, 10]),
            payload=chance.choice([0, 8, 300]),
            replies=shape != "roles",
        )
        for _ in range(chance.randint(1, 2))
    )
    return Scenario(
        name=f"acks-{shape}",
        protocol="acks",
        duration=Duration(120_000 * MS),
        quiet=Duration(3_000 * MS),
        options=AcksOptions(
            acks=chance.choice(kinds),
            clock=chance.choice(["physical", "physical", "logical"]),
            send_every=Duration(chance.choice([20, 50, 100]) * MS),
            ack_every=Duration(chance.choice([20, 50, 100]) * MS),
            stability="all" if shape == "everybody" else "own",
            suspect_after=Duration(chance.choice([80, 300]) * MS),
        ),
        group=(Group(name="g", members=members, service="fifo"),),
        member=tuple(roles.values()),
        network=Network(
            latency=draw_latency(chance),
            loss=chance.choice([0.0, 0.05, 0.3]),
            duplicate=chance.choice([0.0, 0.1]),
            reorder=chance.choice([0.0, 0.2]),
        ),
        workload=workloads,
        hosts=hosts,
        fault=(
            *moving,
            *_apart(chance, members),
            *(draw_fault(chance, members, hosts) for _ in range(chance.choice([0, 0, 1, 2]))),
        ),
    )


def _roles(chance: random.Random, shape: str, members: tuple[str, ...]) -> dict[str, Member]:
    """Roles by process; the first process sends, and the last one receives."""
    drawn = {}
    if shape == "roles":
        for name in members:
            role = chance.choice(["both", "sender", "receiver"])
            if (name == members[0] and role == "receiver") or (name == members[-1] and role == "sender"):
                role = "both"
            drawn[name] = Member(process=name, group="g", role=role)  # type: ignore[arg-type]
    if shape == "sources":
        for name in members[1:]:
            others = [other for other in members if other != name]
            sources = tuple(chance.sample(others, chance.randint(1, len(others))))
            drawn[name] = Member(process=name, group="g", sources=sources)
    return drawn


def _moves(chance: random.Random, members: tuple[str, ...]) -> tuple[Fault, ...]:
    """Some join late, some leave and come back, perhaps at once, some crash; the first stays.

    A stream to a joiner is often slow just then, so that frames from before and after it joins are in transit together.
    """
    moves: list[Fault] = []
    for name in members[1:]:
        at = chance.randint(0, 400) * MS
        later = at + chance.choice([1, 3, 10, chance.randint(1, 400)]) * MS
        kind = chance.choice(["stays", "joins", "leaves", "returns", "returns", "crashes"])
        if kind == "joins":
            moves.append(Join(at=Duration(at), process=name, group="g"))
        elif kind == "leaves":
            moves.append(Leave(at=Duration(at), process=name, group="g"))
        elif kind == "returns":
            moves += [
                Leave(at=Duration(at), process=name, group="g"),
                Join(at=Duration(later), process=name, group="g"),
            ]
        elif kind == "crashes":
            moves.append(Crash(at=Duration(at), process=name))
        if chance.random() < 0.5:
            other, extra = chance.choice([each for each in members if each != name]), chance.choice([20, 300]) * MS
            until = Duration(later + 300 * MS)
            moves.append(Delay(at=Duration(at), until=until, from_=other, to=name, extra=Duration(extra)))
    return tuple(moves)


def _apart(chance: random.Random, members: tuple[str, ...]) -> list[Fault]:
    """Clocks that differ."""
    return [
        Skew(at=Duration(0), process=name, offset=Duration(chance.choice([5, 60]) * MS))
        for name in members
        if chance.random() < 0.2
    ]
