"""A process as its applications hold it: one identity, one address, and any number of groups.

Deliveries of all groups of a member have one order. The first process that asks for a group forms it alone. Processes
that do so at the same time, without knowing of each other, are merged like the sides of a healed partition.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

from antiphon.api.events import Event
from antiphon.api.group import Group
from antiphon.api.settings import MemberSettings, settings
from antiphon.api.states import Digester, Snapshot, State
from antiphon.api.tracing import Departures, StateDigester, member_journal, start_detail
from antiphon.core import effects
from antiphon.core.contract import Changing, StateSource
from antiphon.drive.drive import Shown
from antiphon.errors import ConfigurationError, NotAMember, TraceError
from antiphon.sockets.driver import Driver
from antiphon.sockets.transports.choice import TransportMaker, make_transport, parse_address
from antiphon.sockets.transports.contract import Address, Transport
from antiphon.trace.journal import JournalRecorder
from antiphon.types import GroupId, ProcessId, View, dice, name_of, process_id
from antiphon.wire.names import is_name

_YEAR_2025_S: Final = 1_735_689_600
_STARTS_PER_S: Final = 4
"""A restarted process gets a higher number than before, if it starts no more often; 32 bits last until 2059."""


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
        trace: str | Path | None = None,
        **chosen: Any,
    ) -> None:
        """`name`: of the process, by default after its address; `chosen`: fields of `MemberSettings`.

        `transport`: `tcp`; `udp`, where the protocol repairs losses; or a function that makes one, such as
        `MemoryNetwork().attach`. It is the same for all members. `multicast`: on UDP, an address such as
        `239.1.2.3:7500`, where a frame for several members leaves once; it does not pass routers. `trace`: a directory
        that several members may share, for `antiphon check` and the other commands that read traces.
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
        recorder = None if trace is None else member_journal(Path(trace), me, wanted)
        core = wanted.new_core(me, datagrams=not carrier.streams, tracing=trace is not None)
        self._begin(me, core, carrier, recorder)
        self._by_itself(wanted)

    @classmethod
    def of(
        cls,
        me: ProcessId,
        core: Changing,
        transport: Transport,
        recorder: JournalRecorder,
        *,
        configured: Mapping[GroupId, Snapshot],
        clock: Callable[[], int],
    ) -> Self:
        """One that plays in a scenario: its core is there, its groups are configured, its owner closes the journal."""
        member = cls.__new__(cls)
        member._begin(me, core, transport, recorder, clock=clock)
        member._groups |= {group: Group(member, group, snapshot) for group, snapshot in configured.items()}
        return member

    def _begin(
        self,
        me: ProcessId,
        core: Changing,
        transport: Transport,
        recorder: JournalRecorder | None,
        **options: Any,
    ) -> None:
        self.id = me
        """Name and incarnation."""
        self.core = core
        self._transport = transport
        journal = None if recorder is None else recorder.write
        self._driver = Driver(me, core, transport, self, recorder=recorder, journal=journal, **options)
        self._recorder = recorder
        self._departures = None if recorder is None else Departures(recorder)
        self._settings: MemberSettings | None = None
        """None: a scenario is played, and its player opens and closes the journal."""
        self._patience_s: float | None = None
        """How long to look for a group before founding it; None: a scenario says what happens to groups."""
        self._groups: dict[GroupId, Group] = {}
        self._order: deque[Group] | None = None  # groups in the order of their events, where all are read as one
        self._founders: dict[GroupId, asyncio.TimerHandle] = {}
        self._turns: list[asyncio.Future[None]] = []
        self._running = False

    def _by_itself(self, settings: MemberSettings) -> None:
        """No scenario and no supervisor: it founds groups that nobody else has, and keeps its own journal."""
        self._patience_s = 2 * settings.suspect_after
        self._settings = settings

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return "{}:{}".format(*self._transport.address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The processes that it is connected with."""
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
        """Be reachable, and get to know the peers; nothing is sent in any group yet."""
        await self._driver.open()
        if self._recorder is not None and self._settings is not None:
            self._recorder.open()
            detail = start_detail(self._settings, datagrams=not self._transport.streams)
            self._recorder.note("start", self._driver.clock(), detail)

    def begin(self) -> None:
        """Take part."""
        self._running = True
        self._driver.begin()

    async def stop(self) -> None:
        """End without leaving any group: others see a crash, but all that was sent still leaves."""
        await self._driver.stop()

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        self._running = False
        groups = [*self._groups.values()]
        try:
            for group in groups:
                group.depart()
            for group in groups:
                await group.leave()
        finally:
            await self._end()
        error = None if self._recorder is None else self._recorder.error
        if error is not None and kind is None:
            raise TraceError(f"the trace of {self.id} is incomplete: {error.strerror}") from error

    async def abort(self) -> None:
        """End without leaving any group: to others this is a crash."""
        self._driver.halt()
        await self._driver.transport.close()
        if self._recorder is not None:
            self._recorder.close()
        await self._end()

    async def _end(self) -> None:
        self._running = False
        try:
            await self._driver.stop()
        finally:
            if self._recorder is not None and self._settings is not None:
                self._close_journal(self._recorder)
            for group in self._groups.values():
                group.end()
            self._groups.clear()
            self._wake_waiting()

    def _close_journal(self, recorder: JournalRecorder) -> None:
        assert self._departures is not None
        self._departures.skip_all(self._driver.clock())
        held = {group: self.core.unstable(group) for group in self._groups}
        leaving = [name for name, group in self._groups.items() if group.leaving]
        joining = [name for name, group in self._groups.items() if not group.leaving and not group.health.members]
        recorder.stopped(self._driver.clock(), held, {}, {"joining": joining, "leaving": leaving})
        recorder.close()

    async def join(
        self, name: str, *, snapshot: Snapshot | None = None, contacts: tuple[ProcessId, ...] | None = None
    ) -> Group:
        """Become a member of a group; returns when this process is in the first view.

        `snapshot` returns the application's state, for later joiners; an application that gives one gets `Reset`
        events with the states that it is to have. `contacts`: the processes to ask, by default all known ones.
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
        self._record_join(group, contacts)
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

    def _record_join(self, group: GroupId, contacts: tuple[ProcessId, ...] | None = None) -> None:
        if self._recorder is not None and self._departures is not None:
            now = self._driver.clock()
            self._departures.skip(group, now)
            settings, asked = self._settings, contacts or self.peers
            if settings is None:
                self._recorder.moved("join", group, now, asked)
            else:
                apart = self._order is None
                self._recorder.moved("join", group, now, asked, apart=apart, service=settings.service)

    def _ask(self, group: GroupId, contacts: tuple[ProcessId, ...] | None = None) -> None:
        """Any process that we know may be in it."""
        self.core.join(group, contacts or self.peers, self._driver.clock())
        self._driver.stir()

    def _found_in(self, pause_s: float, group: GroupId) -> None:
        self._founders[group] = asyncio.get_running_loop().call_later(pause_s, self._found, group)

    def _found(self, group: GroupId) -> None:
        """Nobody takes us in: there is no such group, so we form it. Members that join together wait unequally long."""
        assert self._patience_s is not None
        self.core.form(group, (self.id,), self._driver.clock())
        self._look_for(group, self.peers)
        self._found_in(self._patience_s, group)  # unless we are in it by then

    async def form(self, name: str, members: tuple[ProcessId, ...], *, snapshot: Snapshot | None = None) -> Group:
        """Form a group of these, all of which must be willing; tried until it is done, or left."""
        group = GroupId(name)
        formed = self.expect(name, snapshot)
        if self._patience_s is not None:  # else the scenario has told it
            self._record_join(group, members)
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
        """Suspect a process, whatever the clock says; others may refute it."""
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
        if self._recorder is not None:
            self._recorder.requested(group, (payload,), now)
        self.core.send(group, payload, now, self._driver.labels.take(group))

    def send_all(self, group: GroupId, payloads: list[bytes]) -> None:
        """The application has multicast these since the last turn."""
        now = self._driver.clock()
        if self._recorder is not None:
            self._recorder.requested(group, payloads, now)
        self.core.send_all(group, payloads, now, self._driver.labels.take(group, len(payloads)))

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
        """An application is done with the messages of a frame."""
        if self._driver.reader.done(group, position, self._driver.clock()):
            self._driver.stir()

    def position(self, group: GroupId) -> int:
        """The position of the last frame that an application has taken in that group."""
        return self._driver.reader.position(group)

    def delivered(self, group: Group, frame: effects.Frame) -> int:
        """An application takes the messages of a frame; gives its position for `consumed`."""
        if self._recorder is None:
            return self._driver.reader.take(frame, 0)  # the time is for the trace alone
        return self._driver.reader.take(frame, self._driver.clock(), recorded=self._is_current(group))

    def _is_current(self, group: Group) -> bool:
        """False if the process has left that group, and joined it again: what is read of it now is not traced."""
        return self._groups.get(GroupId(group.name), group) is group

    def noticed(self, group: Group, effect: effects.Transitional) -> None:
        """An application is told for which members deliveries speak."""
        self._driver.reader.notice(effect, self._driver.clock(), recorded=self._is_current(group))

    def entered(self, group: Group, effect: effects.InstallView) -> None:
        """An application enters a view."""
        now = self._driver.clock()
        self._driver.reader.enter(effect, now, now, recorded=self._is_current(group))
        self._driver.stir()

    def passed_over(self, view: View) -> None:
        """The protocol need not wait until an application reads that it is in this view."""
        self._driver.reader.pass_over(view, self._driver.clock())
        self._driver.stir()

    def hand_over(self, view: View, state: StateSource) -> None:
        """The application's state at that view, for joiners."""
        self._driver.reader.hand_over(view, state, self._driver.clock())
        self._driver.stir()

    def digester(self, view: View, state: State) -> Digester | None:
        """What is to see a state while it leaves; a state that is there as a whole is recorded at once."""
        recorder, clock = self._recorder, self._driver.clock
        if recorder is None:
            return None
        if isinstance(state, bytes):
            recorder.handed_over(view, state, clock())
            return None
        return StateDigester(lambda digest: recorder.state_streamed(view, digest, clock()))

    def restored(self, group: Group, effect: effects.InstallState, states: list[bytes]) -> None:
        """An application takes the states of others; `states`: all that it has to merge, in order."""
        self._driver.reader.restore(effect, states, self._driver.clock(), recorded=self._is_current(group))

    def left(self, group: Group, effect: effects.Left) -> None:
        """An application has read the last event of a group."""
        gone = self._driver.reader.leave(effect, self._driver.clock(), recorded=False)
        if gone and self._departures is not None and self._is_current(group):
            self._departures.read(GroupId(group.name), self._driver.clock())

    # What the driver tells

    def show(self, effect: Shown, now: int) -> None:  # noqa: ARG002
        """What comes next in the order."""
        group = name_of(effect.frame.group if type(effect) is effects.Deliver else _group(effect))
        invited = self._groups.get(group)
        shown = self.expect(group) if invited is None else invited
        shown.show(effect)
        self.queue(shown)
        if invited is None:
            shown.depart()  # others have formed it with us in it, and no application here knows of it
        if type(effect) is effects.Left and effect.successor is None:
            del self._groups[group]
            if self._departures is not None:
                self._departures.happened(effect)

    def queue(self, group: Group) -> None:
        """Where all groups are read as one, the next one is of that group."""
        if self._order is not None:
            self._order.append(group)

    def met(self, peer: ProcessId) -> None:
        """A new peer may be in our groups, or able to take us in."""
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
    """A name, and a number that is higher at each start, so that nobody confuses two incarnations."""
    host, port = address
    chosen = name if name is not None else f"{host.replace(':', '.')}-{port or secrets.token_hex(4)}"
    if not is_name(chosen):
        raise ConfigurationError(f"{name!r} is no name for a process: it is empty, or has white space, #, @, / or :")
    return process_id(chosen, int((time.time() - _YEAR_2025_S) * _STARTS_PER_S))


def _group(effect: Shown) -> GroupId:
    assert not isinstance(effect, effects.Deliver | effects.Query)
    return effect.view.group if isinstance(effect, effects.InstallView) else effect.group
