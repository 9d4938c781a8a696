"""The entry of the acks family in the registry."""

from typing import Final

from msgspec.structs import replace

from antiphon.protocols.acks import as_printed
from antiphon.protocols.acks.building import build, facts, labels, told
from antiphon.protocols.acks.options import ACKS, AcksOptions
from antiphon.protocols.acks.scenarios import draw_acks
from antiphon.protocols.acks.validation import problems
from antiphon.protocols.acks.wire import WIRE
from antiphon.protocols.contract import Abilities, Errata, Family, RandomScenarios, Variants
from antiphon.scenario.model import Loss, Scenario
from antiphon.scenario.refusals import with_notices

_ABOUT: Final = {
    "T6": ("clock", "physical", "physical clocks"),
    "T9": ("clock", "logical", "logical clocks"),
    "T12": ("acks", "transitive", "transitive acknowledgments"),
}
"""By erratum: the option that its printed rule needs, the value, and both in words."""


def _concerns(erratum: str, scenario: Scenario) -> bool:
    return erratum not in _ABOUT or getattr(scenario.options, _ABOUT[erratum][0]) == _ABOUT[erratum][1]


def _adapt(_original: Scenario, changed: Scenario, _choice: str) -> Scenario:
    """Messages travel on streams, with the latencies of a datagram network that loses nothing.

    A datagram network that loses frames is left as it is: no stream behaves like it.
    """
    changed = with_notices(changed, AcksOptions())
    loses = changed.network.loss or any(isinstance(fault, Loss) for fault in changed.fault)
    return changed if loses else replace(changed, network=replace(changed.network, transport="stream"))


FAMILY: Final = Family(
    name="acks",
    services=("fifo",),
    options=AcksOptions,
    build=build,
    told=told,
    wire=WIRE,
    facts=facts,
    labels=labels,
    problems=problems,
    abilities=Abilities(lossy_streams=True),
    errata=Errata(
        names=as_printed.ERRATA,
        concerns=_concerns,
        about={erratum: words for erratum, (_, _, words) in _ABOUT.items()},
    ),
    scenarios=(
        RandomScenarios(
            name="acks",
            sentence=(
                "Four kinds of acknowledgment: lossy channels, different clocks, different sets, processes that come "
                "and go."
            ),
            draw=draw_acks,
        ),
    ),
    variants=Variants(option="acks", choices=ACKS, adapt=_adapt),
)
