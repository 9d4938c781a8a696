"""The list of protocol families: those of this package, then those that other packages declare.

Another package adds a family by an entry point in the group `antiphon.protocols`, whose value is its `Family`
(docs/guide/new-protocol.md).
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.protocols.acks.family import FAMILY as ACKS
from antiphon.protocols.classic.family import FAMILY as CLASSIC
from antiphon.protocols.contract import Family
from antiphon.protocols.intergroup.family import FAMILY as INTERGROUP
from antiphon.protocols.newtop.family import FAMILY as NEWTOP
from antiphon.scenario.model import Scenario

GROUP: Final = "antiphon.protocols"

BUILT_IN: Final[Mapping[str, Family]] = {family.name: family for family in (NEWTOP, CLASSIC, ACKS, INTERGROUP)}
"""The families of this package."""


@cache
def families() -> Mapping[str, Family]:
    """All families by name; other packages are looked for once."""
    found = dict(BUILT_IN)
    kinds = {kind: family.name for family in BUILT_IN.values() for kind in family.wire.readers}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        family = point.load()
        _require(isinstance(family, Family), point.value, "is not a Family")
        _require(family.name == point.name, point.value, f"is called {family.name!r}, its entry point {point.name!r}")
        _require(family.name not in found, point.value, f"takes the name {family.name!r}, which is in use")
        for kind in family.wire.readers:
            owner = kinds.setdefault(kind, family.name)
            _require(owner == family.name, point.value, f"uses frame kind {kind}, which belongs to {owner}")
        found[family.name] = family
    return found


def _require(fulfilled: bool, value: str, sentence: str) -> None:
    if not fulfilled:
        raise ConfigurationError(f"entry point {value} of group {GROUP} {sentence}")


def family(name: str) -> Family:
    """The family of that name; ConfigurationError if there is none."""
    found = BUILT_IN.get(name) or families().get(name)
    if found is None:
        raise ConfigurationError(f"protocol: there is no protocol {name!r} (there are {', '.join(families())})")
    return found


def family_of(scenario: Scenario) -> Family:
    """The family that a scenario names."""
    return family(scenario.protocol)
