"""One workload under many protocols: a scenario turned into the same scenario of another protocol and service.

Groups, members, workload, network, hosts and faults stay; protocol, services and the way to acknowledge are replaced.
What belongs to one family alone cannot stay: an option that the new family lacks goes back to its default. A scenario
of another family in which nobody fails runs under newtop without membership, whose probes it would not have asked for.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from antiphon.errors import ConfigurationError
from antiphon.scenario.families import concerns
from antiphon.scenario.model import (
    ACKS,
    OPTIONS_IN_FORCE,
    PROTOCOLS,
    Crash,
    Group,
    Loss,
    Network,
    Options,
    Scenario,
    membership,
)
from antiphon.scenario.units import Duration
from antiphon.scenario.validate import problems

VARIANTS: Final = {
    f"{protocol}:{each}": (protocol, each)
    for protocol, services in PROTOCOLS.items()
    for each in (ACKS if protocol == "acks" else services)
}
"""Every name of a protocol with its service, as `compare` takes it, and the two apart."""

_replace = msgspec.structs.replace


def variant(scenario: Scenario, name: str) -> Scenario:
    """The scenario under the protocol of that name; ConfigurationError with the reason if it cannot run so."""
    protocol, choice = _parts(name)
    service = PROTOCOLS[protocol][0] if protocol == "acks" else choice
    changed = _replace(
        scenario,
        name=f"{scenario.name}-{protocol}-{choice}",
        protocol=protocol,
        options=_options(scenario, protocol, choice),
        group=tuple(_group(group, protocol, service) for group in scenario.group),
        network=_network(scenario, protocol),
    )
    changed = _replace(changed, options=_replace(changed.options, literal=_literal(changed)))
    for key, problem in problems(changed):
        raise ConfigurationError(f"{scenario.name} cannot run under {name}: {key}: {problem}")
    return changed


def changes(scenario: Scenario, changed: Scenario) -> Iterator[str]:
    """What else a variant has different from its scenario, beyond protocol, services and acknowledgments, in words."""
    on, before = changed.network.transport, scenario.network.transport
    if on != before:
        yield f"on {on}s in place of {before}s: messages of {changed.protocol} need them; latencies are the same"
    alone = changed.protocol == "newtop" and not membership(changed) and scenario.protocol != "newtop"
    if alone:
        yield "without membership (options.suspect_after = 0s): nobody fails here"
    reset = [
        f"options.{option}"
        for option in Options.__struct_fields__
        if option != "acks" and getattr(changed.options, option) != getattr(scenario.options, option)
        if not (alone and option == "suspect_after")
    ]
    reset += [
        f"numbering of {a.name}"
        for a, b in zip(scenario.group, changed.group, strict=True)
        if a.numbering != b.numbering
    ]
    if reset:
        yield f"without effect there, and left out: {', '.join(reset)}"


def _parts(name: str) -> tuple[str, str]:
    if name not in VARIANTS:
        raise ConfigurationError(f"there is no protocol {name!r}; there are {', '.join(VARIANTS)}")
    return VARIANTS[name]


def _options(scenario: Scenario, protocol: str, choice: str) -> Options:
    """The options that act there as they are, all others as if nobody had set them."""
    kept = {option: getattr(scenario.options, option) for option in OPTIONS_IN_FORCE[protocol]}
    options = Options(**kept)
    if protocol == "acks":
        options = _replace(options, acks=choice)
    if protocol != "newtop" and not options.suspect_after:
        options = _replace(options, suspect_after=Options().suspect_after)  # losses are told there, after some time
    if protocol == "newtop" != scenario.protocol and not any(isinstance(fault, Crash) for fault in scenario.fault):
        options = _replace(options, suspect_after=Duration(0))
    if choice != "total":
        options = _replace(options, view_change="cut")
    if choice not in ("causal-fast", "causal-vector"):
        options = _replace(options, compression=False)
    return options


def _literal(changed: Scenario) -> tuple[str, ...]:
    """The printed rules that act there: those of another family, order, clock or way to acknowledge change nothing."""
    return tuple(erratum for erratum in changed.options.literal if concerns(erratum, changed))


def _group(group: Group, protocol: str, service: str) -> Group:
    return _replace(group, service=service, numbering=group.numbering if protocol == "newtop" else "separate")


def _network(scenario: Scenario, protocol: str) -> Network:
    """Acknowledgment protocols run over streams, so of a datagram network that loses nothing they get the latencies.

    One that loses is another matter: no stream behaves like it. InterGroup runs over datagrams.
    """
    network = scenario.network
    if protocol == "intergroup":
        return _replace(network, transport="datagram")
    loses = network.loss or any(isinstance(fault, Loss) for fault in scenario.fault)
    return _replace(network, transport="stream") if protocol == "acks" and not loses else network
