"""The runs of `benchmarks/netlab_senders.py` in the simulator: each change happens, is measured, and all holds."""

import pytest

from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tools.lab.evidence import evidence_in
from tools.lab.sender_changes import CHANGES, scenario_of, times_of


@pytest.mark.parametrize("change", [*CHANGES])
def test_every_process_shows_the_change(change: str) -> None:
    scenario = scenario_of(change, seed=1)
    run = simulate(scenario)
    assert not [*evidence_in(run).missing()]
    assert not [verdict.property for verdict in judge(events_table(run.id, run.histories)) if verdict.violations]
    times = times_of(change, run)
    assert {each.process for each in times} == {*scenario.processes} - ({"b"} if change == "kill" else set())
    for each in times:
        assert 0 < each.view_ms <= each.delivery_ms < 5_000
        assert 0 < each.pause_ms <= each.delivery_ms + 1_000
