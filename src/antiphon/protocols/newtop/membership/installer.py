"""From agreed failures to the views without the failed members, over all groups of one process (newtop.md 9.4, 9.6)."""

from typing import TYPE_CHECKING

from antiphon.core.effects import Effect, InstallView, Transitional
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.answers import Answers
from antiphon.protocols.newtop.asking.asking import Asking
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.states import States
from antiphon.protocols.newtop.frames import Notice
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.membership.cuts import Cut, Cuts
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.primary.rounds import Primaries
from antiphon.types import ProcessId, name_of, shrunk_view

if TYPE_CHECKING:
    from antiphon.protocols.newtop.formation.formation import Formations
    from antiphon.protocols.newtop.rules import Rules


class ViewInstaller:
    """Invariant: a view is installed after everything that belongs to the view before it, the same at all members."""

    __slots__ = (
        "_answers",
        "_cuts",
        "_early",
        "_formations",
        "_groups",
        "_held_back",
        "_order",
        "_rules",
        "_states",
        "asking",
        "primaries",
    )

    def __init__(
        self,
        groups: Groups,
        order: Order,
        cuts: Cuts,
        answers: Answers,
        held_back: HeldBack,
        states: States,
        rules: "Rules",
        formations: "Formations | None",
        primaries: Primaries,
        asking: Asking,
        early: list[Effect],
    ) -> None:
        self._groups = groups
        self._order = order
        self._cuts = cuts
        self._answers = answers
        self._held_back = held_back
        self._states = states
        self._rules = rules
        self._formations = formations
        self.primaries = primaries
        """The rounds of voting start again in each view."""
        self.asking = asking
        """Requests do not wait for members that are gone."""
        self._early = early

    def confirmed(self, group: NewtopGroup, detection: Detection, now: int) -> None:
        """Members have failed (9.4 vii): stop waiting for them, and fix the place of the view change."""
        name, order = group.view.group, self._order
        self._groups.stir(group)
        if not self._cuts.awaits_first_view(name):
            self._held_back.put(_transitional(group), self._early)
        group.exclude(detection, order.failed(group, detection) if group.change.discards else ())
        group.mark()
        notice, number = group.discipline.confirmed(detection, order.cut_after)
        if notice is not None and (group.awaits_state or not self._withholds(group, notice, now)):
            group.outgoing.tell(notice)  # an application that has no state yet cannot read what it should accept
        if number is None:
            return
        group.numbers.counter.witness(number)
        if order.cut_after and group.numbers.sent < number:
            group.discipline.null(number, now, self._early)  # possibly no other member owes this number (E-60)
            group.numbers.expect(number, now)  # and we still do, if flow control delays it
        if self._rules.answers_cuts:
            self._answers.want(number)  # in all groups, or a silent one delays the view
        if notice is None:
            self._cuts.add(number, name, detection)

    def _withholds(self, group: NewtopGroup, notice: Notice, now: int) -> bool:
        return group.change.withholds(notice, frozenset(_remaining(group)), now)

    def accept(self, group: NewtopGroup, members: frozenset[ProcessId]) -> None:
        """The application accepts the view of these members: its notices may leave (9.6)."""
        group.outgoing.tell(*group.change.accepted(members))
        self._groups.stir(group)

    def change(self, now: int, effects: list[Effect]) -> bool:
        """Install due views, by number or because all have flushed; True if this may have consequences."""
        if self._cuts.upto != BEYOND:
            cut = self._cuts.first
            if not self._order.passed(cut.number) or self._withheld(cut):
                return False
            self._pass(self._cuts.pop(), now, effects)
            return True
        changed = False
        for group in self._groups.by_id.values():
            if group.change.open and group.change.kind == "flush":
                complete = group.change.complete(group.view, frozenset(group.agreement.failed))
                if complete and self._order.settled(group) and not self._reported(group):
                    self._groups.stir(group)
                    self.install(group, complete, now, effects)
                    changed = True
        return changed

    def install(self, group: NewtopGroup, detections: list[Detection], now: int, effects: list[Effect]) -> None:
        """From here on in the order, the view is without these members."""
        if not detections:
            return
        failed = [pair for detection in detections for pair in detection.failed]
        view = shrunk_view(group.view, failed, skips=len(detections) > 1)
        group.change.installed(detections)
        group.install(view)
        group.holdings.drop(self._order.installed(group, [process for process, _ in failed]))
        left = tuple(left for detection in detections for left in detection.left)
        waited = group.awaits_state
        signature = self._rules.signature and self._rules.signature(view)
        self._show(InstallView(view, left, signature), effects)
        self._states.installed(group, view, waited, effects)  # the application reads it when it has the state
        group.installed(now)
        for process, _ in failed:
            if process in group.leaving.passed_on:
                self.primaries.left(name_of(view.group), process)
        self.primaries.entered(group)
        self.asking.entered(view, now)

    def _pass(self, cut: Cut, now: int, effects: list[Effect]) -> None:
        """Everything up to the cut is delivered."""
        group, detection = self._groups.by_id[cut.group], cut.detection
        self._groups.stir(group)
        if detection is None:
            self._install_first(group, now, effects)
            return
        if along := group.change.along(detection, cut.number):
            self._cuts.drop(along)
        self.install(group, [detection, *along], now, effects)

    def _withheld(self, cut: Cut) -> bool:
        """True if a view must wait for the outcome of a formation."""
        formations = self._formations
        return formations is not None and (cut.number > formations.stage.limit or formations.settled_group == cut.group)

    def _reported(self, group: NewtopGroup) -> bool:
        """True if the view of that group must not change: a formation knows it from us (11.1 step 3)."""
        return self._formations is not None and self._formations.settled_group == group.view.group

    def _install_first(self, group: NewtopGroup, now: int, effects: list[Effect]) -> None:
        """Install the first view of a formed group; members with a state take it here."""
        transfer = group.transfer
        assert transfer is not None
        self._show(InstallView(group.view, snapshot=transfer.wanted), effects)
        if group.agreement.failed:
            self._held_back.put(_transitional(group), effects)
        group.await_application()
        group.discipline.begin(now)
        if transfer.over:
            group.end_transfer()
        self.primaries.entered(group)
        self.asking.entered(group.view, now)

    def _show(self, effect: InstallView, effects: list[Effect]) -> None:
        """The application gets a view, perhaps later."""
        if self._held_back.put(effect, effects):
            self.asking.shown(effect, effects)


def _transitional(group: NewtopGroup) -> Transitional:
    """The members that deliveries are valid for from here on."""
    return Transitional(group.view.group, _remaining(group))


def _remaining(group: NewtopGroup) -> tuple[ProcessId, ...]:
    return tuple(member for member in group.view.members if member not in group.agreement.failed)
