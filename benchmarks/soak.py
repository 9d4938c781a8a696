"""Does anything grow? Minutes of joins, leaves, crashes, restarts and pauses under load, with real processes.

Three processes stay: ann in `orders`, ben and cat in `orders` and `stock`. Three others change: they leave and join
again, are killed and restarted at the same address, pause for a moment, end and begin. Passers-by with names of their
own join for a while and are killed, or leave. `stock` has a state, which each joiner gets. All members send all the
time. A quiet phase follows each turbulent phase; in it the staying processes count their resources. Checked: tasks and
file descriptors are the same in the first and the last quiet phase; memory does not grow; staying processes miss no
message of one another, and none comes twice; members that go together from one view to the next have read the same and
have the same state. Run from the root:

    python -m benchmarks.soak [--minutes 5] [--seed 1] [--rate 500] [--transport tcp] [--json FILE]
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import signal
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from antiphon import Group, Member, Message, NotAMember, Reset, View
from antiphon.node.lines import orders
from tools.lab.processes import (
    Process,
    Report,
    free_ports,
    held_bytes,
    live_objects,
    open_files,
    resident_bytes,
    table_sizes,
    tell,
)

STAY = {"ann": ["orders"], "ben": ["orders", "stock"], "cat": ["orders", "stock"]}
CHANGE = {"dan": ["orders"], "eve": ["orders", "stock"], "fay": ["stock"]}
TURBULENT_S, QUIET_S, SETTLE_S = 24.0, 8.0, 4.0
"""The phases of a round; resources are counted in the last seconds of the quiet one."""
FORGOTTEN_S = 110.0
"""In this time before the end no passer-by starts, because its address may still be called at the end."""
STATE_BYTES = 100_000
GROWTH_BYTES_MAX = 1 << 20
"""Allowed growth of RSS over the second half, by a straight line through its quiet samples."""
OBJECTS_MAX = 0.02
"""Allowed growth, as a share, of the live objects from the second quiet phase to the last."""


# One member, in its process


@dataclass
class _Application:
    """The events that a process has read in one group, and its state."""

    me: str
    name: str
    chain: bytes = bytes(32)
    number: int = 0
    """Number of messages in the chain."""
    view: str = ""
    interval: Any = field(default_factory=hashlib.blake2b)
    last: dict[str, int] = field(default_factory=dict)
    """By sender."""

    def snapshot(self) -> bytes:
        return self.number.to_bytes(8, "big") + self.chain + bytes(STATE_BYTES)

    def take(self, event: object) -> None:
        if isinstance(event, Message):
            self._read(event)
        elif isinstance(event, View):
            digest = self.interval.hexdigest()
            tell("interval", group=self.name, view=self.view, next=event.id, digest=digest, chain=self.chain.hex())
            self.view, self.interval = event.id, hashlib.blake2b()
            gone = [(departure.process.partition("#")[0], departure.reason) for departure in event.left]
            tell("view", at=time.time(), group=self.name, members=event.members, left=gone)
        elif isinstance(event, Reset) and event.states:
            state = max(event.states)  # all members choose the same
            self.number, self.chain = int.from_bytes(state[:8], "big"), state[8:40]

    def _read(self, message: Message) -> None:
        sender, number = message.sender, int.from_bytes(message.payload[:8], "big")
        last = self.last.get(sender)
        if last is not None and number <= last:
            tell("fault", text=f"{self.me} read {number} of {sender} in {self.name} after {last}")
        both_stay = sender.partition("#")[0] in STAY and self.me in STAY
        if both_stay and last is not None and number > last + 1:
            tell("fault", text=f"{self.me} missed {last + 1} to {number - 1} of {sender} in {self.name}")
        self.last[sender] = number
        self.number += 1
        said = sender.encode() + message.payload
        self.interval.update(said)
        self.chain = hashlib.blake2b(self.chain + said, digest_size=32).digest()


class _Work:
    """The groups that a process is in, each with a task that reads and one that sends."""

    def __init__(self, member: Member, name: str, rate: float) -> None:
        self._member, self._name, self._rate = member, name, rate
        self._random = random.Random(name)
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.taken = 0
        self._sent: dict[str, int] = {}

    async def join(self, name: str) -> None:
        application = _Application(self._name, name)
        group = await self._member.join(name, snapshot=application.snapshot if name == "stock" else None)
        self._tasks[name] = [
            asyncio.create_task(self._read(group, application)),
            asyncio.create_task(self._send(group)),
        ]
        tell("joined", group=name)

    async def leave(self, name: str) -> None:
        reading, sending = self._tasks.pop(name)
        sending.cancel()
        await asyncio.wait([sending])
        group = self._member._process.find(name)
        if group is not None:
            await group.leave()
        await reading
        tell("left", group=name)

    async def _read(self, group: Group, application: _Application) -> None:
        while events := await group.receive():
            for event in events:
                application.take(event)
            self.taken += len(events)

    async def _send(self, group: Group) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        with contextlib.suppress(NotAMember):
            while True:
                number = self._sent[group.name] = self._sent.get(group.name, -1) + 1
                size = int(100 ** (1 + self._random.random()))  # 100 B to 10 kB, the small ones more often
                await group.send(number.to_bytes(8, "big") + bytes(size - 8))
                due = max(due + 1 / self._rate, loop.time() - 0.1)
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())


async def work(name: str, bind: str, peers: list[str], groups: list[str], rate: float, transport: str) -> None:
    """Be a member until there is nothing more to do."""
    async with Member(name=name, bind=bind, peers=peers, transport=transport, suspect_after=0.6) as member:
        doing = _Work(member, name, rate / len(groups))
        tell("up", id=member.id)
        for group in groups:
            await doing.join(group)
        sampling = asyncio.create_task(_sample(member, doing))
        async for order in orders():
            match order["do"]:
                case "join":
                    await doing.join(order["group"])
                case "leave":
                    await doing.leave(order["group"])
                case "count":
                    tell("objects", count=live_objects())
        sampling.cancel()
        await asyncio.wait([sampling])


async def _sample(member: Member, doing: _Work) -> None:
    while True:
        tell(
            "sample",
            at=time.time(),
            rss=resident_bytes(),
            tasks=len(asyncio.all_tasks()),
            files=open_files(),
            held=held_bytes(member),
            taken=doing.taken,
            tables=table_sizes(member),
        )
        await asyncio.sleep(1)


# The benchmark


class Soak:
    """All processes, the events applied to them, and their reports."""

    def __init__(self, minutes: float, seed: int, rate: float, transport: str) -> None:
        self._end_s = 60 * minutes
        self._random = random.Random(seed)
        self._rate, self._transport = rate, transport
        names = [*STAY, *CHANGE]
        self._addresses = dict(zip(names, (f"127.0.0.1:{port}" for port in free_ports(len(names))), strict=True))
        self.processes: dict[str, Process] = {}
        self.past: list[Process] = []
        self.quiet: list[tuple[float, float]] = []
        self.done: defaultdict[str, int] = defaultdict(int)
        self.faults: list[str] = []
        self._passers = count(1)

    async def run(self) -> None:
        """Start all, disturb them, let them end."""
        await asyncio.gather(*(self._start(name, groups) for name, groups in (STAY | CHANGE).items()))
        await asyncio.sleep(3)
        begun = time.time()
        await self._rest()
        while time.time() - begun < self._end_s:
            calm_at = time.time() + TURBULENT_S
            while time.time() < calm_at:
                await self._disturb(begun + self._end_s - time.time())
                await asyncio.sleep(self._random.uniform(0.2, 1.5))
            await self._rest()
        for process in reversed(self.processes.values()):
            if await process.close():
                self.faults.append(f"{process.name} ended with an error")

    async def _start(self, name: str, groups: list[str]) -> Process:
        peers = [self._addresses[each] for each in ("ann", "ben") if each != name]
        process = Process(
            "benchmarks.soak", name, bind=self._addresses.get(name, "127.0.0.1:0"), peers=peers, groups=groups,
            rate=self._rate, transport=self._transport,
        )  # fmt: skip
        self.processes[name] = process
        await process.start()
        await process.heard("joined", lambda report: bool(report["group"] == groups[-1]))
        return process

    async def _rest(self) -> None:
        """A quiet phase."""
        await asyncio.sleep(QUIET_S - SETTLE_S)
        counted_from = time.time()
        await asyncio.sleep(SETTLE_S)
        self.quiet.append((counted_from, time.time()))
        for name in STAY:
            await self.processes[name].tell("count")

    async def _disturb(self, left_s: float) -> None:
        kinds = ["leave", "kill", "stop", "restart", "second", "pass"]
        kind = self._random.choice(kinds if left_s > FORGOTTEN_S else kinds[:-1])
        name = self._random.choice([*CHANGE])
        self.done[kind] += 1
        if kind == "leave":
            await self._leave_and_join(name, self._random.choice(CHANGE[name]))
        elif kind == "kill":
            self.processes[name].signal(signal.SIGKILL)
            await self._again(name)
        elif kind == "stop":
            self.processes[name].signal(signal.SIGSTOP)
            await asyncio.sleep(self._random.uniform(0.1, 2.5))
            self.processes[name].signal(signal.SIGCONT)
        elif kind == "restart":
            await self._again(name)
        elif kind == "second":
            await self._take_part_elsewhere()
        else:
            await self._pass_by(killed=self._random.random() < 0.5)

    async def _again(self, name: str) -> None:
        """End the process if it still runs, and start it again."""
        process = self.processes.pop(name)
        await process.close()
        self.past.append(process)
        await self._start(name, CHANGE[name])

    async def _leave_and_join(self, name: str, group: str) -> None:
        process = self.processes[name]
        left, joined = len(process.all("left")), len(process.all("joined"))
        await process.tell("leave", group=group)
        await process.heard("left", lambda _: len(process.all("left")) > left)
        await process.tell("join", group=group)
        await process.heard("joined", lambda _: len(process.all("joined")) > joined)

    async def _take_part_elsewhere(self) -> None:
        """A member of `orders` joins `stock` too for a while, and gets its state."""
        process = self.processes["dan"]
        joined, left = len(process.all("joined")), len(process.all("left"))
        await process.tell("join", group="stock")
        await process.heard("joined", lambda _: len(process.all("joined")) > joined)
        await asyncio.sleep(self._random.uniform(0.2, 1.0))
        await process.tell("leave", group="stock")
        await process.heard("left", lambda _: len(process.all("left")) > left)

    async def _pass_by(self, *, killed: bool) -> None:
        name = f"guest-{next(self._passers)}"
        process = await self._start(name, ["orders"])
        await asyncio.sleep(self._random.uniform(0.2, 1.0))
        if killed:
            process.signal(signal.SIGKILL)
        await process.close()
        self.past.append(self.processes.pop(name))


def judge(soak: Soak) -> tuple[list[str], dict[str, Any]]:
    """The problems, and the figures."""
    faults = [*soak.faults]
    everybody = [*soak.past, *soak.processes.values()]
    for process in everybody:
        faults += [report["text"] for report in process.all("fault")]
    faults += _differences(everybody)
    figures: dict[str, Any] = {}
    for name in STAY:
        process = soak.processes[name]
        quiet = [[each for each in process.all("sample") if begin <= each["at"] <= end] for begin, end in soak.quiet]
        objects = [report["count"] for report in process.all("objects")]
        before_end = [report for report in process.all("view") if report["at"] <= soak.quiet[-1][1]]
        excluded = {(other, reason) for report in before_end for other, reason in report["left"] if other in STAY}
        figures[name] = found = {
            "tasks": [max(each["tasks"] for each in stretch) for stretch in quiet],
            "files": [max(each["files"] for each in stretch) for stretch in quiet],
            "rss": [round(statistics.median(each["rss"] for each in stretch)) for stretch in quiet],
            "held": max(each["held"] for each in process.all("sample")),
            "growth": _growth([each for stretch in quiet[len(quiet) // 2 :] for each in stretch]),
            "objects": objects,
            "views": len(process.all("view")),
            "taken": process.all("sample")[-1]["taken"],
            "tables": [quiet[0][-1]["tables"], quiet[-1][-1]["tables"]],
        }
        for what in ("tasks", "files"):
            if found[what][-1] != found[what][0]:
                faults.append(f"{name} has {found[what][-1]} {what}, and had {found[what][0]}")
        if found["growth"] > GROWTH_BYTES_MAX:
            faults.append(f"{name} grows: {found['growth']:,} bytes in the second half")
        if len(objects) > 2 and objects[-1] > objects[1] * (1 + OBJECTS_MAX):
            faults.append(f"{name} has {objects[-1]:,} objects, and had {objects[1]:,}")
        faults += [f"{name} saw {other} excluded, because {reason}" for other, reason in sorted(excluded)]
    return faults, figures


def _differences(everybody: list[Process]) -> list[str]:
    """Members that go together from one view to the next have read the same in it, and have the same state."""
    found: dict[tuple[str, str, str], Report] = {}
    faults = []
    for process in everybody:
        for report in process.all("interval"):
            key = report["group"], report["view"], report["next"]
            other = found.setdefault(key, report)
            if report["view"] and report["digest"] != other["digest"]:
                faults.append(f"{process.name} read something else in view {key[1]} of {key[0]} than others")
            elif report["view"] and key[0] == "stock" and report["chain"] != other["chain"]:
                faults.append(f"{process.name} had another state at the end of view {key[1]} of {key[0]} than others")
    return faults


def _growth(samples: list[Report]) -> float:
    """The rise in bytes of a straight line through the samples, from the first to the last."""
    at, rss = [each["at"] for each in samples], [each["rss"] for each in samples]
    line = statistics.linear_regression(at, rss)
    return float(line.slope * (at[-1] - at[0]))


def main() -> None:
    """Disturb, count, judge; print figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=500, help="messages a second that each process sends")
    parser.add_argument("--transport", choices=("tcp", "udp"), default="tcp")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        asyncio.run(work(**json.loads(arguments.worker)))
        return
    soak = Soak(arguments.minutes, arguments.seed, arguments.rate, arguments.transport)
    asyncio.run(soak.run())
    faults, figures = judge(soak)
    print(f"{arguments.transport}, seed {arguments.seed}:", ", ".join(f"{kind} {n}" for kind, n in soak.done.items()))
    for name, found in figures.items():
        print(
            f"{name}: {found['views']} views, {found['taken']:,} events; "
            f"tasks {found['tasks']}, files {found['files']}, "
            f"RSS {[round(each / 2**20, 1) for each in found['rss']]} MiB, growth {found['growth'] / 2**20:+.2f} MiB, "
            f"objects {found['objects']}"
        )
        print(f"   {found['tables'][0]}\n   {found['tables'][1]}")
    print("\n".join(faults) or "all as it must be")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"faults": faults, "done": soak.done, "figures": figures}, indent=1))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
