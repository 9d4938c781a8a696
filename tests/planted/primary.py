"""Bugs to plant in the votes on primary views: one rule of docs/spec/newtop.md 15 left out, or turned, at a time."""

from typing import Any, Final

import pytest

from antiphon.core.effects import Effect
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.installer import ViewInstaller
from antiphon.protocols.newtop.ordering.blocks import TotalOrder
from antiphon.protocols.newtop.primary import lineage, rounds
from antiphon.protocols.newtop.primary.lineage import Claim, Outcome, PrimaryView, Rule
from antiphon.protocols.newtop.primary.rounds import Primaries, Round
from antiphon.types import ProcessId, name_of, split_process_id
from tests.planted.newtop import Bug, Traits

_RIGS: Final = ("primary",)


def _is_safe(traits: Traits) -> bool:
    return traits.service == "total-safe"


def phantoms_vote(patch: pytest.MonkeyPatch) -> None:
    """A view is primary at once if it has a majority of the last one; silent members count."""

    def claim(self: Primaries, group: NewtopGroup, current: Round) -> None:
        current.claimed = True
        known = self._lineage(name_of(group.view.group))
        current.outcome = lineage.decide(dict.fromkeys(current.view.members, known.claim))
        if current.outcome.rule is not None:
            current.tried = PrimaryView(current.outcome.number, current.view.id, frozenset(current.view.members))
            self._form(group, current, group.voice.early)

    patch.setattr(Primaries, "_claim", claim)


def restarted_members_are_voters(patch: pytest.MonkeyPatch) -> None:
    """A member counts by its name, although it lost its state in a restart."""
    enough = lineage.enough

    def turned(
        members: frozenset[ProcessId], before: PrimaryView, met: frozenset[str], lapsed: frozenset[ProcessId]
    ) -> Rule | None:
        names = {split_process_id(member)[0] for member in members}
        same = {voter for voter in before.voters if split_process_id(voter)[0] in names}
        return enough(members | same, before, met, lapsed)

    patch.setattr(lineage, "enough", turned)


def failed_members_pass_their_votes_on(patch: pytest.MonkeyPatch) -> None:
    """A member that fails counts as one that left gracefully."""
    install = ViewInstaller.install

    def turned(self: ViewInstaller, group: NewtopGroup, detections: list[Any], now: int, effects: list[Effect]) -> None:
        group.leaving.passed_on |= {process for detection in detections for process, _ in detection.failed}
        install(self, group, detections, now, effects)

    patch.setattr(ViewInstaller, "install", turned)


def deliveries_are_not_safe(patch: pytest.MonkeyPatch) -> None:
    """Messages delivered in a primary view may be missing at its other members (14 rule 1)."""
    patch.setattr(TotalOrder, "_stable", lambda _self, _frame: True)


def numbers_stand_still(patch: pytest.MonkeyPatch) -> None:
    decide = lineage.decide

    def turned(claims: dict[ProcessId, Claim], size: int | None = None) -> Outcome:
        return decide(claims, size)._replace(number=2)

    patch.setattr(rounds, "decide", turned)


def only_the_first_view_votes(patch: pytest.MonkeyPatch) -> None:
    """As before: a group that has lost its primary view never has one again."""

    def entered(self: Primaries, group: NewtopGroup) -> None:
        if not group.view.excluded:
            whole(self, group)

    whole = Primaries.entered
    patch.setattr(Primaries, "entered", entered)


def leavers_forget_their_votes(patch: pytest.MonkeyPatch) -> None:
    """A member that leaves and joins again remembers nothing."""
    closed = Primaries.closed

    def turned(self: Primaries, group: Any, *, lapses: bool) -> None:
        closed(self, group, lapses=lapses)
        self._lineages.pop(name_of(group), None)

    patch.setattr(Primaries, "closed", turned)


def lapsed_voters_have_the_state(patch: pytest.MonkeyPatch) -> None:
    """A voter that left and joined again counts as one that has kept the state."""
    patch.setattr(lineage.Lineage, "lapse", lambda _self: None)


BUGS: Final[tuple[Bug, ...]] = (
    Bug("15 rule 2", "members that say nothing count", phantoms_vote, rigs=_RIGS),
    Bug("15 rule 4", "restarted members count as before", restarted_members_are_voters, rigs=_RIGS),
    Bug("15 rule 5", "numbers stand still", numbers_stand_still, rigs=_RIGS),
    Bug("14 rule 1", "deliveries are not safe", deliveries_are_not_safe, _is_safe, rigs=_RIGS),
    Bug("15 rule 5", "only the first view votes", only_the_first_view_votes, rigs=_RIGS),
    Bug("15 rule 7", "failed members pass their votes on", failed_members_pass_their_votes_on, rigs=_RIGS),
    Bug("15 rule 1", "leavers forget their votes", leavers_forget_their_votes, rigs=_RIGS),
    Bug("15 rule 4", "lapsed voters have the state", lapsed_voters_have_the_state, _is_safe, rigs=_RIGS),
)
