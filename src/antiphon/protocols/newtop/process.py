"""A process under Newtop: one block counter, its groups, one order of delivery over all of them (Macedo94 ch. 4, 5).

Implements the contract of `core/contract.py`. Groups are connected at three places: the counter; the nulls that a
number in one group causes in the others (rule CA4); and the ordering part, which decides what is deliverable. Parts:

    Groups      by identity and name, those that were stirred     Reception      received frames, by kind
    Answers     rule CA4                                          Delivery       deliverable frames
    Cuts        where views change                                ViewInstaller  failures to views
    Alarms      the next alarm of each group                      States         of applications, under way
    HeldBack    effects that wait for a state                     Formations     join, leave, merge, through Passage
    Primaries   which views are primary                           Asking         requests and answers
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from antiphon.core.clocks import BlockCounter
from antiphon.core.contract import Answer, Capabilities, StateSource
from antiphon.core.effects import Effect, Frame, InstallView
from antiphon.core.services import GroupService
from antiphon.protocols.newtop.alarms import ASKING, FORMATIONS, Alarms
from antiphon.protocols.newtop.answers import Answers
from antiphon.protocols.newtop.asking.asking import Asking
from antiphon.protocols.newtop.bounds import Bounds
from antiphon.protocols.newtop.chosen import ChosenServices
from antiphon.protocols.newtop.delivery import Delivery
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.passage import Passage
from antiphon.protocols.newtop.formation.proposals import EarlyProposals
from antiphon.protocols.newtop.formation.states import States
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.protocols.newtop.frames import BlockFrame, ProposeFrame, QueryFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.membership.agreement import AgreementCallbacks, Detection
from antiphon.protocols.newtop.membership.cuts import Cuts
from antiphon.protocols.newtop.membership.installer import ViewInstaller
from antiphon.protocols.newtop.ordering.contract import Order, require_consistent
from antiphon.protocols.newtop.primary.rounds import Primaries
from antiphon.protocols.newtop.reception import Reception
from antiphon.protocols.newtop.rules import ADOPTED, Rules
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.protocols.newtop.voice import Post
from antiphon.types import GroupId, ProcessId, View, name_of


class NewtopProcess:
    """Invariant: between two calls, all possible consequences are in `Groups.stirred` or among the early effects."""

    capabilities: ClassVar = Capabilities(
        asks=True, answers_in_order=True, suspects=True, counts_connections=True, changes=True
    )

    def __init__(
        self, me: ProcessId, views: Mapping[GroupId, View], settings: NewtopSettings, rules: Rules = ADOPTED
    ) -> None:
        post = Post(datagrams=settings.datagrams)
        self.counter = counter = BlockCounter()
        callbacks = AgreementCallbacks(self._take, self._relayed, self._confirmed)
        services = ChosenServices(settings)

        def new_group(view: View, base: int = 0, now: int = 0) -> NewtopGroup:
            own = counter if rules.one_counter else BlockCounter()
            service = services.of(name_of(view.group))
            return NewtopGroup(me, view, own, settings, rules, callbacks, post.early, service, base, now)

        if settings.primary is not None:  # views are voted on
            views = {name: replace(view, primary=False) for name, view in views.items()}
        self._early = post.early  # effects of what happened between drains, in order
        self._groups = {view.group: new_group(view) for view in views.values()}
        self._order: Order = rules.orders[settings.service](me, self._groups, settings)
        require_consistent(settings, self._order)
        self._table = groups = Groups(
            self._groups, services, crosses=self._order.crosses, turns=rules.turns, in_turn=bool(settings.asymmetric)
        )
        self._alarms = Alarms()
        self._answers = Answers()
        bounds = Bounds(counter, self._groups, by_block=bool(settings.block_numbered))
        self._cuts = Cuts()
        histories = Histories(on=settings.compares_histories, ordered=self._order.total)
        held_back = HeldBack(self._transfer_of)
        asking = Asking(me, groups, post.early, settings, held_back)
        primaries = Primaries(me, settings, held_back)
        self._states = States(held_back, histories, primaries, settings.frame_bytes_max)
        self._connections = Connections(frozenset(self._groups), EarlyProposals(me, post.transmit))
        self.admits = self._connections.admits
        """`Connected.admits`, without a call in between: it runs for every frame."""
        self._suspecting = settings.suspect_after_ns > 0
        self._formations: Formations | None = None
        if self._suspecting:
            passage = Passage(
                me, counter, groups, self._order, self._cuts, self._answers, self._alarms,
                held_back, self._connections, post, new_group, primaries, bounds,
                histories,
            )  # fmt: skip
            self._formations = rules.formations(me, settings, passage)
        self._installer = ViewInstaller(
            groups, self._order, self._cuts, self._answers, held_back, self._states, rules, self._formations,
            primaries, asking, post.early,
        )  # fmt: skip
        self.needs_consumed = bool(settings.flow_control)
        """True if `consumed` has an effect; otherwise a driver may skip the call."""
        plain = not self.needs_consumed and not primaries.on
        self._delivery = Delivery(groups, self._installer, held_back, self._states, histories, plain=plain)
        self._reception = Reception(
            groups, self._order, self._answers, self._delivery, self._connections, self._formations, bounds,
            asking, suspecting=self._suspecting,
        )  # fmt: skip
        self.receive: Callable[[Frame, int], None] = (
            self._reception.restore if settings.datagrams else self._reception.take
        )
        """A frame is received; on datagrams it may be anywhere in its stream."""
        self._writable = True
        self.deadline: int | None = None
        """The next time at which something is due; a plain attribute, because it is read after every event."""
        self._begin(views)

    def _begin(self, views: Mapping[GroupId, View]) -> None:
        for view in views.values():
            self._early.append(InstallView(view))
            self._installer.asking.shown(self._early[-1], self._early)
        for group in self._groups.values():
            group.suspector.rest(group, 0)
            if self._formations is not None:
                self._formations.entered(group, 0)
            self._installer.primaries.configured(group.view)
            self._installer.primaries.entered(group)
        self._arm_formations()

    # Inputs of every core

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Keep a message until `drain` numbers it; if we are joining, until we are a member."""
        own = self._table.names.get(group)
        if own is None:
            self._table.send_early(group, payload, label)
            return
        self._table.stirred[own.roster.view.group] = own
        own.outgoing.outbox.put(payload, label)

    def send_all(self, group: GroupId, payloads: list[bytes], now: int, label: int = 0) -> None:
        """The same for many messages; `label` is that of the first."""
        own = self._table.names.get(group)
        if own is None:
            for place, payload in enumerate(payloads):
                self.send(group, payload, now, label + place)
            return
        self._table.stir(own)
        own.outgoing.outbox.put_all(payloads, label)

    def ask(self, group: GroupId, payload: bytes, answers: str, now: int, label: int = 0) -> int:
        """Send a request to the group; `Answered` or `Unanswered` follows."""
        number = self._installer.asking.ask(group, payload, answers, now, label)
        self._delivery.look_closely()
        return number

    def withdraw(self, group: GroupId, request: int, now: int) -> tuple[tuple[ProcessId, bytes], ...]:  # noqa: ARG002
        """End a request; returns the answers so far."""
        return self._installer.asking.withdraw(group, request)

    def is_request(self, frame: Frame) -> bool:
        """Whether the author of a delivered message asks for answers."""
        return isinstance(frame, BlockFrame) and frame.ask is not None and frame.ask.asker is None

    def answer(self, frame: Frame, payload: bytes, now: int) -> None:
        """Answer the request that this frame brought, to its asker alone."""
        assert isinstance(frame, BlockFrame | QueryFrame)
        self._installer.asking.answer(frame, payload, now)

    def answer_in_order(self, frame: Frame, payload: bytes, now: int, label: int = 0) -> None:  # noqa: ARG002
        """Answer by a message to the group."""
        assert isinstance(frame, BlockFrame | QueryFrame)
        self._installer.asking.answer_in_order(frame, payload, label)
        self._delivery.look_closely()

    def tick(self, now: int) -> None:
        """Time has passed: `drain` does what is due."""
        for name in self._alarms.rung(now):
            group = self._groups.get(name)
            if group is not None:
                self._table.stirred[name] = group
            elif name == FORMATIONS and self._formations is not None:
                self._formations.tick(now)
                self._arm_formations()
            elif name == ASKING:
                self._installer.asking.tick(now)
                self._arm_asking()
        self.deadline = self._alarms.deadline

    def consumed(self, group: GroupId, position: int, now: int) -> bool:  # noqa: ARG002
        """The application has consumed messages: flow control counts them as complete here (Δ)."""
        own = self._groups.get(group) if self.needs_consumed else None
        if own is None:
            return False  # consumption is not counted, or the group is gone
        own.consumption.took(position)
        if own.discipline.awaits_application:
            self._table.stirred[group] = own
            return True
        return False

    def writable(self, ready: bool, now: int) -> None:  # noqa: ARG002
        """While the transport is full, application messages gather; nulls still leave, because others wait for them."""
        self._table.stir_all()
        self._writable = ready

    # Members that fail

    def viewed(self, view: View, now: int) -> None:  # noqa: ARG002
        """The application has read a view: its messages from now on belong to it."""
        if self._formations is not None:
            self._formations.steps.viewed(view.group)
        group = self._groups.get(view.group)
        if group is not None:
            group.viewed(view)
            self._table.stir(group)

    def accept(self, group: GroupId, members: tuple[ProcessId, ...], now: int) -> None:  # noqa: ARG002
        """The application accepts the view of these members."""
        own = self._groups.get(group)
        if own is not None:
            self._installer.accept(own, frozenset(members))

    def is_bound(self, frame: Frame) -> bool:
        """Frames that form a group belong to no connection."""
        return self._connections.is_bound(frame)

    def connected(self, peer: ProcessId, connection: int, now: int) -> list[ProposeFrame]:  # noqa: ARG002
        """Frames to that peer use this connection; returns the proposals that waited for it."""
        return self._connections.connected(peer, connection)

    def disconnected(self, peer: ProcessId, now: int) -> None:  # noqa: ARG002
        """There is no connection to that peer."""
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
        """Frames of that peer are lost: it counts as silent, even if some still arrive (E-47). None: in all groups."""
        self._table.sever(peer, now, groups)

    def gone(self, peer: ProcessId, now: int) -> None:
        """The transport has evidence that a peer is dead: members agree on it without waiting for its silence."""
        for group in self._groups.values() if self._suspecting else ():
            self._table.stir(group)
            group.agreement.vanished(peer, now)

    def suspect(self, process: ProcessId, now: int) -> None:
        """A suspicion from outside, right or wrong, in all common groups; without effect if suspicion is off."""
        for group in self._groups.values() if self._suspecting else ():
            self._table.stir(group)
            group.agreement.suspect(process, "injected", now)

    # Groups that change (11)

    def choose(self, name: GroupId, service: GroupService) -> None:
        """The service of a group that we are about to form or to join."""
        assert self.current(name) is None, "a group keeps its service"
        self._table.services.choose(name, service)

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """Form a new group of these."""
        self._installer.primaries.forms(name)
        self._about_to_enter(name).form(name, members, now)
        self._arm_formations()

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Join the group that one of these is in."""
        self._about_to_enter(name).join(name, contacts, now)
        self._arm_formations()

    def merge(self, name: GroupId, others: tuple[ProcessId, ...], now: int) -> None:  # noqa: ARG002
        """Search for these at once."""
        assert self._formations is not None
        self._formations.merge(name, others)
        self._table.stir_all()

    def entitle(self, name: GroupId, now: int) -> None:  # noqa: ARG002
        """We may found the first primary view of that group."""
        group = self.current(name)
        self._installer.primaries.entitle(name, group)
        if group is not None:
            self._table.stir(group)

    def inquire(self, name: GroupId, peers: tuple[ProcessId, ...], now: int, *, founding: bool) -> None:  # noqa: ARG002
        """Ask these whether they are in that group."""
        assert self._formations is not None
        self._formations.inquiries.inquire(name, peers, founding=founding)

    def answers(self, name: GroupId) -> Mapping[ProcessId, Answer]:
        """What processes have said about that group."""
        assert self._formations is not None
        return self._formations.inquiries.answers(name)

    def leave(self, name: GroupId, now: int) -> None:
        """Leave as soon as all members have what we sent."""
        assert self._formations is not None
        self._table.take_early(name)
        self._installer.asking.left(name)
        self._formations.leave(name, now)
        self._table.stir_all()

    def state(self, view: View, state: bytes | StateSource, now: int) -> None:  # noqa: ARG002
        """The state of our application when it read that view."""
        group = self._groups.get(view.group)
        awaited = group is not None and group.transfer is not None
        self._states.snapshot(group, state)
        if group is not None and awaited:
            self._table.stir(group)

    # Questions

    def current(self, name: GroupId) -> NewtopGroup | None:
        """The group of that name that we are in."""
        return self._table.names.get(name)

    def incoming(self, name: GroupId) -> list[tuple[int, int]]:
        """For each state that our application waits for: bytes received and total; 0: unknown."""
        group = self.current(name)
        if group is None or group.transfer is None:
            return []
        return group.transfer.incoming(group.fragments)

    def waiting(self, name: GroupId) -> int:
        """Number of messages of our application in that group that have not left, also if we are still joining it."""
        group = self.current(name)
        return self._table.early_sends(name) if group is None else len(group.outgoing.outbox.waiting)

    def retains(self, name: GroupId) -> bool:
        """True if we hold messages that a member may lack, or a state; nulls do not count: there are always some.

        Messages under way to a sequencer count.
        """
        group = self.current(name)
        if group is None:
            return False
        under_way = group.discipline.awaits_return or group.transfer is not None
        return under_way or any(frame.payloads for frame in group.holdings.buffers.held())

    def first_unstable(self, name: GroupId) -> int | None:
        """The label of our first message that a member may lack; those that have not left do not count."""
        group = self.current(name)
        return 0 if group is None else group.first_unstable()

    def unstable(self, group: GroupId) -> int:
        """Number of held frames, including nulls; 0 for a group that we are not in. By identity or by name."""
        own = self._groups.get(group) or self.current(group)
        return own.holdings.buffers.frames if own is not None else 0

    # The drain, in phases

    def drain(self, now: int) -> list[Effect]:
        """Send, deliver, settle; repeat while that has further consequences."""
        stirred, early, formations = self._table.stirred, self._early, self._formations
        if not stirred and not early and (formations is None or not formations.busy):
            return []
        effects: list[Effect] = []
        again = True
        while again:
            effects += early
            early.clear()
            self._speak(now, effects)
            ready = self._take_turns(effects)
            again = self._delivery.deliver(ready, now, effects) if ready else False
            if self._suspecting:
                again = self._installer.change(now, effects) or again
            again = again or (formations is not None and formations.busy and formations.advance(now))
            again = self._settle(now, effects) or again or bool(early)
        stirred.clear()
        self._arm_formations()
        if self._installer.asking.at_changed:
            self._arm_asking()
        return effects

    def _speak(self, now: int, effects: list[Effect]) -> None:
        """Send waiting messages, and the nulls that are owed and due."""
        table = self._table
        in_turn, crossing = table.turns is not None, table.crossing
        if in_turn:
            self._send_in_turn(now, effects)
        for group in table.stirred.values():
            outgoing = group.outgoing
            waits = outgoing.outbox.waiting or outgoing.notices or outgoing.donation
            if waits and self._writable and not in_turn:
                self._send_waiting(group, now, effects)
            if group.numbers.silence.deadline is not None and not crossing:
                group.discipline.answer(now, effects)  # else a message of another group may be the answer
        if crossing:
            self._answer_everywhere(now, effects)

    def _send_in_turn(self, now: int, effects: list[Effect]) -> None:
        """If a group is asymmetric: first what members owe each other, then messages of applications."""
        turns = self._table.turns
        if not self._writable or turns is None:
            return
        for group in turns.line(self._table.stirred):
            self._answers.want(group.discipline.serve(self._order, now, effects))
            if (group.outgoing.outbox.waiting or group.outgoing.donation) and turns.permits(group):
                self._send_waiting(group, now, effects)

    def _send_waiting(self, group: NewtopGroup, now: int, effects: list[Effect]) -> None:
        """Send messages of the application, and note the consequences for other groups and for delivery."""
        block = group.discipline.send_waiting(self._order, now, effects)
        if block > self._answers.wanted:
            self._answers.want(block)
        if group.outgoing.outbox.in_pieces or group.change.open:
            self._delivery.look_closely()

    def _answer_everywhere(self, now: int, effects: list[Effect]) -> None:
        """Rule CA4: a data number of one group is answered in all others; nulls never cause nulls."""
        block, stirred = self._answers.due(), self._table.stirred
        if block is not None:
            for name, group in self._groups.items():
                if group.discipline.largest < block:
                    group.discipline.null(block, now, effects)
                    stirred[name] = group
        for group in stirred.values():
            if group.numbers.silence.deadline is not None:
                group.discipline.answer(now, effects)

    def _take_turns(self, effects: list[Effect]) -> list[BlockFrame]:
        """Deliver all deliverable frames, up to a view change or the limit of a formation."""
        for group in self._table.safe:
            group.discipline.stabilise(effects)
        upto, formations = self._cuts.upto, self._formations
        return self._order.take(upto if formations is None or upto < formations.stage.limit else formations.stage.limit)

    def _settle(self, now: int, effects: list[Effect]) -> bool:
        """Settle every changed group, and set its alarm; True if this may have further consequences."""
        again, watched, armed = False, [], self._alarms.armed
        for name, group in self._table.stirred.items():
            group.discipline.settle(now, effects)
            if group.gate.refused is not None and self._may_go_on(group):
                again = True
            at, watch = group.news.at, group.suspector.at
            owed, recovery = group.numbers.silence.deadline, group.voice.recovery
            if (at is not None and at <= now) or owed is not None or recovery is not None:
                group.discipline.finish(now, effects)
                at = group.discipline.deadline
            elif watch is not None and (at is None or watch < at):
                at = watch
            if watch is not None and watch <= now:
                watched.append(group)
                again = True
            elif at != armed.get(name):
                self._alarms.arm(name, at)
                self.deadline = self._alarms.deadline
        for group in watched:
            group.suspector.look(group, now)
            group.concerns.look(group, now, effects)
        return again

    def _may_go_on(self, group: NewtopGroup) -> bool:
        """True if a refused message may leave now."""
        turns = self._table.turns
        return self._writable and group.discipline.released and (turns is None or turns.permits(group))

    # Callbacks of the groups' agreements; the groups are built before the parts that carry them out

    def _take(self, frame: Frame, now: int) -> None:
        self._reception.take_or_sever(frame, now)  # it was held, so its sender cannot be told of a refusal

    def _relayed(self, frame: BlockFrame, now: int) -> bool:
        return self._reception.relayed(frame, now)

    def _confirmed(self, group: NewtopGroup, detection: Detection, now: int) -> None:
        self._installer.confirmed(group, detection, now)

    # Steps of the above

    def _transfer_of(self, group: GroupId) -> Transfer | None:
        own = self._groups.get(group)
        return None if own is None else own.transfer

    def _about_to_enter(self, name: GroupId) -> Formations:
        assert self._formations is not None
        self._table.expect(name)
        return self._formations

    def _arm_asking(self) -> None:
        at = self._installer.asking.at
        if at != self._alarms.armed.get(ASKING):
            self._alarms.arm(ASKING, at)
            self.deadline = self._alarms.deadline

    def _arm_formations(self) -> None:
        formations = self._formations
        if formations is not None and formations.at != self._alarms.armed.get(FORMATIONS):
            self._alarms.arm(FORMATIONS, formations.at)
            self.deadline = self._alarms.deadline
