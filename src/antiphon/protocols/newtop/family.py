"""Newtop as the registry knows it."""

from collections.abc import Mapping
from typing import Final, get_args

from msgspec.structs import replace

from antiphon.protocols.contract import Abilities, Errata, Family, Problems, RandomScenarios, Sockets, Variants
from antiphon.protocols.newtop import as_printed
from antiphon.protocols.newtop.building import build, facts, labels, told
from antiphon.protocols.newtop.options import NewtopOptions, asymmetric, membership, options_of
from antiphon.protocols.newtop.scenarios.causal_changes import draw_causal_changes
from antiphon.protocols.newtop.scenarios.changes import draw_changes
from antiphon.protocols.newtop.scenarios.evidence import draw_evidence
from antiphon.protocols.newtop.scenarios.fixed import draw_fixed_group
from antiphon.protocols.newtop.scenarios.halted import draw_halted
from antiphon.protocols.newtop.scenarios.membership import draw_membership
from antiphon.protocols.newtop.scenarios.overlapping import draw_newtop
from antiphon.protocols.newtop.scenarios.primary import draw_primary
from antiphon.protocols.newtop.scenarios.requests import draw_requests
from antiphon.protocols.newtop.scenarios.safe import draw_safe
from antiphon.protocols.newtop.scenarios.sequencer import draw_sequencer
from antiphon.protocols.newtop.settings import Service
from antiphon.protocols.newtop.validation import problems
from antiphon.protocols.newtop.wire.declared import WIRE
from antiphon.scenario.model import Crash, Scenario, members_of
from antiphon.scenario.units import Duration

NAME: Final = "newtop"


def _concerns(erratum: str, scenario: Scenario) -> bool:
    options = options_of(scenario)
    return as_printed.concerns(
        erratum,
        frozenset(group.service for group in scenario.group),
        options.flow_control,
        options.view_change,
        membership=membership(scenario),
        overlapping=any(sum(name in members_of(group) for group in scenario.group) > 1 for name in scenario.processes),
        sequencer=asymmetric(scenario),
    )


def _adapt(original: Scenario, changed: Scenario, choice: str) -> Scenario:
    """Reset options that the service does not support; turn membership off in a scenario without crashes.

    The probes of membership would be traffic that the original scenario does not have.
    """
    options = options_of(changed)
    if original.protocol != NAME and not any(isinstance(fault, Crash) for fault in original.fault):
        options = replace(options, suspect_after=Duration(0))
    if choice != "total":
        options = replace(options, view_change="cut")
    if choice not in ("causal-fast", "causal-vector"):
        options = replace(options, compression=False)
    return replace(changed, options=options)


def _notes(original: Scenario, changed: Scenario) -> Mapping[str, str]:
    alone = not membership(changed) and original.protocol != NAME
    told = "without membership (options.suspect_after = 0s), failures are not detected"
    return {"suspect_after": told} if alone else {}


def _unplayable(scenario: Scenario) -> Problems:
    if options_of(scenario).excluded_count is True:
        yield "options.excluded_count", "is for the simulator: the journals of real processes do not keep it"


FAMILY: Final = Family(
    name=NAME,
    services=get_args(Service),
    options=NewtopOptions,
    build=build,
    told=told,
    wire=WIRE,
    facts=facts,
    labels=labels,
    problems=problems,
    abilities=Abilities(formation=True, recovery=True, numbering=True, sequencer=True),
    errata=Errata(names=as_printed.ERRATA, concerns=_concerns),
    scenarios=(
        RandomScenarios(
            name="newtop",
            sentence="Overlapping groups without failures: every service, flow control, streams and datagrams.",
            draw=draw_newtop,
        ),
        RandomScenarios(
            name="membership",
            sentence=(
                "Groups under crashes, partitions, one-way cuts, pauses and false suspicions: agreement and views."
            ),
            draw=draw_membership,
        ),
        RandomScenarios(
            name="halted",
            sentence="Total order whose senders wait from the first suspicion on, under the failures of membership.",
            draw=draw_halted,
        ),
        RandomScenarios(
            name="safe",
            sentence=(
                "Safe delivery under the failures of the family membership, in some runs beside groups in total order."
            ),
            draw=draw_safe,
        ),
        RandomScenarios(
            name="changes",
            sentence="Groups that are formed, joined, left and merged, and processes that come back, amid failures.",
            draw=draw_changes,
        ),
        RandomScenarios(
            name="causal-changes",
            sentence="Groups without total order that are formed, joined, left and merged, amid failures.",
            draw=draw_causal_changes,
        ),
        RandomScenarios(
            name="requests",
            sentence="Requests to groups and their answers, under the faults and changes of the family changes.",
            draw=draw_requests,
        ),
        RandomScenarios(
            name="primary",
            sentence="Votes on primary views, amid failures, restarts, leaves, joins, partitions and merges.",
            draw=draw_primary,
        ),
        RandomScenarios(
            name="sequencer",
            sentence=(
                "Groups with a sequencer, alone and mixed with symmetric ones, under the faults of the family "
                "membership."
            ),
            draw=draw_sequencer,
        ),
        RandomScenarios(
            name="evidence",
            sentence="The failures of membership and changes, and evidence of deaths beside them, right and wrong.",
            draw=draw_evidence,
        ),
        RandomScenarios(
            name="fixed-group",
            sentence="One group in total order over streams, under faults that exclude no member.",
            draw=draw_fixed_group,
        ),
    ),
    variants=Variants(adapt=_adapt, notes=_notes),
    sockets=Sockets(player="groups", problems=_unplayable),
)
