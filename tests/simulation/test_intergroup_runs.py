"""Runs of the campaign family `intergroup`, by seed: those that once failed, and the rarest changes of state.

After a change of the draws, `python -m benchmarks.intergroup_states` shows which changes still happen.
"""

from enum import Enum
from typing import Final

import pytest
from msgspec.structs import replace

from antiphon.campaign.families import FAMILIES
from antiphon.core.contract import Core
from antiphon.properties.judge import judge
from antiphon.protocols.intergroup.membership.states import Event, State
from antiphon.protocols.intergroup.membership.steps import Cause, Step
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from antiphon.types import GroupId

ONCE_FAILED: Final = (
    453,  # a sender in source order: L2
    701289,  # senders could not merge, because announcements of ended repairs were late: L1 (J23)
    702133,  # a process came back and joined at the stamp at which it had joined before: R2 (J22)
    705258,  # a process was added when the next view was agreed on: M10
    705666,  # the same
    708480,  # as 702133
    712877,  # a stalled receiver: what it reported stood in the wrong view: S1
    716989,  # a stalled application sent before it had read its first view: W4
)
RARE: Final = {
    (State.TO_RECEIVER, Event.RESET): 220,
    (State.WAIT, Event.REPAIR): 154,
    (State.RECEIVER, Event.ADDED): 15,
    (Step.INFO, Cause.ROUND): 187,
    (Step.RECOVERY, Cause.ROUND): 1,
    (Step.READY, Cause.ROUND): 649,
    (Step.WAIT, Cause.ROUND): 513,
    (Step.CONSENSUS, Cause.DECIDED): 176,
    (Step.INFO, Cause.DECIDED): 279,
    (Step.RECOVERY, Cause.DECIDED): 168,
}
"""The changes that only runs of the shape `aimed` make, each with a seed."""


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_seeds_that_once_failed(seed: int) -> None:
    run = simulate(FAMILIES["intergroup"].draw(seed))
    assert run.quiet
    assert not [each for each in judge(events_table(run.id, run.histories)) if each.violations]


@pytest.mark.parametrize(("change", "seed"), RARE.items(), ids=lambda part: str(part).replace(" ", ""))
def test_random_runs_make_the_rarest_changes(change: tuple[Enum, Enum], seed: int) -> None:
    scenario = replace(FAMILIES["intergroup"].draw(seed), trace="off")
    assert scenario.name == "intergroup-aimed"
    cores: list[Core] = []
    simulate(scenario, "frames", cores.append)
    taken: set[tuple[Enum, Enum]] = set()
    for core in cores:
        assert isinstance(core, InterGroupProcess)
        standing = core.standing(GroupId("g"))
        taken |= {*standing.taken, *standing.repair.taken}
    assert change in taken
