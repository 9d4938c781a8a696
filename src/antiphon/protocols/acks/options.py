"""The options of acks scenarios."""

from typing import Final, Literal, cast, get_args

from antiphon.scenario.model import Options, Scenario
from antiphon.scenario.units import Duration

Acks = Literal["timestamp", "vector", "explicit", "transitive"]
ACKS: Final[tuple[Acks, ...]] = get_args(Acks)
"""How receivers may acknowledge; the protocols of this family differ in it, as those of others do in services."""


class AcksOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    acks: Acks = "timestamp"
    """How receivers acknowledge, and so how stability is found (Berket98)."""
    clock: Literal["physical", "logical"] = "physical"
    """What messages are stamped with: the process's own clock, or a count that messages carry along."""
    send_every: Duration = Duration(50_000_000)
    """t_send: a sender with nothing to say sends a null after this long."""
    ack_every: Duration = Duration(50_000_000)
    """t_ack: how often a receiver acknowledges."""
    stability: Literal["own", "all"] = "own"
    """Whether a member learns the stability of its own messages only, or of those of all."""
    suspect_after: Duration = Duration(500_000_000)
    """How long after a crash the survivors are told of it."""


def options_of(scenario: Scenario) -> AcksOptions:
    """The options of an acks scenario."""
    return cast("AcksOptions", scenario.options)
