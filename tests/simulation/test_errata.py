"""Each printed rule that is wrong breaks a promise in the scenario shipped for it; the adopted rule keeps them all."""

from pathlib import Path

import msgspec
import pytest

from antiphon.core.newtop.literal import ERRATA
from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import read_scenario
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "errata"
BREAKS = {
    "E-1": {"L2", "L6", "L8", "D8"},
    "E-6": set[str](),  # a budget, see below
    "E-9": {"L2", "L6", "L8", "D8"},
    "E-11": {"O3"},
    "E-13": {"L2", "L6", "L8", "D8"},
    "E-14": {"L2", "L6", "L8"},
    "E-15": {"O3"},
    "E-18": {"S1"},
    "E-19b": {"L3", "L7", "F3"},
}
"""What the printed rule breaks. Of those, the scenario's own words name the first cause; others follow from it."""


def scenario_of(erratum: str, *, literal: bool) -> Scenario:
    scenario = read_scenario(SCENARIOS / f"{erratum}.toml")
    assert scenario.options.literal == (erratum,)
    if literal:
        return scenario
    return msgspec.structs.replace(scenario, options=msgspec.structs.replace(scenario.options, literal=()))


def violated(run: Run) -> set[str]:
    return {verdict.property for verdict in judge(events_table(run.id, run.histories)) if verdict.violations}


def nulls_per_message(run: Run) -> float:
    transmits = [row["detail"] for history in run.histories for row in history.rows if row["kind"] == "transmit"]
    return sum('"type":"null"' in detail for detail in transmits) / run.requests


def test_every_erratum_has_its_scenario() -> None:
    assert sorted(path.stem for path in SCENARIOS.glob("*.toml")) == sorted(ERRATA) == sorted(BREAKS)


@pytest.mark.parametrize("erratum", ERRATA)
def test_the_printed_rule_breaks_what_its_scenario_names(erratum: str) -> None:
    run = simulate(scenario_of(erratum, literal=True))
    assert run.quiet
    assert BREAKS[erratum] <= violated(run)


@pytest.mark.parametrize("erratum", ERRATA)
def test_the_adopted_rule_keeps_every_promise_there(erratum: str) -> None:
    run = simulate(scenario_of(erratum, literal=False))
    assert run.quiet
    assert not violated(run)


def test_e_6_the_printed_filter_breaks_the_budget_of_nulls() -> None:
    """Both send within the silence timeout of one another, so that each message pays for the other: no nulls needed."""
    adopted, printed = (simulate(scenario_of("E-6", literal=literal)) for literal in (False, True))
    assert nulls_per_message(adopted) < 0.1
    assert nulls_per_message(printed) > 0.4
