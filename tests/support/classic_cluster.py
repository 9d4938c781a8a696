"""Classic cores joined by links that a test moves frame by frame: in any order, doubled, cut at a crash.

`ClassicCluster` moves only frames that the test chooses. `run_schedule` chooses them by a seed, and `faults` judges the
result from the outside: by the sends and deliveries, and their order.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, cast

from antiphon.core.effects import Answered, Channel, Deliver, Effect, Frame, InstallView, Query, Transmit
from antiphon.protocols.classic.consensus import Decide
from antiphon.protocols.classic.frames import DataFrame, MessageName
from antiphon.protocols.classic.ordering.takeover import TwoPhaseWithTakeover
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.protocols.classic.rules import ADOPTED, Rules
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings, Service
from antiphon.types import GroupId, ProcessId, View, first_view

GROUP = GroupId("g")
SERVICES: Final[tuple[Service, ...]] = ("reliable", "fifo", "causal", "total", "fifo-total", "causal-total")
_FIFO: Final = ("fifo", "causal", "fifo-total", "causal-total")
_CAUSAL: Final = ("causal", "causal-total")
_TOTAL: Final = ("total", "fifo-total", "causal-total")
Keep = Callable[[str, Frame], bool]
"""Decides which frames in transit of a crashing process still arrive."""


def only_to(*receivers: str) -> Keep:
    return lambda receiver, _: receiver in receivers


class ClassicCluster:
    """Members of one group, and senders outside it; nothing moves unless the test says so."""

    def __init__(
        self,
        *members: str,
        service: Service = "total",
        outside: Sequence[str] = (),
        clocks: Mapping[str, int] | None = None,
        rules: Rules = ADOPTED,
        retry_ns: int = 100,
        streams: bool = False,
    ) -> None:
        self.now = 0
        self.service = service
        self.outside = frozenset(outside)
        self.names = (*members, *outside)
        view = first_view(GROUP, frozenset(map(ProcessId, members)))
        settings = ClassicSettings(datagrams=not streams, retry_ns=retry_ns)
        self._channel = Channel.STREAM if streams else Channel.DATAGRAM
        self.cores = {
            name: ClassicProcess(
                ProcessId(name),
                {GROUP: ClassicGroupPlan(view, service, name not in outside, (clocks or {}).get(name, 0))},
                settings,
                rules,
            )
            for name in self.names
        }
        self.links: dict[tuple[str, str], list[Frame]] = defaultdict(list)
        self.travelled: list[Frame] = []
        """Every frame that was put on a link, once for each receiver."""
        self.delivered: dict[str, list[DataFrame]] = {name: [] for name in self.names}
        self.sent: dict[MessageName, DataFrame] = {}
        self.past: dict[MessageName, frozenset[MessageName]] = {}
        """By message, the messages that its sender had sent or delivered before."""
        self.views: dict[str, list[View]] = {name: [] for name in self.names}
        self.queries: dict[str, list[Frame]] = {name: [] for name in self.names}
        self.answered: dict[str, list[Answered]] = {name: [] for name in self.names}
        self.effects: dict[str, list[Effect | Decide]] = {name: [] for name in self.names}
        self.drains: dict[str, Callable[[int], Sequence[Effect | Decide]]] = {
            name: core.drain for name, core in self.cores.items()
        }
        """The objects that return effects: the cores themselves, unless a test wraps one."""
        self.decided: dict[str, list[Decide]] = {name: [] for name in self.names}
        self.crashed: list[str] = []
        """In the order in which all processes are told."""
        self._told = dict.fromkeys(self.names, 0)
        self._known: dict[str, frozenset[MessageName]] = dict.fromkeys(self.names, frozenset())
        for name in self.names:
            self.settle(name)

    # Inputs

    def send(self, name: str, payload: bytes) -> None:
        self.cores[name].send(GROUP, payload, self.now)
        self.settle(name)

    def ask(self, name: str, payload: bytes, answers: str) -> None:
        self.cores[name].ask(GROUP, payload, answers, self.now)
        self.settle(name)

    def answer(self, name: str, frame: Frame, payload: bytes) -> None:
        self.cores[name].answer(frame, payload, self.now)
        self.settle(name)

    def move(self, sender: str, receiver: str, which: int = 0, *, again: bool = False) -> None:
        """Let a frame of one link arrive; `again`: it stays in transit, and will arrive once more."""
        self.feed(sender, receiver, which, again=again)
        self.settle(receiver)

    def feed(self, sender: str, receiver: str, which: int = 0, *, again: bool = False) -> None:
        """The same without a drain: one of a batch."""
        link = self.links[sender, receiver]
        frame = link[which] if again else link.pop(which)
        if receiver not in self.crashed:
            self.cores[receiver].receive(frame, self.now)

    def hand(self, receiver: str, frame: Frame) -> None:
        """Let a frame arrive that no link carries."""
        self.cores[receiver].receive(frame, self.now)
        self.settle(receiver)

    def move_all(self) -> None:
        """Let frames arrive until none is in transit; bounded, because every protocol must terminate."""
        for _ in range(10_000):
            waiting = [pair for pair, frames in self.links.items() if frames]
            if not waiting:
                return
            for sender, receiver in waiting:
                self.move(sender, receiver)
        raise AssertionError("frames never stop")

    def wait(self, duration_ns: int) -> None:
        self.now += duration_ns
        for name in self.living:
            self.cores[name].tick(self.now)
            self.settle(name)

    def crash(self, name: str, keep: Keep | None = None) -> None:
        """The process crashes. Of its frames in transit, only those that `keep(receiver, frame)` selects arrive."""
        self.crashed.append(name)
        for (sender, receiver), link in self.links.items():
            if receiver == name:
                link.clear()
            elif sender == name:
                link[:] = [frame for frame in link if keep is None or keep(receiver, frame)]

    def tell(self, *names: str) -> None:
        """Let these processes, or all, learn of all crashes that they have not been told of."""
        for name in names or self.living:
            while self.untold(name):
                self.tell_next(name)

    def tell_next(self, name: str) -> None:
        self.cores[name].lost(ProcessId(self.crashed[self._told[name]]), self.now)
        self._told[name] += 1
        self.settle(name)

    def untold(self, name: str) -> int:
        return len(self.crashed) - self._told[name]

    # Observations

    @property
    def living(self) -> list[str]:
        return [name for name in self.names if name not in self.crashed]

    @property
    def survivors(self) -> list[str]:
        """Members that have not crashed."""
        return [name for name in self.living if name not in self.outside]

    def payloads(self, name: str) -> list[bytes]:
        return [frame.payloads[0] for frame in self.delivered[name]]

    def under_way(self, sender: str, receiver: str, kind: str) -> int:
        """Where on a link the first frame of this kind is."""
        return next(i for i, frame in enumerate(self.links[sender, receiver]) if frame.kind == kind)

    def move_kind(self, kind: str, sender: str, *receivers: str) -> None:
        """Let the first frame of this kind on each of these links arrive."""
        for receiver in receivers:
            self.move(sender, receiver, self.under_way(sender, receiver, kind))

    def queue(self, name: str) -> list[str]:
        """Algorithm A's queue as the notes draw it: payload, time.site, u or d."""
        rows = []
        for message, stamp, deliverable in self.total(name).queue:
            payload = self.sent[message].payloads[0].decode()
            rows.append(f"{payload} {stamp.time}.{stamp.site}{'d' if deliverable else 'u'}")
        return rows

    def total(self, name: str) -> TwoPhaseWithTakeover:
        return cast("TwoPhaseWithTakeover", self.cores[name].algorithm(GROUP))

    def kinds(self) -> dict[str, int]:
        """How many frames of each kind have travelled, point to point."""
        counts: dict[str, int] = defaultdict(int)
        for frame in self.travelled:
            counts[frame.kind] += 1
        return dict(counts)

    # Carrying out

    def settle(self, name: str) -> None:
        while effects := self.drains[name](self.now):
            self.effects[name] += effects
            for effect in effects:
                self._carry_out(name, effect)

    def _carry_out(self, name: str, effect: Effect | Decide) -> None:
        match effect:
            case Transmit(frame=frame, to=to, channel=channel):
                assert channel is self._channel
                assert frame.sender == name
                if isinstance(frame, DataFrame):
                    self._note_sent(name, frame)
                for other in (to,) if isinstance(to, str) else self.views[name][-1].members:
                    if other != name:
                        self.travelled.append(frame)
                        self.links[name, other].append(frame)
            case Deliver(frame=DataFrame() as frame):
                self.delivered[name].append(frame)
                self._known[name] |= {frame.name}
            case InstallView(view=view):
                self.views[name].append(view)
            case Query(frame=frame):
                self.queries[name].append(frame)
            case Answered():
                self.answered[name].append(effect)
            case Decide():
                self.decided[name].append(effect)
            case _:
                raise AssertionError(effect)

    def _note_sent(self, name: str, frame: DataFrame) -> None:
        assert frame.name not in self.sent
        self.sent[frame.name] = frame
        self.past[frame.name] = self._known[name]
        self._known[name] |= {frame.name}


# Random schedules


@dataclass(frozen=True)
class Shape:
    """The limits of a random schedule."""

    service: Service
    streams: bool = False
    crashes: bool = True
    rules: Rules = ADOPTED


def run_schedule(seed: int, shape: Shape, prepare: Callable[[ClassicCluster], None] | None = None) -> ClassicCluster:
    """Run the schedule of this seed; at the end all crashes are told, and all frames have arrived."""
    chance = random.Random(seed)
    members = [f"p{i}" for i in range(chance.choice((1, 2, 3, 3, 3, 4, 5)))]
    outside = [f"s{i}" for i in range(chance.choice((0, 0, 1, 2)))]
    cluster = ClassicCluster(
        *members,
        service=shape.service,
        outside=outside,
        clocks={name: chance.randrange(20) for name in members},
        rules=shape.rules,
        streams=shape.streams,
    )
    if prepare is not None:
        prepare(cluster)
    to_send, to_crash = chance.randrange(2, 11), chance.randrange(4) if shape.crashes else 0
    haste = chance.choice((0.05, 0.2, 0.5))
    doubling = 0.0 if shape.streams else chance.choice((0.0, 0.0, 0.1, 0.3))
    while True:
        draw = chance.random()
        if to_send and draw < haste:
            to_send -= 1
            cluster.send(chance.choice(cluster.living), b"%d" % to_send)
        elif to_crash and draw < haste + 0.03:
            to_crash -= 1
            victim = chance.choice(cluster.living)
            if cluster.survivors != [victim]:
                crash(cluster, victim, chance, streams=shape.streams)
        elif not step(cluster, chance, streams=shape.streams, doubling=doubling) and not to_send:
            return cluster


def step(cluster: ClassicCluster, chance: random.Random, *, streams: bool, doubling: float) -> bool:
    """Let one frame arrive or one process learn of one crash; False if there is nothing to do."""
    links = [pair for pair, frames in cluster.links.items() if frames]
    untold = [name for name in cluster.living if cluster.untold(name)]
    if untold and (not links or chance.random() < 0.1):
        cluster.tell_next(chance.choice(untold))
        return True
    if not links:
        for name in cluster.living:
            cluster.settle(name)  # the last of a batch
        return any(cluster.links.values())
    sender, receiver = chance.choice(links)
    link = cluster.links[sender, receiver]
    which = 0 if streams else chance.randrange(len(link))
    cluster.feed(sender, receiver, which, again=chance.random() < doubling)
    if chance.random() < 0.8:
        cluster.settle(receiver)
    return True


def crash(cluster: ClassicCluster, victim: str, chance: random.Random, *, streams: bool) -> None:
    """Lose any part of the datagrams in transit, and the end of each stream."""
    cluster.settle(victim)
    share = chance.choice((0.0, 0.3, 0.5, 0.8, 1.0))
    ended: set[str] = set()

    def keep(receiver: str, _: Frame) -> bool:
        cut = chance.random() < share
        if cut and streams:
            ended.add(receiver)
        return not cut and receiver not in ended

    cluster.crash(victim, keep)


# Judging


def faults(cluster: ClassicCluster) -> list[str]:
    """Every promise that was broken, in one sentence each, when everything has arrived."""
    found = [*safety_faults(cluster), *_agreement(cluster), *_drained(cluster)]
    if cluster.service in _TOTAL:
        found += _one_order(cluster)
    return found


def safety_faults(cluster: ClassicCluster) -> list[str]:
    """Those that can be seen at any time, crashed processes included."""
    found = [*_integrity(cluster)]
    if cluster.service in _FIFO:
        found += _fifo(cluster)
    if cluster.service in _CAUSAL:
        found += _causal(cluster)
    if cluster.service in _TOTAL:
        found += _stamp_order(cluster)
    return found


def _names(cluster: ClassicCluster, name: str) -> list[MessageName]:
    return [frame.name for frame in cluster.delivered[name]]


def _integrity(cluster: ClassicCluster) -> Iterator[str]:
    for name in cluster.names:
        delivered = _names(cluster, name)
        if len(set(delivered)) != len(delivered):
            yield f"{name} delivers a message twice"
        if delivered and name in cluster.outside:
            yield f"{name} stands outside and delivers"
        for frame in cluster.delivered[name]:
            if frame.name not in cluster.sent or cluster.sent[frame.name].payloads != frame.payloads:
                yield f"{name} delivers {frame.name}, which no process sent"


def _agreement(cluster: ClassicCluster) -> Iterator[str]:
    survivors = cluster.survivors
    wanted = {message for message in cluster.sent if message.origin not in cluster.crashed}
    for name in survivors:
        delivered = set(_names(cluster, name))
        if delivered != set(_names(cluster, survivors[0])):
            yield f"{name} and {survivors[0]} deliver different messages"
        if wanted - delivered:
            yield f"{name} does not deliver {wanted - delivered}"
    if len({cluster.views[name][-1].id for name in survivors}) > 1:
        yield "the views of survivors differ"


def _drained(cluster: ClassicCluster) -> Iterator[str]:
    for name in cluster.living:
        if held := cluster.cores[name].unstable(GROUP):
            yield f"{name} still holds {held} messages"


def _fifo(cluster: ClassicCluster) -> Iterator[str]:
    for name in cluster.names:
        last: dict[ProcessId, int] = defaultdict(int)
        for message in _names(cluster, name):
            if message.sequence != last[message.origin] + 1:
                yield f"{name} delivers {message} after {last[message.origin]}"
            last[message.origin] = message.sequence


def _causal(cluster: ClassicCluster) -> Iterator[str]:
    for name in cluster.names:
        before: set[MessageName] = set()
        for message in _names(cluster, name):
            if not cluster.past[message] <= before:
                yield f"{name} delivers {message} without {cluster.past[message] - before}"
            before.add(message)


def _stamp_order(cluster: ClassicCluster) -> Iterator[str]:
    for name in cluster.names:
        stamps = [frame.stamp for frame in cluster.delivered[name] if frame.stamp is not None]
        if any(later <= earlier for earlier, later in pairwise(stamps)):
            yield f"{name} delivers against the order of stamps"


def _one_order(cluster: ClassicCluster) -> Iterator[str]:
    """Agreement among survivors; without crashes, among all."""
    survivors = cluster.survivors
    for name in survivors:
        if cluster.delivered[name] != cluster.delivered[survivors[0]]:
            yield f"{name} and {survivors[0]} deliver in different orders, or under different stamps"
