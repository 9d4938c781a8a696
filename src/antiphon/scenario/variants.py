"""One workload under many protocols: a scenario turned into the same scenario of another protocol and service.

Groups, members, workload, network, hosts and faults stay; protocol, services and the way to acknowledge are replaced.
An option that the new family lacks returns to its default. Each family adapts the rest to what it needs (`Variants` in
`protocols/contract.py`).
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from antiphon.errors import ConfigurationError
from antiphon.protocols.contract import Family
from antiphon.protocols.registry import families, family_of
from antiphon.scenario.model import Group, Options, Scenario
from antiphon.scenario.options import defaults, every_option
from antiphon.scenario.validate import concerns, problems

_replace = msgspec.structs.replace


@cache
def variants() -> Mapping[str, tuple[Family, str]]:
    """By name as `compare` accepts it (family:service): the family and the service."""
    return {
        f"{family.name}:{choice}": (family, choice)
        for family in families().values()
        for choice in family.variants.choices or family.services
    }


def variant(scenario: Scenario, name: str) -> Scenario:
    """The scenario under the protocol of that name; ConfigurationError with the reason if that is impossible."""
    if name not in variants():
        raise ConfigurationError(f"there is no protocol {name!r}; there are {', '.join(variants())}")
    family, choice = variants()[name]
    changed = _replace(
        scenario,
        name=f"{scenario.name}-{family.name}-{choice}",
        protocol=family.name,
        options=_options(scenario, family, choice),
        group=tuple(_group(group, family, choice) for group in scenario.group),
    )
    changed = family.variants.adapt(scenario, changed, choice)
    changed = _replace(changed, options=_replace(changed.options, literal=_literal(changed)))
    for key, problem in problems(changed):
        raise ConfigurationError(f"{scenario.name} cannot run under {name}: {key}: {problem}")
    return changed


def changes(scenario: Scenario, changed: Scenario) -> Iterator[str]:
    """Other differences of a variant from its scenario, beyond protocol, services and acknowledgments."""
    family = family_of(changed)
    on, before = changed.network.transport, scenario.network.transport
    if on != before:
        yield f"on {on}s instead of {before}s, because {changed.protocol} needs them; latencies are the same"
    notes = family.variants.notes(scenario, changed)
    yield from notes.values()
    said, kept = every_option(scenario), every_option(changed)
    reset = [
        f"options.{option}"
        for option in {**said, **kept}
        if option not in (family.variants.option, *notes) and _differs(option, said, kept)
    ]
    reset += [
        f"numbering of {a.name}"
        for a, b in zip(scenario.group, changed.group, strict=True)
        if a.numbering != b.numbering
    ]
    if reset:
        yield f"left out, because they have no effect there: {', '.join(reset)}"


def _differs(option: str, said: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """An option that only one of the two families has is at its default in the other."""
    return option in said and option in kept and said[option] != kept[option]


def _options(scenario: Scenario, family: Family, choice: str) -> Options:
    """The options that have an effect there as they are, all others at their defaults."""
    options = defaults(family)
    own = scenario.options.__struct_fields__
    kept = {name: getattr(scenario.options, name) for name in options.__struct_fields__ if name in own}
    if family.variants.option is not None:
        kept[family.variants.option] = choice
    return _replace(options, **kept)


def _literal(changed: Scenario) -> tuple[str, ...]:
    """The printed rules that have an effect there, given its family, order, clock and acknowledgments."""
    return tuple(erratum for erratum in changed.options.literal if concerns(erratum, changed))


def _group(group: Group, family: Family, choice: str) -> Group:
    service = family.services[0] if family.variants.option is not None else choice
    return _replace(group, service=service, numbering=group.numbering if family.abilities.numbering else "separate")
