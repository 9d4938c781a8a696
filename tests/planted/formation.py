"""Bugs to plant in groups that change: one rule of formation, leave, merge or state left out, or turned, at a time.

As in `tests/planted/newtop.py`. The rules are those of docs/spec/newtop.md 11.1 and 11.2 with E-54 to E-58, and our own
completions of them (docs/design/as-printed.md). Two are planted in the simulator. `tests/planted/plant.py` searches for
runs that show them.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pytest

import antiphon.sim.run
from antiphon.core.effects import Departure, Effect, InstallView, Suspected
from antiphon.core.vectors import BEYOND
from antiphon.drive.drive import Shown
from antiphon.protocols.newtop.delivery import Delivery
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.formation.held_back import HeldBack, group_of
from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.leaves import Leaves
from antiphon.protocols.newtop.formation.passage import Passage
from antiphon.protocols.newtop.formation.procedure import Formation, Stage
from antiphon.protocols.newtop.formation.search import Search
from antiphon.protocols.newtop.formation.steps import Steps
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.protocols.newtop.frames import BlockFrame, InstallFrame, ProposeFrame
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Agreement, Detection
from antiphon.protocols.newtop.membership.suspector import Suspector
from antiphon.protocols.newtop.outbox import Outbox, Unsent
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.sim import desk
from antiphon.sim.desk import Desk
from antiphon.types import GroupId, ProcessId, name_of
from tests.planted.newtop import Bug, Fits, Traits

_LEAVE: Final = 1 << 31
"""The class whose "state" says that its sender leaves: data to the order, nothing to applications."""


# -------------------------------------------------------------------------------- where a rule acts


def _with(*changes: str) -> Fits:
    return lambda traits: not traits.changes.isdisjoint(changes)


def _overlapping(traits: Traits) -> bool:
    return traits.groups > 1


def _by_message(traits: Traits) -> bool:
    return traits.view_change != "cut"


def _merging(traits: Traits) -> bool:
    return traits.merges


# -------------------------------------------------------------------------------- E-54: nulls when a group is formed


def _answering_at_install(patch: pytest.MonkeyPatch, answer: Callable[..., None]) -> None:
    """Change which nulls a process sends in its groups when it goes over."""
    install = Steps._install

    def turned(self: Steps, frame: InstallFrame, now: int) -> None:
        passage = self._host
        assert isinstance(passage, Passage)
        answers, group = passage._answers, name_of(frame.group)
        before = answers.wanted, answers._answered
        install(self, frame, now)
        number, (answers.wanted, answers._answered) = answers.wanted, before
        answer(passage, passage._groups.names[group], frame.base, number, now)

    patch.setattr(Steps, "_install", turned)


def no_null_in_the_new_group(patch: pytest.MonkeyPatch) -> None:
    """E-54, the first null: frames of other groups received while frozen are not answered in the new one."""

    def others(passage: Passage, _group: NewtopGroup, base: int, _number: int, now: int) -> None:
        passage.reach(None, base, now)

    _answering_at_install(patch, others)


def no_null_in_other_groups(patch: pytest.MonkeyPatch) -> None:
    """E-54, the second null: a group that is silent below the base does not get there."""

    def own(_passage: Passage, group: NewtopGroup, _base: int, number: int, now: int) -> None:
        if group.discipline.largest < number:
            group.discipline.null(number, now, group.voice.early)
            group.numbers.expect(number, now)

    _answering_at_install(patch, own)


def no_nulls_at_install(patch: pytest.MonkeyPatch) -> None:
    """E-54: neither."""
    _answering_at_install(patch, lambda *_: None)


# -------------------------------------------------------------------------------- E-55: leaving


def leaves_at_once(patch: pytest.MonkeyPatch) -> None:
    """E-55: a leaver does not wait until others have the messages that it sent and delivered."""

    def begin(self: Leaves, now: int) -> bool:
        for name in [*self._intentions.leaves]:
            group = self._host.current(name)
            if group is None or not (group.outgoing.outbox.waiting or group.transfer):
                self.go(name, now, graceful=True)
                return True
        return False

    patch.setattr(Leaves, "begin", begin)


def leaves_in_order(patch: pytest.MonkeyPatch) -> None:
    """E-55 as first written: a `leave` has a number; its delivery removes the sender without an agreement."""
    init, deliver, depart = NewtopProcess.__init__, Delivery.deliver, Passage.depart
    processes: dict[int, NewtopProcess] = {}

    def started(self: NewtopProcess, *each: Any) -> None:
        init(self, *each)
        self._table.formed = True
        processes[id(self._delivery)] = self

    def begin(self: Leaves, now: int) -> bool:
        for name in [*self._intentions.leaves]:
            group = self._host.current(name)
            if group is None:
                self.go(name, now, graceful=True)
                return True
            if not (group.outgoing.outbox.waiting or group.transfer or group.gate.holds(Reason.STOPPED)):
                outbox = Outbox(packing=False, frame_bytes_max=64)
                outbox.put(b"leave", 0)
                group.donate(_LEAVE, outbox)
                group.gate.hold(Reason.STOPPED)
                self._host.stir()
                return True
        return False

    def one_by_one(self: Delivery, ready: list[BlockFrame], now: int, effects: list[Effect]) -> None:
        groups = self._groups.by_id
        for frame in ready:
            if frame.state == _LEAVE and frame.group in groups:
                _delivered_leave(processes[id(self)], groups[frame.group], frame, now, effects)
            elif frame.group in groups:
                deliver(self, [frame], now, effects)

    def silently(self: Passage, name: GroupId, now: int, *, graceful: bool) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(NewtopGroup, "multicast", lambda *_: None)
            depart(self, name, now, graceful=graceful)

    patch.setattr(NewtopProcess, "__init__", started)
    patch.setattr(Leaves, "begin", begin)
    patch.setattr(Delivery, "deliver", one_by_one)
    patch.setattr(Passage, "depart", silently)


def _delivered_leave(
    process: NewtopProcess, group: NewtopGroup, frame: BlockFrame, now: int, effects: list[Effect]
) -> None:
    group.deliver(frame, held=False)
    if frame.sender == group.roster.me:
        assert process._formations is not None
        process._formations.leaves.go(name_of(frame.group), now, graceful=True)
    elif frame.sender in group.roster.ranks and frame.sender not in group.agreement.failed:
        _forget(group.agreement, frame.sender)
        gone = Departure(frame.sender, frame.block, "left", (), 0, 0)
        detection = Detection(((frame.sender, frame.block),), (gone,), now)
        group.exclude(detection, ())
        effects.append(Suspected(frame.group, frame.sender, frame.block, "left"))
        process._installer.install(group, [detection], now, effects)


def _forget(agreement: Agreement, process: ProcessId) -> None:
    agreement.suspicions.pop(process, None)
    agreement._suspected.pop(process, None)
    for pair in [pair for pair in agreement._votes if pair[0] == process]:
        agreement._forget(pair)


# -------------------------------------------------------------------------------- E-56: pairs


def pairs_never_secede(patch: pytest.MonkeyPatch) -> None:
    """E-56 without our cure: two members that are cut off from each other stay in one view, because others relay."""
    patch.setattr(Agreement, "_weigh_secession", lambda *_: None)


# -------------------------------------------------------------------------------- E-57: classes


def contradictions_ignored(patch: pytest.MonkeyPatch) -> None:
    """E-57: views of one predecessor that contradict each other end nothing."""
    patch.setattr(Formation, "contradicts", False)


def views_after_ready(patch: pytest.MonkeyPatch) -> None:
    """E-57, the other half: the predecessor's views change after we told the initiator which one we have."""
    patch.setattr(Formations, "settled_group", None)


# -------------------------------------------------------------------------------- E-58: freeze, buffer, flush


def ready_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """E-58: all go over directly after the votes, without a flush."""
    go_on = Steps.go_on

    def hasty(self: Steps, formation: Formation, now: int) -> bool:
        if formation.base is not None and formation.ready is None:
            return self._get_ready(formation, now)
        return go_on(self, formation, now)

    patch.setattr(Steps, "go_on", hasty)


def sends_go_on(patch: pytest.MonkeyPatch) -> None:
    """E-58: messages that applications send during a formation leave in the old group."""
    stop_at = NewtopGroup.stop_at

    def unheld(self: NewtopGroup, number: int | None) -> None:
        stop_at(self, number)
        self.gate.hold(Reason.STOPPED, closed=False)

    patch.setattr(NewtopGroup, "stop_at", unheld)


def held_sends_lost(patch: pytest.MonkeyPatch) -> None:
    """E-58: messages that waited for the end of a formation are not sent in the new group."""
    remove_all = Outbox.remove_all

    def lossy(self: Outbox) -> list[Unsent]:
        remove_all(self)
        return []

    patch.setattr(Outbox, "remove_all", lossy)


def deliveries_go_on(patch: pytest.MonkeyPatch) -> None:
    """E-58: no freeze."""
    patch.setattr(Stage, "limit", property(lambda _: BEYOND, lambda _self, _limit: None))


# -------------------------------------------------------------------------------- states (11.2 rule 7)


def state_before_its_place(patch: pytest.MonkeyPatch) -> None:
    """E-58: an application's state is taken when its core installs the view, not when the application reads it."""
    show, enter, taken = Desk.show, Desk._enter, dict[tuple[ProcessId, str], bytes]()

    def early(self: Desk, effect: Shown, now: int) -> None:
        if isinstance(effect, InstallView) and effect.snapshot:
            state = self._application.state(self._node, name_of(effect.view.group))
            taken[self._node.id, effect.view.id] = state
        show(self, effect, now)

    def late(self: Desk, effect: InstallView, now: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            if effect.snapshot:
                state = taken[self._node.id, effect.view.id]
                inner.setattr(type(self._application), "state", lambda *_: state)
            enter(self, effect, now)

    patch.setattr(Desk, "show", early)
    patch.setitem(desk._TAKEN, InstallView, late)


def nothing_waits_for_a_state(patch: pytest.MonkeyPatch) -> None:
    """A joiner gets messages before the state that they need."""
    patch.setattr(HeldBack, "_waits", lambda *_: False)


def messages_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Two sides of a split count as alike, whatever each has delivered since the formation."""
    patch.setattr(Histories, "delivered", lambda *_: None)


def one_donor_only(patch: pytest.MonkeyPatch) -> None:
    """The donor of a class is gone, and no other member takes its place."""

    def owes(self: Transfer) -> bool:
        first = self._classes[self._own][0]
        return self.wanted and not self._told and self._own not in self._states and first == self._me

    patch.setattr(Transfer, "owes", property(owes))


def other_groups_go_on(patch: pytest.MonkeyPatch) -> None:
    """E-84: only the group that waits for a state is held back."""

    def put(self: HeldBack, effect: Any, effects: list[Effect]) -> None:
        before, self._effects = (
            self._effects,
            deque(each for each in self._effects if group_of(each) == group_of(effect)),
        )
        held = len(self._effects)
        held_put(self, effect, effects)
        self._effects = deque([*before, *list(self._effects)[held:]])

    def release(self: HeldBack, effects: list[Effect]) -> None:
        before, self._effects = self._effects, deque()
        for effect in before:
            if self._waits(effect) or any(group_of(each) == group_of(effect) for each in self._effects):
                self._effects.append(effect)
            else:
                effects.append(effect)

    held_put = HeldBack.put
    patch.setattr(HeldBack, "put", put)
    patch.setattr(HeldBack, "release", release)


def the_waiting_take_part(patch: pytest.MonkeyPatch) -> None:
    """E-86: a member that waits for a state, or owes one, takes part in the next formation."""
    propose, free = Steps.on_propose, Search._free

    def unaware(group: NewtopGroup | None, action: Callable[[], Any]) -> Any:
        if group is None:
            return action()
        transfer, group.transfer = group.transfer, None
        try:
            return action()
        finally:
            group.transfer = transfer

    def on_propose(self: Steps, frame: ProposeFrame, now: int) -> None:
        unaware(self._host.current(name_of(frame.group)), lambda: propose(self, frame, now))

    patch.setattr(Steps, "on_propose", on_propose)
    patch.setattr(Search, "_free", lambda self, group: unaware(group, lambda: free(self, group)))


# -------------------------------------------------------------------------------- participants


def the_mute_awaited(patch: pytest.MonkeyPatch) -> None:
    """E-85: votes have the timeout of all other steps, and a process that does not vote is never left out."""
    propose = Steps.propose

    def patient(self: Steps, name: GroupId, members: dict[ProcessId, GroupId | None], now: int) -> None:
        propose(self, name, members, now)
        if self._stage.formation is not None:
            self._stage.formation.until = now + self._patience_ns

    patch.setattr(Steps, "propose", patient)
    patch.setattr(Steps, "note_mute", lambda *_: None)


def open_agreements_take_part(patch: pytest.MonkeyPatch) -> None:
    """E-88."""
    patch.setattr(NewtopGroup, "parts", False)


def taken_in_unasked(patch: pytest.MonkeyPatch) -> None:
    """Others may take any process into any group, even one that has left it."""
    patch.setattr(Intentions, "welcomes", lambda *_: True)


# -------------------------------------------------------------------------------- steps 5 and 6


def install_told_once(patch: pytest.MonkeyPatch) -> None:
    """Step 5: only the initiator says that a group is formed."""
    install = Steps._install

    def silent(self: Steps, frame: InstallFrame, now: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            if frame.sender != self._me:
                inner.setattr(Passage, "transmit", lambda *_: None)
            install(self, frame, now)

    patch.setattr(Steps, "_install", silent)


def refusals_untold(patch: pytest.MonkeyPatch) -> None:
    """Step 6: a peer that sends us frames of a group that we have refused is not told."""
    patch.setattr(Steps, "stranger", lambda *_: None)


# -------------------------------------------------------------------------------- rows of docs/spec/properties.md 9


def newcomers_never_suspected(patch: pytest.MonkeyPatch) -> None:
    """A joiner that dies in the change that admits it stays listed: a process that was never heard owes nothing."""
    charge = Suspector._charge

    def lenient(self: Suspector, group: NewtopGroup, process: ProcessId, *each: Any) -> str | None:
        formed = name_of(group.view.group) != group.view.group
        return None if formed and process in group.unheard else charge(self, group, process, *each)

    patch.setattr(Suspector, "_charge", lenient)


def recovered_under_the_old_name(patch: pytest.MonkeyPatch) -> None:
    """A process that comes back counts its messages anew under the name that it had (planted in the simulator)."""
    patch.setattr(antiphon.sim.run, "process_id", lambda name, _incarnation: ProcessId(name))


_RIG: Final = ("changes",)
BUGS: Final[tuple[Bug, ...]] = (
    Bug("E-54", "no null in the new group", no_null_in_the_new_group, _overlapping, rigs=_RIG),
    Bug("E-54", "no null, the base, in other groups", no_null_in_other_groups, _overlapping, rigs=_RIG),
    Bug("E-54", "neither", no_nulls_at_install, _overlapping, rigs=_RIG),
    Bug("E-55", "a leaver goes at once, without a flush", leaves_at_once, _with("leave"), wanted=("L3",),
        rigs=_RIG),
    Bug("E-55", "a leave is a message: a process that delivers it forgets its sender", leaves_in_order,
        lambda traits: "leave" in traits.changes and not _by_message(traits), rigs=_RIG),
    Bug("E-56", "no member secedes", pairs_never_secede, _merging, rigs=_RIG),
    Bug("E-57", "views that contradict each other are no obstacle", contradictions_ignored, rigs=_RIG),
    Bug("E-57", "views of the predecessor change after `ready`", views_after_ready, rigs=_RIG),
    Bug("E-58", "no flush: all go over directly after the votes", ready_before_the_flush, rigs=_RIG),
    Bug("E-58", "sends go on in the old group", sends_go_on, rigs=_RIG),
    Bug("E-58", "sends that were held are lost", held_sends_lost, rigs=_RIG),
    Bug("E-58", "no freeze", deliveries_go_on, _overlapping, rigs=_RIG),
    Bug("E-58", "a state is taken before its place in the order", state_before_its_place, rigs=_RIG),
    Bug("11.2 rule 7", "nothing waits for a state", nothing_waits_for_a_state, rigs=_RIG),
    Bug("11.2 rule 7", "messages do not count in a history", messages_do_not_count, _merging, rigs=_RIG),
    Bug("11.2 rule 7", "a failed donor is not replaced", one_donor_only, rigs=_RIG),
    Bug("E-84", "a process that waits for a state goes on in other groups",
        other_groups_go_on, _overlapping, rigs=_RIG),
    Bug("E-85", "votes have the same timeout as everything else, and no process is left out",
        the_mute_awaited, rigs=_RIG),
    Bug("E-86", "a process that waits for a state takes part in a formation", the_waiting_take_part, rigs=_RIG),
    Bug("E-88", "a process with an open agreement takes part in a formation", open_agreements_take_part, _by_message,
        wanted=("D8", "D12"), rigs=_RIG),
    Bug("11.1 step 1", "a process that has left is admitted without asking",
        taken_in_unasked, _with("leave"), rigs=_RIG),
    Bug("11.1 step 5", "only the initiator announces the group", install_told_once, rigs=_RIG),
    Bug("11.1 step 6", "a process that refuses a group does not say so", refusals_untold, rigs=_RIG),
    Bug("properties 9", "a joiner that dies when it is admitted stays listed", newcomers_never_suspected,
        wanted=("L1", "L5"), rigs=_RIG),
    Bug("properties 9", "a recovered process counts from the start under its old name", recovered_under_the_old_name,
        _with("recover"), wanted=("R2", "W3", "D2"), rigs=_RIG),
)  # fmt: skip
