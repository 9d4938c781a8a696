"""Bugs to plant in asymmetric groups and in safe delivery: one rule left out, or turned, at a time.

As in `tests/planted/newtop.py`. The rules are those of newtop.md 11.3 with E-67 to E-69, and of newtop.md 14 with E-73
and E-74. E-75, a rule of every group, is planted in `planted_bugs.py`. E-70 and E-71 are limits, E-72 is about the
judge: these have no rule to leave out (docs/design/as-printed.md).
"""

from dataclasses import replace
from typing import Final

import pytest

from antiphon.core.effects import Effect
from antiphon.protocols.newtop.as_printed import WaitsForLostViews
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Ordering
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.suspector import SteadySuspector
from antiphon.protocols.newtop.membership.views import SequencerChange
from antiphon.protocols.newtop.ordering.blocks import TotalOrder
from antiphon.protocols.newtop.sequencing.asymmetric import Asymmetric
from antiphon.protocols.newtop.sequencing.origin import Origin
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.protocols.newtop.symmetric import Symmetric
from tests.planted.newtop import Bug, Traits, duties_go_with_rows, no_announcements, no_sign_of_life

Patch = pytest.MonkeyPatch


def _mixed(traits: Traits) -> bool:
    return traits.groups > 1


# -------------------------------------------------------------------------------- asymmetric groups


def out_of_turn(patch: Patch) -> None:
    """Rule 4 left out."""
    patch.setattr(Turns, "permits", lambda *_: True)


def counter_behind_the_return(patch: Patch) -> None:
    """Rule 2: the origin does not take over the number that its message has got."""

    def came_back(self: Asymmetric, frame: BlockFrame, place: int) -> None:
        self._origin.came_back(frame, place)

    patch.setattr(Asymmetric, "_came_back", came_back)


def needs_are_not_asked(patch: Patch) -> None:
    """Rule 5 left out."""
    patch.setattr(Asymmetric, "_ask", lambda *_: None)


def needs_are_asked_once(patch: Patch) -> None:
    """Rule 6.7: a new sequencer is not asked again."""
    turn = Origin.turn

    def forgetful(self: Origin, *, to_me: bool) -> None:
        asked = self._asked
        turn(self, to_me=to_me)
        self._asked = asked

    patch.setattr(Origin, "turn", forgetful)


def members_send_no_keep_alives(patch: Patch) -> None:
    """Rule 6.2: silent members are suspected, and they send no signs of life."""
    patch.setattr(Asymmetric, "say_alive", lambda *_, **__: None)


def silence_is_no_charge(patch: Patch) -> None:
    """Rule 6.2: a silent member that owes nothing is not suspected."""
    patch.setattr(SteadySuspector, "_charge", lambda *_: None)


def suspects_have_no_number(patch: Patch) -> None:
    """E-67, rule 6.1: a suspect does not answer with a null."""
    no_sign_of_life(patch)


def views_lost_with_their_sequencer(patch: Patch) -> None:
    """E-68, rules 6.3 and 6.5: where a view changes is told once."""
    patch.setattr(SequencerChange, "along", WaitsForLostViews.along)
    patch.setattr(SequencerChange, "untold", WaitsForLostViews.untold)


def vanished_rows_relied_on(patch: Patch) -> None:
    """E-69, rule 6.8: rows on which a message of another group depends vanish with the failed members."""
    duties_go_with_rows(patch)


def nothing_submitted_again(patch: Patch) -> None:
    """Rule 6.6."""

    def resubmit(self: Asymmetric, now: int, effects: list[Effect]) -> None:
        self._origin._unsent = False

    patch.setattr(Asymmetric, "_resubmit", resubmit)


def places_not_counted(patch: Patch) -> None:
    """Rule 6.6: a new sequencer does not know which messages the old one has numbered."""
    enter = Asymmetric._enter

    def ignorant(self: Asymmetric, frame: BlockFrame, ordering: Ordering) -> None:
        last = dict(self._queue._last)
        enter(self, frame, ordering)
        if frame.sender != self._roster.me:
            self._queue._last = last

    def came_back(self: Asymmetric, frame: BlockFrame, place: int) -> None:
        self._numbers.counter.witness(frame.block)
        if frame.sender == self._roster.me:
            self._origin.came_back(frame, place)

    patch.setattr(Asymmetric, "_enter", ignorant)
    patch.setattr(Asymmetric, "_came_back", came_back)


# -------------------------------------------------------------------------------- safe delivery


def deliver_when_complete(patch: Patch) -> None:
    """Rule 1: messages are delivered without a test of stability."""
    patch.setattr(TotalOrder, "_stable", lambda *_: True)


def cut_before_it_is_stable(patch: Patch) -> None:
    """Rule 4: the view does not wait for messages that are held back."""

    def passed(self: TotalOrder, block: int) -> bool:
        return self._complete_everywhere() >= block

    patch.setattr(TotalOrder, "passed", passed)


def acknowledge_the_own_number(patch: Patch) -> None:
    """Rule 2: an acknowledgment carries the number of its sender, not the number that it has completed."""
    true = Symmetric.alive

    def alive(self: Symmetric) -> AliveFrame:
        return replace(true(self), complete_block=self._numbers.sent)

    patch.setattr(Symmetric, "alive", alive)


def nothing_acknowledged(patch: Patch) -> None:
    """E-73, rule 2: only the next message of a member tells which number it has completed."""
    no_announcements(patch)


def acknowledgments_not_owed(patch: Patch) -> None:
    """E-74, rule 3: the suspector is that of total order."""
    patch.setattr(NewtopGroup, "unacknowledged", False)


_ASYMMETRIC: Final = ("sequencer",)
_SAFE: Final = ("safe", "safe-schedules")
BUGS: Final[tuple[Bug, ...]] = (
    Bug("11.3 rule 2", "the number assigned to a message is not adopted", counter_behind_the_return,
        rigs=_ASYMMETRIC),
    Bug("11.3 rule 4", "a process sends out of turn", out_of_turn, _mixed, rigs=_ASYMMETRIC),
    Bug("11.3 rule 5", "no needs", needs_are_not_asked, _mixed, rigs=_ASYMMETRIC),
    Bug("11.3 rule 6.2", "no signs of life", members_send_no_keep_alives, rigs=_ASYMMETRIC),
    Bug("11.3 rule 6.2", "silence is no reason to suspect", silence_is_no_charge, rigs=_ASYMMETRIC),
    Bug("11.3 rule 6.6", "nothing is submitted again", nothing_submitted_again, rigs=_ASYMMETRIC),
    Bug("11.3 rule 6.6", "a new sequencer does not count places", places_not_counted, rigs=_ASYMMETRIC),
    Bug("11.3 rule 6.7", "a new sequencer is not asked again", needs_are_asked_once, _mixed, rigs=_ASYMMETRIC),
    Bug("E-67", "suspects have no number to show", suspects_have_no_number, lambda traits: traits.suspicions > 0,
        rigs=_ASYMMETRIC),
    Bug("E-68", "the place of a view change is announced once", views_lost_with_their_sequencer, rigs=_ASYMMETRIC),
    Bug("E-69", "duties are dropped with the failed members", vanished_rows_relied_on, _mixed, rigs=_ASYMMETRIC),
    Bug("14 rule 1", "complete blocks are delivered before they are stable",
        deliver_when_complete, rigs=_SAFE, wanted=("S3", "D11")),
    Bug("14 rule 2", "an acknowledgment covers messages that its sender does not have",
        acknowledge_the_own_number, rigs=_SAFE,
        wanted=("D11",)),
    Bug("14 rule 4", "a cut does not wait for unstable messages", cut_before_it_is_stable, rigs=_SAFE),
    Bug("E-73", "only the next message acknowledges", nothing_acknowledged, rigs=_SAFE),
    Bug("E-74", "a member that owes an acknowledgment is not suspected", acknowledgments_not_owed, rigs=_SAFE),
)  # fmt: skip
