"""Whole runs of groups without total order that change: seeds that once failed, and one of each service."""

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

FAMILY = FAMILIES["causal-changes"]


@pytest.mark.parametrize(
    "seed",
    [
        1862,  # a process that was still leaving left twice: M3
        2033,  # Relative, datagrams: a view overtook an own message that a formation held back (D8)
        2328,  # the same over streams
        9071,  # a process left in the nanosecond in which it installed its first view: M3
        2846,
    ],
)
def test_a_seed_that_once_failed(seed: int) -> None:
    run = simulate(FAMILY.draw(seed))
    assert run.quiet
    verdicts = judge(events_table(run.id, run.histories))
    assert not [verdict for verdict in verdicts if verdict.violations]


def test_the_family_draws_every_service_without_total_order() -> None:
    drawn = {FAMILY.draw(seed).group[0].service for seed in range(60)}
    causal = {"causal-slow", "causal-fast", "causal-relative", "causal-vector"}
    assert drawn == {*causal, "fifo", "reliable"}
