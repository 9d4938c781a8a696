"""The family `primary`: votes on primary views under the faults of the family `changes` (docs/spec/newtop.md 15).

Members crash and come back, leave and join, part and merge. Half of the runs have safe delivery, which promises that
deliveries in a primary view last. Some count members against a configured size instead of votes.
"""

import random
from typing import Final

from msgspec.structs import replace

from antiphon.protocols.newtop.scenarios.changes import bearable, draw_symmetric_changes, with_sequencers
from antiphon.scenario.model import Scenario, members_of

STATIC: Final = 0.15
"""Share of the runs in which most members of a configured size decide."""
SEQUENCED: Final = 0.15
"""Share of the runs in which groups have a sequencer."""


def draw_primary(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    scenario = bearable(draw_symmetric_changes(chance, "primary", {"total": 50, "total-safe": 50}))
    if chance.random() < SEQUENCED:
        scenario = with_sequencers(chance, scenario)
    size = max(len(members_of(group)) for group in scenario.group)
    primary = size if chance.random() < STATIC else "dynamic"
    return replace(scenario, options=replace(scenario.options, primary=primary))
