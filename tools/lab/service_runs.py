"""Random runs of members that are in groups of different services at once, in virtual time, judged from their traces.

What happens is drawn from the seed: kills, restarts, partitions, leaves and joins, with messages in all groups. At the
end everything is healed; then a message of each member must arrive at all, in every group.
"""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.properties.judge import judge
from antiphon.testing import run
from antiphon.trace.collect import collect
from tools.lab.three_members import MIXED, NAMES, ThreeMembers

_LIMIT_S: Final = 600.0
"""Virtual time of a run; one that is not over then has stopped."""
_PAUSES_S: Final = (0, 0.003, 0.02, 0.3, 1, 3)


def play(seed: int, mixture: str) -> tuple[list[str], list[str]]:
    """What was done in one run, and what is wrong with it; `mixture`: a key of `MIXED`."""
    log: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "run"
        try:
            run(_run(seed, mixture, trace, log), limit_s=_LIMIT_S)
        except TimeoutError as error:
            return log, [f"stopped: {error}"]
        collect(trace)
        events = pa.concat_tables([pq.read_table(path) for path in sorted((trace / "events").glob("*.parquet"))])
        violated = [verdict for verdict in judge(events) if verdict.violations]
    return log, [f"{each.property} {each.group}: {each.example and each.example.sentence}" for each in violated]


async def _run(seed: int, mixture: str, trace: Path, log: list[str]) -> None:
    chance, services = random.Random(seed), MIXED[mixture]
    world = ThreeMembers("kit", services, next(iter(services.values())), trace, seed)
    for name in NAMES:
        await world.start(name)
    for _ in range(chance.randint(3, 7)):
        world.chatter()
        log.append(f"{asyncio.get_running_loop().time():.3f} {await _trouble(world, chance, [*services])}")
        await asyncio.sleep(chance.choice(_PAUSES_S))
    world.part()
    await world.talk(" ".join(world.running))
    await world.stop()


async def _trouble(world: ThreeMembers, chance: random.Random, groups: list[str]) -> str:
    """Do one thing, and say what."""
    running, name = world.running, chance.choice(world.running)
    match chance.choice(["kill", "start", "part", "heal", "rejoin", "nothing"]):
        case "kill" if len(running) > 1:
            await world.kill(name)
            return f"kill {name}"
        case "start" if len(running) < len(NAMES):
            absent = next(each for each in NAMES if each not in running)
            world.part()  # a process that reaches no member must not found the group again
            await world.start(absent)
            return f"heal, start {absent}"
        case "part" if len(running) > 1:
            chance.shuffle(running)
            place = chance.randint(1, len(running) - 1)
            sides = " ".join(running[:place]), " ".join(running[place:])
            world.part(*sides)
            return f"part {sides[0]} / {sides[1]}"
        case "rejoin" if len(running) > 1:
            group = chance.choice(groups)
            world.part()
            await world.rejoin(name, group)
            return f"heal, {name} leaves {group} and joins it again"
        case "heal":
            world.part()
            return "heal"
    return "nothing"
