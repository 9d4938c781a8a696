"""A process under Newtop: one block counter, its groups, one order of delivery over all of them (Macedo94 ch. 4, 5).

Offers the contract of `core/contract.py`. Groups are joined at three places: the counter; the nulls that a number in
one group causes in the others (rule CA4); and the ordering part, which decides whose turn it is.
"""

from collections.abc import Mapping
from itertools import repeat
from typing import Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Deliver, Effect, Frame, InstallView
from antiphon.core.newtop.frames import AliveFrame, BlockFrame, NewtopFrame
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.rules import ADOPTED, Rules
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.timers import Timers
from antiphon.types import GroupId, ProcessId, View

_new: Final = tuple.__new__


class NewtopProcess:
    """One member, from its first views on."""

    def __init__(
        self, me: ProcessId, views: Mapping[GroupId, View], settings: NewtopSettings, rules: Rules = ADOPTED
    ) -> None:
        self.deadline: int | None = None
        """When time alone makes something due; a plain attribute, for it is read after every event."""
        counter = BlockCounter()
        self._groups = {
            name: NewtopGroup(me, view, counter if rules.one_counter else BlockCounter(), settings, rules)
            for name, view in views.items()
        }
        self._order = rules.orders[settings.service](me, self._groups, settings)
        self._crossing = self._order.crosses and len(views) > 1
        self._stirs = self._crossing or not self._order.crosses
        """Whether every data frame may have consequences: nulls in other groups, or its own delivery at once."""
        self._plain = not settings.flow_control  # nobody counts what applications take
        self.heeds_application = not self._plain
        """Whether `consumed` matters; a driver in a hurry may leave it out otherwise."""
        self._fragmented = False  # a piece of a larger message has been seen
        self._to_answer = 0  # the largest data number of any group
        self._answered = 0  # as far as all groups have it
        self._stirred = dict(self._groups)
        """Groups in which something may follow from what was fed since the last drain."""
        self._timers: Timers[tuple[GroupId]] = Timers()
        self._writable = True
        if not settings.datagrams:
            self.receive = self._take  # type: ignore[method-assign]  # frames come in order: nothing to restore
        self._effects: list[Effect] = [InstallView(view) for view in views.values()]

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it."""
        self._stirred[group] = own = self._groups[group]
        own.outbox.put(payload, label)

    def receive(self, frame: Frame, now: int) -> None:
        """Record a frame that may be anywhere in its stream; on streams, `_take` stands in for this."""
        group = self._groups.get(frame.group)
        if group is not None and group.recovery is not None and isinstance(frame, NewtopFrame):
            self._stirred[frame.group] = group
            for each in group.recovery.receive(frame, now):
                self._take(each, now)

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        for (name,) in self._timers.due(now):
            self._stirred[name] = group = self._groups[name]
            group.armed = None
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> None:  # noqa: ARG002
        """The application has taken messages: flow control counts them as complete here (Δ)."""
        if not self._plain:
            own = self._groups[group]
            own.position = position
            if own.awaits_application:
                self._stirred[group] = own

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages gather; nulls still leave, others wait for them."""
        self._stirred.update(self._groups)
        self._writable = ready

    def drain(self, now: int) -> list[Effect]:
        """Speak, deliver, draw the consequences; once more as long as flow control then lets something else leave."""
        stirred = self._stirred
        if not stirred:
            return []
        effects, self._effects = self._effects, []
        again = True
        while again:
            again = False
            for group in stirred.values():
                if group.outbox.waiting and self._writable:
                    self._send_waiting(group, now, effects)
                if group.silence.deadline is not None and not self._crossing:
                    group.answer(now, effects)  # else a message of another group may pay what is owed
            if self._crossing:
                self._answer_everywhere(stirred, now, effects)
            ready = self._order.take()
            if ready:
                self._deliver(ready, stirred, effects)
            for name, group in stirred.items():
                group.settle(now, effects)
                if group.blocked and self._writable and group.released:
                    again = True
                at = group.news.at
                if (at is not None and at <= now) or group.silence.deadline is not None or group.recovery is not None:
                    group.finish(now, effects)
                    at = group.deadline
                if at != group.armed:
                    group.armed = at
                    self._timers.set((name,), at)
                    self.deadline = self._timers.deadline
        stirred.clear()
        return effects

    def _take(self, frame: Frame, now: int) -> None:
        """Record the next frame of its stream; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is None:
            return
        if not isinstance(frame, BlockFrame):
            if isinstance(frame, AliveFrame) and group.heard(frame):
                self._stirred[frame.group] = group
            return
        if not frame.payloads:
            if group.receive(frame, now):
                self._stirred[frame.group] = group
            return
        order = self._order
        if order.fits(group, frame) if order.stamps else frame.stamp is None:
            follows = group.receive(frame, now)
            if follows is not None:
                for name in order.received(group, frame, now):
                    self._stirred[name] = self._groups[name]
                if frame.more:
                    self._fragmented = True
                if self._stirs:
                    self._to_answer = max(self._to_answer, frame.block)
                    follows = True
                if follows:
                    self._stirred[frame.group] = group

    def _send_waiting(self, group: NewtopGroup, now: int, effects: list[Effect]) -> None:
        """Let leave what the application asked for, and note what follows for other groups and for delivery."""
        block = group.send_waiting(self._order, now, effects)
        if block > self._to_answer:
            self._to_answer = block
        if group.outbox.in_pieces:
            self._fragmented = True

    def _deliver(self, ready: list[BlockFrame], stirred: dict[GroupId, NewtopGroup], effects: list[Effect]) -> None:
        """Hand over whatever has its turn, of any group."""
        if self._plain and not self._fragmented:
            effects += map(_new, repeat(Deliver), zip(ready))  # `Deliver(frame)` of each, without a step of Python
            return
        for frame in ready:
            if frame.more or not self._plain or self._groups[frame.group].fragments.open:
                stirred[frame.group] = group = self._groups[frame.group]
                whole = group.deliver(frame)
                if whole is None:
                    continue
                frame = whole  # noqa: PLW2901
            effects.append(Deliver(frame))

    def _answer_everywhere(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Rule CA4: a data number of one group is answered in all others; nulls never cause nulls."""
        if self._to_answer > self._answered:
            self._answered = block = self._to_answer
            for name, group in self._groups.items():
                if group.largest < block:
                    group.null(block, now, effects)
                    stirred[name] = group
        for group in stirred.values():
            if group.silence.deadline is not None:
                group.answer(now, effects)

    def unstable(self, group: GroupId) -> int:
        """Frames held, nulls included; none of a group we are not in."""
        own = self._groups.get(group)
        return own.buffers.frames if own is not None else 0
