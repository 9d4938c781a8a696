"""The only loop: feed every frame that has come, drain the core, write, re-arm one timer.

One turn of the event loop is one drain: whatever comes between two turns, frames of all peers and messages of the
application, is fed first. So the cost per message falls as load rises, and nothing waits when there is none.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, cast

from antiphon.core.contract import Core, is_connected
from antiphon.core.effects import (
    Blocked,
    Deliver,
    Discard,
    Effect,
    Frame,
    Gauge,
    InstallState,
    InstallView,
    Left,
    Missing,
    Reach,
    Scope,
    Stable,
    Transitional,
    Transmit,
    Unblocked,
)
from antiphon.errors import ProtocolViolation
from antiphon.sockets.heap import keep_freed_memory
from antiphon.sockets.transports.contract import GroupTransport, Transport
from antiphon.trace.labels import Labels
from antiphon.trace.scribe import Recording, Scribe
from antiphon.types import GroupId, ProcessId, View, name_of
from antiphon.wire.codec import decode, encode
from antiphon.wire.frame import Sealed

_log = logging.getLogger("antiphon")

_TRACE_ONLY: Final = (Stable, Discard, Gauge)
"""Effects that a core has only where somebody traces."""

_CALM_NS: Final = 50_000
"""So long after the last turn in which something happened, nothing is gained by waiting for what else may come."""

Shown = Deliver | InstallView | InstallState | Left | Transitional | Missing | Blocked | Unblocked
"""What applications get to hear of, in one order over all groups of the process."""


class Audience(Protocol):
    """The applications of one process, as its driver sees them."""

    def show(self, effect: Shown) -> None:
        """What comes next in the order."""

    def met(self, peer: ProcessId) -> None:
        """Frames pass between us from now on."""

    def collect(self) -> None:
        """A turn begins: the core is to have what was sent."""

    def turned(self) -> None:
        """A turn is over: there may be room for messages again."""


class Driver:
    """One process: its core, its transport, its timer."""

    def __init__(
        self,
        me: ProcessId,
        core: Core,
        transport: Transport,
        audience: Audience,
        *,
        recorder: Recording | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        journal: Callable[[], None] | None = None,
    ) -> None:
        """`journal`: called before anything leaves."""
        self.core = core
        self.clock = clock
        self.transport = transport
        self.labels = Labels(me)
        self._me = me
        self._audience = audience
        self._journal = journal
        self._scribe = None if recorder is None else Scribe(recorder, core)
        self._connected = core if transport.streams and is_connected(core) else None
        self._others: dict[GroupId, tuple[ProcessId, ...]] = {}  # by group, to whom our frames go
        self._due = False  # whether a turn is asked for
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self.draining = False
        """Whether the core is at work: nothing may be fed to it now."""
        self._busy_at = 0  # when the last turn ended in which something happened
        self._begun = self._stopped = False

    async def open(self) -> None:
        """Be reachable; the core does nothing yet."""
        self._loop = asyncio.get_running_loop()
        keep_freed_memory()
        await self.transport.open(self)

    def begin(self) -> None:
        """Let the core begin."""
        self._begun = True
        self.stir()

    async def stop(self) -> None:
        """Let what the core has to say leave, and be gone."""
        if not self._stopped:
            self._turn()
            self.halt()
            await self.transport.close()

    def halt(self) -> None:
        """Do nothing more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def stir(self) -> None:
        """Something was fed to the core: there will be a turn."""
        if self._begun and not self._due and not self._stopped:
            self._due = True
            self._loop.call_soon(self._turn)

    def hurry(self, now: int) -> None:
        """Something was fed to the core that others wait for: the turn is now, unless there was one just before.

        Then there is much to do, and more may come for the next one. So it is where one is due anyway.
        """
        if self._begun and not self._due and not self.draining and now - self._busy_at > _CALM_NS:
            self._turn()
        else:
            self.stir()

    # What the transport tells

    def arrived(self, peer: ProcessId, connection: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        """Frames of a peer."""
        now, streams = self.clock(), self.transport.streams
        admits = None if self._connected is None else self._connected.admits
        for each in sealed:
            try:
                frame = decode(each)
            except ProtocolViolation as violation:
                if streams:
                    self.hurry(now)
                    raise  # a gap in a stream, which the core could not see: the connection must end
                _log.warning("a frame of %s is dropped: %s", peer, violation)
                continue
            if frame.sender != peer or (admits is not None and not admits(frame, connection)):
                continue
            if overheard and frame.group not in self._others:
                continue
            self._feed(frame, now)
        self.hurry(now)

    def _feed(self, frame: Frame, now: int) -> None:
        self.core.receive(frame, now)
        if self._scribe is not None:
            self._scribe.received(frame, now)

    def connected(self, peer: ProcessId) -> None:
        """A connection is there."""
        number = self.transport.connection(peer)
        if self._connected is not None and number is not None:
            now = self.clock()
            for frame in self._connected.connected(peer, number, now):
                self._feed(frame, now)
        self._audience.met(peer)
        self.stir()

    def broke(self, peer: ProcessId, connection: int) -> None:
        """A connection is over, in both directions."""
        if self._connected is not None:
            now = self.clock()
            self._connected.disconnected(peer, now)
            self._connected.broke(peer, connection, now)
            self.stir()

    def writable(self, ready: bool) -> None:
        """The transport is full, or takes more again."""
        self.core.writable(ready, self.clock())
        self.stir()

    # One turn

    def _wake(self) -> None:
        """The timer has rung, be it a hair too early by our clock."""
        self._timer = None
        self._turn()

    def _turn(self) -> None:
        self._due = False
        if self._stopped:
            return
        core, now = self.core, self.clock()
        if self._timer_at is not None and (self._timer is None or self._timer_at <= now):
            self._timer_at = None
            core.tick(now)
        self._audience.collect()
        busy = self._drain(now)
        if self._journal is not None:
            self._journal()
        self.transport.flush()
        self._arm(core.deadline)
        self._audience.turned()
        if busy:
            self._busy_at = self.clock()

    def _drain(self, now: int) -> bool:
        """Carry out all that the core asks for; False if that is nothing."""
        busy, self.draining = False, True
        try:
            while effects := self.core.drain(now):
                # effects that only a traced core has must not make the next turn wait
                busy = busy or self._scribe is None or any(type(each) not in _TRACE_ONLY for each in effects)
                self._carry_out(effects, now)
        finally:
            self.draining = False
        return busy

    def _carry_out(self, effects: Iterable[Effect], now: int) -> None:
        show = self._audience.show
        for effect in effects:
            if type(effect) is Deliver:
                show(effect)
            elif type(effect) is Transmit:
                self._transmit(effect, now)
            else:
                self._do(effect, now)

    def _do(self, effect: Effect, now: int) -> None:
        if isinstance(effect, InstallView):
            self._install(effect.view)
            self._show(effect)
        elif isinstance(effect, Reach):
            self._install(effect.view)
            if self._scribe is not None:
                self._scribe.reached(effect.view)
        elif isinstance(effect, InstallState | Transitional | Missing):
            self._show(effect)
        elif isinstance(effect, Left):
            self._others.pop(effect.group, None)
            if self._scribe is not None:
                self._scribe.parted(effect, now)
            if effect.successor is None:
                self.labels.parted(name_of(effect.group))
            self._show(effect)
        else:
            self._tell(effect, now)

    def _tell(self, effect: Effect, now: int) -> None:
        if isinstance(effect, Blocked | Unblocked):
            self._show(effect)
        if self._scribe is not None:
            self._scribe.told(effect, now)  # type: ignore[arg-type]  # whatever is left is for the trace

    def _show(self, effect: Shown) -> None:
        self._audience.show(effect)

    def enter(self, effect: InstallView, state: bytes | None, now: int) -> None:
        """The application gets to a view, and hands its state over if others need it."""
        if self._scribe is not None:
            self._scribe.entered(effect, now)
            if state is not None:
                self._scribe.recorder.handed_over(effect.view, state, now)
            self._scribe.catch_up(effect.view, now)

    def _install(self, view: View) -> None:
        self._others[view.group] = tuple(member for member in view.members if member != self._me)
        self.transport.heed(frozenset(member for others in self._others.values() for member in others))

    def _transmit(self, effect: Transmit, now: int) -> None:
        frame, to = effect.frame, effect.to
        if to is Scope.GROUP:
            self._multicast(effect, now)
            return
        peers = self._others.get(frame.group, ()) if isinstance(to, Scope) else (to,)
        if self._scribe is not None:
            self._scribe.transmitted(effect, len(peers), now)
        self.labels.transmitted(frame)
        self.transport.send(encode(frame), peers)

    def _multicast(self, effect: Transmit, now: int) -> None:
        """To whoever listens: it leaves once, and nobody here knows how many take it."""
        frame = effect.frame
        if self._scribe is not None:
            self._scribe.transmitted(effect, 1, now)
        self.labels.transmitted(frame)
        cast("GroupTransport", self.transport).multicast(encode(frame), frame.group)

    def _arm(self, deadline: int | None) -> None:
        if deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at, self._timer = deadline, None
        if deadline is not None:
            self._timer = self._loop.call_later(max(0, deadline - self.clock()) / 1e9, self._wake)
