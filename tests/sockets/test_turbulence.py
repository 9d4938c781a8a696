"""Random faults under the public API, in virtual time: in the end all live members share a view and a state."""

import asyncio
import random

import pytest

from antiphon import Group, NotAMember
from antiphon.testing import Cluster, cluster, run
from tools.lab.replica import Replica


class Trouble:
    """One run: draws faults and applies them to the cluster."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.replicas = [Replica() for _ in range(self.chance.randint(2, 4))]
        self.readers: list[asyncio.Task[None]] = []
        self.dead: set[int] = set()
        self.words = 0

    @property
    def living(self) -> list[int]:
        return [place for place in range(len(self.replicas)) if place not in self.dead]

    def read(self, place: int, group: Group) -> asyncio.Task[None]:
        return asyncio.create_task(self.replicas[place].follow(group, batches=self.chance.random() < 0.5))

    async def say(self, members: Cluster) -> None:
        for _ in range(self.chance.randint(1, 20)):
            self.words += 1
            try:
                async with asyncio.timeout(0.5):
                    await members[self.chance.choice(self.living)].send(b"%d" % self.words)
            except (TimeoutError, NotAMember):
                pass

    async def crash(self, members: Cluster) -> None:
        if len(self.living) > 1:
            place = self.chance.choice(self.living)
            await members.crash(place)
            await self.readers[place]
            self.dead.add(place)

    async def restart(self, members: Cluster) -> None:
        if self.dead:
            place = min(self.dead)
            self.replicas[place] = Replica()
            try:
                async with asyncio.timeout(self.chance.choice([0.01, 0.3, 30])):
                    self.readers[place] = self.read(place, await members.restart(place))
                self.dead.remove(place)
            except TimeoutError:
                await members.crash(place)

    async def split(self, members: Cluster) -> None:
        places = [*range(len(members))]
        self.chance.shuffle(places)
        middle = self.chance.randint(1, len(places) - 1)
        members.heal()
        members.partition([places[:middle], places[middle:]])

    async def heal(self, members: Cluster) -> None:
        members.heal()

    async def pause(self, members: Cluster) -> None:
        place = self.chance.choice(self.living)
        members.pause(place)
        await asyncio.sleep(self.chance.random())
        members.resume(place)

    async def run(self, seed: int) -> None:
        snapshots = [lambda place=place: self.replicas[place].snapshot() for place in range(len(self.replicas))]
        window = self.chance.choice([4, 64])
        async with cluster(len(self.replicas), seed=seed, snapshots=snapshots, window=window) as members:
            self.readers = [self.read(place, group) for place, group in enumerate(members)]
            kinds = [self.say] * 6 + [self.crash, self.restart, self.restart, self.split, self.heal, self.pause]
            for _ in range(25):
                await self.chance.choice(kinds)(members)
                await asyncio.sleep(self.chance.random() * self.chance.choice([0.01, 0.1, 2]))
            members.heal()
            await asyncio.sleep(90)
            self.judge()
        await asyncio.gather(*self.readers)

    def judge(self) -> None:
        living = [self.replicas[place] for place in self.living]
        assert {len(replica.view.members) for replica in living if replica.view is not None} == {len(living)}
        assert all(replica.words == living[0].words for replica in living)
        assert len({*living[0].words}) == len(living[0].words)


@pytest.mark.parametrize("seed", range(20))
def test_all_live_members_end_with_one_state(seed: int) -> None:
    async def scenario() -> None:
        failed: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        await Trouble(seed).run(seed)
        assert not failed

    run(scenario())
