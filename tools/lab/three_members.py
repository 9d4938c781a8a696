"""Three members in several groups at once, on TCP, on UDP or in virtual time: killed, restarted, parted and merged.

Each member reads all its groups as one stream, so that order over groups is judged too.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast, get_args

from antiphon import AntiphonError, Causal, Fifo, Group, Member, Reliable, Service, Total, Transitional
from antiphon.api.identity import new_identity
from antiphon.api.services import CausalOrder
from antiphon.api.settings import settings
from antiphon.testing.cluster import _Member
from antiphon.testing.network import Network
from antiphon.types import process_id, short_id
from tools.lab.replica import Replica

CARRIERS = ("tcp", "udp", "kit")
NAMES = ("p1", "p2", "p3")
_OTHER_KINDS: tuple[Service, ...] = (*(Causal(order) for order in get_args(CausalOrder)), Fifo(), Reliable())
MIXED: dict[str, Mapping[str, Service]] = {
    "total": {
        "plain": Total(),
        "safe": Total(safe=True),
        "remove": Total(views="remove"),
        "closed": Total(views="closed"),
        "accepted": Total(views="closed", accept=True),
    },
    "sequencer": {"sequenced": Total(sequencer=True), "plain": Total(), "safe": Total(safe=True)},
    **{repr(service): {"one": service, "two": service} for service in _OTHER_KINDS},
}
"""By name, groups that a member may be in at once, with their services."""
_TIMES: dict[str, Any] = {"suspect_after": 0.4, "idle_probe": 0.6, "merge_every": 0.8}
"""Short, but long enough for a busy machine: all members share one event loop, which may stand still."""


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that others do."""
    while not holds():
        await asyncio.sleep(0.005)


class ThreeMembers:
    """Members by name. All that run are in every group."""

    def __init__(
        self, carrier: str, services: Mapping[str, Service], default: Service, trace: Path, seed: int = 7
    ) -> None:
        self.replicas: dict[tuple[str, str], Replica] = {}
        """By member and group."""
        self.groups: dict[tuple[str, str], Group] = {}
        self._carrier = carrier
        self._services = services
        self._chosen: dict[str, Any] = {**_TIMES, "service": default}
        self._trace = trace
        self._network = Network(seed, (0.000_5, 0.005)) if carrier == "kit" else None
        self._starts = itertools.count()
        self._running: dict[str, Member] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._words = itertools.count()

    async def start(self, name: str) -> None:
        """Start a member, and let it join all groups."""
        self._running[name] = member = self._new(name)
        await member.__aenter__()
        for group in self._services:
            self.replicas[name, group] = Replica(ordered=False)
        self._readers[name] = asyncio.create_task(self._read(name, member))
        for group, service in self._services.items():
            snapshot = self.replicas[name, group].snapshot
            self.groups[name, group] = await member.join(group, service=service, snapshot=snapshot)

    async def rejoin(self, name: str, group: str) -> None:
        """Leave a group, and join it again."""
        await self.groups[name, group].leave()
        snapshot = self.replicas[name, group].snapshot
        member = self._running[name]
        self.groups[name, group] = await member.join(group, service=self._services[group], snapshot=snapshot)

    @property
    def running(self) -> list[str]:
        """The names of the members that run."""
        return sorted(self._running)

    def chatter(self) -> None:
        """A message of each member in each group, if it can leave now; nobody waits for it."""
        for name, group in itertools.product(self._running, self._services):
            with suppress(AntiphonError):
                self.groups[name, group].try_send(f"{name} {next(self._words)}".encode())

    async def kill(self, name: str) -> None:
        """Kill a member, and wait until a restarted one has a name of its own in the trace."""
        member = self._running.pop(name)
        await member.abort()
        self._readers.pop(name).cancel()
        if self._network is None:
            await until(lambda: short_id(new_identity(name, ("", 0))) != short_id(member.id))

    async def stop(self) -> None:
        for name in [*self._running]:
            await self._running.pop(name).__aexit__()
        await asyncio.gather(*self._readers.values())

    def part(self, *sides: str) -> None:
        """Cut the members off each other: each side is a text of names; none: heal."""
        parts = [side.split() for side in sides]
        if self._network is not None:
            self._network.partition(parts) if parts else self._network.heal()
            return
        for name, member in self._running.items():
            others = {other for side in parts if name not in side for other in side}
            cast("Any", member._process.driver.transport).forbid(frozenset(others))

    async def together(self, *sides: str) -> None:
        """Wait until the members of each side have views with exactly them, in every group."""
        for side in sides:
            members = side.split()
            for key in itertools.product(members, self._services):
                await until(lambda key=key, members=members: self._view(key) == members)  # type: ignore[misc]

    async def talk(self, *sides: str) -> None:
        """A message of each member in each group arrives at all members of its side.

        A busy machine may separate members for a while. What they send then is not for all, so they send again.
        """
        for side in sides:
            arrived: Callable[[], bool] = bool
            while not arrived():
                await self.together(side)
                sent = await self._send(side.split())
                arrived = lambda side=side, sent=sent: self._have(side.split(), sent)  # type: ignore[misc] # noqa: E731
                await until(lambda: arrived() or not self._is_together(side.split()))  # noqa: B023

    async def _send(self, members: list[str]) -> dict[str, set[str]]:
        """The words that were sent, by group."""
        sent: dict[str, set[str]] = {group: set() for group in self._services}
        for group, name in itertools.product(self._services, members):
            word = f"{name} {next(self._words)}"
            sent[group].add(word)
            await self.groups[name, group].send(word.encode())
        return sent

    def _have(self, members: list[str], sent: dict[str, set[str]]) -> bool:
        return all(words <= {*self.replicas[name, group].words} for group, words in sent.items() for name in members)

    def _is_together(self, members: list[str]) -> bool:
        return all(self._view(key) == members for key in itertools.product(members, self._services))

    def _view(self, key: tuple[str, str]) -> list[str]:
        view = self.replicas[key].view
        return [] if view is None else [member.partition("#")[0] for member in view.members]

    def _new(self, name: str) -> Member:
        others = [member for other, member in self._running.items() if other != name]
        if self._network is None:
            peers = [others[0].address] if others else []
            return Member(name=name, peers=peers, transport=self._carrier, trace=self._trace, **self._chosen)
        chosen = settings("lan", self._chosen)
        me = process_id(name, next(self._starts))
        reached = [other for other in self._running if other != name]
        return _Member(me, chosen, self._network, self._trace, others=reached)

    async def _read(self, name: str, member: Member) -> None:
        async for group, event in member.events():
            self.replicas[name, group.name].take(event)
            if isinstance(event, Transitional):
                await event.accept()
