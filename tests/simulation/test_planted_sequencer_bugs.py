"""Asymmetric groups with one rule left out: the judge must notice, in a run of the family `sequencer` recorded here.

Each run is played once without the bug, too: there it keeps every promise. Rules 6.1, 6.3 and 6.5 have pairs of their
own (E-67, E-68 in `test_errata.py`), and E-75 is planted in `planted_bugs.py`. That a submission comes early, and that
one of a failed member is dropped, made no difference in 399 seeds; `tests/unit/test_sequencer.py` has schedules for
both.
"""

from collections.abc import Callable

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.core.effects import Effect
from antiphon.core.newtop.frames import BlockFrame, Ordering
from antiphon.core.newtop.sequencer import SequencedGroup
from antiphon.core.newtop.suspector import SteadySuspector
from antiphon.core.newtop.turns import Turns
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from antiphon.types import View

Patch = pytest.MonkeyPatch


def out_of_turn(patch: Patch) -> None:
    """Rule 4 left out."""
    patch.setattr(Turns, "permits", lambda *_: True)


def counter_behind_the_return(patch: Patch) -> None:
    """Rule 2: the origin does not take over the number that its message has got."""

    def came_back(self: SequencedGroup, frame: BlockFrame, place: int) -> None:
        self._submissions.came_back(frame, place)

    patch.setattr(SequencedGroup, "_came_back", came_back)


def needs_are_not_asked(patch: Patch) -> None:
    """Rule 5 left out."""
    patch.setattr(SequencedGroup, "_ask", lambda *_: None)


def needs_are_asked_once(patch: Patch) -> None:
    """Rule 6.7: a new sequencer is not asked again."""
    install = SequencedGroup.install

    def forgetful(self: SequencedGroup, view: View) -> None:
        asked = self._asked
        install(self, view)
        self._asked = asked

    patch.setattr(SequencedGroup, "install", forgetful)


def nobody_says_that_it_lives(patch: Patch) -> None:
    """Rule 6.2: silence speaks against members, and they do not break it."""
    patch.setattr(SequencedGroup, "say_alive", lambda *_, **__: None)


def silence_is_no_charge(patch: Patch) -> None:
    """Rule 6.2: who owes nothing is not suspected."""
    patch.setattr(SteadySuspector, "_charge", lambda *_: None)


def nothing_submitted_again(patch: Patch) -> None:
    """Rule 6.6."""

    def resubmit(self: SequencedGroup, now: int, effects: list[Effect]) -> None:
        self._unsent = False

    patch.setattr(SequencedGroup, "_resubmit", resubmit)


def places_not_counted(patch: Patch) -> None:
    """Rule 6.6: a new sequencer does not know what the old one has numbered."""
    enter = SequencedGroup._enter

    def ignorant(self: SequencedGroup, frame: BlockFrame, ordering: Ordering) -> None:
        last = dict(self._last)
        enter(self, frame, ordering)
        if frame.sender != self._me:
            self._last = last

    def came_back(self: SequencedGroup, frame: BlockFrame, place: int) -> None:
        self.counter.witness(frame.block)
        if frame.sender == self._me:
            self._submissions.came_back(frame, place)

    patch.setattr(SequencedGroup, "_enter", ignorant)
    patch.setattr(SequencedGroup, "_came_back", came_back)


Plant = Callable[[Patch], None]
SHOWN: list[tuple[Plant, int, str]] = [
    (out_of_turn, 34, "O3"),
    (counter_behind_the_return, 34, "O3"),
    (needs_are_not_asked, 1, "L2"),
    (needs_are_asked_once, 57, "L2"),
    (nobody_says_that_it_lives, 4, "L9"),
    (silence_is_no_charge, 2, "L5"),
    (nothing_submitted_again, 15, "L3"),
    (places_not_counted, 2, "D2"),
]


def violated(seed: int) -> set[str]:
    """What a run breaks; an assertion of the core counts as W does: something is wrong."""
    try:
        run = simulate(FAMILIES["sequencer"].draw(seed))
        broken = {verdict.property for verdict in judge(events_table(run.id, run.histories)) if verdict.violations}
    except AssertionError:
        return {"assertion"}
    return broken if run.quiet else {*broken, "unsettled"}


@pytest.mark.parametrize(("plant", "seed", "property_id"), SHOWN, ids=[plant.__name__ for plant, _, _ in SHOWN])
def test_a_planted_bug_is_found(plant: Plant, seed: int, property_id: str, monkeypatch: Patch) -> None:
    assert violated(seed) == set()
    plant(monkeypatch)
    assert property_id in violated(seed)
