"""The event loop of one process: feed every frame that has arrived, drain the core, write, re-arm one timer.

One turn is one drain: everything that arrives between two turns is fed first, from all peers and from the application.
So the cost per message falls as load rises, and without load nothing waits. `drive.Drive` does the work on the core, as
in the simulator.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from antiphon.core.contract import Core, is_connected
from antiphon.core.effects import Frame
from antiphon.drive.drive import Drive, Shown
from antiphon.errors import ProtocolViolation
from antiphon.limited_log import LimitedLog
from antiphon.sockets.heap import keep_freed_memory
from antiphon.sockets.port import Multicast, Port
from antiphon.sockets.transports.contract import Transport
from antiphon.trace.labels import Labels
from antiphon.trace.scribe import Recording
from antiphon.types import ProcessId
from antiphon.wire.codec import decode
from antiphon.wire.frame import Sealed

_CALM_NS: Final = 50_000
"""After this idle time a turn runs at once: waiting for more input would not pay."""


class Audience(Protocol):
    """The applications of one process, as its driver sees them."""

    def show(self, effect: Shown, now: int) -> None:
        """The next effect in the order."""

    def met(self, peer: ProcessId) -> None:
        """Frames pass between us and that peer from now on."""

    def collect(self) -> None:
        """A turn begins: feed the core what the application has sent."""

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
        multicast: Multicast | None = None,
    ) -> None:
        """`journal`: called before anything leaves. `multicast`: transmits a frame to all listeners of a group."""
        self.core = core
        self.clock = clock
        self.transport = transport
        self.labels = Labels(me)
        self.port = Port(me, transport, self.labels, multicast)
        self._drive = Drive(core, self.port, audience, recorder)
        self.reader = self._drive.reader
        self._audience = audience
        self._log = LimitedLog("antiphon")
        self._journal = journal
        self._connected = core if transport.streams and is_connected(core) else None
        self._due = False  # whether a turn is asked for
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self.draining = False
        """Whether the core is at work: nothing may be fed to it now."""
        self._busy_at = 0  # when the last turn ended in which something happened
        self._begun = self._stopped = self._paused = False

    async def open(self) -> None:
        """Open the transport; the core does nothing yet."""
        self._loop = asyncio.get_running_loop()
        keep_freed_memory()
        await self.transport.open(self)

    def begin(self) -> None:
        """Start the core."""
        self._begun = True
        self.stir()

    async def stop(self) -> None:
        """Transmit the last frames of the core, then close."""
        if not self._stopped:
            self.finish()
            await self.transport.close()

    def finish(self) -> None:
        """Transmit the last frames of the core, then do nothing more. Connections stay open: no peer notices yet."""
        self._turn()
        self.halt()

    @property
    def stopped(self) -> bool:
        """True after `stop` or `halt`."""
        return self._stopped

    def halt(self) -> None:
        """Stop at once, without a last turn."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def pause(self) -> None:
        """Take no turn until `resume`, as if the process did not run."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._turn()

    def stir(self) -> None:
        """Schedule a turn, because something was fed to the core."""
        if self._begun and not self._due and not self._stopped:
            self._due = True
            self._loop.call_soon(self._turn)

    def hurry(self, now: int) -> None:
        """Take a turn now, because peers wait for what was fed. After a recent turn, only schedule one.

        A recent turn means load, so more input may arrive for the next turn. The same holds if a turn is due anyway.
        """
        if self._begun and not self._due and not self.draining and now - self._busy_at > _CALM_NS:
            self._turn()
        else:
            self.stir()

    # Calls of the transport

    def arrived(self, peer: ProcessId, connection: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        """Frames of a peer."""
        if self._stopped:
            return
        now, receive = self.clock(), self._drive.receive
        admits = None if self._connected is None else self._connected.admits
        for each in sealed:
            try:
                frame = decode(each)
                if frame.sender != peer or (admits is not None and not admits(frame, connection)):
                    continue
                if overheard and frame.group not in self.port.others:
                    continue
                receive(frame, now, now)
            except ProtocolViolation as violation:
                if self.transport.streams:
                    self.hurry(now)
                    raise  # a gap in a stream, which the core could not see: the connection must end
                self._log.warn(f"frame of {peer}", "a frame of %s is dropped: %s", peer, violation)
        self.hurry(now)

    def connected(self, peer: ProcessId) -> None:
        """A connection is established."""
        if self._stopped:
            return
        number = self.transport.connection(peer)
        if self._connected is not None and number is not None:
            now = self.clock()
            self._receive_all(self._connected.connected(peer, number, now), now)
        self._audience.met(peer)
        self.stir()

    def broke(self, peer: ProcessId, connection: int) -> None:
        """A connection is over, in both directions."""
        if self._connected is not None and not self._stopped:
            now = self.clock()
            self._connected.disconnected(peer, now)
            self._connected.broke(peer, connection, now)
            self.stir()

    def gone(self, peer: ProcessId) -> None:
        """There is evidence that a peer is dead."""
        if self._connected is not None and not self._stopped:
            self._connected.gone(peer, self.clock())
            self.stir()

    def writable(self, ready: bool) -> None:
        """The transport is full, or takes more again."""
        if not self._stopped:
            self.core.writable(ready, self.clock())
            self.stir()

    def _receive_all(self, frames: Iterable[Frame], now: int) -> None:
        for frame in frames:
            try:
                self._drive.receive(frame, now, now)
            except ProtocolViolation as violation:
                self._log.warn(f"frame of {frame.sender}", "a frame of %s is dropped: %s", frame.sender, violation)

    # One turn

    def _wake(self) -> None:
        """The timer has rung, perhaps a moment too early by our clock."""
        self._timer = None
        self._turn()

    def _turn(self) -> None:
        if self._stopped or self._paused:
            return
        self._due = False
        core, now = self.core, self.clock()
        if self._timer_at is not None and (self._timer is None or self._timer_at <= now):
            self._timer_at = None
            core.tick(now)
        self._audience.collect()
        self.draining = True
        try:
            busy = self._drive.settle(now, now)
        finally:
            self.draining = False
        if self._journal is not None:
            self._journal()
        self.transport.flush()
        self._arm(core.deadline)
        self._audience.turned()
        if busy:
            self._busy_at = self.clock()

    def _arm(self, deadline: int | None) -> None:
        if deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at, self._timer = deadline, None
        if deadline is not None:
            self._timer = self._loop.call_later(max(0, deadline - self.clock()) / 1e9, self._wake)
