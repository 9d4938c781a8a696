"""Causal, FIFO and reliable groups that change, with one rule left out: the judge must notice.

Random runs are recorded in `tests/planted/plant.py`, each is played once more without the bug.
Bugs that are too rare for them are shown by schedules. docs/design/planted.md has the table.
"""

import pytest
from msgspec.structs import replace

from antiphon.campaign.families import Family
from antiphon.properties.judge import judge
from antiphon.protocols.newtop.scenarios.changes import draw_symmetric_changes
from antiphon.scenario.draws import MS
from antiphon.scenario.units import Duration
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.planted.newtop import Plant
from tests.planted.orders import BUGS, a_formation_stops_nothing, held_deliveries_block_states, namesakes_do_not_count
from tests.planted.plant import Shown, recorded, violations, without_bugs
from tests.support.causal_forming import (
    told_by_one_that_refused,
    told_by_one_that_went_on,
    told_of_a_group_that_is_being_formed,
)

RECORDED = recorded(BUGS)


@pytest.mark.parametrize(
    ("plant", "shown"), RECORDED, ids=[f"{plant.__name__}-{shown.seed}" for plant, shown in RECORDED]
)
def test_a_planted_bug_is_found(plant: Plant, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_bugs(shown.rig, shown.seed) == []
    plant(monkeypatch)
    assert shown.property in violations(shown.rig, shown.seed)


# Schedules written down


@pytest.mark.parametrize("service", ["causal-fast", "causal-relative", "causal-vector"])
def test_without_its_rules_other_groups_of_a_name_hide_causes(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-97, E-98; `tests/unit/newtop/test_forming_causal.py` plays the same schedules with the rules."""
    namesakes_do_not_count(monkeypatch)
    assert told_by_one_that_went_on(service).delivered["r"] == [b"effect"]
    assert told_by_one_that_refused(service).delivered["p"] == [b"effect"]


@pytest.mark.parametrize("service", ["causal-fast", "causal-relative", "causal-vector"])
def test_without_a_freeze_effects_overtake_causes_in_the_new_group(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_formation_stops_nothing(monkeypatch)
    assert told_of_a_group_that_is_being_formed(service).delivered["b"] == [b"effect"]


TWINS = Family(
    "causal-changes", "", lambda chance: draw_symmetric_changes(chance, "causal-changes", {"causal-slow": 1})
)
"""The family with one service: its seed 327 has two states under way in two groups with the same members."""


def test_e100_two_states_in_two_groups_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = replace(TWINS.draw(327), duration=Duration(6_000 * MS))

    def violated() -> set[str]:
        run = simulate(scenario, "frames")
        return {each.property for each in judge(events_table(run.id, run.histories)) if each.violations}

    assert violated() == set()
    held_deliveries_block_states(monkeypatch)
    assert violated() >= {"D12", "L7"}
