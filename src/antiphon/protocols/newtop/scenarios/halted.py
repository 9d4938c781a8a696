"""The family `halted`: senders wait from the first suspicion on, under the failures of the family `membership`."""

import random

from msgspec.structs import replace

from antiphon.protocols.newtop.scenarios.membership import draw_with_failures
from antiphon.scenario.model import Scenario


def draw_halted(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    scenario = draw_with_failures(chance, "halted", {"total": 100})
    return replace(scenario, options=replace(scenario.options, view_change="halted"))
