"""The entry of InterGroup in the registry."""

from typing import Final

from msgspec.structs import replace

from antiphon.protocols.contract import Abilities, Errata, Family, Problems, RandomScenarios, Sockets, Variants
from antiphon.protocols.intergroup import as_printed
from antiphon.protocols.intergroup.building import build, facts, told
from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.protocols.intergroup.scenarios.mixed import draw_intergroup
from antiphon.protocols.intergroup.validation import SERVICES, problems
from antiphon.protocols.intergroup.wire import WIRE
from antiphon.scenario.model import Scenario
from antiphon.scenario.refusals import with_notices

_MESSAGE_BYTES_MAX: Final = 60_000
"""On sockets, a message is one datagram, also in a repair; the rest of the datagram is for headers."""


def _socket_problems(scenario: Scenario) -> Problems:
    if scenario.network.transport != "datagram":
        yield "", "intergroup runs over udp only: it multicasts, and repairs losses itself"
    for i, workload in enumerate(scenario.workload):
        if workload.payload > _MESSAGE_BYTES_MAX:
            most = f"of at most {_MESSAGE_BYTES_MAX:,} bytes; {workload.payload:,} are more"
            yield f"workload[{i}].payload", f"with intergroup a message is one datagram, {most}"


def _adapt(_original: Scenario, changed: Scenario, _choice: str) -> Scenario:
    """InterGroup runs over datagrams."""
    changed = with_notices(changed, InterGroupOptions())
    return replace(changed, network=replace(changed.network, transport="datagram"))


FAMILY: Final = Family(
    name="intergroup",
    services=SERVICES,
    options=InterGroupOptions,
    build=build,
    told=told,
    wire=WIRE,
    facts=facts,
    problems=problems,
    abilities=Abilities(sites=True, own_services=True, recovery=True, roles=True),
    errata=Errata(names=as_printed.ERRATA),
    scenarios=(
        RandomScenarios(
            name="intergroup",
            sentence=(
                "Senders and receivers that come, go and change places, all services in one group, lossy datagrams."
            ),
            draw=draw_intergroup,
        ),
    ),
    variants=Variants(adapt=_adapt),
    sockets=Sockets(player="multicast", problems=_socket_problems, reconnects=True, link_faults=True),
)
