"""Every seeded fault is found by its checker (properties.md 9), and good traces raise no alarm."""

import random
from functools import cache

import pytest

from antiphon.properties.families import PROMISES
from antiphon.properties.promises import COMING, JUDGED, VOTED
from tests.support.traces.handmade import good_trace, verdicts, violated
from tests.support.traces.mutations import GROUP_MUTATIONS, MUTATIONS, Log, Mutation

TRACES = 12
"""Of each fault; `python -m tests.properties.mutants` has more."""


@cache
def good_log(seed: int) -> Log:
    return Log(good_trace(seed))


@pytest.mark.parametrize("seed", range(0, 100, 20))
def test_good_traces_raise_no_alarm(seed: int) -> None:
    for number in range(seed, seed + 20):
        assert violated(good_trace(number)) == set()


def test_good_traces_give_every_property_of_newtop_opportunities() -> None:
    seen = {
        verdict.property
        for seed in range(5)
        for verdict in verdicts(good_trace(seed)).values()
        if verdict.opportunities
    }
    timed = {"L5", "L10"}  # these go by the clock, which the sequencer does not; see test_exclusions.py
    asked = {"D14"}  # promised where there are requests; see test_requests.py
    assert seen == (set(JUDGED) & PROMISES["newtop", "total"]) - timed - asked - COMING - VOTED


@pytest.mark.parametrize("mutation", MUTATIONS + GROUP_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(1000):
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")
