"""The list of protocol families: those of this package, then those that other packages declare.

A family is loaded when it is asked for, because most processes use only one.

Another package adds a family by an entry point in the group `antiphon.protocols`, whose value is its `Family`
(docs/guide/new-protocol.md).
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.protocols.contract import Family
from antiphon.scenario.model import Scenario

GROUP: Final = "antiphon.protocols"

BUILT_IN: Final = ("newtop", "classic", "acks", "intergroup")
"""The families of this package, by name."""


@cache
def built_in(name: str) -> Family:
    """One of the families of this package."""
    found: Family = import_module(f"antiphon.protocols.{name}.family").FAMILY
    return found


@cache
def families() -> Mapping[str, Family]:
    """All families by name; other packages are looked for once."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes 10 ms, and a `Member` does not need it

    found = {name: built_in(name) for name in BUILT_IN}
    kinds = {kind: family.name for family in found.values() for kind in family.wire.readers}
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
    found = built_in(name) if name in BUILT_IN else families().get(name)
    if found is None:
        raise ConfigurationError(f"protocol: there is no protocol {name!r} (there are {', '.join(families())})")
    return found


def family_of(scenario: Scenario) -> Family:
    """The family that a scenario names."""
    return family(scenario.protocol)
