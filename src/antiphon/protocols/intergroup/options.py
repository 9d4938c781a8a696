"""The options of InterGroup scenarios."""

from typing import Literal, cast

from antiphon.scenario.model import Fixed, Options, Scenario, Uniform
from antiphon.scenario.units import Bandwidth, Duration


class InterGroupOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    keep_alive: Fixed | Uniform = Uniform(low=Duration(25_000_000), high=Duration(75_000_000))
    """An idle sender transmits a keep-alive after this time."""
    report_every: Duration = Duration(20_000_000)
    """The mean interval between the acknowledgments of all members that do not send, taken together."""
    suspect_after: Duration = Duration(500_000_000)
    """FD_TIMEOUT. An option of several families has one default, so only the cores have the 2 s of M22."""
    window: int = 64
    """The number of its own messages that may be unstable before a sender waits."""
    repair_timers: Literal["default", "intergroup", "srm", "distances", "round-trips"] = "default"
    """How the timers of requests and repairs adapt.

    As printed, except that the first repairs wait less; exactly as printed; in the order of the SRM literature; or as
    printed, with delays counted in distances or in round trips instead of seconds.
    """
    rate: Bandwidth | None = None
    """The first rate of all senders of a group together; it grows while nothing is lost. None: no limit."""
    idle_after: Duration = Duration(0)
    """A sender whose application has sent nothing for this time becomes a receiver; "0s": never."""
    wait: Duration = Duration(200_000_000)
    """unreliable-total: how long a message waits for earlier ones."""


def options_of(scenario: Scenario) -> InterGroupOptions:
    """The options of an InterGroup scenario."""
    return cast("InterGroupOptions", scenario.options)
