"""Good traces of groups that change: joins, leaves, recoveries, splits and merges, with epochs and states.

A reference like the sequencer of `traces.py`, right by construction: each side of a group has one list of events, which
all its members follow, each at its own pace. Before several groups become one, all members of each reach the end of its
list, as by the flush of docs/spec/newtop.md 11.1; then one new list begins for all.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from antiphon.types import ProcessId, process_id, split_process_id
from tests.support.traces.handmade import Mid, Trace

GROUP = "orders"
NAMES = ("p1", "p2", "p3", "p4", "p5", "p6")
OPTIONS = {"suspect_after": "1us", "idle_probe": "1us", "time_silence": "1us", "form_within": "1us"}
"""A row takes a nanosecond: no run lasts as long as a suspicion, except for its end."""


@dataclass(frozen=True)
class Enter:
    """The first view of a formed group."""

    view: str
    epoch: int
    members: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    stateful: frozenset[int]
    """The classes that come from a view."""
    primary: bool


@dataclass(frozen=True)
class Taken:
    """The state of a class arrives."""

    of: int
    digest: int


@dataclass(frozen=True)
class Shrink:
    """A view without some."""

    view: str
    members: tuple[str, ...]
    primary: bool


@dataclass
class Side:
    """Processes that continue together: their common history, and the position of each in it."""

    members: list[str]
    """The members of the last view of the list."""
    epoch: int = 0
    count: int = 0
    primary: bool = True
    items: list[Mid | Enter | Taken | Shrink] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    """Per member up to where in the list it knows all to be stable."""
    freed: dict[str, int] = field(default_factory=dict)


@dataclass
class Member:
    """The application state of a process."""

    state: int | None = None
    """None if it has no state yet."""
    entered: Enter | None = None
    states: dict[int, int] = field(default_factory=dict)
    """Those of a formed group, by class, its own too."""
    waits: bool = False


@cache
def changing_trace(seed: int) -> pa.Table:
    """One run of the reference."""
    return _Reference(random.Random(seed)).run()


class _Reference:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        configured = list(NAMES[: rng.randint(2, 4)])
        self._merging, self._closed = rng.random() < 0.5, rng.random() < 0.3
        options = OPTIONS | {"merge_every": "1us" if self._merging else "0s"}
        options |= {"view_change": "closed"} if self._closed else {}
        self._trace = Trace({GROUP: configured}, options=options)
        self._sides: list[Side] = []
        self._members: dict[str, Member] = {}
        self._outside = [*NAMES[len(configured) :]]
        """Processes that run and are in no view; those that asked to join are in `_asking` too."""
        self._asking: list[str] = []
        self._dead: list[str] = []
        self._epochs = 0
        self._tags = 0
        self._begin(configured)

    def _begin(self, configured: list[str]) -> None:
        for process in NAMES:
            self._trace.start(process)
            self._members[process] = Member()
        for process in configured:
            self._trace.view(process, GROUP, "0000.000000.00", configured, primary=True)
            self._members[process].state = 0
        start = dict.fromkeys(configured, 0)
        self._sides.append(Side(configured, at=start, known=dict(start), freed=dict(start)))

    def run(self) -> pa.Table:
        events = (self._crash, self._recover, self._join, self._leave, self._part, self._unite)
        for _ in range(self._rng.randint(6, 12)):
            for _ in range(self._rng.randint(5, 30)):
                self._work()
            self._rng.choices(events, (3, 3, 3, 2, 2, 3))[0]()
        for _ in range(10):
            self._work()
        return self._end()

    # ---------------------------------------------------------------- steps that happen all the time

    def _work(self) -> None:
        side = self._rng.choice(self._sides)
        process = self._rng.choice(side.members)
        act = self._rng.choices((self._send, self._follow, self._learn, self._free), (30, 50, 8, 6))[0]
        act(side, process)

    def _send(self, side: Side, process: str) -> bool:
        here = side.at[process]
        # A process without its first view cannot; with closed views, neither can one that is behind.
        if (process, GROUP) not in self._trace.views or any(
            isinstance(item, Enter) or (self._closed and isinstance(item, Shrink)) for item in side.items[here:]
        ):
            return False
        side.items.append(self._trace.send(process, GROUP))
        return True

    def _follow(self, side: Side, process: str) -> bool:
        here = side.at[process]
        if here == len(side.items):
            return False
        side.at[process] = here + 1
        item = side.items[here]
        if isinstance(item, Mid):
            self._deliver(process, item)
        elif isinstance(item, Enter):
            self._enter(process, item)
        elif isinstance(item, Taken):
            self._take(process, item)
        else:
            self._trace.exclude(process, item.view, item.members, GROUP, primary=item.primary)
            self._complete(process)
        return True

    def _deliver(self, process: str, mid: Mid) -> None:
        if (process, mid) not in self._trace.had:
            self._trace.receive(process, mid)
        self._trace.deliver(process, mid)
        member = self._members[process]
        member.state = digest(member.state, mid)

    def _enter(self, process: str, view: Enter) -> None:
        member, own = self._members[process], next(i for i, each in enumerate(view.classes) if process in each)
        member.entered, member.states = view, {}
        self._trace.view(
            process,
            GROUP,
            view.view,
            view.members,
            transitional=view.classes[own] if own in view.stateful else (),
            primary=view.primary,
            epoch=view.epoch,
            classes=view.classes,
        )
        if own in view.stateful and member.state is not None:
            member.states[own] = member.state
            if len(view.classes) > 1:
                self._trace.state(process, "snapshot", member.state, own)
        member.waits = bool(view.stateful - {own})

    def _take(self, process: str, item: Taken) -> None:
        member = self._members[process]
        if member.waits and item.of not in member.states:
            view = self._trace.views[process, GROUP]
            self._told(process, "installed", item.digest, item.of)
            member.states[item.of] = item.digest
            assert view == self._trace.views[process, GROUP]
            self._complete(process)

    def _complete(self, process: str) -> None:
        """True if it has all states still to come: those of classes with a member in its view."""
        member, view = self._members[process], self._trace.memberships[process, GROUP]
        if not member.waits or member.entered is None:
            return
        classes = member.entered.classes
        missing = [of for of in member.entered.stateful - member.states.keys() if {*classes[of]} & {*view}]
        if not missing:
            member.state = merged(member.states)
            member.waits = False
            self._told(process, "merged", member.state, None)

    def _told(self, process: str, role: str, state: int, of: int | None) -> None:
        """The row names the first view, also in a later one."""
        entered = self._members[process].entered
        assert entered is not None
        now = self._trace.views[process, GROUP]
        self._trace.views[process, GROUP] = entered.view
        self._trace.state(process, role, state, of)
        self._trace.views[process, GROUP] = now

    def _learn(self, side: Side, process: str) -> bool:
        """A prefix of the list is stable for a process, when all of its view have it."""
        if not self._is_in(side, process):
            return False
        view, upto, end = self._trace.memberships[process, GROUP], dict[str, int](), side.known[process]
        for item in side.items[end : side.at[process]]:
            if isinstance(item, Mid):
                if not all((member, item) in self._trace.had for member in view):
                    break
                upto[item.sender] = item.number
            end += 1
        if upto:
            self._trace.stable(process, upto)
        side.known[process] = end
        return bool(upto)

    def _free(self, side: Side, process: str) -> bool:
        if not self._is_in(side, process):
            return False
        mids = [item for item in side.items[side.freed[process] : side.known[process]] if isinstance(item, Mid)]
        side.freed[process] = side.known[process]
        if mids:
            self._trace.discard(process, {mid.sender: mid.number for mid in mids})
        return bool(mids)

    def _is_in(self, side: Side, process: str) -> bool:
        """It has gone over to that side."""
        return side.at[process] > 0 or not any(isinstance(item, Enter) for item in side.items)

    def _drain(self, side: Side) -> None:
        while behind := [process for process in side.members if side.at[process] < len(side.items)]:
            self._follow(side, self._rng.choice(behind))

    # ---------------------------------------------------------------- steps that change a group

    def _crash(self) -> None:
        side = self._rng.choice(self._sides)
        if len(side.members) < 2:
            return
        victim = self._rng.choice(side.members)
        self._trace.crash(victim)
        self._dead.append(victim)
        self._remove(side, [victim])

    def _remove(self, side: Side, gone: Sequence[str]) -> None:
        old = side.members
        side.members = [member for member in old if member not in gone]
        side.count, self._tags = side.count + 1, self._tags + 1
        side.primary = side.primary and 2 * len(side.members) > len(old)
        view = f"{side.epoch:04d}.{side.count:06d}.{self._tags:02d}"
        side.items.append(Shrink(view, tuple(side.members), side.primary))

    def _recover(self) -> None:
        if self._dead:
            old = self._dead.pop(self._rng.randrange(len(self._dead)))
            name, incarnation = split_process_id(ProcessId(old))
            process = process_id(name, incarnation + 1)
            self._trace.start(process)
            self._members[process] = Member()
            self._outside.append(process)
            self._ask(process)

    def _ask(self, process: str) -> None:
        self._trace.join(process)
        self._asking.append(process)

    def _join(self) -> None:
        strangers = [process for process in self._outside if process not in self._asking]
        if strangers:
            self._ask(self._rng.choice(strangers))
        if self._asking:
            self._form([self._rng.choice(self._sides)], [*self._asking])

    def _leave(self) -> None:
        side = self._rng.choice(self._sides)
        if len(side.members) < 2:
            return
        self._drain(side)
        process = self._rng.choice(side.members)
        self._trace.leave(process)
        self._members[process] = Member()
        self._outside.append(process)
        self._remove(side, [process])

    def _part(self) -> None:
        side = self._rng.choice(self._sides)
        if len(side.members) < 2:
            return
        self._drain(side)
        self._trace.fault("partition")
        cut = self._rng.randint(1, len(side.members) - 1)
        far = self._rng.sample(side.members, cut)
        other = Side(
            side.members,
            side.epoch,
            side.count,
            side.primary,
            list(side.items),
            *({member: marks[member] for member in far} for marks in (side.at, side.known, side.freed)),
        )
        self._remove(other, [member for member in side.members if member not in far])
        self._remove(side, far)
        self._sides.append(other)

    def _unite(self) -> None:
        if len(self._sides) > 1:
            self._trace.fault("heal")
            self._form(self._rng.sample(self._sides, 2), [*self._asking] if self._rng.random() < 0.5 else [])

    def _form(self, sides: list[Side], joiners: list[str]) -> None:
        """A new group of all of these."""
        for side in sides:
            self._drain(side)
        # The classes in order, each with the size of the view that it comes from and whether that was primary.
        classes = sorted(
            [(tuple(sorted(side.members)), side) for side in sides] + [((joiner,), None) for joiner in joiners],
            key=lambda each: each[0],
        )
        self._epochs, self._tags = self._epochs + 1, self._tags + 1
        stateful = frozenset(place for place, (_, side) in enumerate(classes) if side is not None)
        primary = any(side.primary for side in sides)
        members = tuple(sorted(member for together, _ in classes for member in together))
        together = tuple(each for each, _ in classes)
        enter = Enter(f"{self._epochs:04d}.000000.{self._tags:02d}", self._epochs, members, together, stateful, primary)
        lost = self._rng.choice(sorted(stateful)) if self._rng.random() < 0.15 and len(members) > 1 else -1
        new = Side(list(members), self._epochs, 0, primary, [enter])
        for marks in (new.at, new.known, new.freed):
            marks.update(dict.fromkeys(members, 0))
        self._sides = [side for side in self._sides if side not in sides] + [new]
        self._outside = [process for process in self._outside if process not in joiners]
        self._asking = [process for process in self._asking if process not in joiners]
        if lost >= 0 and len(together[lost]) == 1 and len(together) > 1:
            self._lose(new, together[lost][0], enter)
        else:
            lost = -1
        states = {place: self._members[together[place][0]].state for place in sorted(stateful - {lost})}
        new.items += [Taken(place, state) for place, state in states.items() if state is not None]

    def _lose(self, side: Side, victim: str, enter: Enter) -> None:
        """The only member of a class goes over, and crashes before it has told its state."""
        self._enter(victim, enter)
        self._trace.crash(victim)
        self._dead.append(victim)
        self._remove(side, [victim])

    # ---------------------------------------------------------------- the end

    def _end(self) -> pa.Table:
        self._asking_join_at_last()
        if self._rng.random() < 0.4:
            self._part()
        healed = self._rng.random() < 0.5
        if healed and self._merging:
            while len(self._sides) > 1:
                self._unite()
        for side in self._sides:
            self._drain(side)
            for act in (self._learn, self._free):
                for process in side.members:
                    act(side, process)
        sides = [sorted(side.members) for side in self._sides]
        if healed:
            sides = [[process for side in sides for process in side]]
        self._outside = [process for process in self._outside if process not in self._asking]
        self._beat()
        return self._trace.end(settled=False, components=[*sides, *([process] for process in self._outside)])

    def _asking_join_at_last(self) -> None:
        if self._asking:
            self._form([self._rng.choice(self._sides)], [*self._asking])

    def _beat(self) -> None:
        """Quiet time for everything to settle, while members signal that they are alive."""
        for _ in range(25):
            self._trace.time += 2_000
            for side in self._sides:
                for process in side.members:
                    self._trace.transmit(process, f"alive {self._trace.time}", None, "alive", GROUP)


def digest(*parts: Any) -> int:
    """A digest of the deliveries in their order."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest())


def merged(states: dict[int, int]) -> int:
    """In the order of classes; the only one as it is."""
    return next(iter(states.values())) if len(states) == 1 else digest("merged", *sorted(states.items()))
