"""The family `requests`: the runs of `changes`, in which most workloads are requests to the group (newtop.md 16)."""

import random
from typing import Final, Literal

from msgspec.structs import replace

from antiphon.protocols.newtop.scenarios.changes import SEQUENCED, bearable, draw_symmetric_changes, with_sequencers
from antiphon.scenario.model import Scenario, Workload

_ASKED: Final = 0.75
"""Share of the workloads that are requests."""
_MODES: Final[tuple[Literal["any", "first", "majority", "all"], ...]] = ("any", "first", "majority", "all")


def draw_requests(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    scenario = bearable(draw_symmetric_changes(chance, "requests"))
    scenario = replace(scenario, workload=tuple(_asking(chance, workload) for workload in scenario.workload))
    return with_sequencers(chance, scenario) if chance.random() < SEQUENCED else scenario


def _asking(chance: random.Random, workload: Workload) -> Workload:
    if chance.random() >= _ASKED:
        return workload
    return replace(workload, answers=chance.choice(_MODES), replies=False)
