"""The control hierarchy with one rule left out: a random run shows it, and the same run without the bug is in order."""

import pytest

from antiphon.protocols.intergroup.hierarchy.records import EpochSlots
from tests.planted.hierarchy import BUGS, Bug, Ranks, one_leaves_and_one_moves, planted
from tools.lab.hierarchy_runs import Variant, violations


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_run_shows_the_bug(bug: Bug) -> None:
    assert violations(bug.seed, Variant()) == []
    with planted(bug):
        assert bug.property in violations(bug.seed, bug.variant)


def test_j17_ranks_instead_of_slots() -> None:
    assert not one_leaves_and_one_moves(EpochSlots)
    assert one_leaves_and_one_moves(Ranks)
