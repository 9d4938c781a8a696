"""A process under Newtop: one block counter, its groups, one order of delivery over all of them (Macedo94 ch. 4, 5).

Offers the contract of `core/contract.py`. Groups are joined at three places: the counter; the nulls that a number in
one group causes in the others (rule CA4); and the ordering part, which decides whose turn it is.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import ClassVar, Final, cast

from antiphon.core.clocks import BlockCounter
from antiphon.core.contract import Capabilities, StateSource
from antiphon.core.effects import Channel, Deliver, Effect, Frame, InstallView, Left, Reach, Transitional, Transmit
from antiphon.core.timers import Timers
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.formation.proposals import EarlyProposals
from antiphon.protocols.newtop.formation.transfer import Shelf, Transfer, release
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    FormationFrame,
    InstallFrame,
    LeavingFrame,
    MembershipFrame,
    NewtopFrame,
    ProposeFrame,
    ToSequencer,
    WantFrame,
)
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection, Surroundings
from antiphon.protocols.newtop.ordering.contract import FormingOrder
from antiphon.protocols.newtop.outbox import Outbox, Stream
from antiphon.protocols.newtop.rules import ADOPTED, Rules
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, formed_view, name_of, shrunk_view

_new: Final = tuple.__new__
_FORMATIONS: Final = GroupId("")
"""What stands for the alarm of the formations among those of the groups."""


class NewtopProcess:
    """One member, from its first views on."""

    capabilities: ClassVar = Capabilities(suspects=True, counts_connections=True, changes=True)

    def __init__(
        self, me: ProcessId, views: Mapping[GroupId, View], settings: NewtopSettings, rules: Rules = ADOPTED
    ) -> None:
        self.deadline: int | None = None
        """When time alone makes something due; a plain attribute, for it is read after every event."""
        self.counter = BlockCounter()
        self._me = me
        self._rules = rules
        self._settings = settings
        self._around = Surroundings(self._take, self._relayed, self._confirmed)
        self._early: list[Effect] = []  # what happened between drains, in order; kept in place, groups write to it
        self._groups = {view.group: self._new_group(view) for view in views.values()}
        self._current = {name_of(group): group for group in self._groups}  # by the name that applications know
        self._order = rules.orders[settings.service](me, self._groups, settings)
        assert not settings.block_numbered or not settings.suspect_after_ns or self._order.cut_after is not None, (
            "a flush is in no window, so blocks cannot be counted"
        )
        assert settings.service != "total-safe" or settings.view_change == "cut", "safe delivery goes with cuts"
        self._plain = not settings.flow_control  # nobody counts what applications take
        self.heeds_application = not self._plain
        """Whether `consumed` matters; a driver in a hurry may leave it out otherwise."""
        self._turns = rules.turns(self._groups) if settings.asymmetric else None
        self._weigh_groups()
        self._special = self._turns is not None  # a piece of a larger message, or a notice, has been seen
        self._changing = False  # groups have been formed
        self._shelf = Shelf(lambda group: self._groups[group].transfer if group in self._groups else None)
        self._cuts: list[tuple[int, int, GroupId, Detection | None]] = []
        """Heap: where views change, in the order of all groups; without a detection, the first of a formed group."""
        self._confirmations = 0
        self._suspecting = settings.suspect_after_ns > 0
        self._to_answer = 0  # the largest data number of any group
        self._answered = 0  # as far as all groups have it
        self._stirred = dict(self._groups)
        """Groups in which something may follow from what was fed since the last drain."""
        self._armed: dict[GroupId, int | None] = {}
        self._timers: Timers[tuple[GroupId]] = Timers()
        forms = self._suspecting and self._order.forms
        self._forming = cast("FormingOrder", self._order) if forms else None
        self._formations = rules.formations(me, settings, self) if self._forming is not None else None
        self._early_sends: dict[GroupId, list[tuple[bytes, int]]] = {}  # to groups that we are about to be in
        self._writable = True
        self._connections = Connections(frozenset(self._groups), EarlyProposals(me, self.transmit))
        self.admits = self._connections.admits
        """`Connected.admits`, without a call in between: it is asked of every frame."""
        if not settings.datagrams:
            self.receive = self._take  # type: ignore[method-assign]  # frames come in order: nothing to restore
        self._early += [InstallView(view) for view in views.values()]
        for group in self._groups.values():
            group.suspector.rest(group, 0)
            if self._formations is not None:
                self._formations.entered(group, 0)
        self._arm_formations()

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it; if we are about to become a member, until we are."""
        current = self._current.get(group)
        if current is None:
            self._early_sends[group].append((payload, label))
            return
        self._stirred[current] = own = self._groups[current]
        own.outgoing.outbox.put(payload, label)

    def send_all(self, group: GroupId, payloads: list[bytes], now: int, label: int = 0) -> None:
        """The same of many; `label` is that of the first."""
        current = self._current.get(group)
        if current is None:
            for place, payload in enumerate(payloads):
                self.send(group, payload, now, label + place)
            return
        self._stirred[current] = own = self._groups[current]
        own.outgoing.outbox.put_all(payloads, label)

    def receive(self, frame: Frame, now: int) -> None:
        """Record a frame that may be anywhere in its stream; on streams, `_take` stands in for this."""
        if isinstance(frame, ToSequencer):
            self._take(frame, now)  # it has no place in any stream
            return
        group = self._groups.get(frame.group)
        if group is None or isinstance(frame, FormationFrame):
            self._take_strange(frame, now)
            return
        if group.voice.recovery is None or not isinstance(frame, NewtopFrame):
            return
        self._stirred[frame.group] = group
        ready = group.voice.recovery.receive(frame, now)
        clock = group.suspector.clock
        known = clock[:]
        for each in ready:
            self._take(each, now)
        clock[:] = known  # a copy says nothing about who is alive now, except for whoever sent it
        group.sign_of_life(frame.sender, now)

    def tick(self, now: int) -> None:
        """Nothing but the passing of time: `drain` looks at what is due."""
        for (name,) in self._timers.due(now):
            group = self._groups.get(name)
            if group is not None:
                self._stirred[name] = group
                self._armed[name] = None
            elif name == _FORMATIONS and self._formations is not None:
                self._formations.tick(now)
                self._arm_formations()
        self.deadline = self._timers.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """The application has taken messages: flow control counts them as complete here (Δ)."""
        own = None if self._plain else self._groups.get(group)
        if own is None:
            return False  # nobody counts, or the group is no more
        own.consumption.took(position)
        if own.discipline.awaits_application:
            self._stirred[group] = own
            return True
        return False

    def viewed(self, view: View, now: int) -> None:  # noqa: ARG002
        """The application has got to a view: what it sends from now on, it sends in this one."""
        group = self._groups.get(view.group)
        if group is not None:
            group.viewed(view)
            self._stirred[view.group] = group

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages gather; nulls still leave, others wait for them."""
        self._stirred.update(self._groups)
        self._writable = ready

    def connected(self, peer: ProcessId, connection: int, now: int) -> list[ProposeFrame]:  # noqa: ARG002
        """Frames to that peer leave by this connection; gives the proposals that waited for it."""
        return self._connections.connected(peer, connection)

    def disconnected(self, peer: ProcessId, now: int) -> None:  # noqa: ARG002
        """No connection leads to that peer."""
        self._connections.disconnected(peer)

    def broke(
        self, peer: ProcessId, connection: int, now: int, *, incoming: bool = True, outgoing: bool = True
    ) -> None:
        """A connection has lost frames: the groups that used it are severed from that peer (E-47)."""
        directions = [each for each, lost in ((True, incoming), (False, outgoing)) if lost]
        groups = [self._connections.broke(peer, connection, incoming=each) for each in directions]
        if concerned := frozenset[GroupId]().union(*groups):
            self.severed(peer, now, concerned)

    def severed(self, peer: ProcessId, now: int, groups: frozenset[GroupId] | None = None) -> None:
        """Frames of that peer are lost: whatever still comes, it counts as silent (E-47). None: in all groups."""
        for name, group in self._groups.items():
            if peer in group.roster.ranks and (groups is None or name in groups):
                group.suspector.severed(group.roster.ranks[peer], now)
                if group.suspector.cut_off(group):
                    self._stirred[name] = group

    def suspect(self, process: ProcessId, now: int) -> None:
        """A suspicion from outside, right or wrong, in all groups that we share; not where nobody is ever suspected."""
        for name, group in self._groups.items() if self._suspecting else ():
            self._stirred[name] = group
            group.agreement.suspect(process, "injected", now)

    # Groups that change (11)

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """Form a new group of these."""
        self._about_to_enter(name).form(name, members, now)
        self._arm_formations()

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Be taken in by those whom one of these is with."""
        self._about_to_enter(name).join(name, contacts, now)
        self._arm_formations()

    def merge(self, name: GroupId, others: tuple[ProcessId, ...], now: int) -> None:  # noqa: ARG002
        """Look for these at once."""
        assert self._formations is not None
        self._formations.merge(name, others)
        self.stir()

    def leave(self, name: GroupId, now: int) -> None:
        """Be a member no longer, as soon as everybody has what we sent."""
        assert self._formations is not None
        self._early_sends.pop(name, None)
        self._formations.leave(name, now)
        self.stir()

    def state(self, view: View, state: bytes | StateSource, now: int) -> None:  # noqa: ARG002
        """What our application's state was when it got to that view."""
        group = self._groups.get(view.group)
        if group is not None and group.transfer is not None:
            group.transfer.snapshot(state)
            self._donate(group)
            self._stirred[view.group] = group
        else:
            release(state)

    def incoming(self, name: GroupId) -> list[tuple[int, int]]:
        """Of each state that our application waits for, how many bytes have come, and of how many; 0: not known."""
        group = self.current(name)
        if group is None or group.transfer is None:
            return []
        return group.transfer.incoming(group.fragments)

    def drain(self, now: int) -> list[Effect]:
        """Speak, deliver, draw the consequences; once more as long as that lets something else happen."""
        stirred, early, formations = self._stirred, self._early, self._formations
        if not stirred and not early and (formations is None or not formations.busy):
            return []
        effects: list[Effect] = []
        again = True
        while again:
            effects += early
            early.clear()
            self._speak(stirred, now, effects)
            ready = self._take_turns(effects)
            if ready:
                self._deliver(ready, stirred, now, effects)
            again = self._suspecting and self._change_views(stirred, now, effects)
            again = again or (formations is not None and formations.busy and formations.advance(now))
            watched: list[NewtopGroup] | None = None
            for name, group in stirred.items():
                group.discipline.settle(now, effects)
                if group.gate.blocked and self._writable and group.discipline.released and self._has_turn(group):
                    again = True
                at, watch = group.news.at, group.suspector.at
                if (
                    (at is not None and at <= now)
                    or group.numbers.silence.deadline is not None
                    or group.voice.recovery is not None
                ):
                    group.discipline.finish(now, effects)
                    at = group.discipline.deadline
                elif watch is not None and (at is None or watch < at):
                    at = watch
                if watch is not None and watch <= now:
                    watched = [*(watched or ()), group]
                elif at != self._armed.get(name):
                    self._armed[name] = at
                    self._timers.set((name,), at)
                    self.deadline = self._timers.deadline
            for group in watched or ():
                group.suspector.look(group, now)
            again = again or watched is not None or bool(early)
        stirred.clear()
        if formations is not None and formations.at != self._formations_armed:
            self._arm_formations()
        return effects

    def _take_turns(self, effects: list[Effect]) -> list[BlockFrame]:
        """Whatever has its turn, up to where a view changes or a formation has stopped us."""
        for group in self._safe:
            group.discipline.stabilise(effects)
        upto, formations = self._cuts[0][0] if self._cuts else BEYOND, self._formations
        return self._order.take(upto if formations is None or upto < formations.limit else formations.limit)

    def _speak(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Let leave what waits, and the nulls that are owed and due."""
        if self._turns is not None:
            self._send_in_turn(self._turns, stirred, now, effects)
        for group in stirred.values():
            waits = group.outgoing.outbox.waiting or group.outgoing.notices or group.outgoing.donation
            if waits and self._writable and self._turns is None:
                self._send_waiting(group, now, effects)
            if group.numbers.silence.deadline is not None and not self._crossing:
                group.discipline.answer(now, effects)  # else a message of another group may pay what is owed
        if self._crossing:
            self._answer_everywhere(stirred, now, effects)

    def _send_in_turn(self, turns: Turns, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Where a group is asymmetric: first what its members owe each other, then what applications want."""
        if not self._writable:
            return
        for group in turns.line(stirred):
            if group.discipline.sequenced:
                self._to_answer = max(self._to_answer, group.discipline.serve(self._order, now, effects))
            if (group.outgoing.outbox.waiting or group.outgoing.donation) and turns.permits(group):
                self._send_waiting(group, now, effects)

    def _has_turn(self, group: NewtopGroup) -> bool:
        return self._turns is None or self._turns.permits(group)

    def _take(self, frame: Frame, now: int) -> None:
        """A frame comes, from its channel's next place; frames of other groups or families are not ours."""
        group = self._groups.get(frame.group)
        if group is None:
            self._take_strange(frame, now)
        elif group.agreement.wary:
            self._take_warily(group, frame, now)
        elif isinstance(frame, BlockFrame) and not frame.excluded:
            self._record(group, frame, now)  # nearly always
        else:
            self._accept(group, frame, now)

    def _take_warily(self, group: NewtopGroup, frame: Frame, now: int) -> None:
        """Somebody is suspected, accused or failed: whose frame it is matters (9.3), and what it is evidence of."""
        if isinstance(frame, FormationFrame):
            self._take_strange(frame, now)
            return
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
                if isinstance(frame, WantFrame):
                    group.request_completion(frame.wanted, now)
                else:
                    group.agreement.receive(frame, now)
        elif isinstance(frame, BlockFrame):
            if group.agreement.excludes_me(frame):
                self._stirred[frame.group] = group
                group.agreement.parted(frame.sender, now)
            else:
                self._record(group, frame, now)
        elif isinstance(frame, ToSequencer) and group.discipline.submitted(frame):
            group.sign_of_life(frame.sender, now)
            self._stirred[frame.group] = group
        else:
            self._take_strange(frame, now)

    def _take_strange(self, frame: Frame, now: int) -> None:
        """A frame of a formation, of a group that is no more or not yet ours, or of another family."""
        if self._formations is None:
            return
        if isinstance(frame, FormationFrame):
            self._formations.receive(frame, now)
            self.stir()
            if isinstance(frame, InstallFrame) and self._connections.came_too_late(frame):
                self.severed(frame.sender, now, frozenset({frame.group}))
        else:
            self._formations.stranger(frame.group, frame.sender)

    def _relayed(self, frame: BlockFrame, now: int) -> bool:
        """A refutation brought a message: that others have it does not say that its sender lives."""
        group = self._groups[frame.group]
        rank = group.roster.columns[frame.sender]
        heard = group.suspector.clock[rank]
        taken = self._record(group, frame, now)
        group.suspector.clock[rank] = heard
        return taken

    def _record(self, group: NewtopGroup, frame: BlockFrame, now: int) -> bool:
        """Enter a numbered frame; False if it is not the next one of its sender, or nothing of ours."""
        if not frame.payloads and frame.notice is None:
            follows = group.discipline.receive(frame, now)
            if follows:
                self._stirred[frame.group] = group
            return follows is not None
        order = self._order
        if frame.notice is not None:
            if frame.notice.kind != group.change.kind or any(
                k not in group.roster.columns for k, _ in frame.notice.failed
            ):
                return False
        elif (frame.ordering is not None) is not group.discipline.sequenced or not (
            order.fits(group, frame) if order.stamps else frame.stamp is None
        ):
            return False  # its sender and we do not agree whether there is a sequencer, or on the order
        follows = group.discipline.receive(frame, now)
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
        block = group.discipline.send_waiting(self._order, now, effects)
        if block > self._to_answer:
            self._to_answer = block
        if group.outgoing.outbox.in_pieces or group.change.open:
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
            if self._plain and not self._changing and not (frame.more or frame.notice or group.fragments.open):
                effects.append(Deliver(frame))
            else:
                stirred[frame.group] = group
                self._hand_over(group, frame, now, effects)

    def _hand_over(self, group: NewtopGroup, frame: BlockFrame, now: int, effects: list[Effect]) -> None:
        """Its turn has come, where that may mean more than its delivery: a view, a whole message, a state."""
        whole = group.deliver(frame)
        if frame.notice is not None:
            self._install(group, group.change.delivered(frame, group.view), now, effects)
        elif whole is None:
            return
        elif whole.state is None and not self._changing:
            effects.append(Deliver(whole))
        elif whole.state is None:
            self._shelf.put(Deliver(whole), effects)
        elif group.transfer is not None:
            waited = group.transfer.waits
            group.transfer.told(whole.state, whole.payloads[0])
            self._complete(group, waited, effects)

    def _complete(self, group: NewtopGroup, waited: bool, effects: list[Effect]) -> None:
        """The last state may be here, or nobody may be left to tell it: what was held back goes on."""
        transfer = group.transfer
        assert transfer is not None
        if waited and not transfer.waits:
            self._shelf.place(transfer.complete())
            self._shelf.clear(effects)
        if transfer.over:
            group.end_transfer()
        else:
            group.weigh_state()

    # Views

    def _confirmed(self, group: NewtopGroup, detection: Detection, now: int) -> None:
        """Members have failed (9.4 vii): nobody waits for them, and it is settled where the view changes."""
        self._stirred[group.view.group] = group
        if not self._awaits_first_view(group):
            self._shelf.put(_transitional(group), self._early)
        group.exclude(detection, self._order.failed(group, detection) if group.change.discards else ())
        group.mark()
        notice, number = group.discipline.confirmed(detection, self._order.cut_after)
        if notice is not None:
            group.outgoing.tell(notice)
        if number is None:
            return
        group.numbers.counter.witness(number)
        if self._order.cut_after and group.numbers.sent < number:
            group.discipline.null(number, now, self._early)  # nobody else may owe this number (E-60)
            group.numbers.expect(number, now)  # and we do, should flow control hold it back
        if self._rules.answers_cuts:
            self._to_answer = max(self._to_answer, number)  # in all groups, or a silent one keeps the view from us
        if notice is None:
            self._confirmations += 1
            heappush(self._cuts, (number, self._confirmations, group.view.group, detection))

    def _awaits_first_view(self, group: NewtopGroup) -> bool:
        return any(name == group.view.group and detection is None for _, _, name, detection in self._cuts)

    def _change_views(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> bool:
        """Install what has its turn, by number or because all have flushed; True if something may follow from it."""
        if self._cuts:
            number, _, name, detection = self._cuts[0]
            if not self._order.passed(number) or self._withheld(number, name):
                return False
            heappop(self._cuts)
            stirred[name] = group = self._groups[name]
            if detection is None:
                self._install_first(group, now, effects)
                return True
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

    def _withheld(self, number: int, name: GroupId) -> bool:
        """Whether a view must wait for the outcome of a formation."""
        formations = self._formations
        return formations is not None and (number > formations.limit or formations.settled_group == name)

    def _install(self, group: NewtopGroup, detections: list[Detection], now: int, effects: list[Effect]) -> None:
        """From here on in the order, the view is one without these."""
        if not detections:
            return
        failed = [pair for detection in detections for pair in detection.failed]
        view = shrunk_view(group.view, failed, skips=len(detections) > 1)
        group.change.installed(detections)
        group.install(view)
        group.holdings.drop(self._order.installed(group, [process for process, _ in failed]))
        left = tuple(left for detection in detections for left in detection.left)
        self._show(group, InstallView(view, left, self._rules.signature and self._rules.signature(view)), effects)
        group.installed(now)

    def _show(self, group: NewtopGroup, effect: InstallView, effects: list[Effect]) -> None:
        """The application gets to a view when it has the state that it goes with."""
        transfer = group.transfer
        waited = transfer is not None and transfer.waits
        self._shelf.put(effect, effects)
        if transfer is not None:
            transfer.installed(effect.view)
            self._complete(group, waited, effects)
            self._donate(group)

    def _install_first(self, group: NewtopGroup, now: int, effects: list[Effect]) -> None:
        """The first view of a formed group has its turn: whoever has a state says what it is here."""
        transfer = group.transfer
        assert transfer is not None
        self._shelf.put(InstallView(group.view, snapshot=transfer.wanted), effects)
        if group.agreement.failed:
            self._shelf.put(_transitional(group), effects)
        group.await_application()
        group.discipline.begin(now)
        if transfer.over:
            group.end_transfer()

    def _donate(self, group: NewtopGroup) -> None:
        """Tell our class's state, if it is on us and our application has said what it is."""
        found = None if group.transfer is None else group.transfer.donate()
        if found is not None:
            place, state = found
            group.donate(place, self._supply(state))

    def _supply(self, state: bytes | StateSource) -> Outbox | Stream:
        frame_bytes_max = self._settings.frame_bytes_max
        if not isinstance(state, bytes):
            return Stream(state, frame_bytes_max)
        outbox = Outbox(packing=False, frame_bytes_max=frame_bytes_max)
        outbox.put(state, 0)
        return outbox

    # Formations: what they ask of us

    def current(self, name: GroupId) -> NewtopGroup | None:
        """The group of that name that we are in."""
        group = self._current.get(name)
        return None if group is None else self._groups[group]

    def transmit(self, frame: FormationFrame, to: ProcessId) -> None:
        """To one process."""
        self._early.append(Transmit(frame, to, Channel.DATAGRAM if self._settings.datagrams else Channel.STREAM))

    def reach(self, number: int, now: int) -> None:
        """A null with this number in every group that has none as large."""
        for group in self._groups.values():
            if group.discipline.largest < number:
                group.discipline.reach(number, now)

    def passed(self, number: int) -> bool:
        """Whether everything up to that number is delivered, and every view up to there installed."""
        return self._order.passed(number) and not (self._cuts and self._cuts[0][0] <= number)

    def stir(self) -> None:
        """Something may follow in any group."""
        self._stirred.update(self._groups)

    def go_over(self, frame: InstallFrame, now: int) -> NewtopGroup:
        """Step 5 of 11.1: out of the old group, into the new one; its first view has its turn at the base."""
        name, overdue = name_of(frame.group), 0
        waiting = self._early_sends.pop(name, [])
        self.counter.witness(frame.base)
        old = self.current(name)
        if old is not None:
            undelivered = self._close(old, now, graceful=True, successor=frame.group)
            waiting, overdue = old.discipline.hand_over(undelivered)
        view = formed_view(frame.group, frame.base, frame.companies, self._me)
        group = self._new_group(view, frame.base, now)
        group.begin_transfer(Transfer(self._me, view, frame.companies))
        self._special = self._changing = True
        self._groups[view.group] = self._stirred[view.group] = group
        self._current[name] = view.group
        assert self._forming is not None
        self._forming.opened(group)
        self._weigh_groups()
        group.suspector.rest(group, now)
        self._early.append(Reach(view))
        self._confirmations += 1
        heappush(self._cuts, (frame.base, self._confirmations, view.group, None))
        number = max(frame.base, self._forming.highest, *(cut[0] for cut in self._cuts))
        self._to_answer, self._answered = max(self._to_answer, number), 0  # in all groups, the new one too (E-54)
        group.outgoing.take_over(waiting, overdue)
        if self._formations is not None:
            self._formations.entered(group, now)
        others = (member for member in view.members if member != self._me)
        for peer in self._connections.bind(view.group, others):
            self.severed(peer, now, frozenset({view.group}))
        return group

    def depart(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """Our application wanted to leave."""
        group = self.current(name)
        if group is None:
            self._shelf.put(Left(name, graceful), self._early)
            return
        self._close(group, now, graceful=graceful and not group.outgoing.outbox.waiting, successor=None)
        del self._current[name]

    def _close(self, group: NewtopGroup, now: int, *, graceful: bool, successor: GroupId | None) -> list[BlockFrame]:
        """Say that we leave, and forget the group (11.2 rule 1); gives what was not delivered in it."""
        name = group.view.group
        group.multicast(LeavingFrame(name, self._me, group.numbers.sent), now)
        if group.transfer is not None and group.transfer.waits:
            self._shelf.drop(name)
        self._shelf.put(Left(name, graceful, successor), self._early)
        assert self._forming is not None
        undelivered = self._forming.closed(group)
        self._cuts = [cut for cut in self._cuts if cut[2] != name]
        heapify(self._cuts)
        self._timers.set((name,), None)
        self._armed.pop(name, None)
        self._stirred.pop(name, None)
        self._connections.forget(name)
        del self._groups[name]
        self._weigh_groups()
        self._shelf.clear(self._early)  # nobody waits for its state any more
        return undelivered

    def _new_group(self, view: View, base: int = 0, now: int = 0) -> NewtopGroup:
        counter = self.counter if self._rules.one_counter else BlockCounter()
        return NewtopGroup(self._me, view, counter, self._settings, self._rules, self._around, self._early, base, now)

    def _weigh_groups(self) -> None:
        """Groups have come or gone."""
        self._safe = [group for group in self._groups.values() if group.progress.safe]
        if self._turns is not None:
            self._turns.weigh(self._groups)
        self._crossing = self._order.crosses and len(self._groups) > 1
        self._stirs = self._crossing or not self._order.crosses
        """Whether every data frame may have consequences: nulls in other groups, or its own delivery at once."""

    def _about_to_enter(self, name: GroupId) -> Formations:
        assert self._formations is not None
        self._early_sends.setdefault(name, [])
        return self._formations

    def _arm_formations(self) -> None:
        if self._formations is not None:
            self._formations_armed = self._formations.at
            self._timers.set((_FORMATIONS,), self._formations_armed)
            self.deadline = self._timers.deadline

    def _answer_everywhere(self, stirred: dict[GroupId, NewtopGroup], now: int, effects: list[Effect]) -> None:
        """Rule CA4: a data number of one group is answered in all others; nulls never cause nulls."""
        if self._to_answer > self._answered:
            self._answered = block = self._to_answer
            for name, group in self._groups.items():
                if group.discipline.largest < block:
                    group.discipline.null(block, now, effects)
                    stirred[name] = group
        for group in stirred.values():
            if group.numbers.silence.deadline is not None:
                group.discipline.answer(now, effects)

    def waiting(self, name: GroupId) -> int:
        """How many messages of our application in that group have not left, if only because we are not in it yet."""
        group = self.current(name)
        return len(self._early_sends.get(name, ())) if group is None else len(group.outgoing.outbox.waiting)

    def retains(self, name: GroupId) -> bool:
        """Whether we hold messages that some member may lack, and not only nulls, of which there are always some.

        So do messages that are on their way to a sequencer, and states.
        """
        group = self.current(name)
        if group is None:
            return False
        under_way = group.discipline.awaits_return or group.transfer is not None
        return under_way or any(frame.payloads for frame in group.holdings.buffers.held())

    def unstable(self, group: GroupId) -> int:
        """Frames held, nulls included; none of a group we are not in. Asked by identity, or by name."""
        own = self._groups.get(group) or self.current(group)
        return own.holdings.buffers.frames if own is not None else 0


def _transitional(group: NewtopGroup) -> Transitional:
    """Whom deliveries speak for from here on."""
    remaining = [member for member in group.view.members if member not in group.agreement.failed]
    return Transitional(group.view.group, tuple(remaining))
