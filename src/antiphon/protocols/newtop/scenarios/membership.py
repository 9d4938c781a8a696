"""The family `membership`: groups whose members crash, are partitioned, and suspect each other rightly and wrongly.

After a phase of faults, half of the runs heal all faults that can heal. In the other half a core stays fully connected,
and all other processes are cut off for good, at least in one direction: a fault that always heals hides livelocks
(docs/spec/properties.md 6). Runs are small, as in the family `newtop`, with short timeouts, so that faults coincide.
"""

import random
from collections.abc import Mapping
from typing import Final, Literal

from antiphon.protocols.newtop.options import WINDOW_MIN, NewtopOptions
from antiphon.protocols.newtop.settings import Service
from antiphon.scenario.draws import MS, draw_hosts
from antiphon.scenario.model import (
    Crash,
    Cut,
    Delay,
    Fault,
    Fixed,
    Group,
    Heal,
    Hosts,
    Latency,
    Lognormal,
    Loss,
    Network,
    Partition,
    Pause,
    Scenario,
    Skew,
    Stall,
    Suspect,
    Uniform,
    Workload,
)
from antiphon.scenario.shapes import Groups, fork, pair, placed, ring, scattered, triangle
from antiphon.scenario.units import Duration

SERVICES: Final[Mapping[Service, int]] = {
    "total": 50,
    "causal-slow": 14,
    "causal-fast": 12,
    "causal-relative": 14,
    "causal-vector": 10,
}
"""Percentage of runs in which all groups have this service."""
SHAPES: Final[Mapping[str, int]] = {
    "one": 50,
    "pair": 9,
    "fork": 9,
    "triangle": 9,
    "twins": 7,
    "ring": 6,
    "random": 10,
}
"""Percentage of runs with this overlap of groups."""
SUSPECT_AFTER_MS: Final = (100, 100, 100, 120, 120, 150, 200, 300)
STREAMS: Final = 0.65
PROBED: Final = 0.85
"""Share of the runs whose idle groups probe for crashed members."""
CALM: Final = 0.15
"""Share of the runs without faults: no member may be excluded there (L9)."""
HEALED: Final = 0.5
"""Share of the other runs in which all faults that can heal do."""
QUIET: Final = 9
"""Time for a run to settle, as a multiple of `suspect_after`, besides the probe."""
PROCESSES_ON_DATAGRAMS: Final = 5
"""Limit of members for one group, and for random groups: there every member tells all others its gaps."""
ROWS: Final = 1_000
"""Estimated limit of rows that the messages of a run add to its trace."""

_OVERLAPPING: Final = {"pair": pair, "fork": fork, "triangle": triangle, "ring": ring, "random": scattered}
Members = Mapping[str, tuple[str, ...]]


def draw_membership(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    return draw_with_failures(chance, "membership", SERVICES)


def draw_with_failures(chance: random.Random, family: str, services: Mapping[Service, int]) -> Scenario:
    """Groups with one of these services (with the percentage of runs for each), and their faults."""
    calm = chance.random() < CALM
    network = draw_network(chance, [0.0, 0.02] if calm else [0.0, 0.0, 0.02, 0.02, 0.1, 0.25])
    datagrams = network.transport == "datagram"
    (shape,) = chance.choices([*SHAPES], [*SHAPES.values()])
    groups = placed(chance, _shape(chance, shape, PROCESSES_ON_DATAGRAMS if datagrams else 8))
    (service,) = chance.choices([*services], [*services.values()])
    options = _options(chance, service, [250, 400] if datagrams else [150, 250, 300, 400])
    hosts = draw_hosts(chance) if chance.random() < 0.25 and not calm else Hosts()
    faults = Faults(chance, groups, options.suspect_after // MS, datagrams=datagrams)
    return Scenario(
        name=f"{family}-{shape}",
        duration=Duration(8_000 * MS),
        quiet=Duration(QUIET * options.suspect_after + options.idle_probe),
        options=options,
        group=_groups(chance, groups, service),
        network=network,
        workload=draw_workloads(chance, groups, options, faults.phase_ms),
        hosts=hosts,
        fault=() if calm else faults.draw(),
    )


def _shape(chance: random.Random, shape: str, most: int) -> Groups:
    """As in the family `newtop`, with three or more processes: smaller groups have little to agree on."""
    if shape == "one":
        return (tuple(range(min(chance.choice([3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8]), most))),)
    if shape == "twins":
        members = tuple(range(chance.randint(3, min(5, most - 1))))
        return members, members
    groups = _OVERLAPPING[shape](chance)
    while shape == "random" and not 3 <= len({place for group in groups for place in group}) <= most:
        groups = _OVERLAPPING[shape](chance)
    return groups


def _options(chance: random.Random, service: Service, probes_ms: list[int]) -> NewtopOptions:
    frame_bytes = chance.choice([64, 65_536, 65_536])
    flow_control = chance.choice([0, *WINDOW_MIN])
    return NewtopOptions(
        time_silence=Duration(chance.choice([0, 0, 5, 20]) * MS),
        packing=chance.random() < 0.6,
        frame_bytes=frame_bytes,
        flow_control=flow_control,
        window=chance.choice([WINDOW_MIN.get(flow_control, 1), 4, 64]),
        window_bytes=chance.choice([frame_bytes, 1_048_576, 1_048_576]),
        compression=service in ("causal-fast", "causal-vector") and chance.random() < 0.4,
        suspect_after=Duration(chance.choice(SUSPECT_AFTER_MS) * MS),
        idle_probe=Duration(chance.choice(probes_ms) * MS if chance.random() < PROBED else 0),
        view_change=chance.choice(["cut", "remove", "closed"]) if service == "total" else "cut",
    )


def _groups(chance: random.Random, groups: Members, service: Service) -> tuple[Group, ...]:
    """Block numbering needs members that are in no other group (flow-control.md 7), and no flushes."""
    blocks = len(groups) == 1 and chance.random() < 0.3 and service in ("total", "total-safe", "causal-slow")
    numbering: Literal["block", "separate"] = "block" if blocks else "separate"
    return tuple(
        Group(name=name, members=members, service=service, numbering=numbering) for name, members in groups.items()
    )


def draw_network(chance: random.Random, losses: list[float]) -> Network:
    """Streams, or datagrams that are lost at one of these rates."""
    kinds: list[Latency] = [
        Fixed(value=Duration(chance.choice([1, 5]) * MS)),
        Uniform(low=Duration(0), high=Duration(chance.choice([2, 10, 30]) * MS)),
        Lognormal(median=Duration(2 * MS), sigma=chance.choice([0.3, 1.2])),
    ]
    latency = chance.choice(kinds)
    if chance.random() < STREAMS:
        return Network(latency=latency)
    return Network(
        transport="datagram",
        latency=latency,
        loss=chance.choice(losses),
        duplicate=chance.choice([0.0, 0.1]),
        reorder=chance.choice([0.0, 0.2]),
    )


def draw_workloads(
    chance: random.Random, groups: Members, options: NewtopOptions, phase_ms: int
) -> tuple[Workload, ...]:
    """Messages during the phase of faults, and some after it; without probes only they reveal failures."""
    affordable = max(2, ROWS // sum(len(members) * (len(members) + 2) for members in groups.values()))
    drawn = []
    for _ in range(chance.randint(1, 3)):
        group = chance.choice([*groups])
        senders = chance.sample(groups[group], chance.randint(1, min(len(groups[group]), 4)))
        messages = max(1, min(chance.choice([1, 3, 6]), affordable // (2 * len(senders))))
        payload = chance.choice([0, 8, 8, 150])
        every = Duration(chance.choice([phase_ms // (messages + 1), 7, phase_ms // (3 * messages)]) * MS)
        drawn.append(
            Workload(
                group=group,
                senders=tuple(senders),
                messages=messages,
                interval=every,
                jitter=chance.choice([0.0, 1.0]),
                payload=payload,
            )
        )
    suspect_after_ms = options.suspect_after // MS
    late = [phase_ms + chance.randint(1, suspect_after_ms)]
    asked = [chance.choice([*groups])]
    if not options.idle_probe:
        late.append(late[0] + 3 * suspect_after_ms)
        asked = [*groups]
    return (*drawn, *(_late(group, groups[group], at) for group in asked for at in late))


def _late(group: str, members: tuple[str, ...], at_ms: int) -> Workload:
    """One message from every remaining process."""
    return Workload(group=group, senders=members, messages=1, interval=Duration(at_ms * MS), payload=8)


class Faults:
    """The plan of one run: faults in the phase of faults, and permanent faults."""

    def __init__(self, chance: random.Random, groups: Members, suspect_after_ms: int, *, datagrams: bool) -> None:
        self.phase_ms: Final = min(1_000, chance.randint(2, 6) * suspect_after_ms)
        self._chance = chance
        self._groups = groups
        self._processes = sorted({name for members in groups.values() for name in members})
        self._suspect_after_ms = suspect_after_ms
        self._datagrams = datagrams
        self._moments: list[int] = []  # times near which suspicions are placed

    def draw(self) -> tuple[Fault, ...]:
        """The whole plan."""
        chance = self._chance
        faults = self._healed() if chance.random() < HEALED else self._with_core()
        for _ in range(chance.choice([0, 0, 1, 2])):
            faults.append(self._trouble())
        faults += self._suspicions(chance.choice([0, 0, 1, 2, 3, 5, 9]))
        return tuple(faults) or (self._trouble(),)

    def _healed(self) -> list[Fault]:
        """Any fault may occur, and all that can heal do."""
        chance = self._chance
        victims = min(chance.choice([0, 0, 0, 1, 1, 2, 3]), len(self._processes) - 2)
        faults: list[Fault] = [
            Crash(at=self._moment(), process=name) for name in chance.sample(self._processes, victims)
        ]
        for _ in range(chance.choice([0, 1, 1, 2])):
            faults += self._broken_links(self._processes, self._processes)
        faults.append(Heal(at=Duration(self.phase_ms * MS)))
        return faults

    def _with_core(self) -> list[Fault]:
        """Outside a core whose links have no faults, every process is down or cut off at the end.

        Processes that are cut off in one direction all have the same direction: otherwise one could relay to the other
        (E-56).
        """
        chance = self._chance
        one_way = chance.choice(["deaf", "dumb"])
        processes = chance.sample(self._processes, len(self._processes))
        outside = chance.randint(1, max(1, min(3, len(processes) - 2)))
        outsiders, core = processes[:outside], processes[outside:]
        faults: list[Fault] = []
        for _ in range(chance.choice([0, 0, 1])):
            faults += self._broken_links(outsiders, processes)
        apart = []
        for name in outsiders:
            kind = chance.choice(["crash", "crash", "partition", one_way, one_way, "pause"])
            if kind == "crash":
                faults.append(Crash(at=self._moment(), process=name))
            elif kind == "pause":
                faults.append(Pause(at=self._moment(), process=name))
            elif kind == "partition":
                apart.append(name)
            else:
                at = self._moment()
                faults += [
                    Cut(at=at, from_=a, to=b)
                    for a, b in ((name, other) if kind == "dumb" else (other, name) for other in core)
                ]
        if apart:
            sides = [core, apart] if chance.random() < 0.5 else [core, *([name] for name in apart)]
            faults.append(Partition(at=self._moment(), sides=tuple(map(tuple, sides))))
        return faults

    def _broken_links(self, some: list[str], others: list[str]) -> list[Fault]:
        """Links between two sets that break for some time, perhaps repeatedly."""
        chance = self._chance
        name = chance.choice(some)
        peers = [other for other in others if other != name]
        kind = chance.choice(["split", "flapping", "cut", "pair"])
        if kind == "cut":
            a, b = chance.sample([name, chance.choice(peers)], 2)
            at, until = self._span()
            return [Cut(at=at, until=until, from_=a, to=b)]
        if kind == "pair":
            at, until = self._span()
            return [Partition(at=at, until=until, sides=((name,), (chance.choice(peers),)))]
        side = {name, *(other for other in some if chance.random() < 0.4)}
        rest = tuple(other for other in others if other not in side) or (chance.choice(peers),)
        sides = (tuple(other for other in some if other in side and other not in rest), rest)
        if kind == "split":
            at, until = self._span()
            return [Partition(at=at, until=until, sides=sides)]
        return self._flapping(sides)

    def _flapping(self, sides: tuple[tuple[str, ...], ...]) -> list[Fault]:
        """The same split two or three times, if the phase of faults is long enough."""
        chance = self._chance
        start, length = self._moment(), chance.choice([5, 30, self._suspect_after_ms // 2]) * MS
        starts = [start + 2 * place * length for place in range(chance.randint(2, 3))]
        return [
            Partition(at=Duration(at), until=Duration(at + length), sides=sides)
            for at in starts
            if at + length <= self.phase_ms * MS
        ]

    def _trouble(self) -> Fault:
        """Faults that may or may not cause an exclusion: they last shorter or longer than the suspicion time."""
        chance = self._chance
        at, until = self._span()
        name, other = chance.sample(self._processes, 2)
        kinds: list[Fault] = [
            Pause(at=at, until=until, process=name),
            Pause(at=at, until=until, process=name),
            Stall(at=at, until=until, process=name),
            Skew(at=at, until=until, process=name, offset=Duration(20 * MS), rate=chance.choice([0.5, 1.7])),
            Delay(at=at, until=until, process=name, extra=Duration(chance.choice([30, self._suspect_after_ms]) * MS)),
            Delay(at=at, until=until, from_=name, to=other, extra=Duration(2 * self._suspect_after_ms * MS)),
        ]
        if self._datagrams:
            kinds.append(Loss(at=at, until=until, process=name, rate=chance.choice([0.5, 1.0])))
        return chance.choice(kinds)

    def _suspicions(self, count: int) -> list[Fault]:
        """False suspicions, often in a cycle, often all at once or together with another fault."""
        chance = self._chance
        together = self._near() if chance.random() < 0.6 else None
        members = list(chance.choice([each for each in self._groups.values() if len(each) > 1] or [()]))
        if not members:
            return []
        chance.shuffle(members)
        faults: list[Fault] = []
        for place in range(count):
            at = together + chance.randint(0, 15) * MS if together is not None else self._near()
            accuser, accused = members[place % len(members)], members[(place + 1) % len(members)]
            if chance.random() < 0.4:
                accuser, accused = chance.sample(members, 2)
            faults.append(Suspect(at=Duration(at), process=accused, by=(accuser,)))
        return faults

    def _near(self) -> int:
        """A time at or near another fault, if there is one."""
        chance = self._chance
        around = chance.choice(self._moments) if self._moments and chance.random() < 0.7 else int(self._moment())
        return max(0, around + chance.randint(-60, 60) * MS)

    def _moment(self) -> Duration:
        at = self._chance.randint(0, self.phase_ms) * MS
        self._moments.append(at)
        return Duration(at)

    def _span(self) -> tuple[Duration, Duration]:
        """An interval inside the phase, shorter or longer than the suspicion time."""
        at = self._chance.randint(0, self.phase_ms * 3 // 4)
        length = self._chance.choice([5, 40, self._suspect_after_ms * 3 // 2, 3 * self._suspect_after_ms])
        self._moments.append(at * MS)
        return Duration(at * MS), Duration(min(at + length, self.phase_ms) * MS)
