"""A process as its applications hold it: one identity, one address, any number of groups that overlap with others.

All groups of a member are delivered to in one order. Whoever is the first to ask for a group forms it alone, and those
who do so at the same time without knowing of each other are merged, like sides of a partition that has healed.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from antiphon.core import effects
from antiphon.core.newtop.process import NewtopProcess
from antiphon.errors import ConfigurationError, NotAMember
from antiphon.runtime.driver import Driver, Shown
from antiphon.runtime.group import Group, Snapshot
from antiphon.runtime.settings import MemberSettings, settings
from antiphon.runtime.transports.contract import Transport
from antiphon.runtime.transports.tcp import Address, TcpMesh
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, dice, name_of, process_id
from antiphon.wire.names import is_name

_YEAR_2025_S: Final = 1_735_689_600
_STARTS_PER_S: Final = 4
"""A process started anew gets a higher number than before if so much time has passed; 32 bits last until 2059."""


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
        **chosen: Any,
    ) -> None:
        """`name`: what the process is called, by default after its address; `chosen`: fields of `MemberSettings`."""
        address = parse_address(bind)
        seeds = [parse_address(peer) for peer in ([peers] if isinstance(peers, str) else peers)]
        shown = None if advertise is None else parse_address(advertise)
        me = _identity(name, address)
        mesh = TcpMesh(me, address, seeds, advertise=shown)
        self._begin(me, settings(preset, chosen), mesh, None)
        self._mesh = mesh
        self._alone = not seeds

    def _begin(
        self,
        me: ProcessId,
        chosen: MemberSettings,
        transport: Transport,
        recorder: Recorder | None,
        driver: type[Driver] = Driver,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.id = me
        """Who this is: name and incarnation."""
        self.core = NewtopProcess(me, {}, chosen.core(datagrams=False, tracing=recorder is not None))
        self._driver = driver(me, self.core, transport, self, recorder=recorder, clock=clock)
        self._recorder = recorder
        self._patience_s = 2 * chosen.suspect_after
        self._groups: dict[GroupId, Group] = {}
        self._founders: dict[GroupId, asyncio.TimerHandle] = {}
        self._turns: list[asyncio.Future[None]] = []
        self._running = False

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return "{}:{}".format(*self._mesh.address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom it is connected with."""
        return self._driver.transport.peers

    async def __aenter__(self) -> Self:
        try:
            await self._driver.start()
        except BaseException:
            await self._end()
            raise
        self._running = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running = False
        groups = [*self._groups.values()]
        try:
            for group in groups:
                group.depart()
            for group in groups:
                await group.leave()
        finally:
            await self._end()

    async def abort(self) -> None:
        """Be gone without taking leave of anybody: to others this is a crash."""
        self._driver.halt()
        await self._driver.transport.close()
        await self._end()

    async def _end(self) -> None:
        self._running = False
        try:
            await self._driver.stop()
        finally:
            for group in self._groups.values():
                group.end()
            self._groups.clear()
            self._wake_waiting()

    async def join(self, name: str, *, snapshot: Snapshot | None = None) -> Group:
        """Become a member of a group; returns when the first view holds us.

        `snapshot` gives the application's state, for those who come later; an application that gives one gets `Reset`
        events with the states that it is to have.
        """
        if not is_name(name):
            raise ConfigurationError(f"{name!r} is no name for a group: it is empty, or has white space, #, @, / or :")
        group = GroupId(name)
        while group in self._groups:
            if not self._groups[group].leaving:
                raise ConfigurationError(f"this member is in {name} already")
            await self._groups[group].leave()
        if not self._running:
            raise NotAMember(f"{self.id} joins groups within `async with` only: it is not running")
        self._groups[group] = joined = Group(self, group, snapshot)
        self._ask(group)
        alone = self._alone and not self.peers
        self._found_in(0 if alone else self._patience_s * (1 + dice(f"{self.id}/{group}", 1000) / 1000), group)
        try:
            await joined.ready()
        except asyncio.CancelledError:
            joined.depart()
            raise
        finally:
            self._founders.pop(group).cancel()
        return joined

    def _ask(self, group: GroupId) -> None:
        """Everybody whom we know may be in it."""
        self.core.join(group, self.peers, self._driver.clock())
        self._driver.stir()

    def _found_in(self, pause_s: float, group: GroupId) -> None:
        self._founders[group] = asyncio.get_running_loop().call_later(pause_s, self._found, group)

    def _found(self, group: GroupId) -> None:
        """Nobody takes us in: there is no such group, so we form it. Those with higher names wait a little longer."""
        self.core.form(group, (self.id,), self._driver.clock())
        self._look_for(group, self.peers)
        self._found_in(self._patience_s, group)  # unless we are in it by then

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

    def passed_over(self, view: View) -> None:
        """An application need not read that it is in this view; in a trace it sends in views that it has read only."""
        if self._recorder is None:
            self.core.viewed(view, self._driver.clock())
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
            del self._groups[group]

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
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)


@asynccontextmanager
async def join(group: str, /, *, snapshot: Snapshot | None = None, **member: Any) -> AsyncIterator[Group]:
    """Be a process of one group: `async with antiphon.join("orders", bind=…, peers=[…]) as group`.

    `member`: what `Member` takes, `name` among it. Leaves the group at the end, when everybody has what was sent.
    """
    async with Member(**member) as process:
        yield await process.join(group, snapshot=snapshot)


def parse_address(text: str) -> Address:
    """`host:port`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError(f"{text!r} is not an address such as 10.0.0.5:7400")
    return host.strip("[]"), int(port)


def _identity(name: str | None, address: Address) -> ProcessId:
    """A name, and a number that is higher at each start, so that nobody takes us for what we were."""
    host, port = address
    chosen = name if name is not None else f"{host.replace(':', '.')}-{port or secrets.token_hex(4)}"
    if not is_name(chosen):
        raise ConfigurationError(f"{name!r} is no name for a process: it is empty, or has white space, #, @, / or :")
    return process_id(chosen, int((time.time() - _YEAR_2025_S) * _STARTS_PER_S))


def _group(effect: Shown) -> GroupId:
    assert not isinstance(effect, effects.Deliver)
    return effect.view.group if isinstance(effect, effects.InstallView) else effect.group
