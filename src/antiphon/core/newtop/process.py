"""A process under Newtop: one block counter, its groups, one order of delivery over all of them (Macedo94 ch. 4, 5).

Offers the contract of `core/contract.py`. Groups are joined at three places: the counter; the nulls that a number in
one group causes in the others (rule CA4); and the ordering part, which decides whose turn it is.
"""

from collections.abc import Iterable, Mapping

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Deliver, Effect, Frame, InstallView
from antiphon.core.newtop.frames import AliveFrame, BlockFrame, NewtopFrame
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.rules import ADOPTED, Rules
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.timers import Timers
from antiphon.types import GroupId, ProcessId, View


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
        self._to_answer = 0  # the largest data number of any group
        self._answered = 0  # as far as all groups have it
        self._stirred = dict(self._groups)
        """Groups in which something may follow from what was fed since the last drain."""
        self._timers: Timers[tuple[GroupId]] = Timers()
        self._writable = True
        self._effects: list[Effect] = [InstallView(view) for view in views.values()]

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it."""
        self._stirred[group] = own = self._groups[group]
        own.outbox.put(payload, label)

    def receive(self, frame: Frame, now: int) -> None:  # noqa: PLR0912 - the hottest place: a call more costs 3 %
        """Record a frame; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is None:
            return
        frames: Iterable[Frame] = (frame,)
        if group.recovery is not None:
            if not isinstance(frame, NewtopFrame):
                return
            self._stirred[frame.group] = group
            frames = group.recovery.receive(frame, now)
        order = self._order
        for each in frames:
            if not isinstance(each, BlockFrame):
                if isinstance(each, AliveFrame) and group.heard(each):
                    self._stirred[each.group] = group
            elif not each.payloads:
                if group.receive(each, now):
                    self._stirred[each.group] = group
            elif order.fits(group, each) if order.stamps else each.stamp is None:
                follows = group.receive(each, now)
                if follows is not None:
                    for name in order.received(group, each, now):
                        self._stirred[name] = self._groups[name]
                    if each.block > self._to_answer:
                        self._to_answer = each.block
                    if follows or self._stirs:
                        self._stirred[each.group] = group

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        for (name,) in self._timers.due(now):
            self._stirred[name] = group = self._groups[name]
            group.armed = None
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> None:  # noqa: ARG002
        """The application has taken messages: flow control counts them as complete here (Δ)."""
        own = self._groups[group]
        if own.flow is not None:
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
            self._speak(stirred, now, effects)
            self._deliver(stirred, effects)
            for name, group in stirred.items():
                group.settle(now, effects)
                if group.blocked and self._writable and group.released:
                    again = True
                news = group.news
                if news.at is not None and news.at <= now:
                    group.announce(now, effects)
                if group.recovery is not None:
                    group.recovery.drain(now, effects)
                owed = group.silence.deadline is not None or group.recovery is not None
                deadline = group.deadline if owed else news.at
                if deadline != group.armed:
                    group.armed = deadline
                    self._timers.set((name,), deadline)
                    self.deadline = self._timers.deadline
        stirred.clear()
        return effects

    def _speak(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """What the application asked for, then the nulls that it and others' messages make necessary."""
        for group in stirred.values():
            if group.outbox.waiting and self._writable:
                block = group.send_waiting(self._order, now, effects)
                if block > self._to_answer:
                    self._to_answer = block
            if group.silence.deadline is not None and not self._crossing:
                group.answer(now, effects)
        if self._crossing:
            self._answer_everywhere(stirred, now, effects)

    def _deliver(self, stirred: dict[GroupId, NewtopGroup], effects: list[Effect]) -> None:
        """Hand over whatever has its turn, of any group."""
        for frame in self._order.take():
            group = self._groups[frame.group]
            if group.flow is not None or frame.more or group.fragments.open:
                stirred[frame.group] = group
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
