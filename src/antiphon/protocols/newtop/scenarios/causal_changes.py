"""The family `causal-changes`: groups without total order that are formed, joined, left and merged, amid failures.

Faults, networks, workloads and changes are those of the family `changes`. Members number their messages themselves.
"""

import random
from collections.abc import Mapping
from typing import Final

from antiphon.protocols.newtop.scenarios.changes import bearable, draw_symmetric_changes
from antiphon.protocols.newtop.settings import Service
from antiphon.scenario.model import Scenario

_SERVICES: Final[Mapping[Service, int]] = {
    "causal-slow": 20,
    "causal-fast": 20,
    "causal-relative": 20,
    "causal-vector": 14,
    "fifo": 15,
    "reliable": 11,
}
"""Percentage of runs in which all groups have this service."""


def draw_causal_changes(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    return bearable(draw_symmetric_changes(chance, "causal-changes", _SERVICES))
