"""Adversarial schedules on bare cores: any frame may be next; any process may fail, be cut off or be suspected.

The simulator has a clock, so early frames mostly arrive early. Here the next frame is always chosen at random. This
finds interleavings that latencies make rare, and plays many times as many of them per second. After a number of steps
the faults end: all frames move, time passes, every survivor sends a message. Then the oracle checks the events of every
application. It is independent of the judge of traces and smaller: it gives a name of docs/spec/properties.md and a
sentence.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from antiphon.core.effects import Confirmed, Deliver, Frame, InstallView, Transmit
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId, View
from tests.support.cluster import Cluster

MS: Final = 1_000_000
SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "three": {"g": "123"},
    "four": {"g": "1234"},
    "five": {"g": "12345"},
    "six": {"g": "123456"},
    "pair": {"a": "1234", "b": "3456"},
    "triangle": {"a": "123", "b": "134", "c": "124"},
    "couples": {"a": "12", "b": "13", "c": "23"},
    "twins": {"a": "1234", "b": "1234"},
    "fork": {"a": "123", "b": "124"},
    "ring": {"a": "1234", "b": "3456", "c": "5678", "d": "1278"},
}
"""Groups and their members, a letter each."""
SERVICES: Final = ("total", "total", "total", "causal-slow", "causal-fast", "causal-relative", "causal-vector")
DATAGRAMS: Final = 0.25
"""Share of the schedules in which frames are lost, doubled and reordered."""
WINDOW_MIN: Final = {0: 64, 1: 3, 2: 2, 3: 2}
ROUNDS: Final = 90
"""Rounds of the quiet end; on datagrams, where repairs wait for one another, at least half as many again."""

_History = list[tuple[View, list[tuple[ProcessId, int]]]]
"""Of one group at one process: each view, with the (sender, label) of its deliveries in order."""


class BrokenError(AssertionError):
    """A violation that the oracle found: the property, and the reason."""

    def __init__(self, property_: str, sentence: str) -> None:
        super().__init__(f"{property_}: {sentence}")
        self.property = property_


@dataclass(frozen=True, slots=True)
class Draw:
    """The settings that a seed draws before the first step."""

    seed: int
    shape: str
    service: str
    view_change: str
    flow_control: int
    datagrams: bool
    probed: bool
    by_block: bool
    steps: int
    """Number of steps before the quiet end."""
    crashes: int
    partings: int
    suspicions: int
    settings: tuple[tuple[str, Any], ...]

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Members by group."""
        return {group: tuple(members) for group, members in SHAPES[self.shape].items()}


def draw(seed: int) -> Draw:
    """The settings of a seed; a test may ask for some and pass over other seeds."""
    chance = random.Random(f"settings/{seed}")
    service = chance.choice(SERVICES)
    flow_control = chance.choice([0, 0, 1, 2, 3])
    drawn = Draw(
        seed,
        shape=chance.choice([*SHAPES]),
        service=service,
        view_change=chance.choice(["cut", "remove", "closed"]) if service == "total" else "cut",
        flow_control=flow_control,
        datagrams=chance.random() < DATAGRAMS,
        probed=chance.random() < 0.5,
        by_block=chance.random() < 0.3,
        steps=chance.choice([60, 120, 250]),
        crashes=chance.choice([0, 0, 1, 1, 2]),
        partings=chance.choice([0, 0, 1, 1, 2]),
        suspicions=chance.choice([0, 0, 2, 5, 9, 14]),
        settings=(
            ("window", WINDOW_MIN[flow_control] + chance.choice([0, 0, 1, 4])),
            ("silence_timeout_ns", chance.choice([0, 0, 20 * MS])),
            ("packing", chance.random() < 0.5),
            ("frame_bytes_max", chance.choice([65_536, 65_536, 2])),
            ("compression", service == "causal-fast" and chance.random() < 0.3),
        ),
    )
    flushes = service not in ("total", "causal-slow")
    return replace(drawn, by_block=drawn.by_block and len(drawn.groups) == 1 and not flushes)


def draw_safe(seed: int) -> Draw:
    """The same settings with safe delivery, in which views change at a cut."""
    drawn = draw(seed)
    settings = tuple((name, name != "compression" and value) for name, value in drawn.settings)
    by_block = seed % 3 == 0 and len(drawn.groups) == 1
    return replace(drawn, service="total-safe", view_change="cut", by_block=by_block, settings=settings)


def run(drawn: Draw, prepare: Callable[[Cluster], None] = lambda _: None) -> Cluster:
    """Play the schedule of a seed to its end; BrokenError if a promise is."""
    schedule = Schedule(drawn)
    prepare(schedule.cluster)
    schedule.trouble()
    broken: BrokenError | None = None
    for _ in schedule.peace():
        try:
            Oracle(drawn, schedule).look()
        except BrokenError as found:  # it may only take longer
            broken = found
        else:
            return schedule.cluster
    assert broken is not None
    raise broken


class Schedule:
    """One run."""

    def __init__(self, drawn: Draw) -> None:
        self.sent: dict[tuple[str, str], int] = defaultdict(int)
        """Messages of a process in a group."""
        self.parted: set[frozenset[str]] = set()
        """Pairs whose connection has lost frames, or on datagrams is cut for good."""
        self.groups: Final = drawn.groups
        self.processes: Final = sorted({name for members in self.groups.values() for name in members})
        self.cluster: Final = Cluster(
            groups=self.groups,
            service=drawn.service,
            view_change=drawn.view_change,
            suspect_after_ns=500 * MS,
            idle_probe_ns=1_000 * MS if drawn.probed else 0,
            flow_control=drawn.flow_control,
            block_numbered=frozenset(map(GroupId, self.groups)) if drawn.by_block else frozenset(),
            datagrams=drawn.datagrams,
            **dict(drawn.settings),
        )
        self._chance = random.Random(f"steps/{drawn.seed}")
        self._drawn = drawn
        self._datagrams = drawn.datagrams
        self._loss = 0.15

    @property
    def living(self) -> list[str]:
        """The processes that have not crashed."""
        return [name for name in self.processes if name not in self.cluster.crashed]

    def trouble(self) -> None:
        """Play all planned steps."""
        chance, drawn = self._chance, self._drawn
        plan: dict[int, list[Callable[[], None]]] = defaultdict(list)
        for _ in range(drawn.crashes):
            plan[chance.randrange(drawn.steps)].append(self._crash)
        for _ in range(drawn.partings):
            plan[chance.randrange(drawn.steps)].append(self._part)
        for _ in range(drawn.suspicions):
            together = drawn.steps // 2 + chance.randrange(6)
            plan[together if chance.random() < 0.5 else chance.randrange(drawn.steps)].append(self._suspect)
        at_once = chance.choice([1, 3])
        for step in range(drawn.steps):
            for happen in plan[step]:
                happen()
            self._step(at_once)

    def _step(self, at_once: int) -> None:
        chance, cluster = self._chance, self.cluster
        kind = chance.random()
        if kind < 0.12:
            name = chance.choice(self.living)
            self._send(name, chance.choice([group for group, members in self.groups.items() if name in members]))
        elif kind < 0.9:
            waiting = [pair for pair, frames in cluster.channels.items() if frames]
            if waiting:
                self._move(*chance.choice(waiting), at_once)
        else:
            cluster.now += chance.choice([1, 5, 30, 120 if chance.random() < 0.2 else 10]) * MS
            cluster.tick(chance.choice(self.living))

    def peace(self) -> Iterator[None]:
        """Every remaining process sends twice; yields regularly, so that the caller can check the result."""
        chance, cluster = self._chance, self.cluster
        if self._datagrams and chance.random() < 0.5:
            cluster.cuts = {pair for pair in cluster.cuts if cluster.crashed & {*pair}}
            self.parted.clear()
        self._loss = 0.05
        rounds = ROUNDS + 60 * self._datagrams
        for turn in range(rounds):
            if turn > 80:
                self._loss = 0.0
            self._move_all()
            if turn in (20, 40):
                for name in self.living:
                    for group in [group for group, members in self.groups.items() if name in members]:
                        self._send(name, group)
            cluster.wait((60 if turn < 60 else 200) * MS)
            if turn in (50, 70):
                self._move_all()
                yield
        self._move_all()
        yield

    # Random events

    def _send(self, name: str, group: str) -> None:
        label = self.sent[name, group]
        self.sent[name, group] += 1
        self.cluster.send(name, f"{name}{group}{label}".encode(), group=group)

    def _move(self, sender: str, receiver: str, frames: int = 1) -> None:
        if not self._datagrams:
            self.cluster.move(sender, receiver, min(frames, len(self.cluster.channels[sender, receiver])))
            return
        chance, channel = self._chance, self.cluster.channels[sender, receiver]
        place = chance.randrange(len(channel)) if chance.random() < 0.3 else 0
        frame, fate = channel[place], chance.random()
        if fate <= 1 - 0.6 * self._loss:  # else it comes again
            del channel[place]
        if fate >= self._loss and receiver not in self.cluster.crashed:
            self.cluster.core(receiver).receive(frame, self.cluster.now)
            self.cluster.settle(receiver)

    def _move_all(self) -> None:
        for _ in range(3_000):
            waiting = [pair for pair, frames in self.cluster.channels.items() if frames]
            if not waiting:
                return
            self._chance.shuffle(waiting)
            for pair in waiting:
                if self.cluster.channels[pair]:
                    self._move(*pair)
        raise BrokenError("endless", "frames never stop")

    def _crash(self) -> None:
        if len(self.living) <= 2:
            return
        name = self._chance.choice(self.living)
        for other in self.processes:
            if other != name:
                self._lose_end(name, other)
        self.cluster.crash(name)

    def _part(self) -> None:
        chance, processes = self._chance, self.processes
        kind = chance.choice(["split", "split", "one way", "pair"])
        if kind == "split":
            side = [name for name in processes if chance.random() < 0.5]
            lost = [pair for name in side for other in processes if other not in side for pair in _both(name, other)]
        elif kind == "one way":
            name, deaf = chance.choice(processes), chance.random() < 0.5
            lost = [(other, name) if deaf else (name, other) for other in processes if other != name]
        else:
            name, other = chance.sample(processes, 2)
            lost = [*_both(name, other)]
        for pair in lost:
            self._lose(*pair)

    def _lose(self, sender: str, receiver: str) -> None:
        """A direction is cut: a stream loses its end and all that follows, and both ends are informed (E-47)."""
        cluster = self.cluster
        self.parted.add(frozenset((sender, receiver)))
        if not self._datagrams:
            self._lose_end(sender, receiver)
            for name, peer in _both(sender, receiver):
                if name not in cluster.crashed:
                    cluster.core(name).severed(ProcessId(peer), cluster.now)
        cluster.cuts.add((sender, receiver))

    def _lose_end(self, sender: str, receiver: str) -> None:
        channel = self.cluster.channels[sender, receiver]
        for _ in range(len(channel) - self._chance.randint(0, len(channel))):
            channel.pop()

    def _suspect(self) -> None:
        name, other = self._chance.choice(self.living), self._chance.choice(self.processes)
        if name != other:
            self.cluster.suspect(name, other)


class Oracle:
    """Judges one run by the effects of its cores."""

    def __init__(self, drawn: Draw, schedule: Schedule) -> None:
        self._cluster = schedule.cluster
        self._groups = schedule.groups
        self._processes = schedule.processes
        self._sent = schedule.sent
        self._parted = schedule.parted
        self._total = drawn.service in ("total", "total-safe")
        self._safe = drawn.service == "total-safe"
        self._excused_by_notice = drawn.view_change != "cut" or not (self._total or drawn.service == "causal-slow")
        self._histories = {
            (name, group): self._history(name, group) for group, members in self._groups.items() for name in members
        }

    def look(self) -> None:
        """Safety at all processes, then liveness where it can be demanded."""
        for group in self._groups:
            self._streams(group)
            self._views(group)
            if self._safe:
                self._uniform(group)
        if self._total:
            self._one_order()
        self._causality()
        for group, members in self._groups.items():
            for name in members:
                component = self._component(name)
                if component is not None:
                    self._membership(name, group, component)
                    self._at_peace(name, group)

    def _history(self, name: str, group: str) -> _History:
        seen: _History = []
        for effect in self._cluster.effects[name]:
            if isinstance(effect, InstallView) and effect.view.group == group:
                seen.append((effect.view, []))
            elif isinstance(effect, Deliver) and effect.frame.group == group:
                seen[-1][1].extend((effect.frame.sender, label) for label in _labels(effect.frame))
        return seen

    def _streams(self, group: str) -> None:
        """Each sender's messages once, in order, without a gap, while it is in the view."""
        for name in self._groups[group]:
            numbers: dict[ProcessId, list[int]] = defaultdict(list)
            for view, delivered in self._histories[name, group]:
                for sender, label in delivered:
                    numbers[sender].append(label)
                    if sender not in view.members:
                        raise BrokenError(
                            "D4", f"{name} delivers a message of {sender}, which is not in its view of {group}"
                        )
            for sender, labels in numbers.items():
                if len({*labels}) < len(labels):
                    raise BrokenError("D2", f"{name} delivers a message of {sender} in {group} twice: {labels}")
                if labels != sorted(labels):
                    raise BrokenError("O1", f"{name} delivers the messages of {sender} in {group} as {labels}")
                if labels != [*range(len(labels))]:
                    raise BrokenError("O2", f"{name} delivers the messages of {sender} in {group} as {labels}")

    def _views(self, group: str) -> None:
        """Processes that go from one view to another delivered the same in the first, and came from the same one."""
        seen: dict[tuple[str, str], tuple[str, list[tuple[ProcessId, int]]]] = {}
        before: dict[str, object] = {}
        for name in self._groups[group]:
            history = self._histories[name, group]
            for (view, delivered), (following, _) in pairwise(history):
                if before.setdefault(str(following.id), following.previous) != following.previous:
                    raise BrokenError("M7", f"{name} enters {following.id} from another view than others")
                known = delivered if self._total else sorted(delivered)
                other, theirs = seen.setdefault((str(view.id), str(following.id)), (name, known))
                if known != theirs:
                    property_ = "D8" if sorted(known) != sorted(theirs) else "O5"
                    raise BrokenError(
                        property_, f"{other} and {name} leave a view of {group} with {theirs} and {known}"
                    )

    def _uniform(self, group: str) -> None:
        """A message delivered by any process is delivered by all members of its last notice before they leave (D11)."""
        left = {
            (name, str(view.id)): delivered
            for name in self._groups[group]
            for (view, delivered), _ in pairwise(self._histories[name, group])
        }
        for name in self._groups[group]:
            view, failed = "", frozenset[ProcessId]()
            members = frozenset[ProcessId]()
            for effect in self._cluster.effects[name]:
                if isinstance(effect, InstallView) and effect.view.group == group:
                    view, members = str(effect.view.id), frozenset(effect.view.members)
                elif isinstance(effect, Confirmed) and effect.group == group:
                    failed |= members - {*effect.members}
                elif isinstance(effect, Deliver) and effect.frame.group == group:
                    for other in sorted(members - failed):
                        for label in _labels(effect.frame):
                            if (effect.frame.sender, label) not in left.get(
                                (other, view), [(effect.frame.sender, label)]
                            ):
                                raise BrokenError(
                                    "D11", f"{name} has {label} of {effect.frame.sender}, {other} has not"
                                )

    def _one_order(self) -> None:
        for name in self._processes:
            frames = [effect.frame for effect in self._cluster.effects[name] if isinstance(effect, Deliver)]
            keys = [(frame.clock, frame.sender) for frame in frames]
            if keys != sorted(keys):
                raise BrokenError("O6", f"{name} delivers out of the order of all")

    def _causality(self) -> None:
        """Nothing without its past, over all groups; a past lost with its sender is excused (E-31, E-64)."""
        past: dict[tuple[str, str, int], frozenset[tuple[str, str, int]]] = {}
        known: dict[str, set[tuple[str, str, int]]] = {name: set() for name in self._processes}
        delivered: dict[str, set[tuple[str, str, int]]] = {name: set() for name in self._processes}
        there: dict[tuple[str, str], set[str]] = {}
        for name, effect in self._cluster.history:
            if isinstance(effect, InstallView):
                there[name, effect.view.group] = {*effect.view.members}
            elif isinstance(effect, Confirmed) and self._excused_by_notice:
                there[name, effect.group] -= {process for process, _ in effect.failed}
            elif isinstance(effect, Transmit) and isinstance(effect.frame, BlockFrame):
                for label in _labels(effect.frame) if not effect.frame.more else ():
                    past[effect.frame.group, name, label] = frozenset(known[name])
                    known[name].add((effect.frame.group, name, label))
            elif isinstance(effect, Deliver):
                for label in _labels(effect.frame):
                    message = effect.frame.group, str(effect.frame.sender), label
                    for group, sender, number in past[message] - delivered[name]:
                        if name in self._groups[group] and sender in there[name, group]:
                            raise BrokenError("O4", f"{name} delivers {message} without {(group, sender, number)}")
                    delivered[name].add(message)
                    known[name] |= {message, *past[message]}

    def _component(self, name: str) -> set[str] | None:
        """The processes connected with it, if all of them are connected with each other (E-56)."""
        crashed = self._cluster.crashed
        if name in crashed:
            return None
        living = {other for other in self._processes if other not in crashed}
        near = {one: {two for two in living if frozenset((one, two)) not in self._parted} for one in living}
        component = near[name]
        return component if all(near[other] == component for other in component) else None

    def _membership(self, name: str, group: str, component: set[str]) -> None:
        view, delivered = self._histories[name, group][-1]
        if gone := {*view.members} - component:
            raise BrokenError("L5", f"{name} keeps {sorted(gone)} in its view of {group}")
        for other in view.members:
            theirs, got = self._histories[other, group][-1]
            if theirs.id != view.id:
                raise BrokenError("M6e", f"the last views of {name} and {other} in {group} differ and overlap")
            if (got != delivered) if self._total else ({*got} != {*delivered}):
                raise BrokenError("L2", f"{name} and {other} have not delivered the same in their last view of {group}")

    def _at_peace(self, name: str, group: str) -> None:
        own = self._cluster.core(name)._groups[GroupId(group)]
        if own.agreement.active or own.agreement.failed or own.agreement.wary:
            raise BrokenError("L1", f"{name} is still at an agreement in {group}: {own.agreement.suspicions}")
        if own.outgoing.outbox.waiting or own.outgoing.notices:
            raise BrokenError("L7", f"{name} may not send in {group}")
        delivered = [each for _, messages in self._histories[name, group] for each in messages if each[0] == name]
        if len(delivered) != self._sent[name, group]:
            raise BrokenError("L3", f"{name} has delivered {len(delivered)} of {self._sent[name, group]} of its own")
        if held := [frame.block for frame in own.holdings.buffers.held() if frame.payloads]:
            raise BrokenError("L8", f"{name} still holds messages of {group}: {held}")


def _labels(frame: Frame) -> range:
    return range(frame.label, frame.label + len(frame.payloads))


def _both(name: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (name, other), (other, name)
