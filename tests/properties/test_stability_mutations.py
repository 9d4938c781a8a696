"""Every seeded fault of stability and flow control is found by its checker (docs/spec/properties.md 9)."""

import random

import pytest

from tests.support.traces.handmade import good_trace, violated
from tests.support.traces.mutations import Mutation
from tests.support.traces.stability_mutations import FLOW_MUTATIONS, STABILITY_MUTATIONS

TRACES = 12


@pytest.mark.parametrize("mutation", STABILITY_MUTATIONS + FLOW_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(400):
        mutant = mutation(good_trace(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")
