"""Control processes on a network in virtual time: sites with hops and delays, loss, partitions, crashes and moves.

It runs the real cores of the control hierarchy and nothing else, up to ten thousand of them. So fan-out is done in the
network: a transmission is one event for each zone (the site, its region, each other region), not one for each receiver.
An event holds the frame itself, which all receivers share; the codec has tests of its own. It is not a driver of
scenarios, and therefore not in the package. The same seed gives the same run.
"""

import random
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import log
from typing import Final, NamedTuple

from antiphon.core.effects import Scope, Transmit
from antiphon.protocols.intergroup.hierarchy.effects import HierarchyEffect
from antiphon.protocols.intergroup.hierarchy.frames import HierarchyFrame, LocalFrame, local_address
from antiphon.protocols.intergroup.hierarchy.process import ControlProcess
from antiphon.protocols.intergroup.hierarchy.rules import ADOPTED, HierarchyContext, HierarchyRules
from antiphon.protocols.intergroup.hierarchy.settings import LOCAL_ADDRESSES, HierarchySettings
from antiphon.protocols.intergroup.hierarchy.states import State
from antiphon.types import ProcessId, process_id

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
COORDINATORS: Final = ProcessId("*")
"""The key of the coordinators' address; those of local groups are their coordinators."""


class Topology(NamedTuple):
    """Equal sites in equal regions; the regions lie on a circle."""

    regions: int = 1
    sites: int = 1
    """Sites of each region."""
    site_hops: int = 1
    region_hops: int = 8
    world_hops: int = 32
    site_delay_ns: int = MS // 2
    region_delay_ns: int = 5 * MS
    world_delay_ns: int = 80 * MS
    """Between opposite regions."""

    def delay(self, one: int, other: int) -> int:
        """The one-way delay between two regions."""
        around = abs(one - other)
        steps = min(around, self.regions - around)
        nearest = min(20 * MS, self.world_delay_ns)
        return nearest + (self.world_delay_ns - nearest) * steps // max(self.regions // 2, 1)


class Place(NamedTuple):
    region: int
    site: int


class Faults(NamedTuple):
    """What the network does to each copy of a frame."""

    loss: float = 0.0
    duplicates: float = 0.0
    jitter: float = 0.0
    """A delay is multiplied by up to one plus this, so frames overtake each other."""


class Host:
    """One control process and what it sends and receives."""

    __slots__ = (
        "armed",
        "before_tick",
        "core",
        "deadline",
        "listens",
        "name",
        "offset",
        "place",
        "received",
        "sent",
    )

    def __init__(self, name: ProcessId, place: Place, offset: int) -> None:
        self.name, self.place, self.offset = name, place, offset
        self.core: ControlProcess
        self.armed: int | None = None
        self.deadline: int | None = None
        """That of the core when it was last armed, by its own clock."""
        self.listens: frozenset[ProcessId] = frozenset()
        self.received = [0, 0, 0]
        """Bytes in the present second: from coordinators, in its own local group, and in the one it has joined."""
        self.sent = 0
        self.before_tick: Callable[[Host, int], None] | None = None


class _Copy(NamedTuple):
    """A frame on its way to all listeners of an address in one zone."""

    frame: HierarchyFrame
    size: int
    address: ProcessId
    origin: Host
    region: int
    site: int | None
    """None: all sites of the region but that of the sender, or all of another region."""


Zone = dict[int, dict[ProcessId, Host]]


class HierarchyNetwork:
    """Invariant: events happen in the order of (time, number)."""

    def __init__(
        self,
        topology: Topology,
        settings: HierarchySettings,
        *,
        seed: int,
        faults: Faults | None = None,
        rules: HierarchyRules = ADOPTED,
    ) -> None:
        self.topology, self.settings, self.seed, self.rules = topology, settings, seed, rules
        self.faults = faults or Faults()
        self.chance = random.Random(f"hierarchy {seed}")
        self.now = 0
        self.hosts: dict[ProcessId, Host] = {}
        self.told: Callable[[Host, Transmit], None] = lambda _host, _effect: None
        """Called with what a control process sends to a member of its host."""
        self.parted: Callable[[Place, Place], bool] | None = None
        """Whether a partition lies between two places."""
        self._listeners: dict[ProcessId, dict[int, Zone]] = {}
        """By address, region and site."""
        self._events: list[tuple[int, int, Host | _Copy | Callable[[], None]]] = []
        self._order = count()
        self._skip = 0
        self.transmissions = self.receptions = self.heard_bytes = self.overheard_bytes = 0
        self._by_number: dict[tuple[int, Place], int] = {}
        """By local address and site, the number of hosts that listen to it."""

    # Processes

    def add(self, name: str, place: Place, *, offset: int = 0, incarnation: int = 0) -> Host:
        """Start a control process, with a clock that is that far off."""
        host = Host(process_id(name, incarnation), place, offset)
        draw = random.Random(f"{host.name} {self.seed}").random
        context = HierarchyContext(host.name, self.settings, draw, self.rules)
        host.core = ControlProcess(context, self.now + offset)
        self.hosts[host.name] = host
        self._settle(host)
        return host

    def crash(self, host: Host) -> None:
        """It is gone, without a word."""
        self._listen(host, frozenset())
        host.armed = None
        del self.hosts[host.name]

    def stop(self, host: Host) -> None:
        """It ends in order."""
        host.core.stop(self.now + host.offset)
        self._settle(host)
        self.crash(host)

    def move(self, host: Host, place: Place) -> None:
        """Its network is another one now; it is not told."""
        listens = host.listens
        self._listen(host, frozenset())
        host.place = place
        self._listen(host, listens)

    # Time

    def at(self, ns: int, action: Callable[[], None]) -> None:
        """Do this in that time."""
        heappush(self._events, (self.now + ns, next(self._order), action))

    def run(self, ns: int) -> None:
        """Let time pass."""
        until, events = self.now + ns, self._events
        while events and events[0][0] <= until:
            self.now, _, what = heappop(events)
            if isinstance(what, Host):
                if what.armed == self.now:
                    self._tick(what)
            elif isinstance(what, _Copy):
                self._arrive(what)
            else:
                what()
        self.now = until

    def _tick(self, host: Host) -> None:
        host.armed = None
        if host.before_tick is not None:
            host.before_tick(host, self.now)
        host.core.tick(self.now + host.offset)
        self._settle(host)

    def _settle(self, host: Host) -> None:
        core = host.core
        for effect in core.drain(self.now + host.offset):
            self._carry_out(host, effect)
        self._arm(host, core.deadline)

    def _arm(self, host: Host, deadline: int | None) -> None:
        host.deadline = deadline
        when = None if deadline is None else max(deadline - host.offset, self.now)
        if when != host.armed:
            host.armed = when
            if when is not None:
                heappush(self._events, (when, next(self._order), host))

    # Effects

    def _carry_out(self, host: Host, effect: HierarchyEffect) -> None:
        if not isinstance(effect, Transmit):
            addresses = {*effect.local_groups, *([COORDINATORS] if effect.coordinators else [])}
            self._listen(host, frozenset(addresses))
        elif isinstance(effect.to, Scope):
            self._multicast(host, effect)
        elif effect.to in self.hosts and effect.ttl:
            self._unicast(host, effect)
        else:
            self.told(host, effect)

    def _listen(self, host: Host, addresses: frozenset[ProcessId]) -> None:
        region, site = host.place
        for address in sorted(host.listens - addresses):
            zone = self._listeners[address][region]
            del zone[site][host.name]
            self._count(address, host.place, -1)
        for address in sorted(addresses - host.listens):
            zone = self._listeners.setdefault(address, {}).setdefault(region, {})
            zone.setdefault(site, {})[host.name] = host
            self._count(address, host.place, 1)
        host.listens = addresses

    def _count(self, address: ProcessId, place: Place, change: int) -> None:
        if address != COORDINATORS:
            key = local_address(address, LOCAL_ADDRESSES), place
            self._by_number[key] = self._by_number.get(key, 0) + change

    def _multicast(self, host: Host, effect: Transmit) -> None:
        """One event for each zone within the TTL."""
        frame: HierarchyFrame = effect.frame  # type: ignore[assignment]
        address = COORDINATORS
        if effect.to is Scope.LOCAL:
            address = frame.coordinator if isinstance(frame, LocalFrame) else frame.sender
        topology, ttl, size = self.topology, effect.ttl, frame.size
        self.transmissions += 1
        host.sent += size
        region, site = host.place
        if ttl >= topology.site_hops:
            self._send(_Copy(frame, size, address, host, region, site), topology.site_delay_ns)
        if ttl >= topology.region_hops and topology.sites > 1:
            self._send(_Copy(frame, size, address, host, region, None), topology.region_delay_ns)
        if ttl >= topology.world_hops:
            for other in range(topology.regions):
                if other != region:
                    self._send(_Copy(frame, size, address, host, other, None), topology.delay(region, other))

    def _send(self, copy: _Copy, delay: int) -> None:
        if copy.region in self._listeners.get(copy.address, ()):
            jitter = self.faults.jitter
            lasts = int(delay * (1 + jitter * self.chance.random())) if jitter else delay
            heappush(self._events, (self.now + lasts, next(self._order), copy))

    def _unicast(self, host: Host, effect: Transmit) -> None:
        frame: HierarchyFrame = effect.frame  # type: ignore[assignment]
        to = self.hosts[effect.to]  # type: ignore[index]
        host.sent += frame.size
        self.transmissions += 1
        if not self._lost() and not self._is_cut(host, to):
            self.at(self.delay(host.place, to.place), lambda: self._receive_alone(to, frame))

    def _receive_alone(self, to: Host, frame: HierarchyFrame) -> None:
        if to.name in self.hosts:
            self._receive(to, frame, frame.size, 0)

    def delay(self, one: Place, other: Place) -> int:
        """The one-way delay between two places."""
        if one == other:
            return self.topology.site_delay_ns
        if one.region == other.region:
            return self.topology.region_delay_ns
        return self.topology.delay(one.region, other.region)

    def hops(self, one: Place, other: Place) -> int:
        if one == other:
            return self.topology.site_hops
        return self.topology.region_hops if one.region == other.region else self.topology.world_hops

    # Arrivals

    def _receivers(self, copy: _Copy) -> Iterator[Host]:
        zone = self._listeners[copy.address].get(copy.region, {})
        if copy.site is not None:
            yield from zone.get(copy.site, {}).values()
            return
        home = copy.origin.place
        for site, hosts in zone.items():
            if (copy.region, site) != home:
                yield from hosts.values()

    def _arrive(self, copy: _Copy) -> None:
        hosts = [*self._receivers(copy)]
        frame, size, sender = copy.frame, copy.size, copy.frame.sender
        if copy.address != COORDINATORS:
            self._overhear(copy, len(hosts))
        local = copy.address
        clean = self.parted is None and not self.faults.duplicates
        if clean and self._skip >= len(hosts):
            self._skip -= len(hosts) if self.faults.loss else 0
        else:
            hosts = [host for host in hosts if not self._lost() and not self._is_cut(copy.origin, host)]
            hosts += [host for host in hosts if self.faults.duplicates > self.chance.random()]
        if not self.faults.loss:
            self._skip = len(self.hosts)
        group = 0 if local == COORDINATORS else 2
        for host in hosts:
            if host.name != sender:
                self._receive(host, frame, size, 1 if host.name == local else group)

    def _receive(self, host: Host, frame: HierarchyFrame, size: int, group: int) -> None:
        core = host.core
        self.receptions += 1
        self.heard_bytes += size
        host.received[group] += size
        core.receive(frame, self.now + host.offset)
        if core.has_effects or core.deadline != host.deadline:
            self._settle(host)

    def _overhear(self, copy: _Copy, heard: int) -> None:
        """Hosts that listen to the address, but not to this local group, ignore the frame."""
        number = local_address(copy.address, LOCAL_ADDRESSES)
        sites = [copy.site] if copy.site is not None else range(self.topology.sites)
        listening = sum(
            self._by_number.get((number, Place(copy.region, site)), 0)
            for site in sites
            if copy.site is not None or (copy.region, site) != copy.origin.place
        )
        self.overheard_bytes += copy.size * (listening - heard)

    def _lost(self) -> bool:
        """True for each copy that is lost; draws the distance to the next loss, not each copy."""
        loss = self.faults.loss
        if not loss:
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        self._skip = int(log(1 - self.chance.random()) / log(1 - loss)) if loss < 1 else 0
        return True

    def _is_cut(self, one: Host, other: Host) -> bool:
        return self.parted is not None and self.parted(one.place, other.place)

    # What there is

    def coordinators(self) -> list[Host]:
        """The live processes that are coordinators and do not step down."""
        return [host for host in self.hosts.values() if host.core.state in (State.COORDINATOR, State.TO_COORDINATOR)]
