"""How a simulated process transmits: CPU of its host, line, network. Implements `drive.Network`."""

from collections.abc import Callable

from antiphon.core.contract import Core
from antiphon.core.effects import Left, Transmit
from antiphon.sim.hosts import Host
from antiphon.sim.network import HIGH_WATER_BYTES, Endpoint, SimulatedNetwork
from antiphon.sim.world import EventQueue
from antiphon.types import View


class Port:
    """The port of one process."""

    __slots__ = ("_choked", "_core", "_endpoint", "_host", "_network", "_queue", "_unchoke", "service_ns", "slowness")

    def __init__(
        self,
        endpoint: Endpoint,
        core: Core,
        host: Host,
        service_ns: int,
        queue: EventQueue,
        network: SimulatedNetwork,
        unchoke: Callable[[object], None],
    ) -> None:
        """`unchoke`: called when a full line has drained."""
        self.slowness = 1.0
        """The CPU is slower than at the start by this factor."""
        self.service_ns = service_ns
        """CPU time that a frame costs; 0: none."""
        self._endpoint = endpoint
        self._core = core
        self._host = host
        self._queue = queue
        self._network = network
        self._unchoke = unchoke
        self._choked = False

    def work(self) -> int:
        """Queue the handling of one frame at the host; returns the time at which it is done."""
        return self._host.work(self._queue.now, int(self.service_ns * self.slowness))

    def install(self, view: View) -> None:
        self._network.install(self._endpoint.id, view)

    def leave(self, effect: Left) -> None:
        self._network.forget(self._endpoint.id, effect.group)

    def copies(self, effect: Transmit) -> int:
        return self._network.copies(self._endpoint, effect)

    def transmit(self, effect: Transmit, now: int) -> None:
        """Transmit a frame; a full line informs the core."""
        queue, line = self._queue, self._endpoint.line
        self._network.transmit(self._endpoint, effect, self.work() if self.service_ns else queue.now)
        if line is not None and not self._choked and line.falls_to(HIGH_WATER_BYTES) > queue.now:
            self._choked = True
            self._core.writable(False, now)
            queue.at(line.falls_to(HIGH_WATER_BYTES // 2), self._unchoke)

    def unchoke(self, now: int) -> None:
        """The line has room again."""
        self._choked = False
        self._core.writable(True, now)
