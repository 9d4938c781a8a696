"""A process as its applications hold it: one identity, one address, any number of groups that overlap with others.

All groups of a member are delivered to in one order. Whoever is the first to ask for a group forms it alone, and those
who do so at the same time without knowing of each other are merged, like sides of a partition that has healed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self

from antiphon.core import effects
from antiphon.core.newtop.process import NewtopProcess
from antiphon.errors import ConfigurationError
from antiphon.runtime.driver import Driver, Shown
from antiphon.runtime.group import Group, Snapshot
from antiphon.runtime.settings import MemberSettings, settings
from antiphon.runtime.transports.choice import TransportMaker, make_transport, parse_address
from antiphon.runtime.transports.contract import Transport
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, dice, name_of, process_id
from antiphon.wire.names import is_name


class Member:
    """One process. An async context: `async with antiphon.Member(bind=…, peers=[…]) as member`."""

    def __init__(
        self,
        *,
        bind: str = "127.0.0.1:0",
        peers: Iterable[str] = (),
        name: str | None = None,
        advertise: str | None = None,
        preset: str = "lan",
        transport: str | TransportMaker = "tcp",
        multicast: str | None = None,
        **chosen: Any,
    ) -> None:
        """`name`: what the process is called, by default after its address; `chosen`: fields of `MemberSettings`.

        `transport`: `tcp`; `udp`, where losses are repaired by the protocol; or what makes one, such as
        `MemoryNetwork().attach`. The same for all members. `multicast`: on UDP, an address such as `239.1.2.3:7500` of
        which all members take what is for several, so that it leaves once; it does not pass routers.
        """
        address = parse_address(bind)
        incarnation = int(time.time())  # higher at each start, so nobody takes us for what we were
        me = process_id(name or f"{address[0]}-{address[1] or incarnation}", incarnation)
        if not is_name(me.partition("#")[0]):
            raise ConfigurationError(f"{name!r} is no name for a process: it has white space, #, @, / or : in it")
        values = settings(preset, chosen)
        carrier = make_transport(
            transport,
            me,
            bind,
            [*peers],
            advertise=advertise,
            multicast=multicast,
            datagram_bytes=values.datagram_bytes,
        )
        self._begin(me, values, carrier, None)

    def _begin(self, me: ProcessId, chosen: MemberSettings, transport: Transport, recorder: Recorder | None) -> None:
        self.id = me
        """Who this is: name and incarnation."""
        self.core = NewtopProcess(me, {}, chosen.core(datagrams=not transport.streams, tracing=recorder is not None))
        self._driver = Driver(me, self.core, transport, self, recorder=recorder)
        self._recorder = recorder
        self._patience_s = 2 * chosen.suspect_after
        self._groups: dict[GroupId, Group] = {}
        self._founders: dict[GroupId, asyncio.Task[None]] = {}
        self._turns: list[asyncio.Future[None]] = []

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return "{}:{}".format(*self._driver.transport.address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom it is connected with."""
        return self._driver.transport.peers

    async def __aenter__(self) -> Self:
        await self._driver.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._founders.values():
            task.cancel()
        await asyncio.gather(*(group.leave() for group in self._groups.values()))
        await self._driver.stop()

    async def join(self, name: str, *, snapshot: Snapshot | None = None) -> Group:
        """Become a member of a group; returns when the first view holds us.

        `snapshot` gives the application's state, for those who come later; an application that gives one gets `Reset`
        events with the states that it is to have.
        """
        if not is_name(name):
            raise ConfigurationError(f"{name!r} is no name for a group: it is empty, or has white space, #, @, / or :")
        group = GroupId(name)
        if group in self._groups:
            raise ConfigurationError(f"this member is in {name} already")
        self._groups[group] = joined = Group(self, group, snapshot)
        self._ask(group)
        self._founders[group] = asyncio.get_running_loop().create_task(self._found(group))
        try:
            await joined.ready()
        except asyncio.CancelledError:
            self._forget(group)
            self.core.leave(group, self._driver.clock())
            self._driver.stir()
            raise
        finally:
            founder = self._founders.pop(group, None)
            if founder is not None:
                founder.cancel()
        return joined

    def _ask(self, group: GroupId) -> None:
        """Everybody whom we know may be in it."""
        self.core.join(group, self.peers, self._driver.clock())
        self._driver.stir()

    async def _found(self, group: GroupId) -> None:
        """Nobody takes us in: there is no such group, so we form it. Those with higher names wait a little longer."""
        if not self._driver.transport.alone or self.peers:
            await asyncio.sleep(self._patience_s * (1 + dice(f"{self.id}/{group}", 1000) / 1000))
        self.core.form(group, (self.id,), self._driver.clock())
        self._look_for(group, self.peers)

    def _look_for(self, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        self.core.merge(group, others, self._driver.clock())
        self._driver.stir()

    async def next_turn(self) -> None:
        """Wait until something has happened."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        await turn

    # What groups ask

    def send(self, group: GroupId, payload: bytes) -> None:
        """The application multicasts."""
        now = self._driver.clock()
        label = 0 if self._recorder is None else self._recorder.requested(group, payload, now)
        self.core.send(group, payload, now, label)
        self._driver.stir()

    def leave(self, group: GroupId) -> None:
        """The application wants to be out of a group."""
        self.core.leave(group, self._driver.clock())
        self._driver.stir()

    def consumed(self, group: GroupId, position: int) -> None:
        """An application has done with the messages of a frame."""
        if self.core.heeds_application:
            self.core.consumed(group, position, self._driver.clock())
            self._driver.stir()

    def delivered(self, frame: effects.Frame) -> None:
        """An application takes the messages of a frame."""
        if self._recorder is not None:
            self._recorder.delivered(frame, self._driver.clock())

    def noticed(self, effect: effects.Confirmed) -> None:
        """An application is told whom deliveries speak for."""
        if self._recorder is not None:
            self._recorder.noticed(effect, self._driver.clock())

    def entered(self, effect: effects.InstallView, state: bytes | None) -> None:
        """An application gets to a view, where it has this state if others need it."""
        now = self._driver.clock()
        self.core.viewed(effect.view, now)
        self._driver.enter(effect, state, now)
        self._driver.stir()

    def hand_over(self, view: View, state: bytes) -> None:
        """The application's state at that view, for those who come from elsewhere."""
        self.core.state(view, state, self._driver.clock())
        self._driver.stir()

    def restored(self, effect: effects.InstallState, state: bytes) -> None:
        """An application has the states of others."""
        if self._recorder is not None:
            self._recorder.merged(effect, state, self._driver.clock())

    def left(self, effect: effects.Left) -> None:
        """An application has read the last of a group."""
        if effect.successor is None and self._recorder is not None:
            self._recorder.left(effect, self._driver.clock())

    # What the driver tells

    def show(self, effect: Shown) -> None:
        """What comes next in the order."""
        group = name_of(effect.frame.group if isinstance(effect, effects.Deliver) else _group(effect))
        self._groups[group].show(effect)
        if isinstance(effect, effects.Left) and effect.successor is None:
            self._forget(group)

    def _forget(self, group: GroupId) -> None:
        self._groups.pop(group, None)

    def met(self, peer: ProcessId) -> None:
        """Somebody new may be in our groups, or able to take us in."""
        for name, group in self._groups.items():
            if group.health.members:
                self._look_for(name, (peer,))
            elif not group.leaving:
                self._ask(name)

    def turned(self) -> None:
        """A turn is over."""
        for group in [*self._groups.values()]:
            group.turned()
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)


@asynccontextmanager
async def join(name: str, *, snapshot: Snapshot | None = None, **member: Any) -> AsyncIterator[Group]:
    """Be a process of one group: `async with antiphon.join("orders", bind=…, peers=[…]) as group`.

    `member`: what `Member` takes. Leaves the group at the end, when everybody has what was sent.
    """
    async with Member(**member) as process:
        yield await process.join(name, snapshot=snapshot)


def _group(effect: Shown) -> GroupId:
    assert not isinstance(effect, effects.Deliver)
    return effect.view.group if isinstance(effect, effects.InstallView) else effect.group
