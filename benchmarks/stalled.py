"""The memory of a group while the application of one member reads nothing, with real processes.

All members send messages of 1 kB as fast as `send` lets them. One stops reading, and continues later. Measured every
second at each member: held payload bytes, RSS, messages sent and taken, and the member that it waits for. Checked: no
member holds more than the settings allow, senders are told which member they wait for, the view never changes, and in
the end all members have taken all messages in one order. Run from the root:

    python -m benchmarks.stalled [--seconds 30] [--members 3] [--transport tcp] [--json FILE]
"""

import argparse
import asyncio
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from antiphon import Blocked, Group, Member, Message, View
from antiphon.api.outgoing import WAITING_BYTES_MAX
from antiphon.api.settings import settings
from antiphon.node.lines import orders
from antiphon.sockets.transports.links import HIGH_WATER_BYTES
from tools.lab.processes import Process, held_bytes, resident_bytes, tell

MESSAGE_BYTES = 1_000
BEFORE_S = 5.0
AFTER_S = 5.0
RSS_FACTOR = 3
"""Allowed multiple of the held bytes: a payload of 1 kB with its objects, copies in socket buffers, malloc."""


# One member, in its process


@dataclass
class _Reader:
    """The messages that an application has read."""

    digest: Any = field(default_factory=hashlib.blake2b)
    taken: int = 0
    views: int = 0
    blocked_by: set[str] = field(default_factory=set)
    may_read: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, group: Group) -> None:
        while True:
            await self.may_read.wait()
            for event in await group.receive():
                if isinstance(event, Message):
                    self.taken += 1
                    self.digest.update(event.sender.encode() + event.payload[:8])
                elif isinstance(event, View):
                    self.views += 1
                elif isinstance(event, Blocked) and event.by is not None:
                    self.blocked_by.add(event.by.partition("#")[0])


class _Sender:
    def __init__(self) -> None:
        self.sent = 0

    async def send(self, group: Group) -> None:
        rest = bytes(MESSAGE_BYTES - 8)
        while True:
            await group.send(self.sent.to_bytes(8, "big") + rest)
            self.sent += 1
            if self.sent % 64 == 0:
                await asyncio.sleep(0)


async def work(name: str, peers: list[str], members: int, transport: str) -> None:
    """Be a member until there is nothing more to do."""
    async with Member(name=name, peers=peers, transport=transport) as member:
        tell("address", address=member.address)
        group = await member.join("orders")
        await group.ready(members)
        tell("ready", rss=resident_bytes())
        reader, sender = _Reader(), _Sender()
        reader.may_read.set()
        reading = asyncio.create_task(reader.read(group))
        sampling = asyncio.create_task(_sample(member, group, reader, sender))
        sending: asyncio.Task[None] | None = None
        async for order in orders():
            match order["do"]:
                case "send":
                    views_before = reader.views
                    sending = asyncio.create_task(sender.send(group))
                case "stall":
                    reader.may_read.clear()
                case "resume":
                    reader.may_read.set()
                case "stop" if sending is not None:
                    sending.cancel()
                    await asyncio.wait([sending])
                    tell("sent", count=sender.sent)
                case "finish":
                    while reader.taken < order["total"]:
                        await asyncio.sleep(0.01)
                    changes = reader.views - views_before
                    digest, blockers = reader.digest.hexdigest(), sorted(reader.blocked_by)
                    tell("done", taken=reader.taken, digest=digest, changes=changes, blocked_by=blockers)
        for task in (reading, sampling):
            task.cancel()


async def _sample(member: Member, group: Group, reader: _Reader, sender: _Sender) -> None:
    begun, held_most = time.monotonic(), 0
    while True:
        for _ in range(10):
            held_most = max(held_most, held_bytes(member))
            await asyncio.sleep(0.1)
        health = group.health
        tell(
            "sample",
            at=round(time.monotonic() - begun, 1),
            rss=resident_bytes(),
            held=held_most,
            sent=sender.sent,
            taken=reader.taken,
            waiting=health.waiting,
            unstable=health.unstable,
            unread=health.unread,
            blocked_by=health.blocked_by and health.blocked_by.partition("#")[0],
        )
        held_most = 0


# The benchmark


def bound_bytes(members: int, transport: str) -> int:
    """The bound of payload bytes at a member: a window of each member, and the messages that wait for its own."""
    window = settings("lan", {}).core(datagrams=transport == "udp", tracing=False).window_bytes
    return members * window + WAITING_BYTES_MAX


async def measure(members: int, seconds: float, transport: str) -> dict[str, Any]:
    """One stall."""
    processes: list[Process] = []
    for number in range(1, members + 1):
        peers = [processes[0].all("address")[0]["address"]] if processes else []
        process = Process("benchmarks.stalled", f"p{number}", peers=peers, members=members, transport=transport)
        await process.start()
        await process.heard("address")
        processes.append(process)
    for process in processes:
        await process.heard("ready")
    await _each(processes, "send")
    await asyncio.sleep(BEFORE_S)
    stalled = processes[-1]
    await stalled.tell("stall")
    stalled_at = [len(process.all("sample")) for process in processes]
    await asyncio.sleep(seconds)
    resumed_at = [len(process.all("sample")) for process in processes]
    await stalled.tell("resume")
    await asyncio.sleep(AFTER_S)
    await _each(processes, "stop")
    sent = [(await process.heard("sent"))["count"] for process in processes]
    await _each(processes, "finish", total=sum(sent))
    done = [await process.heard("done") for process in processes]
    for process in processes:
        await process.close()
    found = [
        {
            "name": process.name,
            "rss_before": process.all("ready")[0]["rss"],
            "samples": process.all("sample"),
            "stalled": process.all("sample")[begin + 2 : end],
            "sent": count,
            **{key: end_report[key] for key in ("taken", "digest", "changes", "blocked_by")},
        }
        for process, begin, end, count, end_report in zip(processes, stalled_at, resumed_at, sent, done, strict=True)
    ]
    return {"members": found, "stalled": stalled.name, "bound": bound_bytes(members, transport), "transport": transport}


async def _each(processes: list[Process], do: str, **what: Any) -> None:
    for process in processes:
        await process.tell(do, **what)


def faults(result: dict[str, Any]) -> list[str]:
    """The problems."""
    found, total = [], sum(member["sent"] for member in result["members"])
    links_bytes = (len(result["members"]) - 1) * HIGH_WATER_BYTES
    for member in result["members"]:
        name, most = member["name"], max(sample["held"] for sample in member["samples"])
        if most > result["bound"]:
            found.append(f"{name} held {most:,} bytes")
        growth = max(sample["rss"] for sample in member["samples"]) - member["rss_before"]
        if growth > RSS_FACTOR * (result["bound"] + links_bytes):
            found.append(f"{name} grew by {growth:,} bytes")
        if member["changes"]:
            found.append(f"{name} saw {member['changes']} changes of the view")
        if member["taken"] != total:
            found.append(f"{name} took {member['taken']:,} of {total:,} messages")
        if name != result["stalled"] and result["stalled"] not in member["blocked_by"]:
            found.append(f"{name} was not told that it waits for {result['stalled']}")
        still = member["stalled"]
        if still and still[-1]["sent"] > still[0]["sent"]:
            found.append(f"{name} went on sending in the stall")
        if any(sample["blocked_by"] != result["stalled"] for sample in still if name != result["stalled"]):
            found.append(f"the health of {name} did not name the member that it waits for")
        if member["samples"][-1]["sent"] == (still[-1]["sent"] if still else 0):
            found.append(f"{name} did not go on sending after the stall")
    if len({member["digest"] for member in result["members"]}) > 1:
        found.append("members took messages in different orders")
    return found


def main() -> None:
    """Stall, measure, judge; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--transport", choices=("tcp", "udp"), default="tcp")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        asyncio.run(work(**json.loads(arguments.worker)))
        return
    result = asyncio.run(measure(arguments.members, arguments.seconds, arguments.transport))
    print(
        f"{result['transport']}, {arguments.members} members, {result['stalled']} stalled for {arguments.seconds:g} s"
    )
    print(f"a member may hold {result['bound'] / 2**20:.2f} MiB of payloads")
    for member in result["members"]:
        samples, still = member["samples"], member["stalled"]
        print(
            f"{member['name']}: held at most {max(each['held'] for each in samples) / 2**20:.2f} MiB, "
            f"RSS {member['rss_before'] / 2**20:.1f} to {max(each['rss'] for each in samples) / 2**20:.1f} MiB, "
            f"sent {member['sent']:,}, {still[-1]['sent'] - still[0]['sent'] if still else 0} of them in the stall, "
            f"waited for {', '.join(member['blocked_by']) or 'nobody'}, "
            f"unread {max(each['unread'] for each in samples)}, unstable {max(each['unstable'] for each in samples)}"
        )
    wrong = faults(result)
    print("\n".join(wrong) or "all as it must be")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
