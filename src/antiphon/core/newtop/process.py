"""A process under Newtop: one block counter, its groups, one order of delivery over all of them (Macedo94 ch. 4, 5).

Offers the contract of `core/contract.py`. Groups are joined at three places: the counter; the nulls that a number in
one group causes in the others (rule CA4); and the ordering part, which decides whose turn it is.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Deliver, Effect, Frame, InstallView
from antiphon.core.newtop.agreement import Detection, Surroundings
from antiphon.core.newtop.frames import AliveFrame, BlockFrame, MembershipFrame, NewtopFrame, ToSequencer
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.rules import ADOPTED, Rules
from antiphon.core.newtop.sequencer import SequencedGroup
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.newtop.turns import Turns
from antiphon.core.timers import Timers
from antiphon.core.vectors import BEYOND
from antiphon.types import GroupId, ProcessId, View, shrunk_view

_new: Final = tuple.__new__


class NewtopProcess:
    """One member, from its first views on."""

    def __init__(
        self, me: ProcessId, views: Mapping[GroupId, View], settings: NewtopSettings, rules: Rules = ADOPTED
    ) -> None:
        self.deadline: int | None = None
        """When time alone makes something due; a plain attribute, for it is read after every event."""
        counter, around = BlockCounter(), Surroundings(self._take, self._relayed, self._confirmed)
        self._me = me
        self._rules = rules
        self._early: list[Effect] = []  # what happened between drains, in order; kept in place, groups write to it
        self._groups = {
            name: (SequencedGroup if name in settings.asymmetric else NewtopGroup)(
                me, view, counter if rules.one_counter else BlockCounter(), settings, rules, around, self._early
            )
            for name, view in views.items()
        }
        self._order = rules.orders[settings.service](me, self._groups, settings)
        assert not settings.block_numbered or not settings.suspect_after_ns or self._order.cut_after is not None, (
            "a flush is in no window, so blocks cannot be counted"
        )
        self._crossing = self._order.crosses and len(views) > 1
        self._stirs = self._crossing or not self._order.crosses
        """Whether every data frame may have consequences: nulls in other groups, or its own delivery at once."""
        self._plain = not settings.flow_control  # nobody counts what applications take
        self.heeds_application = not self._plain
        """Whether `consumed` matters; a driver in a hurry may leave it out otherwise."""
        self._turns = rules.turns(self._groups) if settings.asymmetric & self._groups.keys() else None
        self._special = self._turns is not None  # a piece of a larger message, or a notice, has been seen
        self._cuts: list[
            tuple[int, int, GroupId, Detection]
        ] = []  # heap: where views change, in the order of all groups
        self._confirmations = 0
        self._suspecting = settings.suspect_after_ns > 0
        self._to_answer = 0  # the largest data number of any group
        self._answered = 0  # as far as all groups have it
        self._stirred = dict(self._groups)
        """Groups in which something may follow from what was fed since the last drain."""
        self._timers: Timers[tuple[GroupId]] = Timers()
        self._writable = True
        if not settings.datagrams:
            self.receive = self._take  # type: ignore[method-assign]  # frames come in order: nothing to restore
        self._early += [InstallView(view) for view in views.values()]
        for group in self._groups.values():
            group.suspector.rest(group, 0)

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it."""
        self._stirred[group] = own = self._groups[group]
        own.outbox.put(payload, label)

    def receive(self, frame: Frame, now: int) -> None:
        """Record a frame that may be anywhere in its stream; on streams, `_take` stands in for this."""
        if isinstance(frame, ToSequencer):
            self._take(frame, now)  # it has no place in any stream
            return
        group = self._groups.get(frame.group)
        if group is None or group.recovery is None or not isinstance(frame, NewtopFrame):
            return
        self._stirred[frame.group] = group
        ready = group.recovery.receive(frame, now)
        clock = group.suspector.clock
        known = clock[:]
        for each in ready:
            self._take(each, now)
        clock[:] = known  # a copy says nothing about who is alive now, except for whoever sent it
        group.sign_of_life(frame.sender, now)

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

    def viewed(self, view: View, now: int) -> None:  # noqa: ARG002
        """The application has got to a view: what it sends from now on, it sends in this one."""
        group = self._groups[view.group]
        if group.view.id == view.id:
            group.unseen = False
            self._stirred[view.group] = group

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages gather; nulls still leave, others wait for them."""
        self._stirred.update(self._groups)
        self._writable = ready

    def severed(self, peer: ProcessId, now: int, groups: frozenset[GroupId] | None = None) -> None:
        """The connection with it has lost frames: whatever still comes, it counts as silent from now on (E-47)."""
        for name, group in self._groups.items():
            if peer in group.ranks and (groups is None or name in groups):
                group.suspector.severed(group.ranks[peer], now)

    def suspect(self, process: ProcessId, now: int) -> None:
        """A suspicion from outside, right or wrong, in all groups that we share; not where nobody is ever suspected."""
        for name, group in self._groups.items() if self._suspecting else ():
            self._stirred[name] = group
            group.agreement.suspect(process, "injected", now)

    def drain(self, now: int) -> list[Effect]:
        """Speak, deliver, draw the consequences; once more as long as that lets something else happen."""
        stirred, early = self._stirred, self._early
        if not stirred:
            return []
        effects: list[Effect] = []
        again = True
        while again:
            effects += early
            early.clear()
            self._speak(stirred, now, effects)
            ready = self._order.take(self._cuts[0][0] if self._cuts else BEYOND)
            if ready:
                self._deliver(ready, stirred, now, effects)
            again = self._suspecting and self._change_views(stirred, now, effects)
            watched: list[NewtopGroup] | None = None
            for name, group in stirred.items():
                group.settle(now, effects)
                if group.blocked and self._writable and group.released and self._has_turn(group):
                    again = True
                at, watch = group.news.at, group.suspector.at
                if (at is not None and at <= now) or group.silence.deadline is not None or group.recovery is not None:
                    group.finish(now, effects)
                    at = group.deadline
                elif watch is not None and (at is None or watch < at):
                    at = watch
                if watch is not None and watch <= now:
                    watched = [*(watched or ()), group]
                elif at != group.armed:
                    group.armed = at
                    self._timers.set((name,), at)
                    self.deadline = self._timers.deadline
            for group in watched or ():
                group.suspector.look(group, now)
            again = again or watched is not None or bool(early)
        stirred.clear()
        return effects

    def _speak(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Let leave what waits, and the nulls that are owed and due."""
        if self._turns is not None:
            self._send_in_turn(self._turns, stirred, now, effects)
        for group in stirred.values():
            if (group.outbox.waiting or group.notices) and self._writable and self._turns is None:
                self._send_waiting(group, now, effects)
            if group.silence.deadline is not None and not self._crossing:
                group.answer(now, effects)  # else a message of another group may pay what is owed
        if self._crossing:
            self._answer_everywhere(stirred, now, effects)

    def _send_in_turn(self, turns: Turns, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Where a group is asymmetric: first what its members owe each other, then what applications want."""
        if not self._writable:
            return
        for group in turns.line(stirred):
            if isinstance(group, SequencedGroup):
                self._to_answer = max(self._to_answer, group.serve(self._order, now, effects))
            if group.outbox.waiting and turns.permits(group):
                self._send_waiting(group, now, effects)

    def _has_turn(self, group: NewtopGroup) -> bool:
        return self._turns is None or self._turns.permits(group)

    def _take(self, frame: Frame, now: int) -> None:
        """A frame comes, from its channel's next place; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is None:
            return
        if group.wary:
            self._take_warily(group, frame, now)
        elif isinstance(frame, BlockFrame) and not frame.excluded:
            self._record(group, frame, now)  # nearly always
        else:
            self._accept(group, frame, now)

    def _take_warily(self, group: NewtopGroup, frame: Frame, now: int) -> None:
        """Somebody is suspected, accused or failed: whose frame it is matters (9.3), and what it is evidence of."""
        self._stirred[frame.group] = group
        if not group.agreement.admits(frame, now):
            group.sign_of_life(frame.sender, now)
            return
        self._accept(group, frame, now)
        if isinstance(frame, BlockFrame):
            group.agreement.noticed(frame.sender, now)
            group.agreement.evaluate(now)

    def _accept(self, group: NewtopGroup, frame: Frame, now: int) -> None:
        """Take in the next frame of its stream."""
        if isinstance(frame, AliveFrame):
            if group.heard(frame, now):
                self._stirred[frame.group] = group
        elif isinstance(frame, MembershipFrame):
            if self._suspecting and group.sign_of_life(frame.sender, now):
                self._stirred[frame.group] = group
                group.agreement.receive(frame, now)
        elif isinstance(frame, BlockFrame):
            if group.agreement.excludes_me(frame):
                self._stirred[frame.group] = group
                group.agreement.parted(frame.sender, now)
            else:
                self._record(group, frame, now)
        elif isinstance(group, SequencedGroup) and isinstance(frame, ToSequencer) and group.submitted(frame):
            group.sign_of_life(frame.sender, now)
            self._stirred[frame.group] = group

    def _relayed(self, frame: BlockFrame, now: int) -> bool:
        """A refutation brought a message: that others have it does not say that its sender lives."""
        group = self._groups[frame.group]
        rank = group.columns[frame.sender]
        heard = group.suspector.clock[rank]
        taken = self._record(group, frame, now)
        group.suspector.clock[rank] = heard
        return taken

    def _record(self, group: NewtopGroup, frame: BlockFrame, now: int) -> bool:
        """Enter a numbered frame; False if it is not the next one of its sender, or nothing of ours."""
        if not frame.payloads and frame.notice is None:
            follows = group.receive(frame, now)
            if follows:
                self._stirred[frame.group] = group
            return follows is not None
        order = self._order
        if frame.notice is not None:
            if frame.notice.kind != group.change.kind or any(k not in group.columns for k, _ in frame.notice.failed):
                return False
        elif (frame.ordering is not None) is not group.sequenced or not (
            order.fits(group, frame) if order.stamps else frame.stamp is None
        ):
            return False  # its sender and we do not agree whether there is a sequencer, or on the order
        follows = group.receive(frame, now)
        if follows is None:
            return False
        if frame.notice is not None and frame.notice.kind == "flush":
            group.change.flushed(frame)
            follows = True
        else:
            for name in order.received(group, frame, now):
                self._stirred[name] = self._groups[name]
        if frame.more or frame.notice is not None:
            self._special = True
        if self._stirs:
            self._to_answer = max(self._to_answer, frame.block)
            follows = True
        if follows:
            self._stirred[frame.group] = group
        return True

    def _send_waiting(self, group: NewtopGroup, now: int, effects: list[Effect]) -> None:
        """Let leave what the application asked for, and note what follows for other groups and for delivery."""
        block = group.send_waiting(self._order, now, effects)
        if block > self._to_answer:
            self._to_answer = block
        if group.outbox.in_pieces or group.change.open:
            self._special = True

    def _deliver(
        self, ready: list[BlockFrame], stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]
    ) -> None:
        """Hand over whatever has its turn, of any group."""
        if self._plain and not self._special:
            effects += map(_new, repeat(Deliver), zip(ready))  # `Deliver(frame)` of each, without a step of Python
            return
        for frame in ready:
            group = self._groups[frame.group]
            if frame.notice is not None:
                stirred[frame.group] = group
                group.deliver(frame)
                self._install(group, group.change.delivered(frame, group.view), now, effects)
                continue
            if frame.more or not self._plain or group.fragments.open:
                stirred[frame.group] = group
                whole = group.deliver(frame)
                if whole is None:
                    continue
                frame = whole  # noqa: PLW2901
            effects.append(Deliver(frame))

    # Views

    def _confirmed(self, group: NewtopGroup, detection: Detection, now: int) -> None:
        """Members have failed (9.4 vii): nobody waits for them, and it is settled where the view changes."""
        self._stirred[group.view.group] = group
        group.exclude(detection, self._order.failed(group, detection) if group.change.discards else ())
        group.mark()
        notice, number = group.confirmed(detection, self._order.cut_after)
        if notice is not None:
            group.notices.append(notice)
        if number is None:
            return
        group.counter.witness(number)
        if self._order.cut_after and group.sent < number:
            group.null(number, now, self._early)  # nobody else may owe this number (E-60)
            group.expect(number, now)  # and we do, should flow control hold it back
        if self._rules.answers_cuts:
            self._to_answer = max(self._to_answer, number)  # in all groups, or a silent one keeps the view from us
        if notice is None:
            self._confirmations += 1
            heappush(self._cuts, (number, self._confirmations, group.view.group, detection))

    def _change_views(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> bool:
        """Install what has its turn, by number or because all have flushed; True if something may follow from it."""
        if self._cuts:
            number, _, name, detection = self._cuts[0]
            if not self._order.passed(number):
                return False
            heappop(self._cuts)
            stirred[name] = group = self._groups[name]
            if along := group.change.along(detection, number):
                self._cuts = [cut for cut in self._cuts if cut[3] not in along]
                heapify(self._cuts)
            self._install(group, [detection, *along], now, effects)
            return True
        changed = False
        for name, group in self._groups.items():
            if group.change.open and group.change.kind == "flush":
                complete = group.change.complete(group.view, frozenset(group.agreement.failed))
                if complete and self._order.settled(group):
                    stirred[name] = group
                    self._install(group, complete, now, effects)
                    changed = True
        return changed

    def _install(self, group: NewtopGroup, detections: list[Detection], now: int, effects: list[Effect]) -> None:
        """From here on in the order, the view is one without these."""
        if not detections:
            return
        failed = [pair for detection in detections for pair in detection.failed]
        view = shrunk_view(group.view, failed, skips=len(detections) > 1)
        group.change.installed(detections)
        group.install(view)
        group.unseen = group.change.closes  # what an application sends before it sees a view, it sends in the old one
        group.drop(self._order.installed(group, [process for process, _ in failed]))
        left = tuple(left for detection in detections for left in detection.left)
        effects.append(InstallView(view, left, self._rules.signature and self._rules.signature(view)))
        group.agreement.installed(now)
        group.mark()

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
