"""Named families of random scenarios. The seed decides everything, so a name and a number reproduce a run."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.protocols.registry import families
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario, scenario_toml, with_seed


@dataclass(frozen=True, slots=True)
class Family:
    """A source of random scenarios."""

    name: str
    """The name of its scenarios, alone or followed by a dash and their shape."""
    sentence: str
    """What its runs have in common."""
    drawn: Callable[[random.Random], Scenario]

    def draw(self, seed: int) -> Scenario:
        """The scenario of a seed, validated and complete like one read from a file."""
        scenario = with_seed(self.drawn(random.Random(f"{self.name}/{seed}")), seed)
        try:
            return parse_scenario(scenario_toml(scenario))
        except ConfigurationError as error:
            raise AssertionError(f"family {self.name} draws an invalid scenario from seed {seed}: {error}") from error

    def shape(self, scenario: Scenario) -> str:
        """The part of a scenario's name after the family."""
        return scenario.name.removeprefix(f"{self.name}-")


FAMILIES: Final[Mapping[str, Family]] = {
    each.name: Family(each.name, each.sentence, each.draw)
    for family in families().values()
    for each in family.scenarios
}
"""By name, as the protocol families declare them."""

fixed_group: Final = FAMILIES["fixed-group"].draw
