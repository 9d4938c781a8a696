"""Every seeded fault of membership is found by its checker (properties.md 9), in reference and simulated traces."""

import random
from functools import cache

import pyarrow as pa
import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.support.traces.handmade import good_trace, violated
from tests.support.traces.membership_mutations import CLOSED_MUTATIONS, MEMBERSHIP_MUTATIONS
from tests.support.traces.mutations import Log, Mutation

SEEDS = 60
"""Of simulated runs; about half of them have a place for a fault."""
TRACES = 10


@cache
def simulated(seed: int) -> Log | None:
    """A run of the family `membership`; None if it is bad, which is for the campaign to report."""
    run = simulate(FAMILIES["membership"].draw(seed))
    events = events_table(run.id, run.histories)
    return None if violated(events) else Log(events)


@cache
def reference(seed: int) -> Log:
    return Log(good_trace(seed))


def closed(events: pa.Table) -> bool:
    return any('"view_change":"closed"' in (detail or "") for detail in events["detail"].slice(0, 1).to_pylist())


@pytest.mark.parametrize("mutation", MEMBERSHIP_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_fault_seeded_into_a_reference_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(600):
        mutant = mutation.apply(reference(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    assert tried > 4 or mutation.name == "one id with two memberships"  # the sequencer removes one at a time


@pytest.mark.parametrize("mutation", MEMBERSHIP_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_fault_seeded_into_a_simulated_run_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(1, SEEDS + 1):
        log = simulated(seed)
        mutant = mutation.apply(log, random.Random(seed)) if log else None
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
    assert tried > 4


@pytest.mark.parametrize("mutation", CLOSED_MUTATIONS, ids=lambda mutation: mutation.name)
def test_faults_that_only_closed_views_must_not_survive(mutation: Mutation) -> None:
    tried = {True: 0, False: 0}
    for seed in range(1, SEEDS + 1):
        log = simulated(seed)
        mutant = mutation.apply(log, random.Random(seed)) if log else None
        if mutant is not None:
            raised = violated(mutant)
            strict = closed(mutant)
            assert ("M6" in raised) == strict, f"seed {seed} raised {sorted(raised)}"
            assert not strict or mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried[strict] += 1
    assert min(tried.values()) > 2
