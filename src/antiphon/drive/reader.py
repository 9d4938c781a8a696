"""What happens when an application reaches an effect: what the core and the trace learn, and in which order.

An application sees one stream: views, messages, notices and states in their order. A driver calls a method here when
the application reaches an effect, not when the core returned it; in between the application may be busy.

| effect | when the application reaches it |
|---|---|
| `Deliver` | it is recorded; once the application is done with it, flow control counts it (`consumed`) |
| `InstallView` | the core is told (`viewed`), the trace too; a snapshot of the state goes to the core (`state`) |
| `InstallState` | the merged state is recorded |
| `Transitional`, `Primary` | it is recorded |
| `Left` | with a successor the application notices nothing; otherwise it is out of the group |
"""

from collections import defaultdict
from collections.abc import Sequence

from antiphon.core.contract import Core, StateSource, is_changing, is_suspecting
from antiphon.core.effects import Frame, InstallState, InstallView, Left, Primary, Transitional
from antiphon.trace.scribe import Scribe
from antiphon.types import GroupId, View


class Reader:
    """The reading side of one process, all its groups together."""

    __slots__ = ("_changing", "_core", "_recorder", "_scribe", "_taken", "_viewed", "counts")

    def __init__(self, core: Core, scribe: Scribe | None) -> None:
        self.counts = core.needs_consumed
        """Whether the core needs to know what the application has consumed."""
        self._core = core
        self._scribe = scribe
        self._recorder = None if scribe is None else scribe.recorder
        self._viewed = core.viewed if is_suspecting(core) else None
        self._changing = core if is_changing(core) else None
        self._taken: defaultdict[GroupId, int] = defaultdict(int)
        """By group, the number of `Deliver` effects that the application has reached."""

    @property
    def silent(self) -> bool:
        """Whether consumption has no effect on the core and the trace, so that `consume` may be skipped."""
        return self._recorder is None and not self.counts

    @property
    def joins_at_once(self) -> bool:
        """Whether an application gets its first view in a group when the core installs it, however busy it is.

        It may send before it has that view, and such a core does not wait until it is read: the message would leave in
        a view that the application does not know.
        """
        return self._viewed is None

    def take(self, frame: Frame, time: int, *, recorded: bool = True) -> int:
        """The application gets the messages of a frame; returns the position for `done`.

        `recorded`: here and below, whether the trace records this application. It is not while it still reads a group
        that the process has left and joined again.
        """
        if self._recorder is not None and recorded:
            self._recorder.delivered(frame, time)
        self._taken[frame.group] = position = self._taken[frame.group] + 1
        return position

    def done(self, group: GroupId, position: int, now: int) -> bool:
        """The application is done with all messages up to that position. True if this may have an effect at once."""
        return self.counts and self._core.consumed(group, position, now)

    def consume(self, frame: Frame, now: int, time: int) -> None:
        """`take` and `done` at once, for an application that needs no time."""
        if self._recorder is not None:
            self._recorder.delivered(frame, time)
        if self.counts:
            group = frame.group
            self._taken[group] = position = self._taken[group] + 1
            self._core.consumed(group, position, now)

    def position(self, group: GroupId) -> int:
        """The position of the last frame that the application has reached in that group."""
        return self._taken.get(group, 0)

    def enter(
        self, effect: InstallView, now: int, time: int, *, state: bytes | None = None, recorded: bool = True
    ) -> None:
        """The application reaches a view. `state`: its state there, if it is complete and others need it."""
        self.pass_over(effect.view, now)
        if self._scribe is not None and recorded:
            self._scribe.entered(effect, time)
            if state is not None:
                self._scribe.recorder.handed_over(effect.view, state, time)
            self._scribe.catch_up(effect.view, time)

    def pass_over(self, view: View, now: int) -> None:
        """The core need not wait until the application reaches that view."""
        if self._viewed is not None:
            self._viewed(view, now)

    def hand_over(self, view: View, state: bytes | StateSource, now: int) -> None:
        """The application's state at that view goes to the joiners."""
        assert self._changing is not None, "only such cores ask for a snapshot"
        self._changing.state(view, state, now)

    def restore(self, effect: InstallState, parts: Sequence[bytes], time: int, *, recorded: bool = True) -> None:
        """The application takes over the states of others; these parts together are its state from here on."""
        if self._recorder is not None and recorded:
            self._recorder.merged(effect, parts, time)

    def notice(self, effect: Transitional, time: int, *, recorded: bool = True) -> None:
        """The application reads for which members the next deliveries hold."""
        if self._recorder is not None and recorded:
            self._recorder.noticed(effect, time)

    def prevail(self, effect: Primary, time: int, *, recorded: bool = True) -> None:
        """The application reads that its view is primary."""
        if self._recorder is not None and recorded:
            self._recorder.prevailed(effect, time)

    def leave(self, effect: Left, time: int, *, recorded: bool = True) -> bool:
        """True if the application is out of the group; False if a successor takes its place."""
        if self._changing is not None:
            self._taken.pop(effect.group, None)  # a group that is formed later is another one
        if effect.successor is not None:
            return False
        if self._recorder is not None and recorded:
            self._recorder.left(effect, time)
        return True
