"""How long survivors deliver nothing after one of three members dies under load, with real processes over TCP.

Each round is a run of its own: three members send all the time, and one of them dies. Measured is the longest time
in which a survivor delivers nothing, from the death on; the trace of each round is judged too. `--death kill`: its
connections are reset and refused, which is evidence. `--death stop`: SIGSTOP, so only its silence tells. `--resets N`
kills no member: a middlebox resets all connections of three members N times under load. Run from the root:

    python -m benchmarks.failover [--death kill|stop] [--rounds 20] [--resets 200] [--json FILE]
"""

import argparse
import asyncio
import json
import statistics
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from antiphon import Event, Group, Member, Message, View
from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run
from antiphon.trace.table import events_table
from tools.lab.middlebox import Middlebox, listening_at

SCENARIO = """
name = "failover"
seed = {seed}
duration = "30s"
quiet = "3200ms"
[options]
suspect_after = "300ms"
idle_probe = "500ms"
flow_control = 3
[[group]]
name = "orders"
members = 3
[[workload]]
group = "orders"
messages = 600
interval = "5ms"
[[fault]]
at = "1500ms"
kind = "{kind}"
process = "p{victim}"
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One kill."""

    victim: str
    standstill_ms: float
    others_excluded: int
    violated: list[str]


def main() -> None:
    """Kill, measure, judge; print a line a round and the distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--death", choices=["kill", "stop"], default="kill")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--resets", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.resets:
        sys.exit(asyncio.run(_reset(arguments.resets)))
    kind = "crash" if arguments.death == "kill" else "pause"
    rounds = []
    for number in range(arguments.rounds):
        victim = 1 + number % 3
        run = run_locally(parse_scenario(SCENARIO.format(seed=number + 1, victim=victim, kind=kind)))
        rounds.append(_round(run, f"p{victim}"))
        print(f"{number + 1:3}  {rounds[-1].victim} dies: {rounds[-1].standstill_ms:6.0f} ms", end="")
        print(f", others excluded {rounds[-1].others_excluded}, violated {rounds[-1].violated or 'nothing'}")
    waits = [each.standstill_ms for each in rounds]
    within = sum(wait < 1000 for wait in waits)
    print(f"median {statistics.median(waits):.0f} ms, longest {max(waits):.0f} ms, ", end="")
    print(f"within a second {within} of {len(waits)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in rounds], indent=1))


def _round(run: Run, victim: str) -> Round:
    crashed_at = next(row["time"] for history in run.histories for row in history.rows if row["kind"] == "fault")
    longest, excluded = 0, set()
    for history in run.histories:
        if history.process in (victim, "world"):
            continue
        times = [row["time"] for row in history.rows if row["kind"] == "deliver"]
        last = max(row["time"] for row in history.rows if row["kind"] == "send")
        after = [crashed_at, *(time for time in times if crashed_at < time <= last)]
        longest = max(longest, *(later - earlier for earlier, later in pairwise(after)))
        for row in history.rows:
            if row["kind"] == "view":
                excluded |= {each["process"] for each in json.loads(row["detail"])["left"]}
    verdicts = judge(events_table(run.id, run.histories))
    violated = sorted({verdict.property for verdict in verdicts if verdict.violations})
    return Round(victim, longest / 1e6, len(excluded - {victim}), violated)


async def _reset(count: int) -> int:
    """Reset all connections again and again while all members send; gives the exit code."""
    boxes = [Middlebox() for _ in range(3)]
    for box in boxes:
        await box.open()
    members = [
        Member(name=f"p{place}", peers=[boxes[0].address] if place else [], advertise=box.address, preset="lan")
        for place, box in enumerate(boxes)
    ]
    async with AsyncExitStack() as stack:
        for member, box in zip(members, boxes, strict=True):
            await stack.enter_async_context(member)
            box.forward_to(listening_at(member))
        groups = await asyncio.gather(*(member.join("orders") for member in members))
        await asyncio.gather(*(group.ready(3) for group in groups))
        seen: list[list[Event]] = [[], [], []]
        readers = [asyncio.create_task(_read(group, events)) for group, events in zip(groups, seen, strict=True)]
        views_before = [len(_views(events)) for events in seen]
        broken = sent = 0
        for number in range(count):
            for group in groups:
                await group.send(b"%d" % sent)
                sent += 1
            await asyncio.sleep(0.05 if number % 2 else 0.001)
            broken += sum(box.reset() for box in boxes)
        while any(_messages(events) < sent for events in seen):
            await asyncio.sleep(0.01)
        excluded = sum(len(view.left) for events in seen for view in _views(events))
        for reader in readers:
            reader.cancel()
    for box in boxes:
        await box.close()
    same = len({tuple(event.payload for event in events if isinstance(event, Message)) for events in seen}) == 1
    print(f"{count} times all connections reset, {broken} in all; {sent} messages, one order {same}", end="")
    print(f"; excluded {excluded}; views before {views_before}, after {[len(_views(events)) for events in seen]}")
    return int(bool(excluded) or not same)


async def _read(group: Group, events: list[Event]) -> None:
    while batch := await group.receive():
        events += batch


def _views(events: list[Event]) -> list[View]:
    return [event for event in events if isinstance(event, View)]


def _messages(events: list[Event]) -> int:
    return sum(isinstance(event, Message) for event in events)


if __name__ == "__main__":
    main()
