"""A process under Newtop: its block counter, its groups, one order of delivery (Macedo94 ch. 4).

Offers the contract of `core/contract.py`. In this version a process is in one group, which orders its own
deliveries; what will span groups, the counter and the list of effects, is here already.
"""

from collections.abc import Mapping

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Deliver, Effect, Frame, InstallView
from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.timers import Timers
from antiphon.types import GroupId, ProcessId, View


class NewtopProcess:
    """One member, from its first view on."""

    def __init__(self, me: ProcessId, views: Mapping[GroupId, View], settings: NewtopSettings) -> None:
        assert len(views) == 1, "overlapping groups need cross-group nulls (5.2, 5.3)"
        self.deadline: int | None = None
        """When the time-silence mechanism must speak; a plain attribute, for it is read after every event."""
        self._counter = BlockCounter()
        self._groups = {group: NewtopGroup(me, view, self._counter, settings) for group, view in views.items()}
        self._speakers = [(("silence", name), group) for name, group in self._groups.items()]
        self._timers: Timers[tuple[str, str]] = Timers()
        self._writable = True
        self._settled = False  # nothing follows from what was fed since the last drain
        self._effects: list[Effect] = [InstallView(view) for view in views.values()]

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it."""
        self._settled = False
        self._groups[group].outbox.put(payload, label)

    def receive(self, frame: Frame, now: int) -> None:
        """Record a frame; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is not None and isinstance(frame, BlockFrame) and group.receive(frame, now):
            self._settled = False

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        self._settled = False
        self._timers.due(now)

    def consumed(self, group: GroupId, position: int, now: int) -> None:
        """Nobody waits for the application while there is no flow control."""

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages gather; nulls still leave, others wait for them."""
        self._settled = False
        self._writable = ready

    def drain(self, now: int) -> list[Effect]:
        """Number and send, then deliver, then free: our own frames may complete a block, never the reverse."""
        if self._settled:
            return []
        self._settled = True
        effects, self._effects = self._effects, []
        for timer, group in self._speakers:
            group.speak(now, self._writable, effects)
            for frame in group.take_complete():
                assert frame.block <= self._counter.value  # CA2 is implied: we have sent into that block
                effects.append(Deliver(frame))
            group.stabilise(effects)
            deadline = group.silence.deadline
            if deadline is not None or self.deadline is not None:
                self._timers.set(timer, deadline)
                self.deadline = self._timers.deadline
        return effects

    def unstable(self, group: GroupId) -> int:
        """Frames held, nulls included; none of a group we are not in."""
        own = self._groups.get(group)
        return own.matrix.unstable_frames if own is not None else 0
