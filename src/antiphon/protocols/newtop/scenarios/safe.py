"""The family `safe`: safe delivery under the failures of the family `membership`.

If groups overlap, some runs have groups in plain total order among them: their messages also wait for those of the
safe groups (docs/spec/newtop.md 14, rule 1).
"""

import random
from typing import Final

import msgspec

from antiphon.protocols.newtop.scenarios.membership import draw_with_failures
from antiphon.scenario.model import Scenario

MIXED: Final = 0.4
"""Share of the runs with several groups in which each group after the first may be in plain total order."""


def draw_safe(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    scenario = draw_with_failures(chance, "safe", {"total-safe": 100})
    first, *others = scenario.group
    if not others or chance.random() >= MIXED:
        return scenario
    mixed = [
        msgspec.structs.replace(group, service=chance.choice(["total", "total", "total-safe"])) for group in others
    ]
    return msgspec.structs.replace(scenario, group=(first, *mixed))
