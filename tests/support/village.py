"""Members in virtual time that start one by one, each with peers and a policy of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon import Group
from antiphon.api.founding import Policy
from antiphon.api.settings import settings
from antiphon.api.states import Snapshot
from antiphon.testing.cluster import _Member
from antiphon.testing.network import Network
from antiphon.types import process_id


class Village:
    """Processes on one network. All reach each other, unless `network.partition` says otherwise."""

    def __init__(self, seed: int, latency_s: tuple[float, float], **chosen: Any) -> None:
        self.network = Network(seed, latency_s)
        self.members: dict[str, _Member] = {}
        self._chosen = settings("lan", chosen)
        self._starts: dict[str, int] = {}

    async def start(self, name: str, peers: str = "", **policy: Any) -> _Member:
        """Start a process, or start it again; `peers`: the names that it was given, separated by spaces."""
        self._starts[name] = incarnation = self._starts.get(name, -1) + 1
        me = process_id(name, incarnation)
        member = _Member(me, self._chosen, self.network, None, others=peers.split(), policy=Policy(**policy))
        self.members[name] = member
        await member.__aenter__()
        return member

    async def join(self, name: str, peers: str = "", *, snapshot: Snapshot | None = None, **policy: Any) -> Group:
        """Start a process and let it join the group `orders`."""
        member = await self.start(name, peers, **policy)
        return await member.join("orders", snapshot=snapshot)


@asynccontextmanager
async def village(
    seed: int = 0, *, latency_s: tuple[float, float] = (0.000_5, 0.005), **chosen: Any
) -> AsyncIterator[Village]:
    """All processes end with it."""
    made = Village(seed, latency_s, **chosen)
    try:
        yield made
    finally:
        for member in made.members.values():
            member.resume()
            await member.__aexit__()


async def sees_primary(group: Group, members: int) -> None:
    """Wait until the group is primary with this number of members."""
    while not group.health.primary or len(group.health.members) != members:
        await asyncio.sleep(0.01)
