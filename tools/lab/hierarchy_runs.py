"""Random runs of the control hierarchy in virtual time, judged from outside the cores.

A faulty phase: control processes join, end in order, crash, start again and move; frames are lost, doubled and
reordered; partitions come and go. A member with acknowledgments is behind each. Then a quiet phase. The checks:

- `early`: nothing is stable that a sender has not acknowledged (T2).
- `coordinators`: their number is within its thresholds at the end.
- `ghost`: nobody knows a dead process for longer than two timeouts.
- `orphan`: at the end every process is a coordinator, or a child whose coordinator knows it.
- `stuck`: at the end everything of the quiet phase but the last moments is stable at every member.
- `bandwidth`: no process takes more than the bandwidth in a group within a second.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.hierarchy.records import EpochSlots, SystemAck
from antiphon.protocols.intergroup.hierarchy.rules import ADOPTED, HierarchyRules
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings, Thresholds
from antiphon.protocols.intergroup.hierarchy.states import State
from antiphon.types import ProcessId, split_process_id
from tools.lab.api_history import Judgement, Violation
from tools.lab.hierarchy_members import GroupModel, owner
from tools.lab.hierarchy_network import SECOND, Faults, HierarchyNetwork, Host, Place, Topology

FAULTY_S: Final = 40
QUIET_S: Final = 90
PATIENCE_S: Final = 60
"""How long a change that is under way at the end may take."""
TIMEOUT_NS: Final = 5 * SECOND
GHOST_NS: Final = 2 * TIMEOUT_NS + 4 * SECOND
"""Two timeouts, a message in between, and the seconds between two reviews."""
LAG_NS: Final = 20 * SECOND


@dataclass(frozen=True, slots=True)
class Variant:
    """The rules of a run; a test may replace some."""

    rules: HierarchyRules = ADOPTED
    system: type[SystemAck] = SystemAck
    slots: type[EpochSlots] = EpochSlots


class Run:
    """One run."""

    def __init__(self, seed: int, variant: Variant | None = None) -> None:
        self.variant = variant or Variant()
        self.chance = chance = random.Random(f"hierarchy run {seed}")
        topology = Topology(regions=chance.choice((1, 2, 3)), sites=chance.choice((1, 2)))
        low = chance.choice((1, 2))
        settings = HierarchySettings(
            state_change_ns=(SECOND, 2 * SECOND),
            thresholds=Thresholds(low, low + chance.choice((2, 3, 6)), chance.choice((3, 8))),
            grows=chance.random() < 0.3,
            entries_max=chance.choice((3, 2_000)),
        )
        self.faults = Faults(chance.choice((0.0, 0.1, 0.25)), 0.03, chance.choice((0.1, 2.0)))
        self.net = HierarchyNetwork(topology, settings, seed=seed, faults=self.faults, rules=self.variant.rules)
        self.group = GroupModel(chance, self.variant.system, self.variant.slots)
        self.net.told = self.group.told
        self.dead: dict[ProcessId, int] = {}
        """By name, the time of its end."""
        self.names: dict[str, int] = {}
        """By name without incarnation, the incarnation."""
        self.log: list[str] = []
        self.found = Judgement()

    # What happens

    def play(self) -> Judgement:
        chance, net = self.chance, self.net
        for number in range(chance.randrange(4, 17)):
            self._start(f"p{number:02d}")
        self.group.begin([owner(host) for host in self._hosts()][: chance.randrange(2, 6)], net.now)
        self._enter_all()
        while net.now < FAULTY_S * SECOND:
            self._pass(int(chance.expovariate(0.6) * SECOND))
            chance.choice(_ACTIONS)(self)
        self._quiet()
        return self.found

    def _quiet(self) -> None:
        self.net.parted, self.net.faults = None, Faults()
        self.group.frozen.clear()
        self._new_epoch()
        self._note("quiet")
        self._pass(QUIET_S * SECOND)
        open_ends: list[str] = []
        for _ in range(PATIENCE_S // 5):
            open_ends = self._unsettled()
            if not open_ends:
                break
            self._pass(5 * SECOND)
        for each in open_ends:
            self._violated(*each.split(": ", 1))
        counts = self.found.counts
        counts["accepted"] = self.group.accepted
        counts["coordinators at the end"] = len(self.net.coordinators())
        for host in self._hosts():
            for (state, what), number in host.core.changes.items():
                counts[f"{state.value}, {what.name}"] += number

    def _pass(self, ns: int) -> None:
        """Let time pass, and look once a second."""
        until = self.net.now + ns
        while self.net.now < until:
            step = min(SECOND - self.net.now % SECOND, until - self.net.now)
            self.net.run(step)
            if self.net.now % SECOND == 0:
                self._look()

    def _note(self, text: str) -> None:
        self.log.append(f"{self.net.now / SECOND:7.2f} {text}")

    def _hosts(self) -> list[Host]:
        return [*self.net.hosts.values()]

    def _place(self) -> Place:
        topology = self.net.topology
        return Place(self.chance.randrange(topology.regions), self.chance.randrange(topology.sites))

    def _start(self, name: str) -> None:
        incarnation = self.names.get(name, -1) + 1
        self.names[name] = incarnation
        host = self.net.add(name, self._place(), offset=self.chance.randrange(2_000) * SECOND, incarnation=incarnation)
        host.before_tick = self.group.acknowledge
        self.group.enter(owner(host))
        self._note(f"{host.name} starts at {host.place}")

    def _end(self, host: Host, *, orderly: bool = False) -> None:
        self._note(f"{host.name} {'stops' if orderly else 'crashes'} as {host.core.state.value}")
        self.dead[host.name] = self.net.now
        (self.net.stop if orderly else self.net.crash)(host)

    def _some(self) -> Host | None:
        hosts = self._hosts()
        return self.chance.choice(hosts) if len(hosts) > 3 else None

    def crash(self) -> None:
        """A host crashes, with its member."""
        if host := self._some():
            self.group.crash(owner(host))
            self._end(host)
            self.net.at(int(self.chance.uniform(2, 9) * SECOND), self._new_epoch)

    def crash_coordinator(self) -> None:
        coordinators = self.net.coordinators()
        if coordinators and len(self.net.hosts) > 3:
            host = self.chance.choice(coordinators)
            self.group.crash(owner(host))
            self._end(host)
            self.net.at(int(self.chance.uniform(2, 9) * SECOND), self._new_epoch)

    def crash_control(self) -> None:
        """The control process alone crashes, and its member connects to the next incarnation."""
        if host := self._some():
            name = split_process_id(host.name)[0]
            self._end(host)
            self._start(name)

    def stop(self) -> None:
        if host := self._some():
            self.group.crash(owner(host))
            self._end(host, orderly=True)
            self.net.at(int(self.chance.uniform(2, 9) * SECOND), self._new_epoch)

    def join(self) -> None:
        if len(self.net.hosts) < 20:
            self._start(f"p{len(self.names):02d}")

    def move(self) -> None:
        if host := self._some():
            place = self._place()
            self._note(f"{host.name} moves to {place}")
            self.net.move(host, place)

    def part(self) -> None:
        """Some places do not reach the others for a while."""
        side = {self._place() for _ in range(2)}
        self._note(f"{sorted(side)} apart")
        self.net.parted = lambda one, other: (one in side) != (other in side)
        self.net.at(int(self.chance.uniform(1, 15) * SECOND), self._heal)

    def _heal(self) -> None:
        self.net.parted = None

    def freeze(self) -> None:
        """A member delivers nothing for a while."""
        if host := self._some():
            self.group.frozen[owner(host)] = self.net.now + int(self.chance.uniform(1, 12) * SECOND)

    def change(self) -> None:
        """A sender leaves in order, or a receiver is added."""
        senders = self.group.senders
        host = self._some()
        if host is not None and owner(host) in self.group.members:
            added = owner(host) not in senders
            if added or len(senders) > 2:
                self._note(f"{owner(host)} {'is added' if added else 'leaves'}")
                self.group.change(owner(host), self.net.now, added=added)

    def _new_epoch(self) -> None:
        """The senders agree on a view without the dead ones."""
        senders = [name for name in self.group.senders if name in self.group.members]
        if len(senders) < 2:
            senders = [owner(host) for host in self._hosts()][:3]
        self.group.begin(senders, self.net.now)
        self._note(f"epoch of {', '.join(self.group.epoch.members)}")
        for host in self._hosts():
            name = owner(host)
            self.net.at(int(self.chance.random() * SECOND), lambda name=name: self._enter(name))  # type: ignore[misc]

    def _enter(self, name: ProcessId) -> None:
        if any(owner(host) == name for host in self._hosts()):
            self.group.enter(name)

    def _enter_all(self) -> None:
        for host in self._hosts():
            self.group.enter(owner(host))

    # Checks

    def _violated(self, kind: str, witness: str) -> None:
        if all(known != kind for known, _ in self.found.violations):
            self.found.violations.append(Violation(kind, f"{witness} ({self.net.now / SECOND:.1f} s)"))

    def _look(self) -> None:
        for witness in self.group.early[:1]:
            self._violated("early", witness)
        bandwidth = self.net.settings.bandwidth
        for host in self._hosts():
            if max(host.received) > bandwidth:
                self._violated("bandwidth", f"{host.name} takes {max(host.received)} bytes in a second")
            host.received[:] = (0, 0, 0)
            for process in host.core.known():
                died = self.dead.get(process)
                if died is not None and self.net.now - died > GHOST_NS:
                    self._violated("ghost", f"{host.name} still knows {process}")

    def _unsettled(self) -> list[str]:
        """What is not yet as it must be at the end."""
        found, net = [], self.net
        thresholds = net.settings.thresholds_for(len(net.hosts))
        coordinators = {host.name: host.core for host in net.coordinators()}
        if not min(thresholds.low, len(net.hosts)) <= len(coordinators) <= thresholds.high:
            found.append(f"coordinators: {len(coordinators)} of {len(net.hosts)}, thresholds {thresholds}")
        for host in self._hosts():
            core, joined = host.core, host.core.joined
            is_child = core.state is State.CHILD and joined is not None
            above = coordinators.get(joined.coordinator) if joined is not None else None
            if not is_child and core.state is not State.COORDINATOR:
                found.append(f"orphan: {host.name} is {core.state.value}")
            elif is_child and (above is None or host.name not in above.own.children):
                found.append(f"orphan: {host.name} is unknown to its coordinator")
            member = self.group.members.get(owner(host))
            if member is None or member.epoch is not self.group.epoch or member.system.stable < net.now - LAG_NS:
                found.append(f"stuck: {owner(host)} takes little for stable")
        return found


_ACTIONS: Final[tuple[Callable[[Run], None], ...]] = (
    Run.crash,
    Run.crash_coordinator,
    Run.crash_control,
    Run.stop,
    Run.join,
    Run.join,
    Run.move,
    Run.move,
    Run.part,
    Run.freeze,
    Run.change,
    Run.change,
)


def play(seed: int) -> tuple[Judgement, list[str]]:
    """The judgement of the run of a seed, and what was done."""
    run = Run(seed)
    judgement = run.play()
    judgement.counts = Counter({key: number for key, number in judgement.counts.items() if number})
    return judgement, run.log


def violations(seed: int, variant: Variant) -> list[str]:
    """What a run with these rules violates."""
    return sorted({kind for kind, _ in Run(seed, variant).play().violations})
