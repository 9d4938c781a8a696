"""Drives one core: the same code for simulator, sockets and test network (docs/design/adr/0010).

A driver feeds what has arrived, calls `settle`, and re-arms its timer. It offers a `Network`, and an `Audience` for
what applications see. Time comes from the driver: `now` is the process's own clock, which the core sees; `time` is what
the trace records. They differ only where a simulated clock is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from antiphon.core.contract import Core
from antiphon.core.effects import (
    Answered,
    Blocked,
    ClockAhead,
    Concern,
    Confirmed,
    Deliver,
    Discard,
    Effect,
    Evicted,
    Frame,
    Gauge,
    InstallState,
    InstallView,
    Left,
    Missing,
    Primary,
    Query,
    Reach,
    Refused,
    Refuted,
    Reset,
    Stable,
    Suspected,
    Transitional,
    Transmit,
    Unanswered,
    Unavailable,
    Unblocked,
    Wished,
)
from antiphon.drive.reader import Reader
from antiphon.trace.scribe import Recording, Scribe, Told
from antiphon.types import View

Shown = (
    Deliver
    | InstallView
    | InstallState
    | Left
    | Transitional
    | Primary
    | Answered
    | Unanswered
    | Query
    | Missing
    | Unavailable
    | Reset
    | ClockAhead
    | Blocked
    | Unblocked
    | Concern
    | Evicted
    | Refused
)
"""The effects for applications, in one order over all groups of the process.

Those from `Query` on have no place in that order.
"""


class Network(Protocol):
    """Transmits the frames of one process."""

    def install(self, view: View) -> None:
        """From now on frames to the view's group go to its members."""

    def leave(self, effect: Left) -> None:
        """The process has left a group, perhaps for a successor."""

    def copies(self, effect: Transmit) -> int:
        """The number of processes that a frame goes to."""

    def transmit(self, effect: Transmit, now: int) -> None: ...


class Audience(Protocol):
    """The applications of one process."""

    def show(self, effect: Shown, now: int) -> None:
        """The next effect in the order."""


class Drive:
    """The core of one process, with its network, audience and recorder."""

    __slots__ = ("_audience", "_drains_for_trace", "_network", "core", "reader", "scribe")

    def __init__(
        self,
        core: Core,
        network: Network,
        audience: Audience,
        recorder: Recording | None,
        *,
        drains_for_trace: bool = False,
    ) -> None:
        """`drains_for_trace`: drain once more after effects that only a traced core builds.

        In the simulator every core is traced, so an application can leave a group one turn earlier. Real members do not
        use this, because they must behave the same with and without a trace.
        """
        self.core: Final = core
        self.scribe: Final = None if recorder is None else Scribe(recorder, core)
        self.reader: Final = Reader(core, self.scribe)
        self._network = network
        self._audience = audience
        self._drains_for_trace = drains_for_trace

    def receive(self, frame: Frame, now: int, time: int) -> None:
        """A frame has arrived."""
        self.core.receive(frame, now)
        if self.scribe is not None:
            self.scribe.received(frame, time)

    def settle(self, now: int, time: int) -> bool:
        """Carry out all effects of the core, until there are none; False if there were none.

        Effects of a traced core alone do not count: a trace must not change when a driver takes its next turn.
        """
        effects = self.core.drain(now)
        return bool(effects) and self.carry_out(effects, now, time)

    def carry_out(self, effects: list[Effect], now: int, time: int) -> bool:
        """The same, for a driver that has drained once itself.

        The two most frequent effects are handled inline: a call for each would cost a tenth of a run.
        """
        core, show, network, scribe = self.core, self._audience.show, self._network, self.scribe
        busy = False
        while effects:
            acted = False
            for effect in effects:
                if type(effect) is Deliver:
                    acted = True
                    show(effect, now)
                elif type(effect) is Transmit:
                    acted = True
                    if scribe is not None:
                        scribe.transmitted(effect, network.copies(effect), time)
                    network.transmit(effect, now)
                else:
                    _ACTIONS[type(effect)](self, effect, now, time)
                    acted = acted or type(effect) not in _WITHOUT_CONSEQUENCES
            busy = busy or acted
            if not acted and not self._drains_for_trace:
                break  # an untraced core has nothing to do here
            effects = core.drain(now)  # what the application took may allow new frames
        return busy

    def _install(self, effect: InstallView, now: int, time: int) -> None:
        """A view that its members agree on has its place in the application's order; a private one is only recorded."""
        self._network.install(effect.view)
        if effect.view.receivers is None:
            if self.scribe is not None:
                self.scribe.installed(effect.view)
            self._audience.show(effect, now)
        elif self.scribe is not None:
            self.scribe.entered(effect, time)
            self.scribe.catch_up(effect.view, time)

    def _reach(self, effect: Reach, _now: int, _time: int) -> None:
        self._network.install(effect.view)
        if self.scribe is not None:
            self.scribe.reached(effect.view)

    def _leave(self, effect: Left, now: int, time: int) -> None:
        self._network.leave(effect)
        if self.scribe is not None:
            self.scribe.parted(effect, time)
        self._audience.show(effect, now)

    def _show(self, effect: Shown, now: int, _time: int) -> None:
        self._audience.show(effect, now)

    def _show_and_record(self, effect: Blocked | Unblocked, now: int, time: int) -> None:
        self._audience.show(effect, now)
        self._record(effect, now, time)

    def _record(self, effect: Told, _now: int, time: int) -> None:
        if self.scribe is not None:
            self.scribe.told(effect, time)


_WITHOUT_CONSEQUENCES: Final = frozenset({Stable, Discard, Gauge, Wished, Concern, Unavailable, Reset, ClockAhead})
"""Effects for the trace or for information only: they never lead to new frames."""

_ACTIONS: Final[Mapping[type[Effect], Callable[[Drive, Any, int, int], None]]] = {
    InstallView: Drive._install,
    Reach: Drive._reach,
    Left: Drive._leave,
    InstallState: Drive._show,
    Transitional: Drive._show,
    Primary: Drive._show,
    Answered: Drive._show,
    Unanswered: Drive._show,
    Query: Drive._show,
    Missing: Drive._show,
    Unavailable: Drive._show,
    Reset: Drive._show,
    ClockAhead: Drive._show,
    Refused: Drive._show,
    Concern: Drive._show,
    Evicted: Drive._show,
    Blocked: Drive._show_and_record,
    Unblocked: Drive._show_and_record,
    Suspected: Drive._record,
    Refuted: Drive._record,
    Confirmed: Drive._record,
    Stable: Drive._record,
    Discard: Drive._record,
    Gauge: Drive._record,
    Wished: Drive._record,
}
