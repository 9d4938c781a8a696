"""The scribe: tells the recorder of one process what its driver does with the core, whatever the driver is.

The simulator's node and the runtime's driver feed the same cores and leave the same traces; what a row needs to know
of a frame or of a core is gathered here, once.
"""

from antiphon.core.contract import Core
from antiphon.core.effects import (
    Blocked,
    Confirmed,
    Discard,
    Frame,
    Gauge,
    InstallView,
    Left,
    Refuted,
    Stable,
    Suspected,
    Transmit,
    Unblocked,
)
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, name_of
from antiphon.wire.codec import header_bytes, payload_bytes, stamp_bytes

Told = Stable | Discard | Gauge | Blocked | Unblocked | Suspected | Refuted | Confirmed
"""What a trace alone wants, or wants as well."""


class Scribe:
    """Of one process. What happens in a formed group before its application is there is told when it is."""

    __slots__ = ("_ahead", "_core", "recorder")

    def __init__(self, recorder: Recorder, core: Core) -> None:
        self.recorder = recorder
        self._core = core
        self._ahead: dict[GroupId, list[Told]] = {}
        """By formed group whose first view the application has not got to, what is to be told after it."""

    def received(self, frame: Frame, time: int, relay: ProcessId | None = None) -> None:
        """A copy is received like the frame it is a copy of, also one in a refutation that a repair brings."""
        self.recorder.received(frame, time, unstable=self._core.unstable(name_of(frame.group)), relay=relay)
        for copy in frame.copies:
            self.received(copy, time, frame.sender)

    def transmitted(self, effect: Transmit, copies: int, time: int) -> None:
        """A frame leaves for so many others."""
        frame = effect.frame
        self.recorder.transmitted(
            frame,
            time,
            payload_bytes=payload_bytes(frame),
            header_bytes=header_bytes(frame),
            stamp_bytes=stamp_bytes(frame),
            unstable=self._core.unstable(name_of(frame.group)),
            copies=copies,
            flow=frame.flow if isinstance(frame, BlockFrame | AliveFrame) else None,
        )

    def reached(self, view: View) -> None:
        """The protocol is in that view, its application not yet."""
        if view.classes:
            self._ahead[view.group] = []

    def entered(self, effect: InstallView, time: int) -> None:
        """The application gets to a view."""
        self.recorder.installed(effect.view, time, effect.left, effect.signature)

    def catch_up(self, view: View, time: int) -> None:
        """What happened before the application got there."""
        for early in self._ahead.pop(view.group, ()):
            self._record(early, time)

    def parted(self, effect: Left, time: int) -> None:
        """The protocol has done with a formation of a group, perhaps before its application has got there."""
        if effect.group in self._ahead:
            ahead = self._ahead[effect.group]
            self._ahead[effect.group] = [told for told in ahead if not isinstance(told, Blocked | Unblocked)]
        self.recorder.parted(effect, time)

    def told(self, effect: Told, time: int) -> None:
        """What the protocol has found out."""
        if effect.group in self._ahead:
            self._ahead[effect.group].append(effect)
        else:
            self._record(effect, time)

    def _record(self, effect: Told, time: int) -> None:
        recorder = self.recorder
        if isinstance(effect, Stable | Discard):
            recorder.prefix(effect, time, unstable=self._core.unstable(name_of(effect.group)))
        elif isinstance(effect, Gauge):
            recorder.gauged(effect, time)
        elif isinstance(effect, Blocked | Unblocked):
            recorder.held_back(effect, time)
        elif isinstance(effect, Suspected | Refuted):
            recorder.suspected(effect, time)
        else:
            recorder.confirmed(effect, time)
