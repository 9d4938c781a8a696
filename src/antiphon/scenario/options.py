"""The `[options]` table of a scenario file, read with the options struct of its family.

A written scenario names the options of all families of this package, each at its default unless its own family sets it.
So the text of a scenario, and with it the id of its run, does not depend on which family an option belongs to.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from antiphon.protocols.contract import Family
from antiphon.protocols.registry import BUILT_IN, built_in, families, family_of
from antiphon.scenario.model import Options, Scenario
from antiphon.scenario.units import quantity

_LAST = "literal"
"""The option that all families have; it is written last."""


@cache
def _owners() -> dict[str, type[Options]]:
    """By option, the first struct that has it, for its type and default."""
    owners: dict[str, type[Options]] = {}
    for family in families().values():
        for name in family.options.__struct_fields__:
            owners.setdefault(name, family.options)
    return owners


def defaults(family: Family) -> Options:
    """The default options of a family."""
    return family.options()


def every_option(scenario: Scenario) -> dict[str, Any]:
    """All options by name: those of its family as they are, those of other families at their defaults.

    An option that is not set at all, and has no default, is left out.
    """
    named = [name for family in BUILT_IN for name in built_in(family).options.__struct_fields__]
    own = family_of(scenario).options
    named += own.__struct_fields__
    default = {name: getattr(_owners()[name](), name) for name in dict.fromkeys(named)}
    last = default.pop(_LAST)
    default |= {name: getattr(own(), name) for name in own.__struct_fields__ if name != _LAST}
    said = {name: getattr(scenario.options, name) for name in scenario.options.__struct_fields__}
    every = default | {_LAST: last} | said
    return {name: value for name, value in every.items() if value is not msgspec.UNSET}


def decoded(table: object, family: Family) -> Options:
    """The options in a table, with the right types; msgspec.ValidationError if one is unknown or has a wrong type."""
    if not isinstance(table, dict):
        return msgspec.convert(table, family.options)
    own, foreign = _split(table, family)
    for name, value in foreign.items():
        msgspec.convert({name: value}, _owners()[name], dec_hook=quantity)
    return msgspec.convert(own, family.options, dec_hook=quantity)


def idle(table: object, family: Family) -> Iterator[str]:
    """Options of other families that are set: they have no effect, which the author does not expect."""
    foreign = _split(table, family)[1] if isinstance(table, dict) else {}
    for name, value in foreign.items():
        owner = _owners()[name]
        if getattr(msgspec.convert({name: value}, owner, dec_hook=quantity), name) != getattr(owner(), name):
            yield name


def _split(table: dict[str, Any], family: Family) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that the family knows or that are unknown, and those that only other families know."""
    known = family.options.__struct_fields__
    foreign = {name: value for name, value in table.items() if name not in known and name in _owners()}
    return {name: value for name, value in table.items() if name not in foreign}, foreign


def words(name: str) -> tuple[str, ...]:
    """The allowed values of an option that is a choice of words."""
    owner = _owners().get(name)
    hint = owner.__annotations__.get(name) if owner is not None else None
    return get_args(hint) if str(get_origin(hint)) == "typing.Literal" else ()
