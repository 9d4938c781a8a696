"""A planted bug is found if some run violates the property that it breaks."""

from collections.abc import Callable
from typing import Any

import pytest

from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

Plant = Callable[[pytest.MonkeyPatch], None]


def assert_found(property_: str, scenarios: Any) -> None:
    """At least one of these runs violates the property; runs that an assertion of the core stops do not count."""
    scenario: Scenario
    for scenario in scenarios:
        try:
            run = simulate(scenario, "frames")  # the codec would refuse some of these frames
        except AssertionError:
            continue
        verdicts = judge(events_table(run.id, run.histories))
        if any(verdict.property == property_ and verdict.violations for verdict in verdicts):
            return
    raise AssertionError(f"no {property_} in all these runs")
