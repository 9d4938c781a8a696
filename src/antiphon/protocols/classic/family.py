"""The entry of the classic family in the registry."""

from typing import Final

from antiphon.protocols.classic import as_printed
from antiphon.protocols.classic.building import build, facts, told
from antiphon.protocols.classic.options import ClassicOptions
from antiphon.protocols.classic.scenarios import draw_classic, draw_combined, draw_synchronous, draw_two_phase
from antiphon.protocols.classic.validation import problems
from antiphon.protocols.classic.wire import WIRE
from antiphon.protocols.contract import Errata, Family, RandomScenarios, Variants
from antiphon.scenario.model import Scenario
from antiphon.scenario.refusals import with_notices


def _concerns(erratum: str, scenario: Scenario) -> bool:
    return as_printed.concerns(erratum, frozenset(group.service for group in scenario.group))


def _adapt(_original: Scenario, changed: Scenario, _choice: str) -> Scenario:
    return with_notices(changed, ClassicOptions())


FAMILY: Final = Family(
    name="classic",
    services=("total", "causal", "fifo", "reliable", "fifo-total", "causal-total", "synchronous"),
    options=ClassicOptions,
    build=build,
    told=told,
    wire=WIRE,
    facts=facts,
    problems=problems,
    errata=Errata(names=as_printed.ERRATA, concerns=_concerns),
    scenarios=(
        RandomScenarios(
            name="classic",
            sentence="The multicasts of the lecture notes: four services, open groups, requests, members that crash.",
            draw=draw_classic,
        ),
        RandomScenarios(
            name="two-phase",
            sentence="Two-phase total order; all members send at once and some crash.",
            draw=draw_two_phase,
        ),
        RandomScenarios(
            name="combined",
            sentence="Total order combined with FIFO or causal order; members send bursts and answers, and some crash.",
            draw=draw_combined,
        ),
        RandomScenarios(
            name="synchronous",
            sentence="Synchronous rounds that are just long enough for the delays, clocks and crashes of the run.",
            draw=draw_synchronous,
        ),
    ),
    variants=Variants(adapt=_adapt),
)
