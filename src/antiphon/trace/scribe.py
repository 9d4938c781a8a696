"""The scribe reports to the recorder of one process what its driver does with the core.

The simulator and the socket driver feed the same cores and write the same traces. This module collects what rows need
from frames and cores.
"""

from collections.abc import Sequence
from typing import Protocol

from antiphon.core.contract import Core
from antiphon.core.effects import (
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Frame,
    Gauge,
    InstallState,
    InstallView,
    Left,
    Primary,
    Refuted,
    Stable,
    Suspected,
    Transitional,
    Transmit,
    Unblocked,
    Wished,
)
from antiphon.types import GroupId, ProcessId, View, name_of
from antiphon.wire.codec import header_bytes, payload_bytes, stamp_bytes

Told = Stable | Discard | Gauge | Blocked | Unblocked | Suspected | Refuted | Confirmed | Wished
"""Effects that the trace records; some are for the trace alone."""


class Recording(Protocol):
    """The interface of a recorder: rows in memory (`Recorder`), or a journal on disk (`JournalRecorder`)."""

    def received(self, frame: Frame, now: int, *, unstable: int, relay: ProcessId | None = None) -> None: ...

    def transmitted(
        self,
        frame: Frame,
        now: int,
        *,
        payload_bytes: int,
        header_bytes: int,
        stamp_bytes: int,
        unstable: int,
        copies: int,
        flow: tuple[int, ...] | None = None,
    ) -> None: ...

    def installed(self, view: View, now: int, left: tuple[Departure, ...] = (), signed: str | None = None) -> None: ...

    def delivered(self, frame: Frame, now: int) -> None: ...

    def noticed(self, effect: Transitional, now: int) -> None: ...

    def prevailed(self, effect: Primary, now: int) -> None: ...

    def left(self, effect: Left, now: int) -> None: ...

    def handed_over(self, view: View, state: bytes, now: int) -> None: ...

    def merged(self, effect: InstallState, parts: Sequence[bytes], now: int) -> None: ...

    def parted(self, effect: Left, now: int) -> None: ...

    def prefix(self, effect: Stable | Discard, now: int, *, unstable: int) -> None: ...

    def gauged(self, effect: Gauge, now: int) -> None: ...

    def held_back(self, effect: Blocked | Unblocked, now: int) -> None: ...

    def suspected(self, effect: Suspected | Refuted, now: int) -> None: ...

    def confirmed(self, effect: Confirmed, now: int) -> None: ...

    def moved(self, kind: str, group: GroupId, now: int) -> None: ...


class Scribe:
    """The scribe of one process. Events of a formed group are kept until its application has entered the first view.

    Reports about stability name a prefix, and the view tells what they mean. A process that only receives follows a
    change of the view at once, so what it reports in a view is kept until its application has entered that view.
    """

    __slots__ = ("_ahead", "_core", "_entered", "_unread", "recorder")

    def __init__(self, recorder: Recording, core: Core) -> None:
        self.recorder = recorder
        self._core = core
        self._ahead: dict[GroupId, list[Told]] = {}
        """By group whose first view the application has not entered: what to record after it."""
        self._entered: dict[GroupId, View] = {}
        """By group, the last view that has a row."""
        self._unread: dict[GroupId, list[tuple[View, list[Stable | Discard]]]] = {}
        """By group, the views that the application has not entered, from one on in which the process only receives.

        Each with what the process reported there.
        """

    def received(self, frame: Frame, time: int, relay: ProcessId | None = None) -> None:
        """Copies of other frames in it are received too, also those in a refutation that a repair brings."""
        self.recorder.received(frame, time, unstable=self._core.unstable(name_of(frame.group)), relay=relay)
        for copy in frame.copies:
            self.received(copy, time, frame.sender)

    def transmitted(self, effect: Transmit, copies: int, time: int) -> None:
        """A frame leaves; `copies` is the number of its receivers."""
        frame = effect.frame
        self.recorder.transmitted(
            frame,
            time,
            payload_bytes=payload_bytes(frame),
            header_bytes=header_bytes(frame),
            stamp_bytes=stamp_bytes(frame),
            unstable=self._core.unstable(name_of(frame.group)),
            copies=copies,
            flow=frame.flow,
        )

    def reached(self, view: View) -> None:
        """The protocol is in that view; its application is not there yet."""
        if view.classes:
            self._ahead[view.group] = []

    def installed(self, view: View) -> None:
        """The protocol has installed that view; its application may enter it later."""
        group = view.group
        if view.receives or group in self._unread:
            self._unread.setdefault(group, []).append((view, []))

    def entered(self, effect: InstallView, time: int) -> None:
        """The application enters a view; a second call for the same view changes nothing.

        An application that has just joined is in its first view before it reads that event.
        """
        group = name_of(effect.view.group)
        if self._entered.get(group) is not effect.view:
            self._entered[group] = effect.view
            self.recorder.installed(effect.view, time, effect.left, effect.signature)

    def catch_up(self, view: View, time: int) -> None:
        """Record what happened before the application entered the view."""
        early: list[Told] = [*self._ahead.pop(view.group, ())]
        unread = self._unread.get(view.group, [])
        place = next((place for place, (each, _) in enumerate(unread) if each is view), None)
        if place is not None:
            early += unread[place][1]
            del unread[: place + 1]
            if not unread:
                del self._unread[view.group]
        for told in early:
            self._record(told, time)

    def parted(self, effect: Left, time: int) -> None:
        """The protocol is done with a formation of a group, perhaps before its application has entered it."""
        if effect.group in self._ahead:
            ahead = self._ahead[effect.group]
            self._ahead[effect.group] = [told for told in ahead if not isinstance(told, Blocked | Unblocked)]
        self.recorder.parted(effect, time)

    def told(self, effect: Told, time: int) -> None:
        """Effects of the protocol for the trace."""
        if effect.group in self._ahead:
            self._ahead[effect.group].append(effect)
        elif isinstance(effect, Stable | Discard) and effect.group in self._unread:
            self._unread[effect.group][-1][1].append(effect)
        elif isinstance(effect, Stable | Discard) and name_of(effect.group) not in self._entered:
            self._ahead[effect.group] = [effect]
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
        elif isinstance(effect, Wished):
            recorder.moved("promote" if effect.sends else "demote", effect.group, time)
        else:
            recorder.confirmed(effect, time)
