"""The options of acks scenarios."""

from typing import Final, Literal, cast, get_args

from antiphon.scenario.model import Options, Scenario
from antiphon.scenario.units import Duration

Acks = Literal["timestamp", "vector", "explicit", "transitive"]
ACKS: Final[tuple[Acks, ...]] = get_args(Acks)
"""The kinds of acknowledgments: the protocols of this family differ in them as other families do in services."""


class AcksOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    acks: Acks = "timestamp"
    """How receivers acknowledge, and so how stability is found (Berket98)."""
    clock: Literal["physical", "logical"] = "physical"
    """The source of stamps: the clock of the process, or a logical clock."""
    send_every: Duration = Duration(50_000_000)
    """t_send: an idle sender sends a null after this time."""
    ack_every: Duration = Duration(50_000_000)
    """t_ack: the interval between the acknowledgments of a receiver."""
    stability: Literal["own", "all"] = "own"
    """Whether a member learns which of its own messages are stable, or which messages of all members."""
    suspect_after: Duration = Duration(500_000_000)
    """Time from a crash until the survivors are told of it."""


def options_of(scenario: Scenario) -> AcksOptions:
    """The options of an acks scenario."""
    return cast("AcksOptions", scenario.options)
