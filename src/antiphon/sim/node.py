"""A simulated process: it feeds the core, carries out its effects, and costs CPU time.

This is the simulator's driver; a runtime's does the same with sockets: feed everything that has come, drain, carry
out, re-arm one timer.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

from antiphon.core.contract import (
    Connected,
    Core,
    is_asking,
    is_attended,
    is_changing,
    is_connected,
    is_counting,
    is_framing,
    is_joining,
    is_suspecting,
)
from antiphon.core.effects import (
    Answered,
    Deliver,
    Effect,
    Frame,
    InstallState,
    InstallView,
    Left,
    Missing,
    Query,
    Reach,
    Transitional,
    Transmit,
)
from antiphon.scenario.model import Hosts
from antiphon.sim.hosts import Clock, Host
from antiphon.sim.links import Break
from antiphon.sim.network import HIGH_WATER_BYTES, OnConnection, SimulatedNetwork
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder
from antiphon.trace.scribe import Scribe
from antiphon.types import GroupId, ProcessId, View, ViewId, name_of


class Application(Protocol):
    """What runs on top of the processes."""

    def taken(self, node: "Node", frame: Frame) -> None:
        """The application at `node` has got the messages of this frame."""

    def asked(self, node: "Node", frame: Frame) -> None:
        """The application at `node` has got a request outside the order of its group."""

    def state(self, node: "Node", group: GroupId) -> bytes:
        """What the application at `node` knows in that group."""

    def merge(self, node: "Node", effect: InstallState) -> bytes:
        """The application at `node` takes the states of others; gives the one it has from here on."""

    def left(self, node: "Node", group: GroupId) -> None:
        """The application at `node` is not in that group any more."""


Seen = Deliver | InstallView | InstallState | Left | Answered | Transitional
"""What an application gets to in one order."""


class Node:
    """One process: core, inbox, timer, and the side that the application sees."""

    __slots__ = (  # as in `NewtopGroup`: instances with so many attributes are slow without
        "_application",
        "_armed",
        "_armed_for",
        "_busy",
        "_changing",
        "_choked",
        "_clock",
        "_connected",
        "_consume_ns",
        "_core",
        "_framing",
        "_heeded",
        "_host",
        "_inbox",
        "_joining",
        "_joins",
        "_leaving",
        "_network",
        "_outside",
        "_paused",
        "_queue",
        "_requests",
        "_returns",
        "_scribe",
        "_service_ns",
        "_stalled",
        "_taken",
        "_tick_ns",
        "_unpack",
        "_untaken",
        "_viewed",
        "_wake_ns",
        "_waking",
        "arrive",
        "crashed",
        "id",
        "inputs",
        "last_arrival",
        "line",
        "recorder",
        "slowness",
        "viewed_at",
        "views",
    )

    def __init__(
        self,
        process: ProcessId,
        core: Core,
        *,
        host: Host,
        hosts: Hosts,
        queue: EventQueue,
        network: SimulatedNetwork,
        application: Application,
        recorder: Recorder | None,
        outside: frozenset[GroupId] = frozenset(),
    ) -> None:
        """`outside`: groups that it is not in from the start, but may come to be."""
        self.id = process
        self.recorder = recorder
        self._scribe = None if recorder is None else Scribe(recorder, core)
        self.slowness = 1.0
        self.inputs = 0
        """Frames, requests and ticks fed to the core so far."""
        self.line = network.attach(self)
        self.last_arrival: dict[ProcessId, int] = {}
        self._core = core
        self._unpack = network.unpack
        self._clock: Clock | None = None  # None while it shows the world's own time
        self._host = host
        self._service_ns = int(hosts.service)
        self._tick_ns = int(hosts.tick)
        self._wake_ns = int(hosts.wake)
        self._consume_ns = int(hosts.consume)
        self._queue = queue
        self._network = network
        self._application = application
        self._paused = self._stalled = 0  # how many faults hold it
        self._waking = self._choked = self._busy = False
        self.crashed = False
        self._armed: int | None = None  # world time of the timer entry that counts
        self._armed_for: int | None = None  # the core's deadline when it was last looked at
        self._inbox: list[object] = []
        self._requests: list[Callable[[int], None]] = []  # what is asked of a paused process, in order
        self._untaken: deque[Seen] = deque()
        self._taken: dict[GroupId, int] = defaultdict(int)  # `Deliver` effects that the application has got
        self._heeded = core.heeds_application
        self._viewed = core.viewed if is_suspecting(core) else None
        self._changing = core if is_changing(core) else None
        self._framing = core if is_framing(core) else None
        self._joins = core if is_joining(core) else None
        self._outside = {*outside}  # groups in which it has no business: it is not in them, nor has asked to be
        self._connected = core if network.counts_connections and is_connected(core) else None
        self.views: dict[GroupId, ViewId] = {}
        """By the name of the group, the view that the application is in."""
        self.viewed_at = 0
        """When it last got to one."""
        self._joining: set[GroupId] = set()  # where it has asked to be, and its application has seen no view
        self._leaving: set[GroupId] = set()
        self._returns: dict[GroupId, tuple[ProcessId, ...]] = {}  # by whom, once it has left
        self.arrive: Callable[[Any], None] = self._wait_for_cpu if self._service_ns else self._accept
        """A frame reaches this host."""
        if self._connected is not None:
            network.connect(self)

    @property
    def running(self) -> bool:
        """Whether it is there: neither crashed nor paused."""
        return not self._paused

    @property
    def stalled(self) -> bool:
        """Whether its application takes nothing."""
        return bool(self._stalled)

    @property
    def behind(self) -> bool:
        """Whether deliveries wait for an application that will take them."""
        return bool(self._untaken) and self.running and not self.stalled

    def holds(self, group: GroupId, *, messages: bool) -> bool:
        """Whether it lives, and its core keeps frames of a group that others may lack, or only messages."""
        if self.crashed:
            return False
        if messages and self._changing is not None:
            return self._changing.retains(group)
        return self._core.unstable(group) > 0

    @property
    def moving(self) -> bool:
        """Whether it lives, and is about to enter or leave a group, or to send."""
        unfinished = self._joins is not None and self._joins.unfinished
        return not self.crashed and bool(self._joining or self._leaving or unfinished)

    @property
    def expectant(self) -> bool:
        """Whether its core waits for time to pass."""
        return self._core.deadline is not None

    # What comes in

    def request(self, group: GroupId, *payloads: bytes, container: str = "") -> None:
        """The application sends, all of these in one turn; that of a paused process gets to it later.

        `container`: what their names begin with, where messages have names.
        """
        if self._paused:
            self._requests.append(lambda now: self._send_all(group, payloads, container, now))
            return
        now = self._queue.now if self._clock is None else self._now()
        self._send_all(group, payloads, container, now)
        self._settle(now)

    def ask(self, group: GroupId, payload: bytes, answers: str) -> None:
        """The application asks its group."""
        self.do(lambda now: self._ask(group, payload, answers, now))

    def answer(self, frame: Frame, payload: bytes) -> None:
        """The application answers a request, while it is being handed it."""
        core = self._core
        assert is_asking(core)
        core.answer(frame, payload, self._now())

    def lost(self, process: ProcessId) -> None:
        """Somebody is gone for good."""
        core = self._core
        assert is_attended(core)
        self.do(lambda now: core.lost(process, now))

    def severed(self, told: Break) -> None:
        """A connection with a peer has lost frames, for good."""
        self.do(lambda now: self._sever(told, now))

    def reconnected(self, peer: ProcessId, connection: int | None) -> None:
        """Frames to that peer leave by this connection from now on, or by none."""
        if self._connected is None or self.crashed:
            return
        if connection is None:
            self._connected.disconnected(peer, self._now())
        elif kept := [*self._connected.connected(peer, connection, self._now())]:
            self.do(lambda now: self._take_all(kept, now))

    def suspect(self, process: ProcessId) -> None:
        """Suspect somebody, rightly or not."""
        core = self._core
        assert is_suspecting(core)
        self.do(lambda now: core.suspect(process, now))

    def accepts(self, group: GroupId) -> bool:
        """Whether its application may send there: it lives, and is in the group or has asked to be."""
        return not self.crashed and group not in self._outside

    def join(self, group: GroupId, contacts: tuple[ProcessId, ...] = ()) -> None:
        """Enter a group; where members agree on who is in it, by asking one of these."""
        self.do(lambda now: self._join(group, contacts, now))

    def leave(self, group: GroupId) -> None:
        """Take leave of a group."""
        self.do(lambda now: self._leave(group, now))

    def form(self, group: GroupId, members: tuple[ProcessId, ...]) -> None:
        """Form a group that there is not yet."""
        self.do(lambda now: self._form(group, members, now))

    def merge(self, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        """Look for these, to be in one group with them again."""
        core = self._core
        assert is_changing(core)
        self.do(lambda now: core.merge(group, others, now))

    def do(self, action: Callable[[int], None]) -> None:
        """Do something with the core, now or, if the process is paused, when it goes on."""
        if self.crashed:
            return
        self._requests.append(action)
        self.turn()

    def crash(self) -> None:
        """The process is gone for good: whatever comes finds nobody."""
        self.crashed = True
        self._paused += 1  # and that pause never ends
        self.arrive = _nobody
        if self.recorder is not None:
            self.recorder.note("crash", self._queue.now)

    def stop(self) -> None:
        """The run is over."""
        if self.recorder is not None and not self.crashed:
            costs = self._core.costs() if is_counting(self._core) else {}
            held = {group: self._core.unstable(group) for group in self.recorder.groups}
            moving = {"joining": sorted(self._joining), "leaving": sorted(self._leaving)}
            self.recorder.stopped(self._queue.now, held, costs, moving)

    def pause(self, begins: bool) -> None:
        """Stop the whole process; when the last pause ends, let it go on with all that came meanwhile."""
        self._paused += 1 if begins else -1
        self.tick(self._armed)
        self.turn()

    def stall(self, begins: bool) -> None:
        """Stop the application from taking deliveries; when the last stall ends, let it catch up."""
        self._stalled += 1 if begins else -1
        self.turn()

    def skew(self, offset_ns: int, rate: float) -> None:
        """Set the clock ahead and let it run at another rate; the timer goes by it from now on."""
        self._clock = self._clock or Clock()
        self._clock.set(self._queue.now, offset_ns, rate)
        self._armed_for = None
        self.turn()

    def _wait_for_cpu(self, carried: object) -> None:
        self._queue.at(self._cpu(), self._accept, carried)

    def _accept(self, carried: object) -> None:
        if not self._wake_ns and not self._paused:
            now = self._queue.now if self._clock is None else self._now()
            self._receive(carried, now)
            self._settle(now)
            return
        self._inbox.append(carried)
        if self._wake_ns and not self._waking:
            self._waking = True
            self._queue.at(self._queue.now + self._wake_ns, self._wake)

    def _wake(self, _: object) -> None:
        self._waking = False
        self.turn()

    def tick(self, armed: int | None) -> None:
        """The alarm set for `armed` rings."""
        if armed != self._armed or self._paused:
            return  # superseded, or nobody there to notice; on resumption we are called again
        self._armed = self._armed_for = None
        self.inputs += 1
        now = self._now()
        self._core.tick(now)
        self._settle(now)
        deadline = self._core.deadline
        assert deadline is None or deadline > now, "what was due is settled; else the alarm would ring for ever"

    # One turn of the loop

    def turn(self) -> None:
        """Feed everything that has come, let the application catch up, then settle."""
        if self._paused:
            return
        now = self._now()
        self._catch_up(now)
        inbox, self._inbox = self._inbox, []
        for carried in inbox:
            self._receive(carried, now)
        requests, self._requests = self._requests, []
        for request in requests:
            request(now)
        self._settle(now)

    def _sever(self, told: Break, now: int) -> None:
        core = self._core
        assert is_connected(core)
        core.broke(told.peer, told.connection, now, incoming=told.incoming, outgoing=not told.incoming)

    def _send_all(self, group: GroupId, payloads: tuple[bytes, ...], container: str, now: int) -> None:
        """All of these; none, if it was paused and has taken leave of the group meanwhile."""
        for payload in payloads if self.accepts(group) else ():
            self._send(group, payload, container, now)

    def _ask(self, group: GroupId, payload: bytes, answers: str, now: int) -> None:
        self.inputs += 1
        ordered = answers != "any"  # a request to any one member is no multicast, and has no number as such
        label = 0
        if self.recorder is not None:
            self.recorder.asked(group, answers, self._queue.now)
            label = self.recorder.requested(group, payload, self._queue.now) if ordered else 0
        core = self._core
        assert is_asking(core)
        core.ask(group, payload, answers, now, label)

    def _join(self, group: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        if group in self._leaving:
            self._returns[group] = contacts
            return
        self._outside.discard(group)
        if self.recorder is not None:
            self.recorder.moved("join", group, self._queue.now, contacts)
        if self._changing is not None:
            self._joining.add(group)
            self._changing.join(group, contacts, now)
        else:
            assert self._joins is not None
            self._network.listen(self, group)
            self._joins.join(group, now)

    def _leave(self, group: GroupId, now: int) -> None:
        """Where members agree on who is in a group, the application is out of it when it gets to `Left`."""
        if self._changing is not None:
            self._outside.add(group)
            self._joining.discard(group)
            self._leaving.add(group)
            self._changing.leave(group, now)
            return
        assert self._joins is not None
        if self._core.capabilities.leaves_in_order:
            self._outside.add(group)
            self._leaving.add(group)
        elif self.recorder is not None:
            self.recorder.moved("leave", group, self._queue.now)
        self._joins.leave(group, now)
        self._network.unlisten(self, group)

    def _form(self, group: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        self._outside.discard(group)
        self._joining.add(group)
        assert self._changing is not None
        self._changing.form(group, members, now)

    def _send(self, group: GroupId, payload: bytes, container: str, now: int) -> None:
        self.inputs += 1
        label = 0 if self.recorder is None else self.recorder.requested(group, payload, self._queue.now)
        if container and self._framing is not None:
            self._framing.send(group, payload, now, label, f"{container}/{label}".encode())
        else:
            self._core.send(group, payload, now, label)

    def _receive(self, carried: object, now: int) -> None:
        self.inputs += 1
        if self._connected is not None:
            self._receive_on(self._connected, carried, now)
            return
        self._take(self._unpack(carried), now)

    def _receive_on(self, core: Connected, carried: object, now: int) -> None:
        connection, carried = carried if isinstance(carried, OnConnection) else (0, carried)
        frame = self._unpack(carried)
        if core.admits(frame, connection):
            self._take(frame, now)

    def _take_all(self, frames: list[Frame], now: int) -> None:
        for frame in frames:
            self._take(frame, now)

    def _take(self, frame: Frame, now: int) -> None:
        self._core.receive(frame, now)
        if self._scribe is not None:
            self._scribe.received(frame, self._queue.now)

    def _settle(self, now: int) -> None:
        """Drain and carry out until there is nothing left to do, then arm the timer."""
        core = self._core
        effects = core.drain(now)
        while effects:
            self._carry_out(effects, now)
            effects = core.drain(now)  # what the application took may let something leave
        deadline = core.deadline
        if deadline is not None and deadline != self._armed_for:
            self._arm(deadline)

    def _carry_out(self, effects: list[Effect], now: int) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                if self._busy or self._untaken or self._stalled:
                    self._untaken.append(effect)
                else:
                    self._deliver(effect.frame, now)
            elif isinstance(effect, Transmit):
                self._transmit(effect)
            elif isinstance(effect, InstallView):
                self._install(effect, now)
            elif isinstance(effect, Query | Missing):
                self._tell(effect, now)
            elif isinstance(effect, Answered | InstallState | Transitional):
                self._untaken.append(effect)
                self._catch_up(now)
            elif isinstance(effect, Reach):
                self._reach(effect.view)
            elif isinstance(effect, Left):
                self._part(effect, now)
            elif self._scribe is not None:
                self._scribe.told(effect, self._queue.now)

    def _tell(self, effect: Query | Missing, now: int) -> None:
        """What the application is told outside the order of the group; it wants whatever it lacks."""
        if isinstance(effect, Query):
            self._application.asked(self, effect.frame)
        elif self._framing is not None and not effect.gone:
            self._framing.request(effect, now)

    def _install(self, effect: InstallView, now: int) -> None:
        """A view that all agree on is one of the things that the application sees; a private one is told at once."""
        self._network.install(self.id, effect.view)
        if effect.view.receivers is None:
            self._untaken.append(effect)
            self._catch_up(now)
        elif self.recorder is not None:
            self.recorder.installed(effect.view, self._queue.now)

    def _reach(self, view: View) -> None:
        """Frames go there from now on; what is to be told of a formed group, only when the application is there."""
        self._network.install(self.id, view)
        if self._scribe is not None:
            self._scribe.reached(view)

    def _part(self, effect: Left, now: int) -> None:
        """Nothing goes to the members any more; the application gets to it in its order."""
        self._network.forget(self.id, effect.group)
        if self._scribe is not None:
            self._scribe.parted(effect, self._queue.now)
        self._untaken.append(effect)
        self._catch_up(now)

    def _transmit(self, effect: Transmit) -> None:
        now = self._queue.now
        if self._scribe is not None:
            self._scribe.transmitted(effect, self._network.copies(self, effect), now)
        self._network.transmit(self, effect, self._cpu() if self._service_ns else now)
        if self.line is not None and not self._choked and self.line.falls_to(HIGH_WATER_BYTES) > now:
            self._choked = True
            self._core.writable(False, self._now())
            self._queue.at(self.line.falls_to(HIGH_WATER_BYTES // 2), self._unchoke)

    # The application's side: it sees one stream, views and messages in their order

    def _catch_up(self, now: int) -> None:
        while self._untaken and not self._stalled and not self._busy:
            self._hand_over(self._untaken.popleft(), now)

    def _free_again(self, _: object) -> None:
        """A slow application has dealt with what it took last."""
        self._busy = False
        self.turn()

    def _hand_over(self, effect: Seen, now: int) -> None:
        if isinstance(effect, Deliver):
            self._deliver(effect.frame, now)
        elif isinstance(effect, InstallView):
            self._enter(effect, now)
        elif isinstance(effect, InstallState):
            merged = self._application.merge(self, effect)
            if self.recorder is not None:
                self.recorder.merged(effect, merged, self._queue.now)
        elif isinstance(effect, Left):
            self._leave_behind(effect, now)
        elif self.recorder is not None:
            if isinstance(effect, Answered):
                self.recorder.answered(effect, self._queue.now)
            else:
                self.recorder.noticed(effect, self._queue.now)

    def _enter(self, effect: InstallView, now: int) -> None:
        """The application gets to a view; its state goes out as it is here (docs/spec/newtop.md 11.2 rule 7)."""
        view, group = effect.view, name_of(effect.view.group)
        if self._viewed is not None:
            self._viewed(view, now)
        if self._scribe is not None:
            self._scribe.entered(effect, self._queue.now)
        self.views[group] = view.id
        self.viewed_at = self._queue.now
        self._joining.discard(group)
        if group not in self._leaving:
            self._outside.discard(group)  # others have formed it, with us in it
        if effect.snapshot:
            state = self._application.state(self, group)
            if self.recorder is not None:
                self.recorder.handed_over(view, state, self._queue.now)
            assert self._changing is not None
            self._changing.state(view, state, now)
        if self._scribe is not None:
            self._scribe.catch_up(view, self._queue.now)

    def _leave_behind(self, effect: Left, now: int) -> None:
        """The application is out of a group; one that goes over to its successor notices nothing."""
        group = name_of(effect.group)
        if effect.successor is not None:
            return
        self._application.left(self, group)
        self._outside.add(group)
        self.views.pop(group, None)
        if group in self._leaving:
            self._leaving.remove(group)
            if self.recorder is not None:
                self.recorder.left(effect, self._queue.now)
        if group in self._returns:
            self._join(group, self._returns.pop(group), now)

    def _deliver(self, frame: Frame, now: int) -> None:
        if self.recorder is not None:
            self.recorder.delivered(frame, self._queue.now)
        if self._heeded:
            group = frame.group
            self._taken[group] = position = self._taken[group] + 1
            self._core.consumed(group, position, now)
        self._application.taken(self, frame)
        if self._consume_ns:
            self._busy = True
            self._queue.at(self._queue.now + self._consume_ns, self._free_again)

    def _unchoke(self, _: object) -> None:
        self._choked = False
        self._core.writable(True, self._now())
        self.turn()

    def _arm(self, deadline: int) -> None:
        self._armed_for = deadline
        when = max(deadline if self._clock is None else self._clock.when(deadline), self._queue.now)
        if self._tick_ns:
            when = -(-when // self._tick_ns) * self._tick_ns
        if self._armed is None or when < self._armed:
            self._armed = when
            self._queue.at(when, self.tick, when)

    def _now(self) -> int:
        """The time on this process's own clock."""
        return self._queue.now if self._clock is None else self._clock.read(self._queue.now)

    def _cpu(self) -> int:
        """Queue the handling of one frame at the host; gives the time at which it is done."""
        return self._host.work(self._queue.now, int(self._service_ns * self.slowness))


def _nobody(_: Any) -> None:
    """A frame reaches a process that has crashed."""
