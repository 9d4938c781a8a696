"""What `benchmarks/real_runs.py` takes for evidence: simulated runs have it, and lack it if nothing befalls them."""

import dataclasses

import msgspec
import pytest

from antiphon.scenario.read import read_scenario
from antiphon.sim.run import simulate
from benchmarks.real_runs import SCENARIOS, Evidence


@pytest.mark.parametrize("name", ["crash", "flow-3", "join", "merge", "pause", "restart"])
def test_what_a_scenario_says_is_seen_where_it_happens_and_missed_where_it_does_not(name: str) -> None:
    told = read_scenario(SCENARIOS / f"{name}.toml")
    assert not [*Evidence(simulate(told)).missing()]
    calm = simulate(msgspec.structs.replace(told, fault=()))
    missed = [*Evidence(dataclasses.replace(calm, scenario=told)).missing()]
    assert len(missed) >= len(told.fault)
