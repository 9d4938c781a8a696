"""Random runs of the real API in virtual time: applications that write while their view is primary, and trouble.

One run has 3 to 5 members of one group. What happens is drawn from its seed: pauses, crashes with and without evidence,
restarts with right and wrong peers, partitions, one-way cuts, leaves, and joins of a process that left. At the end
everything is healed and resumed, and the run is judged (`tools/lab/api_history.py`).
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon import AntiphonError, Event, Group, Message, Primary, Reset, Total, View
from antiphon.api.founding import Found
from antiphon.testing import cluster, run
from antiphon.types import ProcessId
from tools.lab.api_history import Acknowledged, Ending, Entry, History, Judgement, Stay, Violation, judge

_BUSY_S: Final = 4.0
"""Applications write on after everything is healed; then they stop."""
_QUIET_S: Final = 90.0
"""Enough for each join, merge and vote."""
_FOUND: Final[tuple[Found, ...]] = ("together", "together", "anyway", "never")
"""How a restarted process may found the group."""
_WRITE_S: Final = 0.25
"""Mean pause between two writes of one application."""


class Application:
    """Its state is the set of writes that it has delivered. It counts its own write as done if it is primary then."""

    def __init__(self, stay: Stay, history: History, chance: random.Random, *, merges: bool) -> None:
        """`merges`: of several states it takes the union; otherwise the state of the primary side, if there is one."""
        self.state: set[int] = set()
        self.stay = stay
        self.awake = asyncio.Event()
        self.awake.set()
        self._history = history
        self._chance = chance
        self._merges = merges
        self._slow_s = chance.choice([0, 0, 0, 0.001, 0.1])
        self._number = 0
        self._view: View | None = None

    def snapshot(self) -> bytes:
        return json.dumps(sorted(self.state)).encode()

    async def follow(self, group: Group) -> None:
        """Read until the process has left."""
        async for event in group:
            self._take(event, group)
            await self.awake.wait()
            if self._slow_s and self._chance.random() < 0.1:
                await asyncio.sleep(self._chance.random() * self._slow_s)

    async def write(self, group: Group, numbers: Callable[[], int]) -> None:
        """Write now and then, while the view is primary."""
        while not group.leaving:
            await asyncio.sleep(self._chance.random() * 2 * _WRITE_S)
            await self.awake.wait()
            self.write_now(group, numbers)

    def write_now(self, group: Group, numbers: Callable[[], int]) -> None:
        """Write, if the view is primary."""
        if group.primary and self.awake.is_set():
            try:
                for _ in range(self._chance.choice([1, 1, 1, 4])):
                    group.try_send(b"%d" % numbers())
            except AntiphonError:
                return  # the window is full, or the process leaves

    def _take(self, event: Event, group: Group) -> None:
        now_s = asyncio.get_running_loop().time()
        match event:
            case Message(sender=sender, payload=payload):
                self._keep({int(payload)})
                if sender == self.stay.process and group.primary:
                    assert self._view is not None
                    done = Acknowledged(now_s, int(payload), self.stay, self._number, self._view.id)
                    self._history.acknowledged.append(done)
            case Reset(states=states, primary=primary):
                merged = [{*json.loads(state)} for state in states]
                if primary is not None and not self._merges:
                    merged = [merged[primary]]
                self.state = set()
                self._keep(set().union(*merged))
            case View(members=members):
                self._view = event
                self._history.views.append((now_s, frozenset(members)))
                gone = (each.process for each in event.left if each.reason == "left")
                self._history.heard |= {(self.stay.process, process) for process in gone}
            case Primary(view=view, number=number):
                assert self._view is not None
                assert self._view.id == view
                self._number = number
                voters = frozenset(self._view.members)
                self._history.entries.append(Entry(now_s, self.stay, number, view, voters, frozenset(self.state)))
            case _:
                pass

    def _keep(self, writes: set[int]) -> None:
        self.state |= writes
        self._history.held(self.stay, writes)


@dataclass
class Seat:
    """The place of one process."""

    application: Application
    group: Group | None = None
    reading: list[asyncio.Task[None]] = field(default_factory=list)
    work: asyncio.Task[None] | None = None
    """The join or leave that is under way."""
    runs: bool = True
    """True if a process runs."""
    paused: bool = False

    @property
    def is_member(self) -> bool:
        return self.group is not None and self.work is None


class Trouble:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        """All actions, for the analysis of a violation."""
        self._seed = seed
        self._chance = chance = random.Random(seed)
        self._size = chance.choice([3, 3, 4, 5])
        merges = chance.random() < 0.5
        self.history = History(safe=chance.random() < 0.75)
        self._merges = merges or not self.history.safe
        """With `total`, two sides of one primary view may have delivered different writes in it."""
        self._writes = 0
        self._writing = True
        self._seats: list[Seat] = []
        self._stays: Counter[ProcessId] = Counter()

    async def run(self) -> Judgement:
        """Play it, and judge."""
        failed: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(str(context)))
        snapshots = [lambda place=place: self._seats[place].application.snapshot() for place in range(self._size)]
        async with cluster(self._size, seed=self._seed, snapshots=snapshots, **self._settings()) as members:
            self._members = members
            self._seats = [Seat(self._application(group.me)) for group in members]
            for seat, group in zip(self._seats, members, strict=True):
                self._occupy(seat, group)
            await self._trouble()
            ending = await self._end()
            for seat in self._seats:
                await self._abandon(seat)
        found = self._judge(ending)
        found.violations += [Violation("error", each) for each in failed]
        found.counts += self.counts
        return found

    def _settings(self) -> dict[str, Any]:
        """Of the members."""
        return {"service": Total(safe=self.history.safe)}

    def _judge(self, ending: Ending) -> Judgement:
        return judge(self.history, ending)

    async def _trouble(self) -> None:
        chance = self._chance
        acts: dict[Callable[[int], Awaitable[None]], int] = {
            self._pause: 3,
            self._resume: 3,
            self._crash: 3,
            self._restart: 4,
            self._partition: 2,
            self._cut: 1,
            self._heal: 2,
            self._leave: 1,
            self._return: 2,
        }
        for _ in range(chance.randint(5, 30)):
            await asyncio.sleep(chance.random() * chance.choice([0.005, 0.1, 1, 3]))
            if chance.random() < 0.5:
                await self._burst()
            act = chance.choices([*acts], [*acts.values()])[0]
            await act(chance.randrange(self._size))

    async def _burst(self) -> None:
        """Send writes, so that some are in transit at the next event."""
        for seat in self._seats:
            if seat.is_member and seat.group is not None:
                seat.application.write_now(seat.group, self._next_write)
        await asyncio.sleep(self._chance.random() * 0.01)

    # Events; each gets a place, and does nothing where it is impossible

    async def _pause(self, place: int) -> None:
        seat = self._seats[place]
        if seat.runs and not seat.paused:
            self._note("pauses", place)
            seat.paused = True
            seat.application.awake.clear()
            self._members.pause(place)

    async def _resume(self, place: int) -> None:
        paused = [each for each, seat in enumerate(self._seats) if seat.paused]
        for each in paused[:1] if place else paused:
            self._wake(each)

    def _wake(self, place: int) -> None:
        seat = self._seats[place]
        if seat.paused:
            self._note("resumptions", place)
            seat.paused = False
            self._members.resume(place)
            seat.application.awake.set()

    async def _crash(self, place: int) -> None:
        if self._seats[place].runs:
            silent = self._chance.random() < 0.3
            self._note("silent crashes" if silent else "crashes", place)
            await self._end_process(place, silent=silent)

    async def _end_process(self, place: int, *, silent: bool = False) -> None:
        seat = self._seats[place]
        self.history.ended.setdefault(seat.application.stay, asyncio.get_running_loop().time())
        await self._abandon(seat)
        seat.runs = seat.paused = False
        await self._members.crash(place, silent=silent)

    async def _restart(self, place: int) -> None:
        place = next((each for each, seat in enumerate(self._seats) if not seat.runs), place)
        if self._seats[place].runs:
            return
        names = [f"p{number}" for number in range(1, self._size + 1) if number != place + 1]
        wrong = self._chance.random() < 0.3
        if wrong:
            names[self._chance.randrange(len(names))] = "nobody"
        found = self._chance.choice(_FOUND)
        self._note("restarts with wrong peers" if wrong else "restarts", place, found)
        seat = self._seats[place] = Seat(self._seats[place].application)
        seat.work = asyncio.create_task(self._join(place, seat, self._members.restart(place, peers=names, found=found)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # its process is there now
        seat.application = self._application(self._members.members[place].id)

    async def _join(self, place: int, seat: Seat, joining: Awaitable[Group]) -> None:
        group = await joining
        self._note("joins", place)
        seat.work = None
        self._occupy(seat, group)

    async def _partition(self, _: int) -> None:
        places = [*range(self._size)]
        self._chance.shuffle(places)
        middle = self._chance.randint(1, self._size - 1)
        self._note("partitions", -1, f"{places[:middle]} {places[middle:]}")
        self._members.heal()
        self._members.partition([places[:middle], places[middle:]])

    async def _cut(self, place: int) -> None:
        other = (place + self._chance.randrange(1, self._size)) % self._size
        self._note("one-way cuts", place, f"to {other}")
        self._members.cut(place, other)

    async def _heal(self, _: int) -> None:
        self._note("heals", -1)
        self._members.heal()

    async def _leave(self, place: int) -> None:
        seat = self._seats[place]
        if seat.is_member and not seat.paused:
            self._note("leaves", place)
            seat.work = asyncio.create_task(self._depart(place, seat))

    async def _depart(self, place: int, seat: Seat) -> None:
        assert seat.group is not None
        graceful = await seat.group.leave()
        self._note("graceful leaves" if graceful else "other leaves", place)
        if graceful:
            now_s = asyncio.get_running_loop().time()
            self.history.passed_on.append((now_s, seat.application.stay.process))
        self.history.ended.setdefault(seat.application.stay, asyncio.get_running_loop().time())
        seat.group = seat.work = None
        await asyncio.gather(*seat.reading)

    async def _return(self, place: int) -> None:
        """A process that has left joins again, or ends and is started anew."""
        out = [each for each, seat in enumerate(self._seats) if seat.runs and seat.group is None and seat.work is None]
        if not out or self._seats[out[0]].paused:
            return
        place = out[0]
        if self._chance.random() < 0.3:
            self._note("ends after a leave", place)
            await self._end_process(place)
            return
        self._note("returns", place)
        member, seat = self._members.members[place], self._seats[place]
        seat.application = self._application(member.id)
        joining = member.join("group", snapshot=seat.application.snapshot)
        seat.work = asyncio.create_task(self._join(place, seat, joining))

    # Seats

    def _application(self, process: ProcessId) -> Application:
        stay = Stay(process, self._stays[process])
        self._stays[process] += 1
        self.history.begun[stay] = asyncio.get_running_loop().time()
        return Application(stay, self.history, self._chance, merges=self._merges)

    def _occupy(self, seat: Seat, group: Group) -> None:
        seat.group = group
        application = seat.application
        seat.reading = [asyncio.create_task(application.follow(group))]
        if self._writing:
            seat.reading.append(asyncio.create_task(application.write(group, self._next_write)))

    def _next_write(self) -> int:
        self._writes += 1
        return self._writes

    async def _abandon(self, seat: Seat) -> None:
        """End the tasks of a process that ends."""
        tasks = [*seat.reading, *([] if seat.work is None else [seat.work])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        seat.group = seat.work = None
        seat.reading = []

    async def _end(self) -> Ending:
        """Heal and resume everything; in some runs start all processes again."""
        self._note("end", -1)
        self._members.heal()
        for place in range(self._size):
            self._wake(place)
        if self._chance.random() < 0.6:
            for place in range(self._size):
                await self._restart(place)
                await self._return(place)
        await asyncio.sleep(_BUSY_S)
        for seat in self._seats:
            for task in seat.reading[1:]:
                task.cancel()
        self._writing = False
        until_s = asyncio.get_running_loop().time() + _QUIET_S
        while asyncio.get_running_loop().time() < until_s and not self._is_settled:
            await asyncio.sleep(1)
        await asyncio.sleep(3)
        seats = [seat for seat in self._seats if seat.is_member]
        waiting = tuple(seat.application.stay.process for seat in self._seats if seat.work is not None)
        return Ending(
            {seat.application.stay: _members_of(seat) for seat in seats},
            {seat.application.stay: seat.group is not None and seat.group.primary for seat in seats},
            {seat.application.stay: frozenset(seat.application.state) for seat in seats},
            waiting,
            frozenset(f"p{number}" for number in range(1, self._size + 1)),
        )

    @property
    def _is_settled(self) -> bool:
        """True if all are in one primary view, and have read everything."""
        views = {_members_of(seat) for seat in self._seats if seat.is_member}
        primary = all(seat.group.primary for seat in self._seats if seat.group is not None)
        return len(views) == 1 and primary and all(seat.work is None for seat in self._seats)

    def _note(self, what: str, place: int, more: str = "") -> None:
        self.counts[what] += 1
        name = "" if place < 0 else self._members.members[place].id
        self.log.append(f"{asyncio.get_running_loop().time():10.6f} {what} {name} {more}")


def _members_of(seat: Seat) -> frozenset[ProcessId]:
    view = None if seat.group is None else seat.group.view
    return frozenset() if view is None else frozenset(view.members)


def play(seed: int) -> tuple[Judgement, list[str]]:
    """Play one run; return its judgement and its actions."""
    judgement, log = Judgement(), list[str]()

    async def scenario() -> None:
        nonlocal judgement, log
        trouble = Trouble(seed)
        log = trouble.log
        judgement = await trouble.run()

    try:
        run(scenario())
    except Exception as error:  # the run itself is what is judged
        judgement.violations.append(Violation("error", repr(error)))
    return judgement, log
