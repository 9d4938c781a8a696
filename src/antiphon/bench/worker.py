"""One process of a benchmark: a member of a group, and beside it, on sockets of its own, one of the bare floor."""

import asyncio
import cProfile
import json
import pstats
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from antiphon.bench.bare import BareMesh
from antiphon.bench.ordered import latency, throughput
from antiphon.local.lines import standard_input, tell
from antiphon.runtime.member import Member

GROUP = "bench"


class Worker:
    """Does what it is told, line by line."""

    def __init__(self, rank: int, transport: str, peers: list[str]) -> None:
        self._rank = rank
        self._bare = BareMesh()
        self._member = Member(
            name=f"m{rank + 1}", peers=peers, preset="local", suspect_after=5.0, merge_every=5.0, transport=transport
        )

    async def run(self) -> None:
        """Until there is nothing more to do."""
        async with self._member:
            tell({"bare": await self._bare.open(), "member": self._member.address})
            lines = await standard_input()
            while line := await lines.readline():
                tell(await self._obey(json.loads(line)))
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
        self._group = await self._member.join(GROUP)
        while self._group.view is None or len(self._group.view.members) < len(bare):
            await self._group.receive()
        return {}

    async def _fan_out(self, **load: Any) -> dict[str, Any]:
        return {"rate": await self._bare.fan_out(me=self._rank, **load)}

    async def _order(self, *, profile: bool = False, **load: Any) -> dict[str, Any]:
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        outcome = await throughput(self._group, me=self._rank, **load)
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

    async def _latency(self, size: int, times_ns: list[list[int]]) -> dict[str, Any]:
        return {"took_ns": await latency(self._group, size, times_ns[self._rank], len(times_ns))}


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
    """`python -m antiphon.bench.worker RANK TRANSPORT [PEER]`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts a benchmark interrupts who started us
    asyncio.run(Worker(int(sys.argv[1]), sys.argv[2], sys.argv[3:]).run())


if __name__ == "__main__":
    main()
