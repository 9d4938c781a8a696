"""A simulated process: frames and requests come in, the core is driven, and all of it costs CPU time.

`drive.Drive` drives the core, as on sockets. This module has what only a simulation has: an inbox, pauses,
crashes, a host, and a queue of events instead of an event loop.
"""

from collections.abc import Callable, Iterable
from typing import Any

from antiphon.core.contract import (
    Core,
    is_asking,
    is_attended,
    is_changing,
    is_connected,
    is_counting,
    is_framing,
    is_promoting,
    is_suspecting,
)
from antiphon.core.effects import Frame
from antiphon.drive.drive import Drive
from antiphon.scenario.model import Hosts
from antiphon.sim.alarm import Alarm
from antiphon.sim.desk import Application, Desk
from antiphon.sim.hosts import Host
from antiphon.sim.links import Break
from antiphon.sim.network import OnConnection, SimulatedNetwork
from antiphon.sim.port import Port
from antiphon.sim.presence import Presence
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import decode


class Node:
    """One process: its core, its inbox, its alarm, its port to the network, and the desk of its application."""

    __slots__ = (  # attributes in slots are faster, and this is the hottest object of a run
        "_alarm",
        "_connected",
        "_core",
        "_decodes",
        "_desk",
        "_drive",
        "_inbox",
        "_paused",
        "_port",
        "_queue",
        "_requests",
        "_wake_ns",
        "_waking",
        "arrive",
        "id",
        "inputs",
        "last_arrival",
        "line",
        "presence",
        "recorder",
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
        """`outside`: groups that it is not in from the start, but may join."""
        self.id = process
        self.recorder = recorder
        self.inputs = 0
        """Frames, requests and ticks fed to the core so far."""
        self.line = network.attach(self)
        self.last_arrival: dict[ProcessId, int] = {}
        self._core = core
        self._decodes = network.carries_bytes
        self._queue = queue
        self._wake_ns = int(hosts.wake)
        self._waking = False
        self._paused = 0  # faults that pause it; a crash is a pause that never ends
        self._inbox: list[object] = []
        self._requests: list[Callable[[int], None]] = []  # calls to a paused process, in order
        self._alarm = Alarm(queue, int(hosts.tick), self.tick)
        self._port = Port(self, core, host, int(hosts.service), queue, network, self._unchoke)
        self.presence = Presence(core, self, network, queue, recorder, outside)
        """Its groups: join, form, leave, return."""
        self._desk = Desk(self, core, application, self.presence, queue, int(hosts.consume), self._free_again)
        self._drive = Drive(core, self._port, self._desk, recorder, drains_for_trace=True)
        self._desk.open(self._drive.reader)
        self.arrive: Callable[[Any], None] = self._wait_for_cpu if self._port.service_ns else self._accept
        """A frame arrives at this host."""
        self._connected = core if network.counts_connections and is_connected(core) else None
        if self._connected is not None:
            network.connect(self)

    @property
    def crashed(self) -> bool:
        return self.arrive is _drop

    @property
    def running(self) -> bool:
        """Neither crashed nor paused."""
        return not self._paused

    @property
    def stalled(self) -> bool:
        """True if its application is stalled."""
        return self._desk.stalled

    @property
    def behind(self) -> bool:
        """Whether deliveries wait for an application that will take them."""
        return self.running and self._desk.behind

    @property
    def moving(self) -> bool:
        """True if it is up and is about to join or leave a group, or to send."""
        return not self.crashed and self.presence.moving

    @property
    def expectant(self) -> bool:
        """Whether its core waits for time to pass."""
        return self._core.deadline is not None

    def accepts(self, group: GroupId) -> bool:
        """True if its application may send there: it is up, and is in the group or has asked to join."""
        return self.arrive is not _drop and group not in self.presence.outside

    def holds(self, group: GroupId, *, messages: bool) -> bool:
        """True if it is up, and its core keeps frames (or only messages) of a group that others may lack."""
        core = self._core
        if self.crashed:
            return False
        return core.retains(group) if messages and is_changing(core) else core.unstable(group) > 0

    # Input

    def request(self, group: GroupId, *payloads: bytes, container: str = "") -> None:
        """The application sends all of these in one turn; in a paused process, after the pause.

        `container`: the prefix of their names, if messages have names.
        """
        if self._paused:
            self._requests.append(lambda now: self._send_all(group, payloads, container, now))
            return
        now = self._queue.now if self._alarm.clock is None else self._alarm.now
        self._send_all(group, payloads, container, now)
        self._settle(now)

    def ask(self, group: GroupId, payload: bytes, answers: str) -> None:
        """The application sends a request to its group."""
        self.do(lambda now: self._ask(group, payload, answers, now))

    def answer(self, frame: Frame, payload: bytes) -> None:
        """The application answers a request while it takes it."""
        core = self._core
        assert is_asking(core)
        core.answer(frame, payload, self._alarm.now)

    def lost(self, process: ProcessId) -> None:
        """The process is informed that another one has crashed."""
        core = self._core
        assert is_attended(core)
        self.do(lambda now: core.lost(process, now))

    def severed(self, told: Break) -> None:
        """A connection with a peer has lost frames, for good."""
        core, (peer, connection, incoming) = self._core, told
        assert is_connected(core)
        self.do(lambda now: core.broke(peer, connection, now, incoming=incoming, outgoing=not incoming))

    def is_bound(self, frame: Frame) -> bool:
        """Whether a frame of its own belongs to the connection that the frame's group uses."""
        return self._connected is None or self._connected.is_bound(frame)

    def must_answer(self, frame: Frame) -> bool:
        """True if a delivered frame contains a request."""
        core = self._core
        return is_asking(core) and core.is_request(frame)

    def reconnected(self, peer: ProcessId, connection: int | None) -> None:
        """Frames to that peer use this connection from now on, or none."""
        if self._connected is None or self.crashed:
            return
        if connection is None:
            self._connected.disconnected(peer, self._alarm.now)
        elif kept := [*self._connected.connected(peer, connection, self._alarm.now)]:
            self.do(lambda now: self._receive_all(kept, now))

    def told_gone(self, process: ProcessId) -> None:
        """It gets evidence that a process is dead."""
        core = self._core
        assert is_connected(core)
        self.do(lambda now: core.gone(process, now))

    def suspect(self, process: ProcessId) -> None:
        """Suspect a process, also a live one."""
        core = self._core
        assert is_suspecting(core) or is_promoting(core)
        self.do(lambda now: core.suspect(process, now))

    def join(self, group: GroupId, contacts: tuple[ProcessId, ...] = ()) -> None:
        """Join a group; if members agree on views, by asking one of these contacts."""
        self.do(lambda now: self.presence.join(group, contacts, now))

    def leave(self, group: GroupId) -> None:
        self.do(lambda now: self.presence.leave(group, now))

    def form(self, group: GroupId, members: tuple[ProcessId, ...]) -> None:
        """Form a group that does not exist yet."""
        self.do(lambda now: self.presence.form(group, members, now))

    def merge(self, group: GroupId, others: tuple[ProcessId, ...]) -> None:
        """Search for these processes, to merge with them."""
        core = self._core
        assert is_changing(core)
        self.do(lambda now: core.merge(group, others, now))

    def promote(self, group: GroupId) -> None:
        """Become a sender."""
        core = self._core
        assert is_promoting(core)
        self.do(lambda now: core.promote(group, now))

    def demote(self, group: GroupId) -> None:
        """Become a receiver."""
        core = self._core
        assert is_promoting(core)
        self.do(lambda now: core.demote(group, now))

    def do(self, action: Callable[[int], None]) -> None:
        """Call the core now or, if the process is paused, when it resumes."""
        if not self.crashed:
            self._requests.append(action)
            self.turn()

    # What faults do

    def crash(self) -> None:
        """The process crashes: frames that arrive are dropped."""
        self._paused += 1  # this pause never ends
        self.arrive = _drop
        if self.recorder is not None:
            self.recorder.note("crash", self._queue.now)

    def pause(self, begins: bool) -> None:
        """Pause the whole process; when the last pause ends, it resumes with all that arrived meanwhile."""
        self._paused += 1 if begins else -1
        self.tick(self._alarm.armed)
        self.turn()

    def stall(self, begins: bool) -> None:
        """Stall the application; when the last stall ends, it catches up."""
        self._desk.stall(begins)
        self.turn()

    def skew(self, offset_ns: int, rate: float) -> None:
        """Set the clock ahead and run it at another rate; the alarm uses it from now on."""
        self._alarm.skew(offset_ns, rate)
        self.turn()

    def slow(self, factor: float) -> None:
        """From now on the CPU is slower than at the start by this factor."""
        self._port.slowness = factor

    def stop(self) -> None:
        """The run is over."""
        core = self._core
        if self.recorder is not None and not self.crashed:
            held = {group: core.unstable(group) for group in self.recorder.groups}
            costs = core.costs() if is_counting(core) else {}
            self.recorder.stopped(self._queue.now, held, costs, self.presence.open_moves())

    # One turn of the loop

    def turn(self) -> None:
        """Feed everything that has arrived, let the application catch up, then settle."""
        if self._paused:
            return
        now = self._alarm.now
        self._desk.catch_up(now)
        inbox, self._inbox = self._inbox, []
        for carried in inbox:
            self._receive(carried, now)
        requests, self._requests = self._requests, []
        for request in requests:
            request(now)
        self._settle(now)

    def tick(self, armed: int | None) -> None:
        """The alarm set for `armed` fires."""
        if armed != self._alarm.armed or self._paused:
            return  # superseded, or the process is paused; this is called again when it resumes
        self._alarm.rung()
        self.inputs += 1
        now = self._alarm.now
        self._core.tick(now)
        self._settle(now)
        deadline = self._core.deadline
        assert deadline is None or deadline > now, "a tick must move the deadline, or it would fire forever"

    def _settle(self, now: int) -> None:
        """Carry out what the core asks for, then set the alarm."""
        core = self._core
        effects = core.drain(now)
        if effects:
            self._drive.carry_out(effects, now, self._queue.now)
        deadline = core.deadline
        if deadline is not None and deadline != self._alarm.deadline:
            self._alarm.set(deadline)

    def _wait_for_cpu(self, carried: object) -> None:
        self._queue.at(self._port.work(), self._accept, carried)

    def _accept(self, carried: Any) -> None:
        if not self._wake_ns and not self._paused:
            now = self._queue.now if self._alarm.clock is None else self._alarm.now
            if self._connected is None:
                self.inputs += 1
                frame = decode(carried) if self._decodes else carried
                if self.recorder is None:
                    self._core.receive(frame, now)  # without a trace nothing else is needed
                else:
                    self._drive.receive(frame, now, self._queue.now)
            else:
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

    def _unchoke(self, _: object) -> None:
        self._port.unchoke(self._alarm.now)
        self.turn()

    def _free_again(self, _: object) -> None:
        self._desk.freed()
        self.turn()

    def _receive(self, carried: Any, now: int) -> None:
        self.inputs += 1
        if self._connected is None:
            self._drive.receive(decode(carried) if self._decodes else carried, now, self._queue.now)
            return
        connection, carried = carried if isinstance(carried, OnConnection) else (0, carried)
        frame = decode(carried) if self._decodes else carried
        if self._connected.admits(frame, connection):
            self._drive.receive(frame, now, self._queue.now)

    def _receive_all(self, frames: Iterable[Frame], now: int) -> None:
        for frame in frames:
            self._drive.receive(frame, now, self._queue.now)

    def _send_all(self, group: GroupId, payloads: tuple[bytes, ...], container: str, now: int) -> None:
        """Send all of these; none, if it was paused and has left the group meanwhile."""
        for payload in payloads if self.accepts(group) else ():
            self._send(group, payload, container, now)

    def _send(self, group: GroupId, payload: bytes, container: str, now: int) -> None:
        self.inputs += 1
        core = self._core
        label = 0 if self.recorder is None else self.recorder.requested(group, payload, self._queue.now)
        if container and is_framing(core):
            core.send(group, payload, now, label, f"{container}/{label}".encode())
        else:
            core.send(group, payload, now, label)

    def _ask(self, group: GroupId, payload: bytes, answers: str, now: int) -> None:
        if not self.accepts(group):
            return  # it was paused, and has left the group meanwhile
        self.inputs += 1
        core, label = self._core, 0
        assert is_asking(core)
        if self.recorder is not None and answers != "any":  # a request to one member is no multicast: it has no number
            label = self.recorder.requested(group, payload, self._queue.now)
        request = core.ask(group, payload, answers, now, label)
        if self.recorder is not None:
            self.recorder.asked(group, request, answers, self._queue.now)


def _drop(_: Any) -> None:
    """A frame arrives at a crashed process."""
