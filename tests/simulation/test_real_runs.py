"""The evidence of `tools/lab/evidence.py`: simulated runs with faults have it, and runs without faults lack it."""

import dataclasses

import msgspec
import pytest

from antiphon.scenario.read import read_scenario
from antiphon.sim.run import simulate
from tools.lab.evidence import evidence_in
from tools.lab.real_runs import SCENARIOS

NAMES = [
    "crash",
    "flow-3",
    "join",
    "merge",
    "pause",
    "restart",
    "intergroup-lossy",
    "intergroup-faults",
    "intergroup-senders",
]


@pytest.mark.parametrize("name", NAMES)
def test_planned_events_are_found_if_they_happened_and_missed_if_not(name: str) -> None:
    told = read_scenario(SCENARIOS / f"{name}.toml")
    assert not [*evidence_in(simulate(told)).missing()]
    calm = simulate(msgspec.structs.replace(told, fault=()))
    missed = [*evidence_in(dataclasses.replace(calm, scenario=told)).missing()]
    assert len(missed) >= len(told.fault)


def test_where_nothing_is_lost_nothing_shows_that_losses_are_repaired() -> None:
    told = read_scenario(SCENARIOS / "intergroup-lossy.toml")
    network = msgspec.structs.replace(told.network, loss=0.0)
    calm = simulate(msgspec.structs.replace(told, network=network))
    assert [each for each in evidence_in(dataclasses.replace(calm, scenario=told)).missing() if "to be lost" in each]
