"""One process of a benchmark: a member of a group, and a process of the baseline on sockets of its own."""

import asyncio
import cProfile
import json
import os
import pstats
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from antiphon.api.group import Group
from antiphon.api.member import Member
from antiphon.api.services import Causal, Fifo, Reliable, Service, Total
from antiphon.bench.bare import BareMesh
from antiphon.bench.ordered import latency, throughput
from antiphon.node.lines import orders, tell

GROUP: Final = "bench"
SERVICES: Final[dict[str, Service]] = {
    "total": Total(),
    "safe": Total(safe=True),
    "sequencer": Total(sequencer=True),
    "remove": Total(views="remove"),
    "closed": Total(views="closed"),
    "causal slow": Causal("slow"),
    "causal fast": Causal("fast"),
    "causal relative": Causal("relative"),
    "causal vector": Causal("vector"),
    "fifo": Fifo(),
    "reliable": Reliable(),
}
"""By name, the services that can be measured."""


class Worker:
    """Executes commands, one per line."""

    def __init__(self, rank: int, transport: str, peers: dict[str, str | None]) -> None:
        """`peers`: by the name of each service to measure, the address of a running member, if there is one.

        Each service has a group and a member of its own.
        """
        self._rank = rank
        self._bare = BareMesh()
        self._members = {
            name: Member(
                name=f"m{rank + 1}",
                peers=[] if peer is None else [peer],
                preset="local",
                suspect_after=5.0,  # a busy machine is not a failure
                merge_every=5.0,
                transport=transport,
                service=SERVICES[name],
            )
            for name, peer in peers.items()
        }
        self._groups: dict[str, Group] = {}

    async def run(self) -> None:
        """Execute commands until there are no more."""
        async with AsyncExitStack() as stack:
            for name, member in self._members.items():
                await stack.enter_async_context(member)
                self._groups[name] = await member.join(GROUP)  # the first member is alone, and forms the group at once
            addresses = {name: member.address for name, member in self._members.items()}
            tell({"bare": await self._bare.open(), "members": addresses})
            async for order in orders():
                tell(await self._obey(order))
        self._bare.close()

    async def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        actions: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
            "meet": self._meet,
            "fan-out": self._fan_out,
            "order": self._order,
            "ask": self._ask,
            "latency": self._latency,
        }
        return await actions[order.pop("do")](**order)

    async def _meet(self, bare: list[tuple[str, int]]) -> dict[str, Any]:
        await self._bare.meet(self._rank, bare)
        for group in self._groups.values():
            while group.view is None or len(group.view.members) < len(bare):
                await group.receive()
        return {}

    async def _fan_out(self, **load: Any) -> dict[str, Any]:
        return {"rate": await self._bare.fan_out(me=self._rank, **load)}

    async def _order(self, *, service: str, profile: bool = False, **load: Any) -> dict[str, Any]:
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        ordered = SERVICES[service].kind == "total"
        outcome = await throughput(self._groups[service], me=self._rank, ordered=ordered, **load)
        if profile:
            profiler.disable()
        return {
            "rate": outcome.rate,
            "digest": outcome.digest,
            "delivered": outcome.meter.count,
            "views": outcome.foreign.count("View"),
            "costs": _costs(profiler) if profile else [],
        }

    async def _ask(self, size: int, times_ns: list[list[int]], peers: int) -> dict[str, Any]:
        others = [(self._rank + 1 + place) % len(times_ns) for place in range(peers)]
        return {"took_ns": await self._bare.ask(others, size, times_ns[self._rank])}

    async def _latency(self, size: int, times_ns: list[list[int]], service: str) -> dict[str, Any]:
        return {"took_ns": await latency(self._groups[service], size, times_ns[self._rank], len(times_ns))}


def _costs(profiler: cProfile.Profile) -> list[tuple[str, float]]:
    """Functions and the share of the time spent in themselves, largest first."""
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in stats.values())
    shares = [(_place(*where), row[2] / total) for where, row in stats.items()]
    return sorted(shares, key=lambda pair: -pair[1])[:40]


def _place(file: str, _line: int, function: str) -> str:
    module = file.rpartition("antiphon/")[2].removesuffix(".py") if "antiphon/" in file else file.rpartition("/")[2]
    return f"{module}:{function}"


def main() -> None:
    """`python -m antiphon.bench.worker RANK TRANSPORT POLICY PEERS`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is handled by the parent
    rank, transport, policy, peers = sys.argv[1:]
    if policy == "batch" and hasattr(os, "SCHED_BATCH"):
        # For members and baseline alike: with more processes than cores, a woken one must not preempt its waker.
        with suppress(OSError):  # some sandboxes reject it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    asyncio.run(Worker(int(rank), transport, json.loads(peers)).run())


if __name__ == "__main__":
    main()
