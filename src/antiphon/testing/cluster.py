"""Members of one group in virtual time, with crashes, pauses and partitions."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.api.founding import Found, Policy
from antiphon.api.group import Group
from antiphon.api.member import Member
from antiphon.api.process import LocalProcess
from antiphon.api.settings import MemberSettings, settings
from antiphon.api.states import Snapshot
from antiphon.api.tracing import member_journal
from antiphon.errors import ConfigurationError
from antiphon.testing.clock import VirtualTimeLoop
from antiphon.testing.network import Network, Port
from antiphon.types import ProcessId, process_id


class _Member(Member):
    """A process in virtual time."""

    def __init__(
        self,
        me: ProcessId,
        chosen: MemberSettings,
        network: Network,
        trace: Path | None,
        *,
        others: Iterable[str] = (),
        policy: Policy | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        recorder = None if trace is None else member_journal(trace, me, chosen, "virtual")
        core = chosen.new_core(me, datagrams=False, tracing=trace is not None)
        self.port = Port(me, network, others)
        self._process = LocalProcess(me, core, self.port, recorder, clock=lambda: round(loop.time() * 1e9))
        self._process.act_by_itself(chosen, policy or Policy())

    def pause(self) -> None:
        self._process.driver.pause()
        self.port.hold()

    def resume(self) -> None:
        self.port.release()
        self._process.driver.resume()


class Cluster:
    """Made by `cluster`. Members are counted from 0 and called p1, p2, …; `cluster[0]` is the group as p1 holds it."""

    def __init__(
        self,
        count: int,
        group: str,
        chosen: MemberSettings,
        policy: Policy,
        network: Network,
        snapshots: Sequence[Snapshot | None],
        trace: Path | None,
    ) -> None:
        self._group = group
        self._chosen = chosen
        self._policy = policy
        self._network = network
        self._snapshots = snapshots
        self._trace = trace
        self._names = [f"p{number}" for number in range(1, count + 1)]
        self._starts = [0] * count
        self._members = [self._new(place) for place in range(count)]
        self._groups: list[Group] = []

    @property
    def members(self) -> tuple[Member, ...]:
        """The processes, which may be in other groups too."""
        return tuple(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, place: int) -> Group:
        return self._groups[place]

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups)

    async def start(self) -> None:
        """Start all members, and wait until they are in one view."""
        for member in self._members:
            await member.__aenter__()
        while any(len(member.peers) < len(self) - 1 for member in self._members):
            await asyncio.sleep(0.001)
        joins = [self._join(place) for place in range(1, len(self))]
        everybody = tuple(member.id for member in self._members)
        formed = self._members[0]._process.form(self._group, everybody, snapshot=self._snapshots[0])
        self._groups = await asyncio.gather(formed, *joins)
        for group in self._groups:
            await group.ready(len(self))

    async def stop(self) -> None:
        """Let all members leave."""
        for place, member in enumerate(self._members):
            self.resume(place)
            await member.__aexit__()

    async def crash(self, place: int, *, silent: bool = False) -> None:
        """Crash a process. What it had not read can still be read; then its stream ends.

        Others get evidence of the crash, as from a reset connection. `silent`: they get none, as if its host were lost.
        """
        if silent:
            self._members[place].port.fall_silent()
        await self._members[place].abort()

    async def restart(self, place: int, *, peers: Iterable[str] | None = None, found: Found | None = None) -> Group:
        """Start a process again after it crashed or left, as its next incarnation, and join.

        `peers`: names of peers, instead of all others. A name that no process has is never reached. `found`: as for
        `Member.join`.
        """
        await self.crash(place)
        self._starts[place] += 1
        self._members[place] = self._new(place, peers)
        await self._members[place].__aenter__()
        self._groups[place] = await self._join(place, found)
        return self._groups[place]

    def partition(self, sides: Iterable[Iterable[int]]) -> None:
        """Nothing passes between different sides until `heal`; a member on no side reaches all members."""
        chosen = [[*side] for side in sides]
        places = [place for side in chosen for place in side]
        if len(places) != len({*places}) or not {*places} <= {*range(len(self))}:
            raise ConfigurationError(f"sides {chosen} are not disjoint sets of members counted from 0")
        self._network.partition([[self._names[place] for place in side] for side in chosen])

    def cut(self, sender: int, receiver: int) -> None:
        """Drop everything from `sender` to `receiver` until `heal`; the other direction still works."""
        if sender == receiver or not {sender, receiver} <= {*range(len(self))}:
            raise ConfigurationError(f"{sender} and {receiver} are not two members counted from 0")
        self._network.cut(self._names[sender], self._names[receiver])

    def heal(self) -> None:
        """Connect all members again."""
        self._network.heal()

    def pause(self, place: int) -> None:
        """Stop a process until `resume`: it neither sends nor receives, and its timers do not fire."""
        self._members[place].pause()

    def resume(self, place: int) -> None:
        """Let it run again; it receives what has arrived meanwhile."""
        self._members[place].resume()

    def _new(self, place: int, peers: Iterable[str] | None = None) -> _Member:
        me = process_id(self._names[place], self._starts[place])
        others = [name for name in self._names if name != self._names[place]] if peers is None else [*peers]
        return _Member(me, self._chosen, self._network, self._trace, others=others, policy=self._policy)

    async def _join(self, place: int, found: Found | None = None) -> Group:
        return await self._members[place].join(self._group, snapshot=self._snapshots[place], found=found)


@asynccontextmanager
async def cluster(
    count: int,
    *,
    seed: int = 0,
    group: str = "group",
    snapshots: Sequence[Snapshot | None] | None = None,
    latency_s: tuple[float, float] = (0.000_5, 0.005),
    preset: str = "lan",
    trace: str | Path | None = None,
    found: Found = "together",
    least_members: int | None = None,
    join_within: float | None = None,
    **chosen: Any,
) -> AsyncIterator[Cluster]:
    """Members of one group: `async with antiphon.testing.cluster(3, seed=7) as members`.

    `snapshots`: the `snapshot` of each member; `latency_s`: the least and the largest latency; the others as for
    `Member`. Each member is given all others as peers. The event loop must be a `VirtualTimeLoop`, as in
    `antiphon.testing.run`.
    """
    if not isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        raise ConfigurationError("a cluster runs in virtual time: run the test with antiphon.testing.run(…)")
    if count < 1 or (snapshots is not None and len(snapshots) != count):
        raise ConfigurationError("a cluster needs at least one member, and as many snapshots as members")
    if not 0 <= latency_s[0] <= latency_s[1]:
        raise ConfigurationError("latency_s is the least and the largest latency of a frame, in seconds")
    network = Network(seed, latency_s)
    made = Cluster(
        count,
        group,
        settings(preset, chosen),
        Policy(found, least_members, join_within),
        network,
        snapshots or [None] * count,
        None if trace is None else Path(trace),
    )
    try:
        await made.start()
        yield made
    finally:
        await made.stop()
