"""The options of classic scenarios."""

from typing import Final, cast

from msgspec import UNSET, UnsetType

from antiphon.scenario.model import Options, Scenario
from antiphon.scenario.units import Duration

ROUND: Final = Duration(100_000_000)
"""Δ, if a scenario does not say it."""


class ClassicOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    suspect_after: Duration = Duration(500_000_000)
    """Time from a crash until the survivors are told of it."""
    round: Duration | UnsetType = UNSET
    """Δ: the length of a round of service `synchronous`; unset: 100 ms."""


def options_of(scenario: Scenario) -> ClassicOptions:
    """The options of a classic scenario."""
    return cast("ClassicOptions", scenario.options)


def round_of(options: ClassicOptions) -> Duration:
    """The effective Δ."""
    return ROUND if options.round is UNSET else options.round
