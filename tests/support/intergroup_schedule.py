"""Random schedules of changing sender groups: faults of every kind for a while, then quiet."""

import argparse
import random
import sys

from antiphon.protocols.intergroup.membership.states import State
from antiphon.types import ProcessId, split_process_id
from tests.support.intergroup_oracle import faults, unsettled
from tests.support.intergroup_world import World

DISTURBED_MS = 3_000
QUIET_MS = 6_000


class Schedule:
    """One run: draws what happens from its seed."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        skewed = {f"s{number}": chance.choice([0, 3, 60]) for number in range(1, 6) if chance.random() < 0.3}
        self.world = World(
            chance.randint(1, 5),
            [f"r{number}" for number in range(1, chance.randint(0, 3) + 1)],
            seed=seed,
            loss=chance.choice([0.0, 0.02, 0.1, 0.25]),
            duplicate=chance.choice([0.0, 0.03]),
            latency=chance.choice([(1, 3), (1, 15), (5, 5)]),
            skew=skewed,
        )
        self._wanting = {*self.world.senders}
        """The processes that should be senders in the end."""
        self._new = 0

    def disturb(self, ms: int, events: int) -> None:
        """Let these events happen in this time, with messages all the while."""
        chance, world = self.chance, self.world
        moments = sorted(chance.uniform(0, ms) for _ in range(events))
        begun = world.now / 1e6
        for moment in moments:
            self._talk(begun + moment)
            self._happen()
        self._talk(begun + ms)

    def _talk(self, until_ms: float) -> None:
        """Some processes send until then."""
        world, chance = self.world, self.chance
        while world.now / 1e6 < until_ms:
            senders = [each for each in world.live() if each in self._wanting]
            if senders and chance.random() < 0.7:
                world.send(chance.choice(senders))
            world.run(min(chance.choice([1, 5, 30]), max(until_ms - world.now / 1e6, 0.001)))

    def _happen(self) -> None:
        """One event, to one process."""
        live = self.world.live()
        kinds = (self._crash, self._come, self._promote, self._demote, self._demote, self._split, self._cut, self._heal)
        happen = self.chance.choice([*kinds, self._suspect, self._suspect])
        if live:
            happen(self.chance.choice(live), live)

    def _crash(self, who: ProcessId, live: list[ProcessId]) -> None:
        if len(live) > 1:
            self.world.crash(who)
            self._wanting.discard(who)

    def _come(self, _who: ProcessId, live: list[ProcessId]) -> None:
        """A process starts: a new one, or one that crashed before."""
        gone = sorted({name_of(each) for each in self.world.crashed} - {name_of(each) for each in live})
        if gone and self.chance.random() < 0.7:
            name = self.chance.choice(gone)
        else:
            self._new += 1
            name = f"n{self._new}"
        sends = self.chance.random() < 0.6
        process = self.world.come(name, sends=sends)
        if sends:
            self._wanting.add(process)

    def _promote(self, who: ProcessId, _live: list[ProcessId]) -> None:
        self.world.promote(who)
        self._wanting.add(who)

    def _demote(self, who: ProcessId, _live: list[ProcessId]) -> None:
        if self._wanting - {who}:
            self.world.demote(who)
            self._wanting.discard(who)

    def _split(self, _who: ProcessId, _live: list[ProcessId]) -> None:
        sides: list[list[str]] = [[], [], []]
        for name in sorted({name_of(each) for each in self.world.cores}):
            sides[self.chance.choice([0, 0, 1, 1, 2])].append(name)
        self.world.heal()
        self.world.split(*sides)

    def _cut(self, who: ProcessId, live: list[ProcessId]) -> None:
        """In one direction."""
        others = sorted({name_of(each) for each in live} - {name_of(who)})
        if others:
            self.world.cut.add((name_of(who), self.chance.choice(others)))

    def _heal(self, _who: ProcessId, _live: list[ProcessId]) -> None:
        self.world.heal()

    def _suspect(self, _who: ProcessId, live: list[ProcessId]) -> None:
        """Wrongly."""
        senders = [each for each in live if self.world.standing(each).state is State.SENDER]
        if len(senders) > 1:
            self.world.suspect(*self.chance.sample(senders, 2))

    def quieten(self, ms: int) -> tuple[set[ProcessId], set[ProcessId]]:
        """Heal everything and wait; returns who should be sender and who receiver then."""
        world = self.world
        world.heal()
        world.run(ms)
        live = {*world.live()}
        senders = self._wanting & live
        return senders, live - senders


def name_of(process: ProcessId) -> str:
    return split_process_id(process)[0]


def play(seed: int) -> list[str]:
    """One run; returns what is wrong with it."""
    schedule = Schedule(seed)
    schedule.disturb(DISTURBED_MS, schedule.chance.randint(0, 12))
    senders, receivers = schedule.quieten(QUIET_MS)
    return [*faults(schedule.world), *(unsettled(schedule.world, senders, receivers) if senders else ())]


def main() -> None:
    """Play many runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    wrong = 0
    for seed in range(asked.first, asked.first + asked.runs):
        found = play(seed)
        if found:
            wrong += 1
            sys.stdout.write(f"seed {seed}: {found[0]} ({len(found) - 1} more)\n")
    sys.stdout.write(f"{asked.runs} runs, {wrong} wrong\n")


if __name__ == "__main__":
    main()
