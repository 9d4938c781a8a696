"""The family `intergroup`: senders and receivers that come, go and change places, and all services side by side.

The network loses up to a quarter of all datagrams, repeats and reorders them; it splits, for a while or for good.
Clocks have a skew. Processes crash and come back, are suspected wrongly and paused, and applications stall. Members are
at one site or at several. A fifth of the runs has faults at chosen moments instead (`aimed.py`).
"""

import random
from typing import Final

from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.protocols.intergroup.scenarios.aimed import draw_aimed
from antiphon.protocols.intergroup.validation import SERVICES
from antiphon.scenario.changes import possible_changes
from antiphon.scenario.draws import MS, draw_fault, draw_latency, draw_workload
from antiphon.scenario.model import (
    Crash,
    Cut,
    Demote,
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
    Promote,
    Recover,
    Scenario,
    Site,
    Skew,
    Stall,
    Suspect,
    Uniform,
    Workload,
)
from antiphon.scenario.units import Bandwidth, Duration

SHAPES: Final = (
    *("total", "mixed", "mixed", "moving", "stalled", "sites", "pressed"),
    *("senders", "senders", "senders", "split", "split", "idle"),
)
_AIMED_SHARE: Final = 0.2
"""The share of runs of the shape `aimed`; the others are of a shape above."""
_MIXED: Final = ("mixed", "sites", "senders", "split", "idle")
"""Shapes in which members choose among all services."""
_CHANGES_MS: Final = 1_500
"""Senders change within this time."""
_QUIET_SUSPICIONS: Final = 20
"""In this number of suspicion timeouts, all changes are over: see `Suspectors.settling` of the checkers."""


def draw_intergroup(chance: random.Random) -> Scenario:
    """One run of the family; the name of the scenario tells what is special about it."""
    scenario = _at_random_times(chance)
    return possible_changes(draw_aimed(chance) if chance.random() < _AIMED_SHARE else scenario)


def _at_random_times(chance: random.Random) -> Scenario:
    shape = chance.choice(SHAPES)
    count = chance.randint(2, 8) if shape == "pressed" or chance.random() < 0.93 else chance.randint(9, 30)
    names = tuple(f"p{number}" for number in range(1, count + 1))
    senders = names[: chance.randint(1, min(count, 6))]
    receivers = names[len(senders) :]
    hosts = Hosts(service=Duration(chance.choice([0, 0, 20_000])), consume=Duration(chance.choice([0, 0, MS])))
    sites, paths = _topology(chance, names) if shape == "sites" else ((), ())
    loss = chance.choice([0.0, 0.02, 0.1, 0.25])
    options = _options(chance, shape, loss)
    return Scenario(
        name=f"intergroup-{shape}",
        protocol="intergroup",
        duration=Duration(90_000 * MS),
        quiet=Duration(_QUIET_SUSPICIONS * options.suspect_after),
        options=options,
        group=(Group(name="g", members=names, service="total"),),
        member=_members(chance, shape, names, senders),
        network=Network(
            transport="datagram",
            latency=draw_latency(chance),
            loss=loss,
            duplicate=chance.choice([0.0, 0.1]),
            reorder=chance.choice([0.0, 0.2]),
        ),
        site=sites,
        path=paths,
        workload=_workloads(chance, shape, names if shape == "idle" else senders),
        hosts=hosts,
        fault=(
            *_moves(chance, shape, receivers),
            *_changes(chance, shape, names),
            *_hindrances(chance, shape, names, receivers),
            *_apart(chance, names),
            *(draw_fault(chance, names, hosts, datagrams=True) for _ in range(chance.choice([0, 0, 1, 2]))),
        ),
    )


def _options(chance: random.Random, shape: str, loss: float) -> InterGroupOptions:
    """The suspicion timeout is so long that losses alone hardly ever cause a suspicion, or only rarely (M22)."""
    kinds: list[Fixed | Uniform] = [
        Uniform(low=Duration(8 * MS), high=Duration(24 * MS)),
        Fixed(value=Duration(20 * MS)),
    ]
    if loss < 0.1:
        kinds += [Uniform(low=Duration(25 * MS), high=Duration(75 * MS)), Fixed(value=Duration(50 * MS))]
    keep_alive = chance.choice(kinds)
    longest = keep_alive.value if isinstance(keep_alive, Fixed) else keep_alive.high
    keep_alives = 10 if loss >= 0.1 else 5
    return InterGroupOptions(
        keep_alive=keep_alive,
        report_every=Duration(chance.choice([20, 40]) * MS),
        suspect_after=Duration(max(200 * MS, keep_alives * longest)),
        window=chance.choice([2, 8]) if shape == "pressed" else chance.choice([16, 256]),
        repair_timers=chance.choice(["default", "default", "srm"]),
        rate=Bandwidth(chance.choice([100_000, 1_000_000])) if chance.random() < 0.3 else None,
        wait=Duration(chance.choice([20, 200]) * MS),
        idle_after=Duration(chance.choice([100, 300]) * MS if shape == "idle" else 0),
    )


def _members(chance: random.Random, shape: str, names: tuple[str, ...], senders: tuple[str, ...]) -> tuple[Member, ...]:
    """Each member chooses a service, or most choose total order."""
    services = SERVICES
    members = []
    for name in names:
        weak = shape in _MIXED and chance.random() < 0.5
        service = chance.choice(services) if weak else chance.choice(["", "", "total", "fifo"])
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


def _changes(chance: random.Random, shape: str, names: tuple[str, ...]) -> list[Fault]:
    """Members become senders and receivers, crash, come back, leave, return, are suspected and cut off."""
    if shape not in ("senders", "split", "idle"):
        return []
    changes: list[Fault] = []
    for _ in range(chance.randint(1, 8)):
        at, process = Duration(chance.randint(0, _CHANGES_MS) * MS), chance.choice(names)
        later = Duration(at + chance.choice([1, 50, chance.randint(1, _CHANGES_MS)]) * MS)
        kind = chance.choice(["promote", "demote", "demote", "crash", "crash", "leave", "join", "suspect", "suspect"])
        if shape == "split":
            kind = chance.choice([kind, "partition", "cut"])
        changes += _change(chance, kind, process, names, at, later)
    return changes


def _change(
    chance: random.Random, kind: str, process: str, names: tuple[str, ...], at: Duration, later: Duration
) -> list[Fault]:
    """One change, and often its end."""
    others = tuple(name for name in names if name != process)
    until = later if chance.random() < 0.6 else None
    changes: dict[str, list[Fault]] = {
        "promote": [Promote(at=at, process=process, group="g")],
        "demote": [Demote(at=at, process=process, group="g")],
        "crash": [Crash(at=at, process=process)],
        "leave": [Leave(at=at, process=process, group="g")],
        "join": [Join(at=at, process=process, group="g")],
    }
    if others:
        changes["suspect"] = [Suspect(at=at, process=process, by=chance.choice(others))]
        changes["cut"] = [Cut(at=at, until=until, from_=process, to=chance.choice(others))]
        changes["partition"] = [Partition(at=at, until=until, sides=_sides(chance, process, others))]
    if until is not None and others:
        changes["crash"].append(Recover(at=until, process=process))
    if until is not None:
        changes["leave"].append(Join(at=until, process=process, group="g"))
    return changes.get(kind, [])


def _sides(chance: random.Random, process: str, others: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    apart = tuple(name for name in others if chance.random() < 0.5) or others[:1]
    return (process, *(name for name in others if name not in apart)), apart


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
