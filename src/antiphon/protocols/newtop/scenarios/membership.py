"""The family `membership`: groups whose members crash, lose one another, and suspect each other rightly and wrongly.

After a phase of faults half of the runs heal all that can heal. In the other half a core stays fully connected while
everybody else is gone for good, in one direction at least: a fault that always heals hides livelocks (properties.md 6).
Runs are small, as in the family `newtop`, and their clocks run fast: what matters is how faults meet.
"""

import random
from collections.abc import Mapping
from typing import Final, Literal

from antiphon.protocols.newtop.options import WINDOW_MIN, NewtopOptions
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

Service = Literal["total", "total-safe", "causal-slow", "causal-fast", "causal-relative", "causal-vector"]
SERVICES: Final[Mapping[Service, int]] = {
    "total": 50,
    "causal-slow": 14,
    "causal-fast": 12,
    "causal-relative": 14,
    "causal-vector": 10,
}
"""In how many runs of a hundred all groups get this service."""
SHAPES: Final[Mapping[str, int]] = {
    "one": 50,
    "pair": 9,
    "fork": 9,
    "triangle": 9,
    "twins": 7,
    "ring": 6,
    "random": 10,
}
"""In how many runs of a hundred groups overlap so."""
SUSPECT_AFTER_MS: Final = (100, 100, 100, 120, 120, 150, 200, 300)
STREAMS: Final = 0.65
PROBED: Final = 0.85
"""Share of the runs whose idle groups look for crashed members."""
CALM: Final = 0.15
"""Share of the runs in which nothing breaks: nobody must be excluded there (L9)."""
HEALED: Final = 0.5
"""Share of the others in which all that can heal does."""
QUIET: Final = 9
"""How many times `suspect_after` a run has to settle, beside the probe."""
PROCESSES_ON_DATAGRAMS: Final = 5
"""Of one group, and of groups at random: there every member tells every other what it lacks, which makes long runs."""
ROWS: Final = 1_000
"""What the messages of a run may add to its trace, by our estimate."""

_OVERLAPPING: Final = {"pair": pair, "fork": fork, "triangle": triangle, "ring": ring, "random": scattered}
Members = Mapping[str, tuple[str, ...]]


def draw_membership(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    return draw_with_failures(chance, "membership", SERVICES)


def draw_with_failures(chance: random.Random, family: str, services: Mapping[Service, int]) -> Scenario:
    """Groups that all get one of these services, in how many of a hundred runs each, and what befalls them."""
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
    """As in the family `newtop`, of three processes and more: in smaller groups there is little to agree on."""
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
    """Block numbers may pace a group only if its members are in no other (flow-control.md 7), and nothing flushes."""
    blocks = len(groups) == 1 and chance.random() < 0.3 and service in ("total", "total-safe", "causal-slow")
    numbering: Literal["block", "separate"] = "block" if blocks else "separate"
    return tuple(
        Group(name=name, members=members, service=service, numbering=numbering) for name, members in groups.items()
    )


def draw_network(chance: random.Random, losses: list[float]) -> Network:
    """Streams, or datagrams that get lost at one of these rates."""
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
    """Some spread over the phase of faults, and some after it; without probes they must find who has failed."""
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
    """One message of everybody who is left."""
    return Workload(group=group, senders=members, messages=1, interval=Duration(at_ms * MS), payload=8)


class Faults:
    """The plan of one run: what goes wrong in the phase of faults, and what stays wrong."""

    def __init__(self, chance: random.Random, groups: Members, suspect_after_ms: int, *, datagrams: bool) -> None:
        self.phase_ms: Final = min(1_000, chance.randint(2, 6) * suspect_after_ms)
        self._chance = chance
        self._groups = groups
        self._processes = sorted({name for members in groups.values() for name in members})
        self._suspect_after_ms = suspect_after_ms
        self._datagrams = datagrams
        self._moments: list[int] = []  # near which suspicions gather

    def draw(self) -> tuple[Fault, ...]:
        """All of it."""
        chance = self._chance
        faults = self._healed() if chance.random() < HEALED else self._with_core()
        for _ in range(chance.choice([0, 0, 1, 2])):
            faults.append(self._trouble())
        faults += self._suspicions(chance.choice([0, 0, 1, 2, 3, 5, 9]))
        return tuple(faults) or (self._trouble(),)

    def _healed(self) -> list[Fault]:
        """Anything may break, and all that can heal does."""
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
        """Outside a core whose links are never touched everybody is gone in the end, one way or another.

        Those who are cut off in one direction are so in the same: else what one hears the other could pass on (E-56).
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
        """Links between some and others that break for a while, perhaps again and again."""
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
        """The same split two or three times, as far as the phase with faults is long enough."""
        chance = self._chance
        start, length = self._moment(), chance.choice([5, 30, self._suspect_after_ms // 2]) * MS
        starts = [start + 2 * place * length for place in range(chance.randint(2, 3))]
        return [
            Partition(at=Duration(at), until=Duration(at + length), sides=sides)
            for at in starts
            if at + length <= self.phase_ms * MS
        ]

    def _trouble(self) -> Fault:
        """What nobody need leave for, but may: it lasts shorter or longer than members wait before they suspect."""
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
        """Wrong ones, often in a circle, often all at once or when something else breaks."""
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
        """A moment at or about that of another fault, if there is one."""
        chance = self._chance
        around = chance.choice(self._moments) if self._moments and chance.random() < 0.7 else int(self._moment())
        return max(0, around + chance.randint(-60, 60) * MS)

    def _moment(self) -> Duration:
        at = self._chance.randint(0, self.phase_ms) * MS
        self._moments.append(at)
        return Duration(at)

    def _span(self) -> tuple[Duration, Duration]:
        """From a moment to another that is in the phase too, sooner or later than members suspect."""
        at = self._chance.randint(0, self.phase_ms * 3 // 4)
        length = self._chance.choice([5, 40, self._suspect_after_ms * 3 // 2, 3 * self._suspect_after_ms])
        self._moments.append(at * MS)
        return Duration(at * MS), Duration(min(at + length, self.phase_ms) * MS)
