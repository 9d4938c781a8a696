"""The options of classic scenarios."""

from typing import cast

from antiphon.scenario.model import Options, Scenario
from antiphon.scenario.units import Duration


class ClassicOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    suspect_after: Duration = Duration(500_000_000)
    """Time from a crash until the survivors are told of it."""


def options_of(scenario: Scenario) -> ClassicOptions:
    """The options of a classic scenario."""
    return cast("ClassicOptions", scenario.options)
