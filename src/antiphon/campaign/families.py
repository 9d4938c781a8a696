"""Named families of random scenarios: everything is drawn from the seed, so a failing run is a name and a number."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from antiphon.campaign.acks import draw_acks
from antiphon.campaign.changes import draw_changes
from antiphon.campaign.classic import draw_classic, draw_two_phase
from antiphon.campaign.fixed import draw_fixed_group
from antiphon.campaign.intergroup import draw_intergroup
from antiphon.campaign.membership import draw_membership
from antiphon.campaign.newtop import draw_newtop
from antiphon.campaign.safe import draw_safe
from antiphon.campaign.sequencer import draw_sequencer
from antiphon.errors import ConfigurationError
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario, scenario_toml, with_seed


@dataclass(frozen=True, slots=True)
class Family:
    """A source of random scenarios."""

    name: str
    """The scenarios bear it, alone or followed by a dash and their shape."""
    sentence: str
    """What its runs have in common."""
    drawn: Callable[[random.Random], Scenario]

    def draw(self, seed: int) -> Scenario:
        """The scenario of a seed, judged and complete as one read from a file."""
        scenario = with_seed(self.drawn(random.Random(f"{self.name}/{seed}")), seed)
        try:
            return parse_scenario(scenario_toml(scenario))
        except ConfigurationError as error:
            raise AssertionError(f"family {self.name} draws a wrong scenario from seed {seed}: {error}") from error

    def shape(self, scenario: Scenario) -> str:
        """What the name of one of its scenarios tells beside the family."""
        return scenario.name.removeprefix(f"{self.name}-")


FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family
    for family in (
        Family(
            "newtop",
            "Overlapping groups without failures: every service, flow control, streams and datagrams.",
            draw_newtop,
        ),
        Family(
            "membership",
            "Groups under crashes, partitions, one-way cuts, pauses and false suspicions: agreement and views.",
            draw_membership,
        ),
        Family(
            "safe",
            "Safe delivery under the failures of the family membership, in some runs beside groups in total order.",
            draw_safe,
        ),
        Family(
            "changes",
            "Groups that are formed, joined, left and merged, and processes that come back, amid failures.",
            draw_changes,
        ),
        Family(
            "sequencer",
            "Groups with a sequencer, alone and mixed with symmetric ones, under the faults of the family membership.",
            draw_sequencer,
        ),
        Family(
            "fixed-group",
            "One group in total order over streams, under faults that nobody leaves for.",
            draw_fixed_group,
        ),
        Family(
            "classic",
            "The multicasts of the lecture notes: four services, open groups, requests, members that crash.",
            draw_classic,
        ),
        Family(
            "two-phase",
            "Two-phase total order with everybody sending at once, some crashing.",
            draw_two_phase,
        ),
        Family(
            "acks",
            "Four kinds of acknowledgment: lossy channels, clocks apart, sets that differ, processes that come and go.",
            draw_acks,
        ),
        Family(
            "intergroup",
            "A fixed sender group, receivers that come and go, all delivery services in one group, lossy datagrams.",
            draw_intergroup,
        ),
    )
}
"""By name, the widest first."""

fixed_group: Final = FAMILIES["fixed-group"].draw
