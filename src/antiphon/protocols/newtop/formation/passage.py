"""From one group to the next: what a process does when a formation or a leave ends (11.1, 11.2)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Left, Reach, Refused
from antiphon.core.services import GroupService
from antiphon.protocols.newtop.alarms import Alarms
from antiphon.protocols.newtop.answers import Answers
from antiphon.protocols.newtop.bounds import Bounds
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.protocols.newtop.frames import BlockFrame, FormationFrame, InstallFrame, LeavingFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.membership.cuts import Cuts
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.primary.rounds import Primaries
from antiphon.protocols.newtop.voice import Post
from antiphon.types import GroupId, ProcessId, View, formed_view, name_of

_UNREAD_MAX: Final = 4
"""How many groups of one name may hold deliveries that an application has not read: each has windows of its own."""

NewGroup = Callable[[View, int, int], NewtopGroup]
"""Builds the group of a view whose numbers begin at a base, at a time."""


class Passage:
    """The process, as formations see it; implements `FormationHost`.

    Invariant: a group is entered and left in all parts of the process at once.
    """

    __slots__ = (
        "_alarms",
        "_answers",
        "_connections",
        "_cuts",
        "_groups",
        "_held_back",
        "_histories",
        "_me",
        "_new_group",
        "_order",
        "_post",
        "_primaries",
        "_unread",
        "bounds",
        "counter",
    )

    def __init__(
        self,
        me: ProcessId,
        counter: BlockCounter,
        groups: Groups,
        order: Order,
        cuts: Cuts,
        answers: Answers,
        alarms: Alarms,
        held_back: HeldBack,
        connections: Connections,
        post: Post,
        new_group: NewGroup,
        primaries: Primaries,
        bounds: Bounds,
        histories: Histories,
    ) -> None:
        self.counter = counter
        self.bounds = bounds
        self._me = me
        self._groups = groups
        self._order = order
        self._cuts = cuts
        self._answers = answers
        self._alarms = alarms
        self._held_back = held_back
        self._connections = connections
        self._post = post
        self._new_group = new_group
        self._primaries = primaries
        self._histories = histories
        self._unread: dict[GroupId, list[GroupId]] = {}
        """By name, the groups whose predecessors have deliveries that the application has not read, in their order."""

    def current(self, name: GroupId) -> NewtopGroup | None:
        """The group of that name that we are in."""
        return self._groups.names.get(name)

    def transmit(self, frame: FormationFrame, to: ProcessId) -> None:
        """Transmit a frame to one process."""
        self._post.transmit(frame, to)

    def tell(self, effect: Refused) -> None:
        """An effect without a place in the order of deliveries."""
        self._post.early.append(effect)

    def service(self, name: GroupId) -> GroupService:
        """What the group of that name asks for."""
        return self._groups.services.of(name)

    def last_primary(self, name: GroupId) -> int:
        """The number of the last primary view of that name that our state comes from; 0: none."""
        return self._primaries.held(name)

    def history(self, group: GroupId) -> int:
        """A digest of all that we have delivered in that group; 0: not known."""
        return self._histories.digest(group)

    def is_unread(self, name: GroupId) -> bool:
        """Whether our application is too far behind: each group may hold windows of deliveries that it has not read."""
        return len(self._unread.get(name, ())) >= _UNREAD_MAX

    def viewed(self, group: GroupId) -> None:
        """Our application has read a view of that group, and so all groups before it."""
        unread = self._unread.get(name_of(group), [])
        if group in unread:
            del unread[: unread.index(group) + 1]

    def votes(self, group: NewtopGroup) -> bool:
        """Whether a vote on the view in force is under way."""
        return self._primaries.votes(group)

    def reach(self, group: NewtopGroup | None, number: int, now: int) -> None:
        """Send a null with this number, if it is not reached: in all groups that deliveries of this one wait for."""
        if self._order.crosses:
            for each in self._groups.by_id.values():
                if each.discipline.largest < number:
                    each.discipline.reach(number, now)
        elif group is not None:
            group.discipline.reach(number, now)  # an answer that we owe may be due much later

    def passed(self, group: NewtopGroup | None, number: int) -> bool:
        """True if everything up to that number is delivered that must be, and every view up to there installed."""
        return self._order.drained(group, number) and self._cuts.upto > number

    def stir(self) -> None:
        """Something may follow in any group."""
        self._groups.stir_all()

    def go_over(self, frame: InstallFrame, now: int) -> NewtopGroup:
        """Step 5 of 11.1: leave the old group and enter the new one; its first view is placed at the base."""
        name, overdue = name_of(frame.group), 0
        waiting = self._groups.take_early(name)
        self.counter.witness(frame.base)
        self.bounds.entered(frame.base, now)
        old = self.current(name)
        if old is not None:
            if old.consumption.is_behind:
                self._unread.setdefault(name, []).append(frame.group)
            undelivered = self._close(old, now, graceful=True, successor=frame.group)
            waiting, overdue = old.discipline.hand_over(undelivered)
        view = formed_view(frame.group, frame.base, frame.companies, self._me)
        if self._primaries.on:
            view = replace(view, primary=False)  # it is voted on
        group = self._new_group(view, frame.base, now)
        transfer = Transfer(self._me, view, frame.companies)
        group.begin_transfer(transfer)
        self._primaries.merged(name, transfer.held)
        self._histories.begin(view.group)
        self._groups.enter(group)
        self._order.opened(group, now)
        group.suspector.rest(group, now)
        self._post.early.append(Reach(view))
        self._cuts.add(frame.base, view.group, None)
        highest = max(frame.base, self._order.highest, self._cuts.highest)
        self._answers.want_again(highest)  # in all groups, the new one too (E-54)
        group.outgoing.take_over(waiting, overdue)
        self._bind(view, now)
        return group

    def depart(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """Leave the group of that name, because our application asked for it."""
        group = self.current(name)
        if group is None:
            self._held_back.put(Left(name, graceful), self._post.early)
        else:
            self._close(group, now, graceful=graceful and not group.outgoing.outbox.waiting, successor=None)

    def _bind(self, view: View, now: int) -> None:
        """The group uses the current connections; it is severed from a member without one."""
        others = (member for member in view.members if member != self._me)
        for peer in self._connections.bind(view.group, others):
            self._groups.sever(peer, now, (view.group,))

    def _close(self, group: NewtopGroup, now: int, *, graceful: bool, successor: GroupId | None) -> list[BlockFrame]:
        """Announce that we leave, and forget the group (11.2 rule 1); returns what was not delivered in it."""
        name, early = group.view.group, self._post.early
        heard = len(group.view.members) > 1 and not group.agreement.wary
        passes_vote = self._primaries.on and successor is None and graceful and heard
        stalled = group.concerns.evicted and successor is None
        group.multicast(LeavingFrame(name, self._me, group.numbers.sent, passes_vote, stalled), now)
        if successor is None:
            self._unread.pop(name_of(name), None)
        if passes_vote:
            self._primaries.left(name_of(name), self._me)
        self._primaries.closed(name, lapses=successor is None)
        if group.transfer is not None and group.transfer.waits:
            self._held_back.drop(name)
        self._held_back.put(Left(name, graceful, successor), early)
        undelivered = self._order.closed(group)
        self._cuts.forget(name)
        self._alarms.forget(name)
        self._connections.forget(name)
        self._histories.forget(name)
        self._groups.close(group)
        self._held_back.release(early)  # stop waiting for its state
        return undelivered
