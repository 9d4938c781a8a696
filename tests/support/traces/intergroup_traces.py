"""Good runs of InterGroup, of all its services side by side: simulated runs of its campaign, without large ones."""

from functools import lru_cache
from itertools import count
from typing import Final

import pyarrow as pa

from antiphon.campaign.families import FAMILIES
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

MEMBERS_MAX: Final = 8
_FAR: Final = 1_000_000
"""From the seed of a run that is too large to that of the one in its place."""


@lru_cache(maxsize=256)
def good_intergroup_trace(seed: int) -> pa.Table:
    """A run of the family `intergroup`; that it is good is for its campaign to tell."""
    drawn = (FAMILIES["intergroup"].draw(seed + _FAR * turn) for turn in count())
    run = simulate(next(scenario for scenario in drawn if len(scenario.member) <= MEMBERS_MAX))
    return events_table(run.id, run.histories)
