"""The options of InterGroup scenarios."""

from typing import Literal, cast

from antiphon.scenario.model import Fixed, Options, Scenario, Uniform
from antiphon.scenario.units import Bandwidth, Duration


class InterGroupOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    keep_alive: Fixed | Uniform = Uniform(low=Duration(25_000_000), high=Duration(75_000_000))
    """A sender with nothing to say sends a keep-alive after this long."""
    ack_every: Duration = Duration(50_000_000)
    """How often a member that does not send acknowledges, on average."""
    suspect_after: Duration = Duration(500_000_000)
    """FD_TIMEOUT."""
    window: int = 64
    """How many messages of its own may be unstable before a sender has to wait."""
    repair_timers: Literal["default", "intergroup", "srm", "distances", "round-trips"] = "default"
    """How the timers of requests and repairs adapt.

    As printed, but that the first repairs wait less; also these as printed; in the order of the literature on SRM; or
    as printed, with delays counted in distances or in round trips in place of seconds.
    """
    rate: Bandwidth | None = None
    """What a group sends at first, all senders together; it grows while nothing is lost. None: any."""
    wait: Duration = Duration(200_000_000)
    """unreliable-total: how long a message waits for those that may come before it."""


def options_of(scenario: Scenario) -> InterGroupOptions:
    """The options of an InterGroup scenario."""
    return cast("InterGroupOptions", scenario.options)
