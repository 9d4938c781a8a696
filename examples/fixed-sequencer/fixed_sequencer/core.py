"""The protocol itself: every member multicasts its messages, one member numbers them, all deliver in that order.

Groups are static and links are streams: frames of one process arrive in the order in which it transmitted them.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import ClassVar

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Deliver, Effect, Frame, InstallView, Transmit
from antiphon.types import GroupId, ProcessId, View
from fixed_sequencer.frames import DataFrame, OrderFrame


class Group:
    """One process in one group."""

    def __init__(self, me: ProcessId, view: View, sequencer: ProcessId, effects: list[Effect]) -> None:
        self._me, self._name, self._sequencer = me, view.group, sequencer
        self._effects = effects
        self._waiting: defaultdict[ProcessId, deque[DataFrame]] = defaultdict(deque)
        """By sender, messages that were not delivered, in the order in which they were sent."""
        self._order: deque[ProcessId] = deque()
        """The senders of the next messages to deliver, as the sequencer numbered them."""
        self._numbered = self._delivered = 0
        effects.append(InstallView(view))

    @property
    def held(self) -> int:
        return sum(map(len, self._waiting.values()))

    def send(self, payload: bytes, label: int) -> None:
        frame = DataFrame(self._name, self._me, (payload,), label)
        self._effects.append(Transmit(frame))
        self.take(frame)

    def take(self, frame: DataFrame) -> None:
        self._waiting[frame.sender].append(frame)
        if self._me == self._sequencer:
            self._numbered += 1
            self._effects.append(Transmit(OrderFrame(self._name, self._me, frame.sender, self._numbered)))
            self._order.append(frame.sender)
        self._deliver()

    def follow(self, frame: OrderFrame) -> None:
        if frame.sender == self._sequencer:
            self._order.append(frame.origin)
            self._deliver()

    def _deliver(self) -> None:
        while self._order and self._waiting[self._order[0]]:
            frame = self._waiting[self._order.popleft()].popleft()
            self._delivered += 1
            self._effects.append(Deliver(frame._replace(number=self._delivered)))


class FixedSequencer:
    """One process with all its groups; offers `antiphon.core.contract.Core`."""

    capabilities: ClassVar = Capabilities()
    needs_consumed: ClassVar[bool] = False
    deadline: ClassVar[int | None] = None

    def __init__(self, me: ProcessId, views: Mapping[ProcessId, list[View]]) -> None:
        """`views`: the first view of each of its groups, by the sequencer of the group."""
        self._effects: list[Effect] = []
        self._groups = {
            view.group: Group(me, view, sequencer, self._effects) for sequencer, own in views.items() for view in own
        }

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        self._groups[group].send(payload, label)

    def receive(self, frame: Frame, now: int) -> None:  # noqa: ARG002
        group = self._groups.get(frame.group)
        if group is not None and isinstance(frame, DataFrame):
            group.take(frame)
        elif group is not None and isinstance(frame, OrderFrame):
            group.follow(frame)

    def tick(self, now: int) -> None:
        """There are no timers."""

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        return False

    def writable(self, ready: bool, now: int) -> None:
        """Nothing is packed, so nothing gathers."""

    def drain(self, now: int) -> list[Effect]:  # noqa: ARG002
        effects = self._effects[:]
        self._effects.clear()  # the groups add to this very list
        return effects

    def unstable(self, group: GroupId) -> int:
        return self._groups[group].held if group in self._groups else 0
