"""The process behind a member: one core, one transport, one driver, and any number of groups.

`Member` is what applications see of it. Groups ask it to send and report what was read; the driver reports what
happened. `founding.py` decides when a process founds a group instead of joining it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from antiphon.api.arguments import require_name
from antiphon.api.asking import Asker
from antiphon.api.events import Event
from antiphon.api.founding import Found, Founding, Policy, unreached
from antiphon.api.group import Group
from antiphon.api.identity import Namesakes
from antiphon.api.loop_watch import LoopWatch
from antiphon.api.refusals import Refusals, explanation, mismatch
from antiphon.api.services import Service
from antiphon.api.settings import MemberSettings
from antiphon.api.states import Digester, Snapshot, State
from antiphon.api.tracing import Departures, StateDigester, start_detail
from antiphon.core import effects
from antiphon.core.contract import Changing, StateSource
from antiphon.drive.drive import Shown
from antiphon.errors import ConfigurationError, NameTaken, NotAMember, NotJoined, SettingsMismatch, TraceError
from antiphon.sockets.driver import Driver
from antiphon.sockets.offenders import Offence
from antiphon.sockets.transports.contract import Transport
from antiphon.trace.journal import JournalRecorder
from antiphon.types import GroupId, ProcessId, View, name_of

_NOT_ADMITTED: Final = (asyncio.CancelledError, NotJoined, NameTaken, SettingsMismatch)
"""The application does not wait for the group any more, so the process must not go on trying."""


class LocalProcess:
    """The driver's audience, and what the groups of one process share."""

    def __init__(
        self,
        me: ProcessId,
        core: Changing,
        transport: Transport,
        recorder: JournalRecorder | None,
        *,
        configured: Mapping[GroupId, Snapshot] | None = None,
        **options: Any,
    ) -> None:
        """`configured`: groups of a scenario. Its player opens and closes the journal."""
        self.id = me
        """Name and incarnation."""
        self.core = core
        self._transport = transport
        journal = None if recorder is None else recorder.write
        self.driver = Driver(me, core, transport, self, recorder=recorder, journal=journal, **options)
        self.asker = Asker(core, self.driver, recorder)
        self.refusals = Refusals(self.driver.clock)
        self.namesakes = Namesakes(me, lambda: transport.peers, self.driver.clock)
        self._watch = LoopWatch(self.driver.clock)
        self._recorder = recorder
        self._departures = None if recorder is None else Departures(recorder)
        self._settings: MemberSettings | None = None
        """None: a scenario is played, and its player opens and closes the journal."""
        self._founding: Founding | None = None
        """None: a scenario says what happens to groups."""
        self._groups = {group: Group(self, group, snapshot) for group, snapshot in (configured or {}).items()}
        self._order: deque[Group] | None = deque()
        """Groups in the order of their events, until an application reads one of them by itself."""
        self._together = False
        """Whether the application reads all groups as one."""
        self._turns: list[asyncio.Future[None]] = []
        self._running = False

    def act_by_itself(self, settings: MemberSettings, policy: Policy) -> None:
        """Run without scenario and supervisor: found groups that do not exist, and keep a journal."""
        self._founding = Founding(self.driver, self.core, self.id, policy, settings.suspect_after)
        self._settings = settings

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return "{}:{}".format(*self._transport.address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The processes that it is connected with."""
        return self._transport.peers

    @property
    def offenders(self) -> tuple[Offence, ...]:
        """Processes that broke a rule of the transport; the latest first."""
        return self._transport.offenders

    @property
    def unreached(self) -> dict[str, str]:
        """The addresses in `peers` where no process is reached now, each with the reason."""
        return unreached(self._transport.seeds)

    async def start(self) -> None:
        """Start, once only: peers remember this identity, so an ended process would be taken for alive."""
        if self._running:
            raise ConfigurationError(f"{self.id} runs already: enter a Member once")
        if self.driver.stopped:
            raise ConfigurationError(f"{self.id} has ended: make a new Member, which gets an identity of its own")
        try:
            await self.open()
        except BaseException:
            await self._end()
            raise
        self.begin()

    async def open(self) -> None:
        """Open the transport and look for the peers; nothing is sent in any group yet."""
        await self.driver.open()
        if self._recorder is not None and self._settings is not None:
            self._recorder.open()
            detail = start_detail(self._settings, datagrams=not self._transport.streams)
            self._recorder.note("start", self.driver.clock(), detail)

    def begin(self) -> None:
        """Start the core."""
        self._running = True
        self.driver.begin()

    async def stop(self) -> None:
        """End without leaving any group: others see a crash, but what was sent is still transmitted."""
        await self.driver.stop()

    async def leave_all(self) -> None:
        """Leave every group, then end."""
        self._running = False
        groups = [*self._groups.values()]
        try:
            for group in groups:
                group.depart()
            for group in groups:
                await group.leave()
        finally:
            await self._end()

    def require_trace(self) -> None:
        """Raise an error if the trace could not be written to its end."""
        error = None if self._recorder is None else self._recorder.error
        if error is not None:
            raise TraceError(f"the trace of {self.id} is incomplete: {error.strerror}") from error

    async def abort(self) -> None:
        """End without leaving any group: to others this is a crash."""
        self.driver.halt()
        await self.driver.transport.close()
        if self._recorder is not None:
            self._recorder.close()
        await self._end()

    async def _end(self) -> None:
        self._running = False
        if self._founding is not None:
            self._founding.end_all()
        try:
            await self.driver.stop()
        finally:
            if self._recorder is not None and self._settings is not None:
                self._close_journal(self._recorder)
            for group in self._groups.values():
                group.end()
            self._groups.clear()
            self._wake_waiting()

    def _close_journal(self, recorder: JournalRecorder) -> None:
        assert self._departures is not None
        self._departures.skip_all(self.driver.clock())
        held = {group: self.core.unstable(group) for group in self._groups}
        leaving = [name for name, group in self._groups.items() if group.leaving]
        joining = [name for name, group in self._groups.items() if not group.leaving and not group.health.members]
        recorder.stopped(self.driver.clock(), held, {}, {"joining": joining, "leaving": leaving})
        recorder.close()

    async def join(
        self,
        name: str,
        *,
        service: Service | None = None,
        snapshot: Snapshot | None = None,
        contacts: tuple[ProcessId, ...] | None = None,
        found: Found | None = None,
        least_members: int | None = None,
        join_within: float | None = None,
    ) -> Group:
        """Become a member of a group: `Member.join`."""
        require_name(name, "a group")
        if snapshot is not None and not callable(snapshot):
            raise ConfigurationError(f"snapshot must be a function that returns the state, not {snapshot!r}")
        group = GroupId(name)
        while group in self._groups:
            if not self._groups[group].leaving:
                raise ConfigurationError(f"this member is in {name} already")
            await self._groups[group].leave()
        if not self._running:
            raise NotAMember(f"{self.id} joins groups within `async with` only: it is not running")
        if (taken := self.namesakes.error) is not None:
            raise taken
        policy = None if self._founding is None else self._founding.policy.but(found, least_members, join_within)
        joined = self._prepare(group, snapshot, service)
        self._record_join(joined, contacts)
        try:
            if self._founding is None or policy is None:
                self.core.join(group, contacts or self.peers, self.driver.clock())
                self.driver.stir()
                await joined.ready()
            else:
                await self._founding.join(joined, policy, contacts)
        except _NOT_ADMITTED:
            joined.depart()
            raise
        return joined

    def _prepare(self, group: GroupId, snapshot: Snapshot | None, chosen: Service | None) -> Group:
        """A group that this process is about to be in. The core learns its service before anything else."""
        service = None
        if self._settings is not None:
            others = [other.service for other in self._groups.values() if other.service is not None]
            service = self._settings.service_of(group, chosen, others)
            self.core.choose(group, service.core)
        self._groups[group] = prepared = Group(self, group, snapshot, service)
        return prepared

    def _record_join(self, group: Group, contacts: tuple[ProcessId, ...] | None = None) -> None:
        if self._departures is not None:
            asked, apart = contacts or self.peers, not self._together
            self._departures.joins(GroupId(group.name), self.driver.clock(), asked, group.service, apart=apart)

    async def form(
        self,
        name: str,
        members: tuple[ProcessId, ...],
        *,
        service: Service | None = None,
        snapshot: Snapshot | None = None,
    ) -> Group:
        """Form a group of these members, which must all agree. Retries until it succeeds or the group is left."""
        group = GroupId(name)
        formed = self.expect(name, snapshot, service)
        if self._founding is not None:  # else the scenario has recorded it
            self._record_join(formed, members)
        self.core.entitle(group, self.driver.clock())
        self.core.form(group, members, self.driver.clock())
        self.driver.stir()
        try:
            await formed.ready()
        except _NOT_ADMITTED:
            formed.depart()
            raise
        return formed

    def expect(self, name: str, snapshot: Snapshot | None = None, service: Service | None = None) -> Group:
        """Prepare for a group that others may form with this process."""
        return self._groups.get(GroupId(name)) or self._prepare(GroupId(name), snapshot, service)

    def find(self, name: str) -> Group | None:
        """A group that this member is in, or has asked to be in."""
        return self._groups.get(GroupId(name))

    def group(self, name: str) -> Group:
        """The same, but `NotAMember` if there is none."""
        found = self.find(name)
        if found is None:
            raise NotAMember(f"this process is not in {name}")
        return found

    def look_for(self, name: str, others: tuple[ProcessId, ...]) -> None:
        """Merge with the groups of that name that these processes are in."""
        self.core.merge(GroupId(name), others, self.driver.clock())
        self.driver.stir()

    def suspect(self, process: ProcessId) -> None:
        """Suspect a process at once, without a timeout; others may refute it."""
        self.core.suspect(process, self.driver.clock())
        self.driver.stir()

    def read_together(self) -> AsyncIterator[tuple[Group, Event]]:
        """The events of all groups in their one order."""
        if self._order is None:
            raise ConfigurationError("a group of this member is read by itself already; read all of them by events()")
        if self._together:
            raise ConfigurationError("events() of this member is read already; let one task read, and hand events on")
        self._together = True
        return self._events(self._order)

    def read_apart(self, name: str) -> None:
        """An application reads a group by itself, so the order over all groups is not needed."""
        if self._together:
            raise ConfigurationError(f"all groups of this member are read by events(); do not read {name} by itself")
        self._order = None

    async def _events(self, order: deque[Group]) -> AsyncIterator[tuple[Group, Event]]:
        while True:
            while order:
                group = order.popleft()
                for event in group.open_next():
                    yield group, event
                group.done()
            if self.driver.stopped:
                return
            await self.next_turn()

    async def next_turn(self) -> None:
        """Wait until something has happened."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        await turn

    # Calls of groups

    def send(self, group: GroupId, payload: bytes) -> int:
        """The application multicasts; returns the number of its message among those in that group."""
        now = self.driver.clock()
        if self._recorder is not None:
            self._recorder.requested(group, (payload,), now)
        label = self.driver.labels.take(group)
        self.core.send(group, payload, now, label)
        return label

    def send_all(self, group: GroupId, payloads: list[bytes]) -> int:
        """The application has multicast these since the last turn; returns the number of the last one."""
        now = self.driver.clock()
        if self._recorder is not None:
            self._recorder.requested(group, payloads, now)
        first = self.driver.labels.take(group, len(payloads))
        self.core.send_all(group, payloads, now, first)
        return first + len(payloads) - 1

    def hurry(self) -> None:
        """Transmit now what an application has sent, if possible."""
        self.driver.hurry(self.driver.clock())

    def stir(self) -> None:
        """Schedule a turn that transmits what an application has sent."""
        self.driver.stir()

    @property
    def starves(self) -> bool:
        """Whether an application has kept the event loop from running for too long."""
        return self._watch.starves

    @property
    def draining(self) -> bool:
        """Whether the core is at work: nothing may be fed to it now."""
        return self.driver.draining

    def collect(self) -> None:
        """A turn begins."""
        for group in self._groups.values():
            group.collect()

    def leave(self, group: GroupId) -> None:
        """The application leaves a group."""
        self.stop_looking_for(group)
        self.core.leave(group, self.driver.clock())
        self.driver.stir()

    def consumed(self, group: GroupId, position: int) -> None:
        """An application is done with the messages of a frame."""
        if self.driver.reader.done(group, position, self.driver.clock()):
            self.driver.stir()

    def position(self, group: GroupId) -> int:
        """The position of the last frame that an application has taken in that group."""
        return self.driver.reader.position(group)

    def delivered(self, group: Group, frame: effects.Frame) -> int:
        """An application takes the messages of a frame; returns its position for `consumed`."""
        if self._recorder is None:
            return self.driver.reader.take(frame, 0)  # only the trace needs the time
        return self.driver.reader.take(frame, self.driver.clock(), recorded=self.is_current(group))

    def is_current(self, group: Group) -> bool:
        """False if the process has left that group and joined it again: reads of the old one are not traced."""
        return self._groups.get(GroupId(group.name), group) is group

    def noticed(self, group: Group, effect: effects.Transitional) -> None:
        """An application reads for which members deliveries hold."""
        self.driver.reader.notice(effect, self.driver.clock(), recorded=self.is_current(group))

    def accept(self, notice: effects.Transitional) -> None:
        """An application accepts the view that this notice announces."""
        self.core.accept(notice.group, notice.members, self.driver.clock())
        self.driver.stir()

    def prevailed(self, group: Group, effect: effects.Primary) -> None:
        """An application reads that its view is primary."""
        self.driver.reader.prevail(effect, self.driver.clock(), recorded=self.is_current(group))

    def entered(self, group: Group, effect: effects.InstallView) -> None:
        """An application enters a view."""
        now = self.driver.clock()
        self.driver.reader.enter(effect, now, now, recorded=self.is_current(group))
        self.driver.stir()

    def passed_over(self, view: View) -> None:
        """The protocol need not wait until an application reads that it is in this view."""
        self.driver.reader.pass_over(view, self.driver.clock())
        self.driver.stir()

    def hand_over(self, view: View, state: StateSource) -> None:
        """The application's state at that view, for joiners."""
        self.driver.reader.hand_over(view, state, self.driver.clock())
        self.driver.stir()

    def digester(self, view: View, state: State) -> Digester | None:
        """Computes the digest of a state while it is sent; a complete state is recorded at once."""
        recorder, clock = self._recorder, self.driver.clock
        if recorder is None:
            return None
        if isinstance(state, bytes):
            recorder.handed_over(view, state, clock())
            return None
        return StateDigester(lambda digest: recorder.state_streamed(view, digest, clock()))

    def restored(self, group: Group, effect: effects.InstallState, states: list[bytes]) -> None:
        """An application takes the states of others; `states`: all that it has to merge, in order."""
        self.driver.reader.restore(effect, states, self.driver.clock(), recorded=self.is_current(group))

    def left(self, group: Group, effect: effects.Left) -> None:
        """An application has read the last event of a group."""
        gone = self.driver.reader.leave(effect, self.driver.clock(), recorded=False)
        if gone and self._departures is not None and self.is_current(group):
            self._departures.read(GroupId(group.name), self.driver.clock())

    # Calls of the driver

    def show(self, effect: Shown, now: int) -> None:  # noqa: ARG002
        """The next effect in the order."""
        if type(effect) is effects.Refused:
            self._refuse(effect)
            return
        group = name_of(effect.frame.group if type(effect) is effects.Deliver else _group(effect))
        invited = self._groups.get(group)
        shown = self._groups.setdefault(group, Group(self, group, None)) if invited is None else invited
        if shown.show(effect):
            self.queue(shown)
        if invited is None:
            shown.depart()  # others have formed it with this process, but no application here has asked for it
        if type(effect) is effects.Left and effect.successor is None:
            del self._groups[group]
            if self._departures is not None:
                self._departures.happened(effect)

    def _refuse(self, effect: effects.Refused) -> None:
        """A peer has other settings: a process that is joining must report that."""
        group = self._groups.get(effect.group)
        if group is not None:
            self.refusals.note(effect.group, effect.process, explanation(effect.differences))
            group.refuse(mismatch(effect))

    def stop_looking_for(self, group: GroupId) -> None:
        """The group is founded, or left."""
        if self._founding is not None:
            self._founding.end(group)

    def queue(self, group: Group) -> None:
        """The next event is of that group."""
        if self._order is not None:
            self._order.append(group)

    def met(self, peer: ProcessId) -> None:
        """A new peer may be in our groups, or in one that we want to join."""
        if self._founding is None:
            return
        if self.namesakes.is_one(peer) and (taken := self.namesakes.error) is not None:
            for group in self._groups.values():
                group.refuse(taken)
        for name, group in self._groups.items():
            if group.health.members:
                self.look_for(name, (peer,))
        self._founding.met()

    def turned(self) -> None:
        """A turn is over."""
        for group in self._groups.values():
            group.turned()
        if self._founding is not None and self._founding.founders:
            self._founding.turned()
        if self._turns:
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)


def _group(effect: Shown) -> GroupId:
    assert not isinstance(effect, effects.Deliver | effects.Refused)
    if isinstance(effect, effects.Query):
        return effect.frame.group
    return effect.view.group if isinstance(effect, effects.InstallView) else effect.group
