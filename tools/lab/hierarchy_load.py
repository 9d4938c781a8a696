"""What the control hierarchy costs, and how soon a message is stable: one measured run, and the flat way beside it.

Every control process has one member. The members of the first hosts send, and all acknowledge the present time, every
0.2 s. So the delay of stability is the time from a moment until a process accepts a record that covers it.
"""

import gc
import random
import resource
import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import mean
from typing import Final

from antiphon.core.effects import Transmit
from antiphon.protocols.intergroup.hierarchy.frames import HEADER_BYTES, AckReportFrame, SystemFrame
from antiphon.protocols.intergroup.hierarchy.pacing import PACED, interval
from antiphon.protocols.intergroup.hierarchy.records import EpochSlots, SystemAck
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings
from antiphon.types import GroupId, ProcessId, ViewId
from tools.lab.hierarchy_network import SECOND, Faults, HierarchyNetwork, Host, Place, Topology

GROUP, EPOCH = GroupId("g"), ViewId("0000.000000.0000000000000000")
SENDERS: Final = 16
STARTING_S: Final = 10
SETTLED_S: Final = 30
"""What happens before is not counted."""
ACK_NS: Final = SECOND // 5
REGIONS: Final = 5
ENTRIES: Final = 16
DESIGNS: Final = {
    "published": (False, 2_000),
    "turns": (False, ENTRIES),
    "growing": (True, 2_000),
    "growing, turns": (True, ENTRIES),
}
"""By name: whether thresholds grow, and the entries of a message."""


@dataclass(slots=True)
class Load:
    """One run. Bytes are those of one process in one second."""

    design: str
    processes: int
    seconds: int
    received_mean: float = 0.0
    received_max: int = 0
    """In one group."""
    sent_mean: float = 0.0
    sent_max: int = 0
    overheard_mean: float = 0.0
    """Frames of other local groups at the same address."""
    delay_mean_s: float | None = None
    delay_max_s: float | None = None
    covered: float = 0.0
    """The share of moments that have become stable at all processes before the end."""
    coordinators: list[int] = field(default_factory=list)
    """Every five seconds."""
    refused_bytes: int = 0
    receptions: int = 0
    cpu_s: float = 0.0
    memory_mb: int = 0


def settings_of(design: str, processes: int, bandwidth: int) -> HierarchySettings:
    grows, entries = DESIGNS[design]
    return HierarchySettings(grows=grows, expected=processes if grows else 0, entries_max=entries, bandwidth=bandwidth)


class _Members:
    """One member on each host."""

    def __init__(self, net: HierarchyNetwork, senders: int) -> None:
        self._net = net
        self._slots = EpochSlots([ProcessId(f"p{number:05d}") for number in range(senders)])
        self._required = (1 << senders) - 1
        self._acks: dict[ProcessId, SystemAck] = {}
        self.accepted: dict[ProcessId, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        """By process, what it has accepted and when."""
        net.told = self._told

    def acknowledge(self, host: Host, now: int) -> None:
        ack = now // ACK_NS * ACK_NS
        host.core.receive(
            AckReportFrame(GROUP, ProcessId("m"), EPOCH, ack, self._slots.slot(host.name)), now + host.offset
        )

    def _told(self, host: Host, effect: Transmit) -> None:
        frame, now = effect.frame, self._net.now
        if isinstance(frame, SystemFrame):
            system = self._acks.setdefault(host.name, SystemAck(GROUP, EPOCH, 0))
            if system.accept(frame.record, self._required, now):
                acks, times = self.accepted[host.name]
                acks.append(system.stable)
                times.append(now)


def measure(design: str, processes: int, *, seconds: int = 60, bandwidth: int = 390_000, seed: int = 1) -> Load:
    """Start so many control processes, and measure them once they have settled."""
    gc.disable()  # millions of objects and no cycles: collections would take most of the time
    began = time.process_time()
    load = Load(design, processes, seconds)
    settings = settings_of(design, processes, bandwidth)
    topology = Topology(regions=REGIONS, sites=max(1, processes // 500))
    net = HierarchyNetwork(topology, settings, seed=seed, faults=Faults(loss=0.01))
    members = _Members(net, min(SENDERS, processes))
    chance = random.Random(f"load {seed}")
    for number in range(processes):
        place = Place(chance.randrange(topology.regions), chance.randrange(topology.sites))
        at = int(chance.random() * STARTING_S * SECOND)
        net.at(at, lambda number=number, place=place: _start(net, members, number, place))  # type: ignore[misc]
    received = sent = counted = overheard = 0
    for second in range(seconds):
        before = net.overheard_bytes
        net.run(SECOND)
        for host in net.hosts.values():
            if second >= SETTLED_S:
                load.received_max = max(load.received_max, *host.received)
                load.sent_max = max(load.sent_max, host.sent)
                received += sum(host.received)
                sent += host.sent
                counted += 1
            host.received[:] = (0, 0, 0)
            host.sent = 0
        if second >= SETTLED_S:
            overheard += net.overheard_bytes - before
        if second % 5 == 4:
            load.coordinators.append(len(net.coordinators()))
    load.received_mean, load.sent_mean = received / counted, sent / counted
    load.overheard_mean = overheard / counted
    _delays(load, members, processes, seconds)
    load.refused_bytes = sum(host.core.coordinators.meter.refused for host in net.hosts.values())
    load.receptions = net.receptions
    load.cpu_s = time.process_time() - began
    load.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return load


def _start(net: HierarchyNetwork, members: _Members, number: int, place: Place) -> None:
    host = net.add(f"p{number:05d}", place, offset=number * SECOND)
    host.before_tick = members.acknowledge


def _delays(load: Load, members: _Members, processes: int, seconds: int) -> None:
    """For each second after the start, how long until each process knew that it is stable."""
    found: list[int] = []
    moments = range(SETTLED_S * SECOND, (seconds - 1) * SECOND, SECOND)
    covered = 0
    for moment in moments:
        delays = []
        for acks, times in members.accepted.values():
            place = bisect_left(acks, moment)
            if place < len(acks):
                delays.append(times[place] - moment)
        if len(delays) == processes:
            covered += 1
            found += delays
    load.covered = covered / max(len(moments), 1)
    if found:
        load.delay_mean_s, load.delay_max_s = mean(found) / SECOND, max(found) / SECOND


def measure_flat(processes: int, *, seconds: int = 60, bandwidth: int = 390_000, seed: int = 1) -> Load:
    """Every process multicasts its acknowledgment to all, at the interval of RTCP.

    All receive all, so one list of transmissions is what each process receives; no core is needed.
    """
    load = Load("flat", processes, seconds)
    chance = random.Random(f"flat {seed}")
    per_second = [0] * seconds
    last_moment = max(SETTLED_S, seconds - 1)
    moments = [moment * SECOND for moment in range(SETTLED_S, last_moment)]
    slowest = dict.fromkeys(moments, 0)
    for _ in range(processes):
        now, times = int(chance.random() * STARTING_S * SECOND), list[int]()
        while now < seconds * SECOND:
            times.append(now)
            per_second[now // SECOND] += HEADER_BYTES
            now += interval(processes, bandwidth * PACED, HEADER_BYTES, chance.random())
        for moment in moments:
            place = bisect_left(times, moment)
            arrives = times[place] if place < len(times) else seconds * SECOND
            slowest[moment] = max(slowest[moment], arrives - moment)
    measured = per_second[SETTLED_S:]
    load.received_mean, load.received_max = mean(measured), max(measured)
    load.sent_mean, load.sent_max = mean(measured) / processes, HEADER_BYTES
    within = [moment for moment in moments if moment + slowest[moment] < seconds * SECOND]
    load.covered = len(within) / max(len(moments), 1)
    if within:
        way = Topology().world_delay_ns
        load.delay_mean_s = mean(slowest[moment] + way / 2 for moment in within) / SECOND
        load.delay_max_s = max(slowest[moment] + way for moment in within) / SECOND
    return load
