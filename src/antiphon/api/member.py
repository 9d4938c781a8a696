"""A process as its applications hold it: one identity, one address, any number of groups that overlap with others.

All groups of a member are delivered to in one order. Whoever is the first to ask for a group forms it alone, and those
who do so at the same time without knowing of each other are merged, like sides of a partition that has healed.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from antiphon.api.events import Event
from antiphon.api.group import Group
from antiphon.api.settings import settings
from antiphon.api.states import RULES, Snapshot
from antiphon.core import effects
from antiphon.core.contract import StateSource
from antiphon.errors import ConfigurationError, NotAMember
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.sockets.driver import Driver, Shown
from antiphon.sockets.transports.choice import TransportMaker, make_transport, parse_address
from antiphon.sockets.transports.contract import Address, Transport
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
        seeds = [peers] if isinstance(peers, str) else [*peers]
        me = _identity(name, address)
        wanted = settings(preset, chosen)
        carrier = make_transport(
            transport,
            me,
            bind,
            seeds,
            advertise=advertise,
            multicast=multicast,
            datagram_bytes=wanted.datagram_bytes,
        )
        core = NewtopProcess(me, {}, wanted.core(datagrams=not carrier.streams, tracing=False), RULES)
        self._begin(me, core, carrier, None)
        self._patience_s: float | None = 2 * wanted.suspect_after
        """How long to look for a group before founding it; None: a scenario says what happens to groups."""

    @classmethod
    def of(
        cls,
        me: ProcessId,
        core: NewtopProcess,
        transport: Transport,
        recorder: Recorder,
        *,
        configured: Mapping[GroupId, Snapshot],
        clock: Callable[[], int],
        journal: Callable[[], None],
    ) -> Self:
        """One whose core is made, in groups that are configured, and whose trace is kept: for `antiphon run`."""
        member = cls.__new__(cls)
        member._begin(me, core, transport, recorder, clock=clock, journal=journal)
        member._groups |= {group: Group(member, group, snapshot) for group, snapshot in configured.items()}
        member._patience_s = None
        return member

    def _begin(
        self,
        me: ProcessId,
        core: NewtopProcess,
        transport: Transport,
        recorder: Recorder | None,
        driver: type[Driver] = Driver,
        **options: Any,
    ) -> None:
        self.id = me
        """Who this is: name and incarnation."""
        self.core = core
        self._transport = transport
        self._driver = driver(me, core, transport, self, recorder=recorder, **options)
        self._recorder = recorder
        self._groups: dict[GroupId, Group] = {}
        self._order: deque[Group] | None = None  # whose event comes next, where all groups are read as one
        self._founders: dict[GroupId, asyncio.TimerHandle] = {}
        self._turns: list[asyncio.Future[None]] = []
        self._running = False

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return "{}:{}".format(*self._transport.address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom it is connected with."""
        return self._transport.peers

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self._end()
            raise
        self.begin()
        return self

    async def open(self) -> None:
        """Be reachable, and get to know the peers; nothing is said in any group yet."""
        await self._driver.open()

    def begin(self) -> None:
        """Take part."""
        self._running = True
        self._driver.begin()

    async def stop(self) -> None:
        """Be gone without leaving, as after a crash, but for what has been said."""
        await self._driver.stop()

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

    async def join(
        self, name: str, *, snapshot: Snapshot | None = None, contacts: tuple[ProcessId, ...] | None = None
    ) -> Group:
        """Become a member of a group; returns when the first view holds us.

        `snapshot` gives the application's state, for those who come later; an application that gives one gets `Reset`
        events with the states that it is to have. `contacts`: whom to ask, if not everybody whom we know.
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
        if self._recorder is not None:
            self._recorder.moved("join", group, self._driver.clock(), contacts or self.peers)
        self._ask(group, contacts)
        if self._patience_s is not None:
            alone = self._transport.alone and not self.peers
            self._found_in(0 if alone else self._patience_s * (1 + dice(f"{self.id}/{group}", 1000) / 1000), group)
        try:
            await joined.ready()
        except asyncio.CancelledError:
            joined.depart()
            raise
        finally:
            if group in self._founders:
                self._founders.pop(group).cancel()
        return joined

    def _ask(self, group: GroupId, contacts: tuple[ProcessId, ...] | None = None) -> None:
        """Everybody whom we know may be in it."""
        self.core.join(group, contacts or self.peers, self._driver.clock())
        self._driver.stir()

    def _found_in(self, pause_s: float, group: GroupId) -> None:
        self._founders[group] = asyncio.get_running_loop().call_later(pause_s, self._found, group)

    def _found(self, group: GroupId) -> None:
        """Nobody takes us in: there is no such group, so we form it; those who come at once wait differently long."""
        assert self._patience_s is not None
        self.core.form(group, (self.id,), self._driver.clock())
        self._look_for(group, self.peers)
        self._found_in(self._patience_s, group)  # unless we are in it by then

    async def form(self, name: str, members: tuple[ProcessId, ...], *, snapshot: Snapshot | None = None) -> Group:
        """Form a group of these, all of whom must be willing; tried until it is done, or left."""
        group = GroupId(name)
        formed = self.expect(name, snapshot)
        self.core.form(group, members, self._driver.clock())
        self._driver.stir()
        await formed.ready()
        return formed

    def expect(self, name: str, snapshot: Snapshot | None = None) -> Group:
        """A group that others may form with us in it."""
        return self._groups.setdefault(GroupId(name), Group(self, GroupId(name), snapshot))

    def find(self, name: str) -> Group | None:
        """A group that this member is in, or has asked to be in."""
        return self._groups.get(GroupId(name))

    def group(self, name: str) -> Group:
        """The same, of one that it must be in."""
        found = self.find(name)
        if found is None:
            raise NotAMember(f"this process is not in {name}")
        return found

    def look_for(self, name: str, others: tuple[ProcessId, ...]) -> None:
        """Unite with the groups of that name that these are in."""
        self._look_for(GroupId(name), others)

    def suspect(self, process: ProcessId) -> None:
        """Suspect somebody, whatever the clock says; others may refute it."""
        self.core.suspect(process, self._driver.clock())
        self._driver.stir()

    def _look_for(self, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        self.core.merge(group, others, self._driver.clock())
        self._driver.stir()

    async def events(self) -> AsyncIterator[tuple[Group, Event]]:
        """The events of all groups in their one order, instead of those of each group by itself.

        Ask for it before the first group is joined, and read no group by itself then.
        """
        order: deque[Group] = deque()
        self._order = order
        while True:
            while order:
                group = order.popleft()
                for event in group.open_next():
                    yield group, event
                group.done()
            await self.next_turn()

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

    def send_all(self, group: GroupId, payloads: list[bytes]) -> None:
        """The application has multicast these since the last turn."""
        self.core.send_all(group, payloads, self._driver.clock())

    def hurry(self) -> None:
        """What an application has sent shall leave now, if it can."""
        self._driver.hurry(self._driver.clock())

    def stir(self) -> None:
        """What an application has sent shall leave as soon as it may."""
        self._driver.stir()

    @property
    def draining(self) -> bool:
        """Whether the core is at work, and takes nothing now."""
        return self._driver.draining

    def collect(self) -> None:
        """A turn begins."""
        for group in self._groups.values():
            group.collect()

    def leave(self, group: GroupId) -> None:
        """The application wants to be out of a group."""
        self.core.leave(group, self._driver.clock())
        self._driver.stir()

    def consumed(self, group: GroupId, position: int) -> None:
        """An application has done with the messages of a frame."""
        if self.core.heeds_application and self.core.consumed(group, position, self._driver.clock()):
            self._driver.stir()

    def delivered(self, frame: effects.Frame) -> None:
        """An application takes the messages of a frame."""
        if self._recorder is not None:
            self._recorder.delivered(frame, self._driver.clock())

    def noticed(self, effect: effects.Transitional) -> None:
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

    @property
    def traced(self) -> bool:
        """Whether a trace wants to know of states, all of which must be there then."""
        return self._recorder is not None

    def hand_over(self, view: View, state: StateSource) -> None:
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
        group = name_of(effect.frame.group if type(effect) is effects.Deliver else _group(effect))
        invited = self._groups.get(group)
        shown = self.expect(group) if invited is None else invited
        shown.show(effect)
        self.queue(shown)
        if invited is None:
            shown.depart()  # others have formed it with us in it, and nobody here knows of it
        if type(effect) is effects.Left and effect.successor is None:
            del self._groups[group]

    def queue(self, group: Group) -> None:
        """Where all groups are read as one, the next one is of that group."""
        if self._order is not None:
            self._order.append(group)

    def met(self, peer: ProcessId) -> None:
        """Somebody new may be in our groups, or able to take us in."""
        if self._patience_s is None:
            return
        for name, group in self._groups.items():
            if group.health.members:
                self._look_for(name, (peer,))
            elif not group.leaving:
                self._ask(name)

    def turned(self) -> None:
        """A turn is over."""
        for group in self._groups.values():
            group.turned()
        if self._turns:
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
